"""Keras layers and models called on tensors: one `JaxCall` for each call."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.site import user_site
from headrace.graph.tensor import Tensor
from headrace.keras.arrays import ArrayGraph, arrays_enter, to_arrays
from headrace.keras.loading import keras_inner, load_keras
from headrace.keras.sessions import learning_phase
from headrace.keras.variables import graph_variables, keep_unfilled, record_of, seed_states
from headrace.ops.control.flow_api import cond
from headrace.ops.control.jax_call import add_call
from headrace.ops.control.jax_call_api import from_jax, random_key
from headrace.ops.core.build import constant, convert_to_tensor
from headrace.ops.core.static import static_value

#: The mask that a layer has put on its output, for the next layer.
_masks: weakref.WeakKeyDictionary[Tensor, Tensor] = weakref.WeakKeyDictionary()


def is_graph_value(leaf: Any) -> bool:
    """Whether it is a tensor or variable of a graph (not one of a scratch graph of arrays)."""
    if isinstance(leaf, Tensor):
        return not isinstance(leaf.op.graph, ArrayGraph)
    return hasattr(leaf, "_to_tensor") and type(leaf).__module__.startswith("headrace.")


def holds_graph_value(*values: Any) -> bool:
    """Whether there is such a tensor in a structure."""
    return any(map(is_graph_value, jax.tree.leaves(values, is_leaf=is_graph_value)))


class LayerCall:
    """One call of a layer: its arguments apart from their structure, its state apart from it.

    Args:
        layer: the layer; ``original``: its `__call__` as Keras has it.
    """

    def __init__(
        self, layer: Any, original: Callable[..., Any], args: Any, kwargs: dict[str, Any]
    ) -> None:
        self.layer, self.original = layer, original
        self.leaves, self.structure = jax.tree.flatten((args, kwargs), is_leaf=is_graph_value)
        self.places = [
            i
            for i, leaf in enumerate(self.leaves)
            if is_graph_value(leaf) or isinstance(leaf, (np.ndarray, jax.Array))
        ]
        self.tensors = [convert_to_tensor(self.leaves[i]) for i in self.places]
        self.masks = {i: _masks[t] for i, t in enumerate(self.tensors) if t in _masks}
        self.state: list[Any] = []
        self.keyed: list[Any] = []
        self.results: Any = None
        self.output_masks: list[int] = []
        #: Positions in ``state`` of what the call changes.
        self.changed: list[int] = []
        self.loss_count = 0

    def build(self) -> None:
        """Have the layer make its variables, without values."""
        if self.layer.built:
            return
        keras = load_keras()
        leaves = list(self.leaves)
        for i, tensor in zip(self.places, self.tensors, strict=True):
            if tensor.dims is None:
                raise ValueError(
                    f"Layer '{self.layer.name}' needs the rank of its input, but {tensor.name} has "
                    "an unknown shape. Say it with set_shape or tf.ensure_shape."
                )
            leaves[i] = keras.KerasTensor(tensor.dims, tensor.dtype.name)
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        with (
            keep_unfilled(),
            keras.StatelessScope(initialize_variables=False),
            arrays_enter(),
        ):
            self.original(self.layer, *args, **kwargs)

    def prepare(self) -> list[Any]:
        """Graph variables for the layer's state; returns them."""
        seeds = seed_states(self.layer)
        known = {id(v) for v in seeds}
        self.keyed = seeds
        self.state = [v for v in self.layer.variables if id(v) not in known]
        return graph_variables(self.layer, self.state)

    def run(self, variables: Sequence[Any], training: bool | None, changed: Any = None) -> Any:
        """Put the call into the graph.

        Args:
            changed: positions in ``state`` of which new values are wanted; None: all that change.

        Returns:
            The outputs; masks of some; losses; new values of the changed state; all flat.
        """
        random = training is not False and _depends_on_training(self.layer)
        keys = [
            random_key(name=f"{self.layer.name}_key")
            if random
            else constant([0, 0], dtypes.uint32, name=f"{self.layer.name}_key")
            for _ in self.keyed
        ]
        inputs = [
            *self.tensors,
            *self.masks.values(),
            *[convert_to_tensor(v) for v in variables],
            *keys,
        ]

        def flat(*values: Any) -> list[Any]:
            return self._traced(values, training, changed)

        flat.__name__ = self.layer.name
        try:
            return add_call(flat, inputs, self.layer.name, one_batch=True)
        except Exception as error:
            site = user_site()
            where = "" if site is None else f" ({site.filename}:{site.lineno})"
            shown = ", ".join(f"{t.dtype.name}{t.shape}" for t in self.tensors)
            error.add_note(
                f"Keras layer '{self.layer.name}' ({type(self.layer).__name__}) was called on "
                f"({shown}){where}."
            )
            raise

    def _traced(self, values: Sequence[Any], training: bool | None, changed: Any) -> list[Any]:
        keras, masking = load_keras(), keras_inner("backend.common.masking")
        rest = iter(values)
        leaves = list(self.leaves)
        given = [next(rest) for _ in self.places]
        for number in self.masks:
            masking.set_keras_mask(given[number], next(rest))
        for i, value in zip(self.places, given, strict=True):
            leaves[i] = value
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        if training is not None:
            kwargs["training"] = training
        mapping = list(zip([*self.state, *self.keyed], rest, strict=True))
        before = _Attributes(self.layer)
        with (
            keras.StatelessScope(mapping, collect_losses=True, initialize_variables=False) as scope,
            arrays_enter(),
        ):
            start = [scope.get_current_value(v) for v in self.state]
            outputs = to_arrays(self.original(self.layer, *args, **kwargs))
            losses = [to_arrays(loss) for loss in scope.losses]
            new = [scope.get_current_value(v) for v in self.state]
        before.require_no_tracers()
        found, self.results = jax.tree.flatten(outputs)
        masks = [masking.get_keras_mask(o) for o in found]
        self.output_masks = [i for i, m in enumerate(masks) if m is not None]
        if changed is None:
            changed = [i for i, (a, b) in enumerate(zip(start, new, strict=True)) if a is not b]
        self.changed, self.loss_count = list(changed), len(losses)
        kept = [masks[i] for i in self.output_masks]
        return [*found, *kept, *losses, *[new[i] for i in changed]]

    def finish(self, flat: Sequence[Tensor], variables: Sequence[Any]) -> Any:
        """Take the results of `run` apart: updates and losses go where they belong."""
        graph = get_default_graph()
        record = record_of(self.layer, make=True)
        assert record is not None
        count = self.results.num_leaves
        outputs, rest = list(flat[:count]), iter(flat[count:])
        for i in self.output_masks:
            _masks[outputs[i]] = next(rest)
        for _ in range(self.loss_count):
            loss = next(rest)
            record.losses.append(loss)
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
        for i in self.changed:
            update = variables[i].assign(next(rest)).op
            record.updates.append(update)
            graph.add_to_collection(GraphKeys.UPDATE_OPS, update)
        return jax.tree.unflatten(self.results, outputs)


def _held(value: Any) -> list[Any]:
    """What a list, tuple, set or dictionary holds."""
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple, set)) else []


class _Attributes:
    """Attributes of a layer and its layers, to find values of a trace that stay behind in them."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self.known = {
            id(v)
            for owner in layer._flatten_layers()
            for value in vars(owner).values()
            for v in (value, *_held(value))
        }

    def require_no_tracers(self) -> None:
        """
        Raises:
            ValueError: if the call has left a value in an attribute of a layer.
        """
        for owner in self.layer._flatten_layers():
            for name, value in vars(owner).items():
                if name in ("_losses", "_loss_ids"):
                    continue
                new = [v for v in (value, *_held(value)) if id(v) not in self.known]
                if any(isinstance(v, (jax.core.Tracer, Tensor)) for v in new):
                    raise ValueError(
                        f"Layer '{owner.name}' ({type(owner).__name__}) keeps a value of its call "
                        f"in the attribute '{name}'. A graph runs the call again and again and "
                        "cannot carry that: keep state in a variable (self.add_weight(..., "
                        "trainable=False) and assign), or return the value."
                    )


def call_on_tensors(layer: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """``layer(*args, **kwargs)`` where some arguments are tensors of a graph."""
    kwargs = dict(kwargs)
    training = kwargs.pop("training", None)
    call = LayerCall(layer, original, args, kwargs)
    call.build()
    variables = call.prepare()
    if not _depends_on_training(layer):
        return call.finish(call.run(variables, None), variables)
    if training is None:
        training = learning_phase()
    known = training if not is_graph_value(training) else static_value(convert_to_tensor(training))
    if known is not None:
        return call.finish(call.run(variables, bool(known)), variables)
    changed: list[int] = []

    def trained() -> list[Tensor]:
        result: list[Tensor] = call.run(variables, True)
        changed.extend(call.changed)
        return result

    flat = cond(
        convert_to_tensor(training),
        trained,
        lambda: call.run(variables, False, changed),
        name=f"{layer.name}_cond",
    )
    return call.finish(flat if isinstance(flat, (list, tuple)) else [flat], variables)


def _depends_on_training(layer: Any) -> bool:
    """Whether some layer acts in another way while it is trained.

    Nearly all layers of Keras have a parameter `training`; those that use it draw random numbers or
    have state.
    """
    return any(map(_uses_training, layer._flatten_layers()))


def _uses_training(layer: Any) -> bool:
    if "training" not in layer._call_signature.parameters:
        return False
    if not type(layer).__module__.startswith("keras."):
        return True
    if hasattr(layer, "recurrent_dropout"):
        return bool(layer.dropout or layer.recurrent_dropout)
    return bool(layer._seed_generators or layer._non_trainable_variables)


@functools.cache
def on_either(function: Any) -> Any:
    """A function of Keras that also takes tensors of graphs."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if holds_graph_value(args, kwargs):
            return from_jax(function)(*args, **kwargs)
        return function(*args, **kwargs)

    return call
