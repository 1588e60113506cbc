"""What control flow of our own consists of: scans, and values that bodies hand out as lists.

A scan becomes a loop that counts. Inner values that an operation hands out (``_saved``, see
ops.control_flow) become results of its functions: lists that a loop pushes them onto, lists of one
element where a branch or a call runs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.graph_files.export_graph import lowers
from headrace.ops.control.flow import bodies_of
from headrace.ops.control.functional import scan_op
from headrace.ops.control.functions import build_body, call_op, inline, unify_captures
from headrace.ops.control.tensor_list import shape_input
from headrace.ops.core.build import add_node, constant, function_placeholder, raw
from headrace.ops.core.registry import get_op_def

_ANY = np.array(-1, np.int32)


def _variant(body: FuncGraph, extra: int = 0) -> FuncGraph:
    """An empty function with the inputs of ``body`` and ``extra`` lists."""
    outer = get_default_graph()
    new = FuncGraph(f"{body.name}_saving", outer, function_placeholder)
    for tensor in body.all_inputs:
        new.add_input(tensor.dtype, tensor.dims, tensor.op.name + "/")
    for _ in range(extra):
        new.add_input(dtypes.variant, (), "saved")
    return new


def _empty_list(dtype: Any) -> Any:
    return raw.EmptyTensorList(
        constant(_ANY), constant(_ANY), element_dtype=dtype, shape_type=dtypes.int32
    )


def _attrs_without(op: Operation, *more: str) -> dict[str, Any]:
    """The attributes to build ``op`` again: without what follows from its inputs."""
    found = {k: v for k, v in op.attrs.items() if k in op.op_def.attrs or k[0] == "_"}
    for name in ("_saved", "_Tsaved", "_bound", "T", "Tin", "Tcond", *more):
        found.pop(name, None)
    return found


def _extended_shapes(op: Operation, count: int) -> tuple[Any, ...]:
    shapes = tuple(op.attrs.get("output_shapes") or ())
    return (*shapes, *[TensorShape(None)] * count) if shapes else ()


# -- loops --------------------------------------------------------------------------------------


@lowers("While", "StatelessWhile", sometimes=True)
def _while(op: Operation, inputs: Sequence[Tensor]) -> Operation | None:
    names = op.attrs["_saved"]
    if not names:
        return None
    old_cond, old_body = op.attrs["cond"], op.attrs["body"]
    saved = [old_body.get_tensor_by_name(n) for n in names]
    cond, body = _variant(old_cond, len(saved)), _variant(old_body, len(saved))
    count = len(old_body.all_inputs)
    with cond.as_default():
        cond.outputs = inline(old_cond, cond.inputs[:count], old_cond.outputs)
    with body.as_default():
        made = inline(old_body, body.inputs[:count], [*old_body.outputs, *saved])
        pushed = [
            raw.TensorListPushBack(kept, value)
            for kept, value in zip(body.inputs[count:], made[count:], strict=True)
        ]
        body.outputs = [*made[:count], *pushed]
    attrs = _attrs_without(op) | {"cond": cond, "body": body}
    attrs["output_shapes"] = _extended_shapes(op, len(saved))
    start = [*inputs, *[_empty_list(t.dtype) for t in saved]]
    return add_node(op.op_def, [start], attrs)


@lowers("Scan", "StatelessScan")
def _scan(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    body, carries = op.attrs["f"], len(op.attrs["Tcarry"])
    first_capture = carries + len(op.attrs["Txs"])
    xs, captures = inputs[carries:first_capture], inputs[first_capture:]
    results = [
        *body.outputs[carries:],
        *[body.get_tensor_by_name(name) for name in op.attrs["_saved"]],
    ]
    size = _number_of_elements(xs[0])
    lists = [
        raw.TensorListReserve(_shape(t.dims), size, element_dtype=t.dtype, shape_type=dtypes.int32)
        for t in results
    ]
    start = [constant(np.int32(0)), *inputs[:carries], *lists]
    dims = [(), *[t.dims for t in body.inputs[:carries]], *[()] * len(lists)]
    signature = [(t.dtype, d, "carry") for t, d in zip(start, dims, strict=True)]

    def go_on(step: Tensor, *_: Tensor) -> None:
        graph = _current()
        graph.outputs = [raw.Less(step, size)]

    def once(step: Tensor, *state: Tensor) -> None:
        last = raw.Sub(graph_size(), constant(np.int32(1)))
        at = raw.Sub(last, step) if op.attrs["reverse"] else step
        elements = [
            _element(_current().capture(x), at, inner)
            for x, inner in zip(xs, body.inputs[carries:], strict=False)
        ]
        outer = [_current().capture(c) for c in captures]
        made = inline(
            body,
            [*state[:carries], *elements, *outer],
            [*body.outputs[:carries], *results],
        )
        kept = [
            raw.TensorListSetItem(value, at, item)
            for value, item in zip(state[carries:], made[carries:], strict=True)
        ]
        _current().outputs = [raw.AddV2(step, constant(np.int32(1))), *made[:carries], *kept]

    def graph_size() -> Tensor:
        return _current().capture(size)

    loop = _loop(go_on, once, start, signature)
    kinds = [*op.attrs["y_lists"], *[True] * len(op.attrs["_saved"])]
    found = loop.outputs[1 + carries : 1 + carries + len(lists)]
    ys = [
        value if as_list else raw.TensorListStack(value, _shape(t.dims), element_dtype=t.dtype)
        for value, as_list, t in zip(found, kinds, results, strict=True)
    ]
    return [*loop.outputs[1 : 1 + carries], *ys]


def _current() -> FuncGraph:
    graph = get_default_graph()
    assert isinstance(graph, FuncGraph)
    return graph


def _shape(dims: Dims) -> Tensor:
    return shape_input(dims) if dims is None or None in dims else constant(np.array(dims, np.int32))


def _number_of_elements(x: Tensor) -> Any:
    if x.dtype is dtypes.variant:
        return raw.TensorListLength(x)
    return _size(x, 0)


def _element(x: Tensor, at: Any, inner: Tensor | None) -> Any:
    if inner is None:
        return raw.GatherV2(x, at, constant(np.int32(0)))
    if x.dtype is dtypes.variant:
        element = raw.TensorListGetItem(x, at, _shape(inner.dims), element_dtype=inner.dtype)
    else:
        element = raw.GatherV2(x, at, constant(np.int32(0)))
    element.set_shape(inner.shape)
    return element


def _loop(go_on: Any, once: Any, start: list[Any], signature: list[Any]) -> Operation:
    cond, _ = build_body("cond", go_on, signature)
    body, _ = build_body("body", once, signature)
    captured = unify_captures([cond, body])
    body.outputs = [*body.outputs, *[body.captures[t] for t in captured]]
    attrs = {"cond": cond, "body": body}
    return call_op("While", "StatelessWhile", [cond, body], [[*start, *captured]], attrs, "While")


@lowers("GatherTree")
def _gather_tree(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    """Beams followed back from the last step, as `ops.nn.beam_search` does it."""
    steps, parents, lengths, end = inputs
    time, _, width = (_size(steps, axis) for axis in range(3))
    lengths = raw.Minimum(lengths, time)
    zero, one = constant(np.int32(0)), constant(np.int32(1))
    levels = raw.Range(zero, time, one)
    start = raw.ZerosLike(_element(steps, zero, None))

    def step(at: Tensor, ids: Tensor, above: Tensor, level: Tensor) -> None:
        last = raw.Maximum(raw.Sub(width, one), zero)
        at = raw.Minimum(raw.Maximum(at, zero), last)
        length = raw.ExpandDims(lengths, constant(np.int32(1)))
        here = raw.Equal(raw.Sub(length, one), level)
        beams = raw.AddV2(raw.ZerosLike(at), raw.Range(zero, width, one))
        at = raw.SelectV2(raw.LogicalOr(here, raw.ZerosLike(raw.Equal(at, at))), beams, at)
        inside = raw.LogicalOr(raw.Greater(length, level), raw.ZerosLike(raw.Equal(at, at)))
        axis = constant(np.int32(1))
        found = raw.SelectV2(inside, raw.GatherV2(ids, at, axis, batch_dims=1), end)
        above = raw.SelectV2(inside, raw.GatherV2(above, at, axis, batch_dims=1), at)
        _current().outputs = [above, found]

    _, (beams,) = scan_op(step, [start], [start.dims], [steps, parents, levels], True)
    ended = raw.Cumsum(raw.Cast(raw.Equal(beams, end), DstT=dtypes.int32), zero)
    return [raw.SelectV2(raw.Greater(ended, zero), end, beams)]


def _size(x: Tensor, axis: int) -> Any:
    at, one = constant(np.array([axis], np.int32)), constant(np.array([1], np.int32))
    end = constant(np.array([axis + 1], np.int32))
    return raw.StridedSlice(raw.Shape(x), at, end, one, shrink_axis_mask=1)


# -- branches and calls -------------------------------------------------------------------------


@lowers("If", "StatelessIf", "Case", "StatelessCase", sometimes=True)
@lowers("PartitionedCall", "StatefulPartitionedCall", sometimes=True)
def _branches(op: Operation, inputs: Sequence[Tensor]) -> Operation | None:
    names = op.attrs["_saved"]
    # TensorFlow 1.15 has no StatelessCase; Case does the same.
    op_type = "Case" if op.type == "StatelessCase" else op.type
    if not names and op_type == op.type:
        return None
    bodies = [_handing_out(b, i, op) for i, b in enumerate(bodies_of(op.attrs))]
    attrs = _attrs_without(op)
    if "branches" in attrs:
        attrs["branches"] = bodies
    elif "f" in attrs:
        attrs["f"] = bodies[0]
    else:
        attrs["then_branch"], attrs["else_branch"] = bodies
    if attrs.get("output_shapes"):
        attrs["output_shapes"] = _extended_shapes(op, len(names))
    attrs["Tout"] = [*op.attrs["Tout"], *[dtypes.variant] * len(names)]
    choice = 0 if "f" in attrs else 1
    return add_node(get_op_def(op_type), [*inputs[:choice], list(inputs[choice:])], attrs)


def _handing_out(body: FuncGraph, index: int, op: Operation) -> FuncGraph:
    """A branch with the lists of one element that its operation hands out."""
    names = op.attrs["_saved"]
    if not names:
        return body
    new = _variant(body)
    own = [n.partition("!")[2] for n in names if n.partition("!")[0] == str(index)]
    tensors = [body.get_tensor_by_name(n) for n in own]
    with new.as_default():
        made = inline(body, new.inputs, [*body.outputs, *tensors])
        values = iter(made[len(body.outputs) :])
        lists = []
        for name in names:
            branch, _, inner = name.partition("!")
            dtype = bodies_of(op.attrs)[int(branch)].get_tensor_by_name(inner).dtype
            kept = raw.TensorListReserve(
                constant(_ANY), constant(np.int32(1)), element_dtype=dtype, shape_type=dtypes.int32
            )
            if branch == str(index):
                kept = raw.TensorListSetItem(kept, constant(np.int32(0)), next(values))
            lists.append(kept)
        new.outputs = [*made[: len(body.outputs)], *lists]
    return new


# -- lists --------------------------------------------------------------------------------------


@lowers("TensorListSetItem", sometimes=True)
def _set_item(op: Operation, inputs: Sequence[Tensor]) -> list[Any] | None:
    """TensorFlow 1.15 writes only where a list has a place already."""
    if not op.attrs["resize_if_index_out_of_bounds"]:
        return None
    value, index, item = inputs
    needed = raw.AddV2(index, constant(np.int32(1)))
    longer = raw.TensorListResize(value, raw.Maximum(raw.TensorListLength(value), needed))
    return [raw.TensorListSetItem(longer, index, item)]


@lowers("TensorListOneItem")
def _one_item(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    length, index, item = inputs
    empty = raw.TensorListReserve(
        raw.Shape(item), length, element_dtype=item.dtype, shape_type=dtypes.int32
    )
    return [raw.TensorListSetItem(empty, index, item)]


@lowers("TensorArrayLog")
def _log(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    log = raw.ExpandDims(raw.AddV2(inputs[0], constant(np.int32(1))), constant(np.int32(0)))
    return [raw.TensorListFromTensor(log, constant(np.int32(-1)))]


@lowers("TensorListAccumulate")
def _accumulate(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    value, index, item = inputs
    old = raw.TensorListGetItem(value, index, raw.Shape(item), element_dtype=item.dtype)
    return [raw.TensorListSetItem(value, index, raw.AddV2(old, item))]


@lowers("TensorListAdd")
def _add_lists(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    # TensorFlow's AddN takes lists as well; ours has an operation of its own for them.
    attrs = {"T": dtypes.variant, "N": len(inputs)}
    made = get_default_graph().add_op(get_op_def("AddN"), inputs, attrs, [dtypes.variant])
    return list(made.outputs)


@lowers("TensorListZerosLike")
def _zero_list(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    return [raw.ZerosLike(inputs[0])]


__all__: list[str] = []
