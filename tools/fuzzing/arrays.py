"""Making, joining, indexing and comparing tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzzing.draws import ANY, FLOATS, INTS, NUMBERS, REALS, WIDE, Call, Draw, Dtype, T
from fuzzing.table import add


def _ints(values: Any, dtype: str = "int32") -> T:
    return T(np.array(values, dtype))


def _concat(d: Draw) -> Call:
    dtype, shape = d.one(*ANY), d.shape(1)
    axis = d.axis(len(shape))
    at = axis % len(shape)
    parts = []
    for _ in range(d.between(1, 3)):
        size = d.size()
        parts.append(d.tensor(dtype, (*shape[:at], size, *shape[at + 1 :])))
    if d.invalid():
        parts.append(d.tensor(dtype, tuple([n + 1 for n in shape])))
    return d.call(parts, axis)


add("concat", _concat)


def _stack(d: Draw) -> Call:
    dtype, shape = d.one(*ANY), d.shape(0, 2)
    parts = [d.tensor(dtype, shape) for _ in range(d.between(1, 3))]
    if d.invalid():
        parts.append(d.tensor(dtype, (*shape, 2)))
    return d.call(parts, axis=d.axis(len(shape) + 1))


add("stack", _stack)
add("parallel_stack", lambda d: d.call(_stack(d).args[0]))


def _unstack(d: Draw) -> Call:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    size = shape[axis] if -len(shape) <= axis < len(shape) else 1
    num = size + 1 if d.invalid() else size
    return d.call(d.tensor(d.one(*ANY), shape), num if d.chance(70) else None, axis)


add("unstack", _unstack)


def _split(d: Draw) -> Call:
    shape = list(d.shape(1))
    axis = d.axis(len(shape))
    at = axis % len(shape)
    pieces = d.between(1, 3)
    if d.chance(50):
        shape[at] = pieces * d.between(0, 3) + (1 if d.invalid() else 0)
        return d.call(d.tensor(d.one(*ANY), shape), pieces, axis)
    sizes = [d.between(0, 2) for _ in range(pieces)]
    shape[at] = sum(sizes)
    if d.chance(20):
        sizes[-1] = -1
    if d.invalid():
        sizes[0] += d.one(1, -5)
    return d.call(d.tensor(d.one(*ANY), shape), sizes, axis)


add("split", _split)


def _gather(d: Draw) -> Call:
    shape = d.shape(1)
    axis = d.axis(len(shape)) if d.chance(50) else 0
    size = shape[axis % len(shape)]
    indices = d.array(d.one("int32", "int64"), d.shape(0, 2), "positive") % max(1, size)
    if indices.size and d.invalid():
        indices = indices - indices.dtype.type(2 * size + 1) * d.one(1, -1)
    return d.call(d.tensor(d.one(*ANY), shape), T(indices), axis=axis)


add("gather", _gather)


def _batch_gather(d: Draw) -> Call:
    shape = d.shape(2)
    batch = shape[:-1]
    indices = d.array("int32", (*batch, d.size()), "positive") % max(1, shape[-1])
    if indices.size and d.invalid():
        indices = indices + shape[-1]
    return d.call(d.tensor(d.one(*ANY), shape), T(indices.astype("int32")))


add("batch_gather", _batch_gather)


def _rows(d: Draw, shape: tuple[int, ...], depth: int, lead: tuple[int, ...]) -> Any:
    rows = np.zeros((*lead, depth), "int32")
    for k in range(depth):
        rows[..., k] = d.array("int32", lead, "positive") % max(1, shape[k])
    if rows.size and d.invalid():
        rows.flat[0] = d.one(-1, 9)
    return rows


def _gather_nd(d: Draw) -> Call:
    shape = d.shape(1)
    depth = d.between(0, len(shape)) + d.invalid()
    rows = _rows(d, (*shape, 3), depth, d.shape(0, 2))
    return d.call(d.tensor(d.one(*ANY), shape), T(rows))


add("gather_nd", _gather_nd)


def _scatter_nd(d: Draw) -> Call:
    shape = d.shape(1)
    depth = d.between(1, len(shape))
    lead = d.shape(1, 1)
    rows = _rows(d, shape, depth, lead)
    tail = shape[depth:] if not d.invalid() else (*shape[depth:], 2)
    return d.call(T(rows), d.tensor(d.one(*NUMBERS), (*lead, *tail)), list(shape))


add("scatter_nd", _scatter_nd)


def _tensor_scatter(d: Draw) -> Call:
    rows, updates, shape = _scatter_nd(d).args
    tensor = d.tensor(updates.value.dtype.name, shape)
    if len(rows.value) > 1 and d.chance(70):
        rows = T(rows.value[:1])
        updates = T(updates.value[:1])
    return d.call(tensor, rows, updates)


def _set_once(d: Draw) -> Call:
    tensor, rows, updates = _tensor_scatter(d).args
    return d.call(tensor, T(rows.value[:1]), T(updates.value[:1]))


add("tensor_scatter_update", _set_once)
add("tensor_scatter_add", _tensor_scatter)
add("tensor_scatter_sub", _tensor_scatter)


def _one_hot(d: Draw) -> Call:
    indices = d.array(d.one("int32", "int64", "uint8"), d.shape(0, 2), d.one("positive", "plain"))
    values = {}
    if d.chance(40):
        dtype = d.one("float32", "int32", "bool")
        values = {k: d.tensor(dtype, (), "plain") for k in ("on_value", "off_value")}
    if d.chance(30):
        values["axis"] = d.between(-1, indices.ndim) if not d.invalid() else 5
    return d.call(T(indices), d.one(0, 3, 5) if not d.invalid() else -1, **values)


add("one_hot", _one_hot)


def _range(d: Draw) -> Call:
    dtype = d.one("int32", "int64", "float32", "float64")
    start, limit = d.tensor(dtype, (), "plain"), d.tensor(dtype, (), "plain")
    delta = np.array(d.one(1, 2, -1, 3, 0) if d.invalid() else d.one(1, 2, 3), dtype)
    if not d.invalid() and (start.value > limit.value) == (delta > 0):
        start, limit = limit, start
    return d.call(start, limit, T(delta))


add("range", _range)


def _linspace(d: Draw) -> Call:
    dtype = d.one("float32", "float64")
    num = d.one(0, -1) if d.invalid() else d.between(1, 6)
    return d.call(d.tensor(dtype, (), "plain"), d.tensor(dtype, (), "plain"), num)


add("lin_space", _linspace)


def _fill(d: Draw) -> Call:
    dims = list(d.shape())
    if dims and d.invalid():
        dims[0] = -1
    value = d.tensor(d.one(*ANY), (2,) if d.invalid() else ())
    return d.call(_ints(dims) if d.chance(40) else dims, value)


add("fill", _fill)


def _sized(d: Draw) -> Call:
    dims = list(d.shape())
    if dims and d.invalid():
        dims[0] = -2
    return d.call(dims, Dtype(d.one(*ANY)))


add("zeros", _sized)
add("ones", _sized)


def _eye(d: Draw) -> Call:
    more = {"num_columns": d.size()} if d.chance(40) else {}
    if d.chance(30):
        more["batch_shape"] = list(d.shape(1, 2))
    return d.call(d.size(), **more)


add("eye", _eye)


def _boolean_mask(d: Draw) -> Call:
    shape = d.shape(1)
    depth = d.between(1, len(shape))
    mask = shape[:depth] if not d.invalid() else (shape[0] + 1,)
    call = d.call(d.tensor(d.one(*ANY), shape), d.tensor("bool", mask))
    if call.known == "nothing":
        call.known = "rank"
    return call


add("boolean_mask", _boolean_mask)
add(
    "where of a condition",
    lambda d: d.call(d.tensor(d.one("bool", "bool", "int32"), d.shape())),
    function=lambda tf, x: tf.where(tf.not_equal(tf.cast(x, tf.int32), 0)),
)


def _unique(d: Draw) -> Call:
    shape = d.shape(2, 2) if d.invalid() else (d.between(0, 8),)
    return d.call(d.tensor(d.one("int32", "int64", "float32", "uint8"), shape, "plain"))


add("unique", _unique)
add("unique_with_counts", _unique)


def _setdiff(d: Draw) -> Call:
    dtype = d.one("int32", "float32", "int64")
    return d.call(*[d.tensor(dtype, (d.between(0, 8),), "plain") for _ in range(2)])


add("setdiff1d", _setdiff)


def _invert_permutation(d: Draw) -> Call:
    order = np.array(d.permutation(d.between(0, 6)), d.one("int32", "int64"))
    if order.size and d.invalid():
        order[0] = d.one(order[-1], -1, 9)
    return d.call(T(order))


add("invert_permutation", _invert_permutation)


def _sequence_mask(d: Draw) -> Call:
    lengths = d.array(d.one(*INTS), d.shape(0, 2), "positive") % 5
    most = {"maxlen": d.between(0, 6)} if d.chance(50) else {}
    dtype = {"dtype": Dtype(d.one("float32", "int32"))} if d.chance(30) else {}
    return d.call(T(lengths), **most, **dtype)


add("sequence_mask", _sequence_mask)


def _searchsorted(d: Draw) -> Call:
    rows = d.size()
    dtype = d.one("float32", "int32", "float64")
    ordered = np.sort(d.array(dtype, (rows, d.size()), "plain"))
    more = {"side": d.one("left", "right")} if d.chance(60) else {}
    return d.call(T(ordered), d.tensor(dtype, (rows + d.invalid(), d.size()), "plain"), **more)


add("searchsorted", _searchsorted)


def _partition(d: Draw) -> Call:
    shape = d.shape(1)
    parts = d.array("int32", shape[: d.between(1, len(shape))], "positive") % 3
    if parts.size and d.invalid():
        parts.flat[0] = d.one(-1, 3)
    return d.call(d.tensor(d.one(*ANY), shape), T(parts.astype("int32")), 3)


add("dynamic_partition", _partition)


def _stitch(d: Draw) -> Call:
    count = d.between(1, 7)
    order, cut = d.permutation(count), d.below(count + 1)
    tail, dtype = d.shape(0, 1), d.one(*ANY)
    parts = [order[:cut], order[cut:]]
    if d.invalid():
        parts[1] = [*parts[1], -1]
    data = [d.tensor(dtype, (len(p), *tail)) for p in parts]
    return d.call([_ints(p) for p in parts], data)


add("dynamic_stitch", _stitch)
add(
    "parallel_dynamic_stitch",
    _stitch,
    function=lambda tf, i, x: tf.dynamic_stitch(i[::-1], x[::-1]),
)


def _meshgrid(d: Draw) -> Call:
    dtype = d.one(*NUMBERS)
    vectors = [d.tensor(dtype, (d.size(),)) for _ in range(d.between(1, 3))]
    return d.call(*vectors, indexing=d.one("xy", "ij"))


add("meshgrid", _meshgrid)


def _dims(d: Draw) -> Call:
    return d.call(*[_ints(s) for s in d.broadcast()])


add("broadcast_dynamic_shape", _dims)
add(
    "broadcast_static_shape",
    lambda d: Call(list(d.broadcast()), {}, "full"),
    function=lambda tf, a, b: tf.broadcast_static_shape(tf.TensorShape(a), tf.TensorShape(b)),
)


def _concat_offset(d: Draw) -> Call:
    shape = list(d.shape(1))
    axis = d.axis(len(shape))
    others = [list(shape) for _ in range(d.between(1, 3))]
    for other in others:
        if -len(shape) <= axis < len(shape):
            other[axis] += d.below(3)
        if d.invalid():
            other[d.below(len(shape))] += 1
    if d.invalid():
        others.append([*shape, 2])
    return d.call(axis, [_ints(o) for o in others])


def _offsets(tf: Any, axis: Any, shapes: Any) -> Any:
    if tf.__name__ == "headrace":
        from headrace.ops.core.build import raw

        return raw.ConcatOffset(axis, shapes)
    return tf.raw_ops.ConcatOffset(concat_dim=axis, shape=shapes)


add("concat_offset", _concat_offset, function=_offsets, calls=45)


def _tensordot(d: Draw) -> Call:
    shared = d.shape(1, 2)
    a, b = (*d.shape(0, 2), *shared), (*shared, *d.shape(0, 2))
    if d.invalid():
        b = (shared[0] + 1, *b[1:])
    dtype = d.one("float32", "float64", "int32", "complex64")
    return d.call(d.tensor(dtype, a, "plain"), d.tensor(dtype, b, "plain"), len(shared))


add("tensordot", _tensordot)


def _einsum(d: Draw) -> Call:
    equation = d.one("ij,jk->ik", "bij,bjk->bik", "ij,ij->", "i,j->ij", "ij->ji", "bij->b", "ij,jk")
    sizes = {c: d.size() for c in "bijk"}
    terms = equation.split("->")[0].split(",")
    dtype = d.one("float32", "float64", "int32", "complex64")
    parts = [d.tensor(dtype, [sizes[c] for c in t], "plain") for t in terms]
    if d.invalid():
        parts[-1] = d.tensor(dtype, [n + 1 for n in parts[-1].value.shape], "plain")
    return d.call(equation, *parts)


add("einsum", _einsum)


def _ensure_shape(d: Draw) -> Call:
    shape = list(d.shape())
    stated = [None if d.chance(30) else n for n in shape]
    if shape and d.invalid():
        stated[0] = shape[0] + 1
    return d.call(d.tensor(d.one(*ANY), shape), stated)


add("ensure_shape", _ensure_shape)


def _unravel(d: Draw) -> Call:
    dims = [d.between(1, 4) for _ in range(d.between(1, 3))]
    indices = d.array("int32", d.shape(0, 1), "positive") % int(np.prod(dims))
    if indices.size and d.invalid():
        indices.flat[0] = 999
    return d.call(T(indices.astype("int32")), _ints(dims))


add("unravel_index", _unravel)


def _embedding(d: Draw) -> Call:
    table = d.tensor(d.one(*WIDE), (d.between(1, 5), d.size()))
    ids = d.array("int32", d.shape(0, 2), "positive") % len(table.value)
    if ids.size and d.invalid():
        ids.flat[0] = d.one(-1, 7)
    more = {"max_norm": 1.5} if d.chance(20) else {}
    call = d.call(table, T(ids.astype("int32")), **more)
    return call


add("nn.embedding_lookup", _embedding)
add("is_non_decreasing", lambda d: d.call(d.tensor(d.one(*REALS), d.shape())))
add("is_strictly_increasing", lambda d: d.call(d.tensor(d.one(*FLOATS), d.shape())))
