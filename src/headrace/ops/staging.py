"""Staging ops. The areas are in ``headrace.ops.kernels.staging``, the class in ``staging_api``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Dims, Operation
from headrace.ops.kernels.staging import StagingArea, kept
from headrace.ops.registry import Effects, NotDifferentiable, define_op

__all__: list[str] = []

_BLOCKS = Effects(blocks=True)
_NO_GRADIENT = NotDifferentiable("a staging area hands over values between steps")
_ATTRS = (
    "capacity: int >= 0 = 0, memory_limit: int >= 0 = 0, {types}, container: string = '', "
    "shared_name: string = ''"
)


@dataclass(frozen=True, slots=True)
class _AreaKey:
    """Key of a staging area in a store."""

    container: str
    name: str


def _area(context: Any) -> StagingArea:
    attrs = context.node.attrs
    key = _AreaKey(attrs["container"], attrs["shared_name"] or context.node.name)
    found: StagingArea = context.store.object(
        key, lambda: StagingArea(attrs["capacity"], attrs["memory_limit"])
    )
    return found


def _checked(context: Any, values: Any) -> Any:
    """Values whose types are those that the op declares."""
    types = context.node.attrs["dtypes"]
    if len(values) != len(types):
        message = f"The staging area holds tuples of {len(values)}, not of {len(types)}."
        raise InvalidArgumentError(None, None, message)
    return list(values)


def _stage(context: Any, values: Any) -> Any:
    _area(context).put(kept(values, context.owned), context.step)
    return ()


def _peek(context: Any, index: Any) -> Any:
    if index < 0:
        raise InvalidArgumentError(None, None, f"index {index} is negative")
    return _checked(context, _area(context).peek(int(index), context.step))


def _clear(context: Any) -> Any:
    _area(context).clear()
    return ()


def _nothing(op: Operation) -> list[Dims]:
    return []


def _unknown(op: Operation) -> list[Dims]:
    return [None] * len(op.attrs["dtypes"])


def _define(signature: str, types: str, shape: Any, host: Any) -> None:
    define_op(
        signature,
        attrs=_ATTRS.format(types=f"dtypes: list(type){types}"),
        shape=shape,
        host=host,
        effects=_BLOCKS,
        gradient=_NO_GRADIENT,
    )


_define("Stage(values: dtypes)", " >= 1", _nothing, _stage)
_define(
    "Unstage() -> values: dtypes",
    " >= 1",
    _unknown,
    lambda context: _checked(context, _area(context).take(context.step)),
)
_define("StagePeek(index: int32) -> values: dtypes", " >= 1", _unknown, _peek)
_define(
    "StageSize() -> size: int32",
    "",
    lambda op: [()],
    lambda context: np.int32(_area(context).size()),
)
_define("StageClear()", "", _nothing, _clear)
