"""`fit` of a model of Keras that the workers of a plain script train together.

Keras runs its own loop: epochs, callbacks, metrics, validation. Only the step is another one. Each
worker takes its rows of the batch, and has Keras compute the gradients of these. They go into a
graph whose variables stand for those of the model, and which is spread over workers as that of any
script is (`headrace.data_parallel`): on servers or in each worker, by itself or with the average of
all. What the variables are after the update is what the worker goes on with. What metrics have
counted travels with the gradients (`GradientNotes`): so each worker knows the metrics of all rows.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from headrace import logging
from headrace.data.dataset import Dataset
from headrace.graph.dtypes import as_dtype
from headrace.graph.graph import Graph, get_default_graph
from headrace.keras.graph_optimizer import GradientNotes, KerasRule
from headrace.keras.loading import keras_inner, load_keras
from headrace.keras.variables import seed_states
from headrace.ops.control import basic
from headrace.ops.core.build import placeholder
from headrace.ops.state import share
from headrace.ops.state.initializers import Zeros
from headrace.ops.state.variables import Variable
from headrace.ops.state.variables_api import global_variables_initializer
from headrace.session.session import Session

__all__ = ["ended", "install", "sharing", "taken"]

#: Between the seeds of two workers.
_APART = 1_000_003


def sharing() -> Any:
    """This worker's share, if several train the models of this script; else None."""
    own = share.of(get_default_graph())
    return own if own is not None and own.workers > 1 else None


class SharedModel:
    """What workers share of a model.

    Args:
        model: compiled, with variables.
        own: this worker's share.

    Attributes:
        reads_share: whether the dataset of the current `fit` has this worker's share only.
        counts: whether metrics are those of an epoch of `fit`.
        has_left: whether it takes part in updates no longer.
    """

    def __init__(self, model: Any, own: Any) -> None:
        self.model, self.own, self.optimizer = model, own, model.optimizer
        self.reads_share = self.counts = False
        self._trained = list(model.trainable_variables)
        self._metrics = [v for v in model.metrics_variables if v.aggregation == "sum"]
        self._state = _moving(model)
        sizes = [sum(int(np.prod(v.shape)) for v in vs) for vs in (self._metrics, self._state)]
        self._layout = GradientNotes(sizes[0], sizes[1], own.workers if own.averages else 1)
        self._counted = self._base = np.zeros(sizes[0])
        self._last: list[Any] = []
        self._logs: Any = {}
        self._is_behind = self.has_left = False
        self._build()
        self._gradients = jax.jit(self._compute)
        _set_seeds_apart(model, own.worker)

    def fits(self, model: Any) -> bool:
        """Whether the model is still what it was: compiled once, with these variables."""
        now = model.trainable_variables
        return model.optimizer is self.optimizer and list(map(id, now)) == [
            id(v) for v in self._trained
        ]

    # -- the graph --------------------------------------------------------------------------

    def _build(self) -> None:
        with Graph().as_default() as graph:
            made = {_variable(v, f"v{i}"): v for i, v in enumerate(self._trained)}
            self._values = list(made)
            notes = Variable(np.zeros(self._layout.size), name="notes", trainable=False)
            targets = [*self._values, notes]
            self._grads = [placeholder(v.dtype.base_dtype, v.shape) for v in targets]
            self.own.feeds_own(self._grads)
            rule = KerasRule(self.optimizer, made, notes, self._layout)
            train = rule.apply_gradients(list(zip(self._grads, targets, strict=True)))
            with graph.control_dependencies([train]):
                self._after = [v.read_value() for v in targets]
            slots = [pair for v in self._values for pair in rule.slots_of(v)]
            self._paths = [path for path, _ in slots]
            kept = [*self._values, *(slot for _, slot in slots)]
            self._given = [placeholder(v.dtype.base_dtype, v.shape) for v in kept]
            changes = [v.assign(g).op for v, g in zip(kept, self._given, strict=True)]
            self._begin = basic.group(*changes)
            self._reads = [v.read_value() for v in kept]
            initialise = global_variables_initializer()
            self.session = Session(graph=graph)
        self.session.run(initialise)

    def begin(self) -> None:
        """Take part, with the values of the chief's model."""
        values = [v.value for v in self._trained]
        if len(values) == len(self._last) and all(map(_is, values, self._last)):
            return
        state = {v.path: np.asarray(v.value) for v in self.optimizer.variables}
        if not self.own.averages:  # there each update counts, of whichever worker
            count = self.optimizer._iterations.path
            state[count] = state[count] * np.asarray(self.own.workers, state[count].dtype)
        given = [*map(np.asarray, values), *(state[path] for path in self._paths)]
        self.session.run(self._begin, dict(zip(self._given, given, strict=True)))
        self.take()

    def take(self) -> None:
        """Give the model, and its optimiser, the values that count."""
        found = self.session.run(self._reads)
        for variable, value in zip(self._trained, found, strict=False):
            variable.assign(value)
        state = {v.path: v for v in self.optimizer.variables if v is not self.optimizer._iterations}
        for path, value in zip(self._paths, found[len(self._values) :], strict=True):
            if path in state:
                state[path].assign(value)
        self._last = [v.value for v in self._trained]

    def end(self) -> None:
        """Wait until all have ended their training, and take what it has come to."""
        self.has_left = self.reads_share
        self.own.end_training(self.session, is_even=not self.reads_share)
        self.take()

    def close(self, next_one: SharedModel) -> None:
        """End the session, once all workers have come to what follows this."""
        self.own.begin_training(next_one.session)
        self.session.close()

    # -- steps ------------------------------------------------------------------------------

    def _compute(self, state: Any, data: Any, scale: Any) -> Any:
        """Gradients of one batch, as `train_step` of Keras computes them; nothing is applied."""
        model = self.model
        trainable, other, optimizer, metrics = state
        unpack = keras_inner("trainers.data_adapters.data_adapter_utils").unpack_x_y_sample_weight
        x, y, weights = unpack(data)
        compute = jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)
        given = (trainable, other, metrics, x, y, weights)
        (_, found), grads = compute(*given, training=True, optimizer_variables=optimizer)
        loss, outputs, other, metrics = found
        loss = loss * jax.numpy.asarray(scale, loss.dtype)  # as metrics are to know it
        logs, metrics = model._update_metrics_variables(metrics, loss, x, y, outputs, weights)
        return logs, grads, other, metrics

    def step(self, state: Any, data: Any) -> Any:
        """In the place of `train_step`: the logs of this worker's rows, and the new state."""
        trainable, other, optimizer, metrics = state
        rows, weight, scale = self._rows(data)
        if weight:
            self._logs, grads, new_other, new_metrics = self._gradients(state, rows, scale)
        elif not self.own.averages:
            return self._logs, state
        else:  # others have rows of this last batch
            new_other, new_metrics = other, metrics
            grads = [np.zeros(v.shape, v.dtype) for v in trainable]
        told = [
            np.asarray([self._rate(optimizer)]),
            _change(self._metrics, self.model.metrics_variables, metrics, new_metrics),
            _change(self._state, self.model.non_trainable_variables, other, new_other),
        ]
        feeds = [g if weight == 1 else np.asarray(g) * np.asarray(weight, g.dtype) for g in grads]
        feeds.append(np.concatenate(told))
        *values, notes = self.session.run(self._after, dict(zip(self._grads, feeds, strict=True)))
        counted = 1 + self._layout.metrics
        self._counted, self._is_behind = notes[1:counted], self.counts
        averages = notes[counted:]
        other = _filled(self._state, self.model.non_trainable_variables, new_other, averages)
        steps = self.optimizer._iterations
        pairs = zip(self.optimizer.variables, optimizer, strict=True)
        optimizer = [value + 1 if v is steps else value for v, value in pairs]
        trainable = [jax.numpy.asarray(v) for v in values]
        return self._logs, (trainable, other, optimizer, new_metrics)

    def _rows(self, data: Any) -> tuple[Any, float, float]:
        """This worker's rows, how much their loss counts, and what makes it that of a batch."""
        is_sum = self.own.averages and _adds_up(self.model)
        worker, workers = self.own.worker, self.own.workers
        if self.reads_share:
            return (data, workers, workers) if is_sum else (data, 1, 1)
        size = next(len(a) for a in jax.tree.leaves(data) if np.ndim(a))
        own = jax.tree.map(lambda a: a[worker::workers] if np.ndim(a) else a, data)
        count = len(range(worker, size, workers))
        if is_sum or not self.own.averages:
            weight = (workers if is_sum else 1) if count else 0
            return own, weight, size / count if is_sum and count else 1
        return own, count * workers / size, 1

    def _rate(self, values: Sequence[Any]) -> float:
        """The learning rate of the next update, by what Keras knows of it."""
        rule = self.optimizer
        known = {id(v): value for v, value in zip(rule.variables, values, strict=True)}
        rate = rule._learning_rate
        if id(rate) in known:
            return float(known[id(rate)])
        return float(rate(known[id(rule._iterations)]))

    # -- epochs -----------------------------------------------------------------------------

    def begin_epoch(self) -> None:
        """Count from here on."""
        self._base = self._counted

    def end_epoch(self) -> None:
        """Give the metrics what all workers have counted in this epoch."""
        if not self._is_behind:
            return
        self._is_behind = False
        if not self.own.averages:
            return
        metrics = self.model.metrics_variables
        values = [v.value for v in metrics]
        found = _filled(self._metrics, metrics, values, self._counted - self._base)
        for variable, value in zip(metrics, found, strict=True):
            variable.assign(value)
        if self.own.is_chief:  # which saves
            self.take()


def _is(a: Any, b: Any) -> bool:
    return a is b


def _variable(like: Any, name: str) -> Variable:
    dtype = as_dtype(like.dtype)
    return Variable(Zeros()(tuple(like.shape), dtype), name=name, dtype=dtype)


def _moving(model: Any) -> list[Any]:
    """State that calls change, such as moving averages; weights that are frozen are none."""
    own = {id(v) for layer in model._flatten_layers() for v in layer._non_trainable_variables}
    numbers = (v for v in model.non_trainable_variables if id(v) in own)
    return [v for v in numbers if as_dtype(v.dtype).is_floating]


def _set_seeds_apart(model: Any, worker: int) -> None:
    """Have this worker draw other random numbers."""
    for state in seed_states(model):
        value = np.asarray(state.value)
        state.assign(value + np.asarray(worker * _APART % 2**31, value.dtype))


def _adds_up(model: Any) -> bool:
    """Whether the loss is a sum over examples: that of Keras by default is a mean."""
    losses = jax.tree.leaves(model.loss)
    return bool(losses) and all(getattr(loss, "reduction", "") == "sum" for loss in losses)


def _change(chosen: Sequence[Any], variables: Sequence[Any], old: Any, new: Any) -> Any:
    """How much some of these variables have changed, flat."""
    wanted = {id(v) for v in chosen}
    parts = [
        np.ravel(np.asarray(b, np.float64) - np.asarray(a, np.float64))
        for v, a, b in zip(variables, old, new, strict=True)
        if id(v) in wanted
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _filled(chosen: Sequence[Any], variables: Sequence[Any], values: Any, flat: Any) -> list[Any]:
    """The values of variables, those of some from a flat array, in order."""
    wanted, found, at = {id(v) for v in chosen}, [], 0
    for variable, value in zip(variables, values, strict=True):
        if id(variable) in wanted:
            size = int(np.prod(variable.shape))
            part = np.reshape(flat[at : at + size], variable.shape)
            value, at = jax.numpy.asarray(part.astype(value.dtype)), at + size
        found.append(value)
    return found


# -- Keras ----------------------------------------------------------------------------------------


def install() -> None:
    """Have Keras's loops make the steps of all workers, where there are several."""
    trainer = keras_inner("backend.jax.trainer").JAXTrainer
    _around(trainer, "make_train_function", _make_step)
    base = keras_inner("trainers.trainer").Trainer
    _around(base, "reset_metrics", _after_reset)
    _around(base, "_get_metrics_result_or_logs", _before_result)
    for name in ("save", "save_weights", "export"):
        _around(load_keras().Model, name, _save_once)


def _around(owner: Any, name: str, instead: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return instead(original, self, *args, **kwargs)

    setattr(owner, name, method)


def _shared(model: Any) -> SharedModel | None:
    found: SharedModel | None = vars(model).get("_headrace_shared")
    return found


def _make_step(original: Any, model: Any, force: bool = False) -> None:
    own = sharing()
    if own is None:
        original(model, force)
        return
    old = found = _shared(model)
    if found is None or found.has_left or not found.fits(model):
        found = SharedModel(model, own)
        object.__setattr__(model, "_headrace_shared", found)
    found.counts, found.reads_share = vars(model)["_headrace_training"]
    found.begin()
    if old is not None and old is not found:
        old.close(found)
    model.train_function = model._make_function(found.step)


def _after_reset(original: Any, model: Any) -> None:
    original(model)
    found = _shared(model)
    if found is not None:
        found.begin_epoch()


def _before_result(original: Any, model: Any, logs: Any) -> Any:
    found = _shared(model)
    if found is not None:
        found.end_epoch()
    return original(model, logs)


def _save_once(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
    if share.writes():
        return original(model, *args, **kwargs)
    logging.info("The model '%s' is saved by the chief alone.", model.name)
    return None


#: Callbacks that only write files, by the names that Keras has for them.
_WRITERS = ("ModelCheckpoint", "CSVLogger", "RemoteMonitor")


def taken(
    original: Callable[..., Any], model: Any, args: Any, kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by which a worker calls `fit` or `train_on_batch`, all with their names.

    Raises:
        RuntimeError: if it cannot be shared out, with the line of the script.
    """
    own = sharing()
    given = dict(inspect.signature(original).bind_partial(model, *args, **kwargs).arguments)
    given.pop("self", None)
    _check(own, model, given)
    data = given.get("x")
    is_dataset = isinstance(data, Dataset)
    object.__setattr__(model, "_headrace_training", (original.__name__ == "fit", is_dataset))
    if is_dataset:
        given["x"] = own.share_of(data)
    if given.get("callbacks") is not None and not own.is_chief:
        callbacks = given["callbacks"]
        kinds = tuple(getattr(load_keras().callbacks, name) for name in _WRITERS)
        if isinstance(callbacks, (list, tuple)):
            given["callbacks"] = [c for c in callbacks if not isinstance(c, kinds)]
    return given


def ended(model: Any) -> None:
    """`fit` has come to its end."""
    found = _shared(model)
    if found is not None:
        found.end()


def _check(own: Any, model: Any, given: dict[str, Any]) -> None:
    """Refuse, before the first step, what cannot be shared out."""
    keras = load_keras()
    if type(model).train_step is not keras.Model.train_step:
        own.refuse(
            f"a model of Keras has its own `train_step` ({type(model).__name__})",
            "Leave the step to Keras (losses and metrics of `compile`, `add_loss`), or train the "
            "model in a session, by an optimizer of tf.train on what it returns.",
        )
    optimizer = getattr(model, "optimizer", None)
    for name, instead in (
        ("global_clipnorm", "clip each variable by itself: clipnorm or clipvalue"),
        ("gradient_accumulation_steps", "take larger batches"),
        ("inner_optimizer", "train without it"),
    ):
        if getattr(optimizer, name, None):
            own.refuse(
                f"the optimizer of a model of Keras has `{name}`, which needs all gradients at "
                "one place",
                f"Instead, {instead}.",
            )
    callbacks = given.get("callbacks")
    restorer = keras.callbacks.BackupAndRestore
    for callback in callbacks if isinstance(callbacks, (list, tuple)) else ():
        if isinstance(callback, restorer):
            own.refuse(
                "a model of Keras is trained with the callback BackupAndRestore, by which the "
                "chief alone would begin in another epoch",
                "Take it out: save with ModelCheckpoint, and load before `fit`.",
            )
