"""Host resources that a program initialises: ``tensorflow.python.ops.resources``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation
from headrace.ops.control.basic import group, no_op

__all__ = [
    "initialize_resources",
    "local_resources",
    "register_resource",
    "shared_resources",
]


class _Resource(NamedTuple):
    handle: Any
    create: Any
    is_initialized: Any

    @property
    def stays_in_process(self) -> bool:
        """A graph file has the operations that make it."""
        return True


def register_resource(
    handle: Any, create_op: Any, is_initialized_op: Any, is_shared: bool = True
) -> None:
    """Let ``initialize_resources`` know of a resource.

    Args:
        create_op: makes it.
        is_initialized_op: a bool scalar that tells whether it is there.
        is_shared: False for one that each worker has for itself.
    """
    key = GraphKeys.RESOURCES if is_shared else GraphKeys.LOCAL_RESOURCES
    resource = _Resource(handle, create_op, is_initialized_op)
    get_default_graph().add_to_collection(key, resource)


def shared_resources() -> list[Any]:
    """The resources that all workers share."""
    return get_default_graph().get_collection(GraphKeys.RESOURCES)


def local_resources() -> list[Any]:
    """The resources of each worker alone."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_RESOURCES)


def initialize_resources(resource_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that makes the resources of a list; one that does nothing if it is empty."""
    if resource_list:
        return group(*[resource.create for resource in resource_list], name=name)
    return no_op(name=name)
