"""The global step: a variable that counts training steps."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.given import given_graph
from headrace.graph.graph import Graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.ops.state.initializers import Zeros
from headrace.ops.state.variable_kinds import VariableAggregation
from headrace.ops.state.variable_scope import get_variable
from headrace.ops.state.variable_updates import variable_of
from headrace.ops.state.variables import Variable

__all__ = [
    "assert_global_step",
    "create_global_step",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
]


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The value of the global step, a scalar variable or tensor, in a session.

    Raises:
        FailedPreconditionError: if it has no value yet.
        TypeError: if ``sess`` is no session, or ``global_step_tensor`` no integer scalar.
    """
    if not callable(getattr(sess, "run", None)):
        raise TypeError(f"tf.train.global_step takes a session first, got {sess!r:.100}.")
    assert_global_step(global_step_tensor)
    return int(sess.run(global_step_tensor))


def get_global_step(graph: Graph | None = None) -> Variable | Any:
    """The global step of a graph (default: the default graph), or None when it has none.

    Raises:
        TypeError: if ``graph`` is no graph, or what stands in its place is no integer scalar.
    """
    graph = given_graph(graph)
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        raise RuntimeError(
            f"Multiple items in collection {GraphKeys.GLOBAL_STEP!r}: {found}. There can be one "
            "global step only."
        )
    if found:
        step = found[0]
    else:
        try:
            named = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
        try:
            step = variable_of(named)
        except TypeError:
            step = named
    assert_global_step(step)
    return step


def create_global_step(graph: Graph | None = None) -> Variable:
    """Make the global step of a graph: an int64 scalar variable called ``global_step``.

    Raises:
        ValueError: if there is one already.
        TypeError: if ``graph`` is no graph.
    """
    graph = given_graph(graph)
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        step: Variable = get_variable(
            GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=dtypes.int64,
            initializer=Zeros(),
            trainable=False,
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )
        return step


def get_or_create_global_step(graph: Graph | None = None) -> Variable | Any:
    """The global step of a graph, an int64 scalar variable, made if there is none.

    Raises:
        TypeError: if ``graph`` is no graph, or has one that is no integer scalar.
        RuntimeError: if there are several.
    """
    graph = given_graph(graph)
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def assert_global_step(global_step_tensor: Any) -> None:
    """Check that the argument is an integer scalar variable or tensor.

    Raises:
        TypeError: if it is not.
    """
    if not isinstance(global_step_tensor, (Variable, Tensor)):
        raise TypeError(
            f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.'
        )
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError(
            'Existing "global_step" does not have integer type: '
            f"{global_step_tensor.dtype.base_dtype!r}"
        )
    shape = global_step_tensor.get_shape()
    if shape.rank not in (0, None):
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')
