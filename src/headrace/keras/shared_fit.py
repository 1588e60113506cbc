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
from typing import Any, NoReturn

import jax
import numpy as np

from headrace import logging
from headrace.data.dataset import Dataset
from headrace.graph.dtypes import as_dtype
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.site import user_site
from headrace.keras import shared_backup, shared_steps
from headrace.keras.graph_optimizer import GradientNotes, KerasRule, inner_optimizer
from headrace.keras.loading import keras_inner, load_keras
from headrace.keras.shared_steps import gradients_of, has_own_step
from headrace.keras.variables import seed_states
from headrace.ops.control import basic
from headrace.ops.core.build import placeholder
from headrace.ops.state import share
from headrace.ops.state.initializers import Zeros
from headrace.ops.state.variables import Variable
from headrace.ops.state.variables_api import global_variables_initializer
from headrace.session.session import Session
from headrace.settings import flags

__all__ = ["ended", "install", "sharing", "taken"]

#: Between the seeds of two workers.
_APART = 1_000_003


def sharing() -> Any:
    """This worker's share, if several train the models of this script, or may later; else None."""
    own = share.of(get_default_graph())
    return own if own is not None and (own.workers > 1 or flags.elastic) else None


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
        self._inner = inner_optimizer(model.optimizer)
        self.reads_share = self.counts = self._is_ended = False
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
        self._gradients = gradients_of(model, functools.partial(_refuse, own, model))
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
            slots = [pair for v in targets for pair in rule.slots_of(v)]
            # What a LossScaleOptimizer has come to is news for all, as the values are.
            scaling = rule.slots_of(notes)
            known = {v.path: id(v) for v in self.optimizer.variables}
            self._scaling = [known[path] for path, _ in scaling]
            news = [*targets, *(slot for _, slot in scaling)]
            with graph.control_dependencies([train]):
                self._after = [v.read_value() for v in news]
            self._paths = [path for path, _ in slots]
            epoch = Variable(np.zeros((), np.int64), name="epoch", trainable=False)
            kept = [*self._values, *(slot for _, slot in slots), notes, epoch]
            self._given = [placeholder(v.dtype.base_dtype, v.shape) for v in kept]
            changes = [v.assign(g).op for v, g in zip(kept, self._given, strict=True)]
            self._begin, self._told_epoch = basic.group(*changes), changes[-1]
            self._finish = basic.group(*changes[: len(made)], changes[-2])
            self._reads = [v.read_value() for v in kept]
            initialise = global_variables_initializer()
            self.session = Session(graph=graph)
        self.session.run(initialise)

    def begin(self) -> None:
        """Take part, with the values of the chief's model."""
        self._is_ended = False
        values = [v.value for v in self._trained]
        if len(values) != len(self._last) or not all(map(_is, values, self._last)):
            self._give()

    def begin_again(self) -> None:
        """Take part with the values of the chief's model, and in its epoch."""
        epoch = self._give()
        if epoch:
            self.model._initial_epoch = epoch

    def _give(self) -> int:
        """The epoch in which the chief begins; it gives its values to all."""
        state = {v.path: np.asarray(v.value) for v in self.optimizer.variables}
        count = self._inner._iterations
        # Asynchronously each update counts, of whichever worker.
        copies = 1 if self.own.averages else self.own.workers
        state[count.path] = state[count.path] * np.asarray(copies, state[count.path].dtype)
        given = [np.asarray(v.value) for v in self._trained]
        given += [state[path] for path in self._paths]
        given.append(self._layout.first([np.asarray(v.value) for v in self._state]))
        given.append(np.asarray(self.model._initial_epoch or 0))
        self.session.run(self._begin, dict(zip(self._given, given, strict=True)))
        found = self.take()
        if count.path in self._paths:
            count.assign(found[len(self._values) + self._paths.index(count.path)] // copies)
        return int(found[-1])

    def take(self) -> list[Any]:
        """Give the model, and its optimiser, the values that count: these."""
        found: list[Any] = self.session.run(self._reads)
        for variable, value in zip(self._trained, found, strict=False):
            variable.assign(value)
        state = {v.path: v for v in self.optimizer.variables if v is not self._inner._iterations}
        for path, value in zip(self._paths, found[len(self._values) : -2], strict=True):
            if path in state:
                state[path].assign(value)
        self._counted, averages = self._layout.parts(found[-2])
        now = [v.value for v in self._state]
        for variable, value in zip(
            self._state, _filled(self._state, self._state, now, averages), strict=True
        ):
            variable.assign(value)
        self._last = [v.value for v in self._trained]
        return found

    def tell_epoch(self, epoch: int) -> None:
        """Have workers that are started again begin in this epoch."""
        if self.own.has_servers:
            self.own.run_apart(self.session, self._told_epoch, {self._given[-1]: epoch})

    def end(self) -> None:
        """Wait until all have ended their training, and take what it has come to."""
        if self._is_ended:
            return
        self._is_ended = True
        self.has_left = self.reads_share
        self.own.end_training(self.session, is_even=not self.reads_share)
        self.take()

    def finish(self) -> None:
        """Take what the chief's model is after the last of its callbacks.

        Those may give it other values, as `EarlyStopping` does with the best ones.
        """
        self.end()
        values = [np.asarray(v.value) for v in self._trained]
        values.append(self._layout.first([np.asarray(v.value) for v in self._state]))
        given = [*self._given[: len(self._trained)], self._given[-2]]
        self.session.run(self._finish, dict(zip(given, values, strict=True)))
        self.take()
        # Nobody gives the model other values before all have these.
        self.own.end_training(self.session, is_even=True)

    def inherit(self) -> None:
        """Save from now on, if the chief was lost in this `fit`, and this worker comes next."""
        trains = self.counts and not self._is_ended
        if trains and self.own.find_chief() and self.own.is_chief:
            self.take()

    def close(self, next_one: SharedModel) -> None:
        """End the session, once all workers have come to what follows this."""
        self.own.begin_training(next_one.session)
        self.session.close()

    # -- steps ------------------------------------------------------------------------------

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
        found = self.session.run(self._after, dict(zip(self._grads, feeds, strict=True)))
        count = len(self._values)
        self._counted, averages = self._layout.parts(found[count])
        self._is_behind = self.counts
        other = _filled(self._state, self.model.non_trainable_variables, new_other, averages)
        trainable = [jax.numpy.asarray(v) for v in found[:count]]
        optimizer = self._counts(optimizer, found[count + 1 :])
        return self._logs, (trainable, other, optimizer, new_metrics)

    def _counts(self, values: Sequence[Any], scaling: Sequence[Any]) -> list[Any]:
        """The optimiser's state after a step, but for slots, which `take` knows.

        Args:
            scaling: that of a `LossScaleOptimizer`, if it is one: the counter, and the scale. The
                scale is less after a step in which nothing has changed.
        """
        known = {id(v): value for v, value in zip(self.optimizer.variables, values, strict=True)}
        news = dict(zip(self._scaling, map(jax.numpy.asarray, scaling), strict=True))
        *_, scale = [None, *news]
        if scale is None or news[scale] >= known[scale]:
            steps = id(self._inner._iterations)
            news[steps] = known[steps] + 1
        return list((known | news).values())

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
        rule = self._inner
        known = {id(v): value for v, value in zip(self.optimizer.variables, values, strict=True)}
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
    _around(keras_inner("callbacks.callback_list").CallbackList, "on_train_end", _end_before)
    rules = keras_inner("optimizers.base_optimizer").BaseOptimizer
    _around(rules, "finalize_variable_values", _end_before_averages)
    shared_steps.install(_around)
    shared_backup.install(_around, _shared)


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
        for holder in (model, inner_optimizer(model.optimizer)):
            object.__setattr__(holder, "_headrace_shared", found)
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


def _end_before(original: Any, callbacks: Any, logs: Any = None) -> None:
    """What callbacks do at the end, they do to what all workers' training has come to."""
    found = _shared(callbacks._model)
    if found is not None and found.counts:
        found.end()
    original(callbacks, logs)


def _end_before_averages(original: Any, optimizer: Any, variables: Any) -> None:
    """With `use_ema` the model gets the averages of what all workers' training has come to."""
    found = vars(optimizer).get("_headrace_shared")
    if found is not None and found.counts:
        found.end()
    original(optimizer, variables)


def _save_once(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
    found = _shared(model)
    if found is not None:
        found.inherit()
    if share.writes():
        return original(model, *args, **kwargs)
    logging.info("The model '%s' is saved by the chief alone.", model.name)
    return None


#: Callbacks that only write files, by the names that Keras has for them. The first one saves by the
#: model's methods: where the chief may be another worker later, all have it.
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
    _check(own, model)
    object.__setattr__(model, "_headrace_site", user_site())
    data = given.get("x")
    is_dataset = isinstance(data, Dataset)
    object.__setattr__(model, "_headrace_training", (original.__name__ == "fit", is_dataset))
    if is_dataset:
        given["x"] = own.share_of(data)
    if given.get("callbacks") is not None and not own.is_chief:
        callbacks = given["callbacks"]
        writers = _WRITERS[0 if own.has_servers else 1 :]
        kinds = tuple(getattr(load_keras().callbacks, name) for name in writers)
        if isinstance(callbacks, (list, tuple)):
            given["callbacks"] = [c for c in callbacks if not isinstance(c, kinds)]
    return given


def ended(model: Any) -> None:
    """`fit` has come to its end."""
    found = _shared(model)
    if found is not None:
        found.finish()


def _check(own: Any, model: Any) -> None:
    """Refuse, before the first step, what cannot be shared out."""
    base, kind = load_keras().Model, type(model)
    if kind.make_train_function is not base.make_train_function:
        own.refuse(
            f"a model of Keras has its own `make_train_function` ({kind.__name__})",
            "Have it do in `train_step` what a step is.",
        )
    if not has_own_step(model):
        return
    what = f"a model of Keras has its own `train_step` ({kind.__name__})"
    if model.run_eagerly:
        own.refuse(f"{what} and is compiled with run_eagerly", "Compile it without that.")
    if own.averages and _adds_up(model):
        own.refuse(f"{what} and a loss that is a sum over examples", "Make it a mean.")


def _refuse(own: Any, model: Any, what: str, instead: str) -> NoReturn:
    """Refuse what has come to light within Keras: with the line that calls it."""
    own.refuse(what, instead, vars(model)["_headrace_site"])
    raise AssertionError
