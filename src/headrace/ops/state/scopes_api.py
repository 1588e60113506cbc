"""Scopes and collections of the default graph, as public functions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from headrace.graph.graph import Graph, default_graph_stack, get_default_graph
from headrace.graph.random_seed import get_seed as _seeds_for
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.public import public


@public("name_scope")
class name_scope:
    """A ``with`` block whose ops get names inside a scope; yields the scope, ``"name/"``.

    Args:
        name: the scope; a trailing ``/`` re-enters one that exists.
        default_name: used when ``name`` is None.
        values: tensors that the block takes; they must be of one graph, which becomes the default.

    Raises:
        TypeError: if the name is no string.
        ValueError: if ``values`` are of several graphs, or there is no name at all.

    >>> with name_scope("layer") as scope:
    ...     scope
    'layer/'
    """

    def __init__(
        self, name: str | None, default_name: str | None = None, values: Any = None
    ) -> None:
        if not isinstance(default_name, (str, type(None))):
            raise TypeError(
                f"`default_name` type ({type(default_name)}) is not a string type. You likely "
                "meant to pass this into the `values` kwarg."
            )
        self._name = default_name if name is None else name
        self._default_name = default_name
        self._values = values
        if self._name is None and values is not None:
            raise ValueError(
                f"At least one of name ({name}) and default_name ({default_name}) must be provided."
            )
        if not isinstance(self._name, (str, type(None))):
            raise TypeError(f"The name of a scope is a string, not {self._name!r}.")

    @property
    def name(self) -> str | None:
        return self._name

    def __enter__(self) -> str:
        graph = graph_of(self._values) if self._values else get_default_graph()
        self._graph_context = None
        if graph is not get_default_graph():
            self._graph_context = graph.as_default()
            self._graph_context.__enter__()
        self._scope = graph.name_scope(self._name)
        try:
            return self._scope.__enter__()
        except BaseException:
            if self._graph_context is not None:
                self._graph_context.__exit__(None, None, None)
            raise

    def __exit__(self, *exc: Any) -> None:
        self._scope.__exit__(None, None, None)
        if self._graph_context is not None:
            self._graph_context.__exit__(None, None, None)


def graph_of(values: Any) -> Graph:
    """The graph that the tensors among ``values`` belong to; the default graph if there are none.

    A function body that is being built goes before the graphs around it.

    Raises:
        ValueError: if they belong to several graphs.
    """
    current = get_default_graph()
    found: Any = None
    for value in values:
        if not isinstance(value, (Tensor, Operation)) and not hasattr(value, "_as_graph_element"):
            continue
        if found is None:
            found = value
        elif value.graph.outermost is not found.graph.outermost:
            raise ValueError(f"{value!r} must be from the same graph as {found!r}.")
    if found is None or found.graph.outermost is current.outermost:
        return current
    graph: Graph = found.graph
    return graph


@public("control_dependencies")
def control_dependencies(control_inputs: Any) -> AbstractContextManager[None]:
    """A ``with`` block whose ops run after ``control_inputs``.

    Args:
        control_inputs: a list of operations and tensors (of any shape: only that they are computed
            matters), or None, which lifts the dependencies of the blocks around.

    Ops made before the block get no dependency, even where the block uses them.

    Raises:
        TypeError: if ``control_inputs`` is no list, or holds something that is no tensor and no
            operation.
        ValueError: if one of them belongs to another graph.
    """
    return get_default_graph().control_dependencies(control_inputs)


@public("device")
def device(device_name_or_function: Any) -> AbstractContextManager[None]:
    """A ``with`` block whose ops get a device constraint; inner blocks win.

    Args:
        device_name_or_function: a name such as ``"/job:worker/task:1/gpu:0"`` of which parts may
            be left out, a DeviceSpec, a function from an operation to a name, or None, which lifts
            the constraints of the blocks around.

    Raises:
        ValueError: if the name is malformed. Whether the device exists shows when the graph runs.
        TypeError: if it is none of these.
    """
    return get_default_graph().device(device_name_or_function)


@public("colocate_with")
def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """A ``with`` block whose ops share the device of ``op``, a tensor or an operation.

    Raises:
        TypeError: if ``op`` is neither.
    """
    return get_default_graph().colocate_with(op, ignore_existing)


@public("container")
def container(container_name: str) -> AbstractContextManager[str]:
    """A ``with`` block whose stateful ops keep their state in the named container.

    Raises:
        TypeError: if ``container_name`` is no string.
    """
    if not isinstance(container_name, str):
        raise TypeError(f"The name of a container is a string, not {container_name!r}.")
    return get_default_graph().container(container_name)


def scope_or(name: str | None, default: str) -> AbstractContextManager[str]:
    """A name scope of the default graph: ``name``, or ``default`` where there is none."""
    return default_graph_stack.current().name_scope(name or default)


@public("add_to_collection")
def add_to_collection(name: Any, value: Any) -> None:
    """Append ``value`` to a collection of the default graph.

    Raises:
        RuntimeError: if the graph is finalized.
        TypeError: if ``name`` cannot be the key of a dict.
    """
    get_default_graph().add_to_collection(name, value)


@public("add_to_collections")
def add_to_collections(names: Any, value: Any) -> None:
    """Append ``value`` to several collections of the default graph.

    Raises:
        RuntimeError: if the graph is finalized.
        TypeError: if ``names`` cannot be iterated.
    """
    get_default_graph().add_to_collections(names, value)


@public("get_collection")
def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """A copy of a collection; with ``scope``, only items whose name matches it as a regex.

    A collection that nobody has added to is empty.

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(key, scope)


@public("get_collection_ref")
def get_collection_ref(key: Any) -> list[Any]:
    """A collection itself: changing the list changes the graph.

    Raises:
        TypeError: if ``key`` cannot be the key of a dictionary.
    """
    return get_default_graph().get_collection_ref(key)


@public("set_random_seed", "random.set_random_seed")
def set_random_seed(seed: int | None) -> None:
    """Set the seed of the default graph: random ops made later get fixed seeds of their own.

    Raises:
        TypeError: if ``seed`` is neither an integer nor None.
    """
    if seed is not None and not hasattr(seed, "__index__"):
        raise TypeError(f"The seed of a graph must be an integer or None, not {seed!r:.100}.")
    get_default_graph().seed = seed


@public("get_seed", "random.get_seed")
def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The two seeds for an op about to be made with ``op_seed``.

    Raises:
        TypeError: if ``op_seed`` is neither an integer nor None.
    """
    return _seeds_for(get_default_graph(), op_seed)
