"""The collective operations: what they take, and how a step takes part in them.

Their names and attributes are those of TensorFlow 1.15 (tensorflow/core/ops/collective_ops.cc), but
for `CollectiveReduceScatter`, which came later.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from headrace.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from headrace.graph.dtypes import bool as bool_
from headrace.graph.dtypes import uint8
from headrace.graph.shapes import compatible_static
from headrace.graph.tensor import Dims, Operation
from headrace.ops.collective.calls import Call
from headrace.ops.collective.rendezvous import LocalCollectives
from headrace.ops.core.registry import Effects, NotDifferentiable, define_op
from headrace.ops.core.traits import Traits

#: Under this name the store of a session keeps those of its own groups.
_KEY = "collectives of the session"
_TAKES_PART = Effects(blocks=True, external=True)
_NO_GRADIENT = NotDifferentiable("a collective operation hands over values between members")
_GROUP = "group_size: int, group_key: int, instance_key: int"
_HINT = "communication_hint: string = 'auto'"
_REDUCTION = "merge_op: {'Min', 'Max', 'Mul', 'Add'}, final_op: {'Id', 'Div'}"
_ANY = (
    "{float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, "
    "uint64, complex64, complex128, bool}"
)


def _take_part(context: Any, call: Call) -> Any:
    step = context.step
    collectives = getattr(step, "collectives", None)
    if collectives is None:
        collectives = context.store.object(_KEY, LocalCollectives)
    return collectives.run(call, step)


def _call(context: Any, kind: str, value: Any, attrs: dict[str, Any], **more: Any) -> Any:
    node = context.node
    if attrs["group_size"] < 1:
        message = f"group_size must be at least 1, but is {attrs['group_size']}"
        raise InvalidArgumentError(None, node.op, message)
    if value is not None:
        if not isinstance(value, jax.Array):  # those that arrive so may go as they are
            value = np.asarray(value)
        more = {"dtype": node.dtypes[0], "shape": value.shape, **more}
    if value is not None and more.get("merge") in ("Min", "Max") and value.dtype.kind == "c":
        message = f"Complex numbers have no order: {node.name} cannot merge them by {more['merge']}"
        raise InvalidArgumentError(None, node.op, message)
    call = Call(kind, value=value, device=node.device, name=node.name, **attrs, **more)
    return _take_part(context, call)


def _begin_anew(context: Any, *, group_size: int, group_key: int) -> tuple[()]:
    """The member's session was made anew: so must be those of all others, if any has run before."""
    call = Call("anew", group_key, group_size, 0, None, bool_, (), device=context.node.device)
    if group_size > 1:
        _take_part(context, call)
    return ()


def _reduce(
    context: Any,
    input: Any,
    *,
    group_size: int,
    group_key: int,
    instance_key: int,
    merge_op: str,
    final_op: str,
    communication_hint: str,
) -> Any:
    keys = {"group_size": group_size, "group_key": group_key, "instance_key": instance_key}
    how = {"merge": merge_op, "final": final_op, "hint": communication_hint}
    return _call(context, "reduce", input, keys, **how)


def _scatter(
    context: Any,
    input: Any,
    *,
    group_size: int,
    group_key: int,
    instance_key: int,
    merge_op: str,
    final_op: str,
    communication_hint: str,
) -> Any:
    keys = {"group_size": group_size, "group_key": group_key, "instance_key": instance_key}
    how = {"merge": merge_op, "final": final_op, "hint": communication_hint}
    return _call(context, "scatter", input, keys, **how)


def _gather_slices(
    context: Any,
    values: Any,
    indices: Any,
    *,
    group_size: int,
    group_key: int,
    instance_key: int,
) -> Any:
    """Each member gives how many rows it has, their indices and values, as bytes."""
    values, indices = np.ascontiguousarray(values), np.ascontiguousarray(indices)
    count = np.array([len(indices)], np.int64)
    if indices.ndim != 1 or values.shape[:1] != indices.shape:
        message = (
            f"Each row has an index: values have shape {list(values.shape)}, and indices "
            f"{list(indices.shape)}"
        )
        raise InvalidArgumentError(None, context.node.op, message)
    keys = {"group_size": group_size, "group_key": group_key, "instance_key": instance_key}
    given = np.concatenate([a.reshape(-1).view(np.uint8) for a in (count, indices, values)])
    rows = f"{values.dtype} {list(values.shape[1:])}"
    gathered = _call(
        context, "gather", given, keys, dtype=uint8, merge=rows, final=str(indices.dtype)
    )
    found: tuple[list[Any], list[Any]] = ([], [])
    begin = members = 0
    while begin < len(gathered):
        number = int(gathered[begin : begin + 8].view(np.int64)[0])
        begin, members = begin + 8, members + 1
        if not 0 <= number <= len(gathered):
            raise DataLossError(None, context.node.op, f"A member gives {number} rows.")
        for parts, like in zip(found, (indices, values), strict=True):
            end = begin + number * int(np.prod(like.shape[1:])) * like.itemsize
            parts.append(gathered[begin:end].view(like.dtype).reshape(number, *like.shape[1:]))
            begin = end
    return np.concatenate(found[1]), np.concatenate(found[0]), np.int32(members)


def _gather_whole(
    context: Any,
    input: Any,
    *,
    shape: Any,
    group_size: int,
    group_key: int,
    instance_key: int,
    communication_hint: str,
) -> Any:
    keys = {"group_size": group_size, "group_key": group_key, "instance_key": instance_key}
    found = _call(context, "gather", input, keys, hint=communication_hint)
    wanted = shape.as_tuple
    # TensorFlow's function gives [0]; who gives more needs just that.
    if wanted not in (None, (0,)) and not compatible_static(wanted, found.shape):
        raise FailedPreconditionError(
            None,
            context.node.op,
            f"The {group_size} members of group {group_key} gather {list(wanted)}, but those "
            f"who are left have {list(found.shape)}: parts of it went with a member. Go on from a "
            "checkpoint",
        )
    return found


def _send(context: Any, input: Any, *, group_size: int, group_key: int, instance_key: int) -> Any:
    keys = {"group_size": group_size, "group_key": group_key, "instance_key": instance_key}
    return _call(context, "broadcast", input, keys)


def _recv(
    context: Any, *, T: Any, shape: Any, group_size: int, group_key: int, instance_key: int
) -> Any:
    keys = {"group_size": group_size, "group_key": group_key, "instance_key": instance_key}
    if not shape.is_fully_defined():
        message = f"A broadcast is received in a shape that is fully known, not {shape}"
        raise InvalidArgumentError(None, context.node.op, message)
    return _call(context, "broadcast", None, keys, dtype=T, shape=tuple(shape.as_tuple))


def _gathered(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is None:
        return [None]
    return [(None, *dims[1:])]


def _scattered(op: Operation) -> list[Dims]:
    dims, members = op.inputs[0].dims, op.attrs["group_size"]
    if dims is None:
        return [None]
    if not dims or (dims[0] is not None and dims[0] % members):
        raise ValueError(
            f"reduce_scatter divides the first dimension among {members} members, but the shape is "
            f"{list(dims)}: pad it to a multiple"
        )
    return [(None if dims[0] is None else dims[0] // members, *dims[1:])]


def _same(op: Operation) -> list[Dims]:
    return [op.inputs[0].dims]


def _define(signature: str, attrs: str, shape: Any, host: Any, traits: Any = None) -> None:
    more = {} if traits is None else {"traits": traits}
    define_op(
        signature,
        attrs=attrs,
        shape=shape,
        host=host,
        effects=_TAKES_PART,
        gradient=_NO_GRADIENT,
        **more,
    )


_define(
    "CollectiveReduce(input: T) -> data: T",
    f"T: numeric, {_GROUP}, {_REDUCTION}, subdiv_offsets: list(int), wait_for: list(int) = [], "
    f"{_HINT}",
    _same,
    _reduce,
    Traits(device_arrays=True),
)
_define(
    "CollectiveReduceScatter(input: T) -> data: T",
    f"T: numeric, {_GROUP}, {_REDUCTION}, {_HINT}",
    _scattered,
    _scatter,
    Traits(
        device_arrays=True,
        only_here="a later release has CollectiveReduceScatterV2, whose keys are tensors",
    ),
)
_define(
    "CollectiveGather(input: T) -> data: T",
    f"T: {_ANY}, {_GROUP}, shape: shape, {_HINT}",
    _gathered,
    _gather_whole,
    Traits(device_arrays=True),
)
_define(
    "CollectiveGatherSlices(values: T, indices: Tindices) -> "
    "(values: T, indices: Tindices, members: int32)",
    f"T: numeric, Tindices: {{int32, int64}}, {_GROUP}",
    lambda op: [_gathered(op)[0], (None,), ()],
    _gather_slices,
    Traits(only_here="TensorFlow gathers values and indices by two operations"),
)
_define(
    "CollectiveBcastSend(input: T) -> data: T",
    f"T: {_ANY}, {_GROUP}, shape: shape, {_HINT}",
    _same,
    _send,
)
_define(
    "CollectiveBcastRecv() -> data: T",
    f"T: {_ANY}, {_GROUP}, shape: shape, {_HINT}",
    lambda op: [op.attrs["shape"].as_tuple],
    _recv,
)
_define(
    "CollectiveBeginAnew() -> ()",
    "group_size: int, group_key: int",
    lambda op: [],
    _begin_anew,
    Traits(only_here="TensorFlow's groups end with a member's session"),
)
