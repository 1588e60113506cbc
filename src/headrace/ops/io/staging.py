"""Staging ops. The areas are in ``staging_kernels``, the class in ``staging_api``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import Effects, NotDifferentiable, define_op
from headrace.ops.io.staging_kernels import MapStagingAreaResource, StagingAreaResource, kept

__all__: list[str] = []

_BLOCKS = Effects(blocks=True)
_NO_GRADIENT = NotDifferentiable("a staging area hands over values between steps")
_ATTRS = (
    "capacity: int >= 0 = 0, memory_limit: int >= 0 = 0, {types}, container: string = '', "
    "shared_name: string = ''"
)


@dataclass(frozen=True, slots=True)
class _AreaKey:
    """Key of a staging area in a store. Areas of several kinds may have one name."""

    container: str
    name: str
    kind: str = ""


def _area(context: Any) -> StagingAreaResource:
    attrs = context.node.attrs
    key = _AreaKey(attrs["container"], attrs["shared_name"] or context.node.name)
    found: StagingAreaResource = context.store.object(
        key, lambda: StagingAreaResource(attrs["capacity"], attrs["memory_limit"])
    )
    return found


def _map_area(context: Any) -> MapStagingAreaResource:
    attrs, ordered = context.node.attrs, context.node.op_def.name.startswith("Ordered")
    name = attrs["shared_name"] or context.node.name
    key = _AreaKey(attrs["container"], name, "OrderedMap" if ordered else "Map")
    found: MapStagingAreaResource = context.store.object(
        key, lambda: MapStagingAreaResource(attrs["capacity"], attrs["memory_limit"], ordered)
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


# -- areas with keys ----------------------------------------------------------------------------


def _key(key: Any) -> int:
    array = np.asarray(key)
    if array.size != 1:
        message = f"key must be a scalar, not of shape {list(array.shape)}."
        raise InvalidArgumentError(None, None, message)
    return int(array.reshape(())[()])


def _places(indices: Any, count: int) -> list[int]:
    """Places of components, each once."""
    places = np.asarray(indices).reshape(-1).tolist()
    if len(set(places)) != count or len(places) != count:
        message = f"indices {places} are for {count} tensors: each needs one of its own."
        raise InvalidArgumentError(None, None, message)
    return [int(place) for place in places]


def _map_stage(context: Any, key: Any, indices: Any, values: Any) -> Any:
    count = len(context.node.attrs["dtypes"])
    places = _places(indices, len(values))
    strangers = [place for place in places if not 0 <= place < count]
    if strangers:
        message = f"Index '{strangers[0]}' must be between 0 and {count - 1}."
        raise InvalidArgumentError(None, None, message)
    components = dict(zip(places, kept(values, context.owned), strict=True))
    _map_area(context).put(_key(key), components, count, context.step)
    return ()


def _wanted(context: Any, indices: Any) -> list[int]:
    return _places(indices, len(context.node.attrs["dtypes"]))


def _map_unstage(context: Any, key: Any, indices: Any) -> Any:
    places = _wanted(context, indices)
    return _checked(context, _map_area(context).take(_key(key), places, context.step))


def _map_unstage_no_key(context: Any, indices: Any) -> Any:
    key, values = _map_area(context).take_any(_wanted(context, indices), context.step)
    return np.int64(key), _checked(context, values)


def _map_peek(context: Any, key: Any, indices: Any) -> Any:
    places = _wanted(context, indices)
    return _checked(context, _map_area(context).peek(_key(key), places, context.step))


def _map_clear(context: Any) -> Any:
    _map_area(context).clear()
    return ()


for _kind in ("Map", "OrderedMap"):
    _define(
        f"{_kind}Stage(key: int64, indices: int32, values: fake_dtypes)",
        ", fake_dtypes: list(type) >= 1",
        _nothing,
        _map_stage,
    )
    _define(
        f"{_kind}Unstage(key: int64, indices: int32) -> values: dtypes",
        " >= 1",
        _unknown,
        _map_unstage,
    )
    _define(
        f"{_kind}UnstageNoKey(indices: int32) -> (key: int64, values: dtypes)",
        " >= 1",
        lambda op: [(), *_unknown(op)],
        _map_unstage_no_key,
    )
    _define(
        f"{_kind}Peek(key: int64, indices: int32) -> values: dtypes", " >= 1", _unknown, _map_peek
    )
    _define(
        f"{_kind}Size() -> size: int32",
        "",
        lambda op: [()],
        lambda context: np.int32(_map_area(context).size()),
    )
    _define(
        f"{_kind}IncompleteSize() -> size: int32",
        "",
        lambda op: [()],
        lambda context: np.int32(_map_area(context).incomplete_size()),
    )
    _define(f"{_kind}Clear()", "", _nothing, _map_clear)
