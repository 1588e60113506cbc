"""Programs that are compiled before they run first: those of a plan that takes another one's place.

Inputs are what the graph says of them. Where it does not say all, a program is compiled as ever,
when it has inputs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import jax

from headrace.executor.region import Region
from headrace.executor.resources import RandomStream, ResourceHandle, ResourceStore, StateKey
from headrace.executor.units import Unit
from headrace.graph.dtypes import variant
from headrace.graph.shapes import TensorShape
from headrace.passes.ir import Edge

__all__ = ["compile_ahead"]

_log = logging.getLogger(__name__)


def compile_ahead(units: Iterable[Unit], store: ResourceStore) -> int:
    """Compile the programs of units; returns how many. One that cannot be is left out."""
    done = 0
    for unit in units:
        region = unit.region
        if not isinstance(region, Region):
            continue
        try:
            done += _compile(region, store)
        except Exception as error:
            _log.debug("%s is not compiled ahead: %s", region.label, error)
    return done


def _compile(region: Region, store: ResourceStore) -> bool:
    if region.null is not None or region.reads_only is not None or region.static:
        return False
    dynamic = [_of_edge(edge) for edge in region.dynamic]
    state = [_of_state(region, store, key) for key in region.read_keys]
    if any(value is None for value in (*dynamic, *state)):
        return False
    with store.lock:
        program = region.program_for(dynamic, ())
    if program.proven or program.needed is not None:
        return False
    with region.options.scope():
        program.compile([*state, *dynamic])
    region.waiting.need_not_wait(program.turn)
    return True


def _of_edge(edge: Edge) -> Any:
    """Shape and type of what comes in, None if the graph does not say."""
    node, index = edge
    dims = node.dims[index]
    if node.dtypes[index] is variant or dims is None or None in dims:
        return None
    return _shaped(dims, node.dtypes[index].as_numpy_dtype)


def _of_state(region: Region, store: ResourceStore, key: StateKey) -> Any:
    """The same of state: of its value, or as its variable has it."""
    value = region.first_value(store, key) if isinstance(key, RandomStream) else store.known(key)
    if value is not None:
        return _shaped(value.shape, value.dtype)
    for (node, _), handle in region.handles.items():
        if handle is key and isinstance(key, ResourceHandle) and "shape" in node.attrs:
            shape = TensorShape(node.attrs["shape"])
            if shape.is_fully_defined():
                return _shaped(shape.as_list(), node.attrs["dtype"].as_numpy_dtype)
    return None


def _shaped(shape: Any, dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]
