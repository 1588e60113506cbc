"""Our functions on JAX arrays: what user-defined layers and activations do inside Keras.

Keras on JAX hands layers JAX arrays, or tracers of such. Programs of the era call `tf.nn.relu`,
`tf.matmul` and the like there. While a layer runs, a scratch graph is the default one. An array
that is given to an operation enters it as a placeholder; a tensor of it that is given back to Keras
is computed, as part of the same trace.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from headrace.errors import OpError
from headrace.executor.evaluate import Tracing, as_outputs, flat_static, prepared
from headrace.graph import dtypes
from headrace.graph.graph import Graph, default_graph_stack
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import (
    placeholder,
    register_tensor_conversion_function,
)
from headrace.ops.core.registry import grouped
from headrace.passes.ir import Node, build_step


class ArrayGraph(Graph):
    """A scratch graph whose placeholders stand for arrays.

    Attributes:
        arrays: the array of each placeholder.
    """

    def __init__(self) -> None:
        super().__init__()
        self.arrays: dict[Tensor, Any] = {}
        self._entered: dict[int, Tensor] = {}

    def enter(self, array: Any) -> Tensor:
        """The tensor for an array."""
        found = self._entered.get(id(array))
        if found is None:
            shape = [d if isinstance(d, int) else None for d in array.shape]
            found = placeholder(dtypes.as_dtype(array.dtype), shape, "array")
            self._entered[id(array)] = found
            self.arrays[found] = array
        return found


class _ArrayEvaluation(Tracing):
    """Evaluation of the nodes of an `ArrayGraph`: some sizes may be symbols of `jax.export`."""

    def count(self, node: Node, outputs: Sequence[Any], args: Sequence[Any]) -> None:
        pass

    def evaluate(self, node: Node, args: list[Any]) -> Sequence[Any]:
        plan = prepared(node)
        if plan.kernel is None or not plan.pure or flat_static(node):
            return super().evaluate(node, args)
        return as_outputs(plan.kernel(*grouped(args, plan.groups)), plan.outputs)


@contextlib.contextmanager
def arrays_enter() -> Iterator[None]:
    """Within it, operations take JAX arrays; nothing happens where that is so already."""
    if isinstance(default_graph_stack.current(), ArrayGraph):
        yield
        return
    with ArrayGraph().as_default():
        yield


def value_of(tensor: Tensor) -> Any:
    """The array that a tensor of an `ArrayGraph` stands for.

    Raises:
        TypeError: for tensors of other graphs.
    """
    graph = tensor.op.graph
    if not isinstance(graph, ArrayGraph):
        raise TypeError(
            f"{tensor.name} is a tensor of a graph: JAX and Keras functions take its value only "
            "through tf.from_jax, or as the input of a Keras layer."
        )
    feeds = [t for t in graph.arrays if t is not tensor]
    if tensor in graph.arrays:
        return graph.arrays[tensor]
    step = build_step([tensor], feeds, [])
    evaluation = _ArrayEvaluation({}, jax.default_backend())
    try:
        (value,) = evaluation.run_step(step, [graph.arrays[t] for t in feeds])
    except OpError as error:
        # Keras makes errors anew from their message alone.
        raise ValueError(error.message) from error
    return value


def _convert(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
    graph = default_graph_stack.current()
    if not isinstance(graph, ArrayGraph):
        return NotImplemented
    tensor = graph.enter(value)
    if dtype is not None and tensor.dtype is not dtype:
        raise ValueError(f"An array of type {tensor.dtype.name} is not {dtype.name}.")
    return tensor


def to_arrays(value: Any) -> Any:
    """A structure with arrays in the place of the tensors of scratch graphs."""
    return jax.tree.map(
        lambda v: (
            value_of(v) if isinstance(v, Tensor) and isinstance(v.op.graph, ArrayGraph) else v
        ),
        value,
        is_leaf=lambda v: isinstance(v, Tensor),
    )


def on_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which may call our operations, as one on JAX arrays."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with arrays_enter():
            return to_arrays(function(*args, **kwargs))

    return call


def mark(function: Any) -> Any:
    """Mark what `on_arrays` gave, so that it is made once."""
    function._headrace_on_arrays = True
    return function


def install() -> None:
    """Let operations take arrays of a scratch graph, and JAX its tensors."""
    register_tensor_conversion_function(jax.core.Tracer, _convert, priority=50)
    register_tensor_conversion_function(jax.Array, _convert, priority=50)
    Tensor.__jax_array__ = value_of  # type: ignore[attr-defined]
