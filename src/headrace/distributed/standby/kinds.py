"""What a copy has: variables, and objects of some kinds."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeGuard

from headrace.distributed.standby.unsettled import UNSETTLED, UnsettledMoves
from headrace.executor.resources import ResourceHandle
from headrace.ops.core.copied import CopiedResource
from headrace.ops.core.registry import HostResource
from headrace.ops.embeddings.store import EmbeddingStore
from headrace.ops.io.input_dispenser import RangeDispenser
from headrace.ops.io.tables_kernels import Table

__all__ = ["OBJECTS", "VARIABLE", "is_forgotten", "is_kept"]

VARIABLE = "variable"
#: The class of the objects behind handles of a kind.
OBJECTS: dict[str, type[CopiedResource]] = {
    "input dispenser": RangeDispenser,
    "table": Table,
    "table of embeddings": EmbeddingStore,
    UNSETTLED.kind: UnsettledMoves,
}


def is_kept(key: Hashable) -> TypeGuard[ResourceHandle]:
    """Whether copies have what this stands for."""
    return isinstance(key, ResourceHandle) and (key.kind == VARIABLE or key.kind in OBJECTS)


def is_forgotten(key: Hashable, value: Any) -> TypeGuard[ResourceHandle]:
    """Whether this is shared state that copies do not have: queues, accumulators and others."""
    if not isinstance(key, ResourceHandle) or key.is_private:
        return False
    return isinstance(value, HostResource) and not is_kept(key)
