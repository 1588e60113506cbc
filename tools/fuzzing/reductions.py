"""Reductions, cumulative sums and segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuzzing.draws import COMPLEX, FLOATS, INTS, NUMBERS, REALS, WIDE, Call, Draw, Dtype, T
from fuzzing.table import add


def reduction(names: str, types: Sequence[str], **more: Any) -> None:
    def draw(d: Draw) -> Call:
        shape = d.shape()
        keep = {"keepdims": True} if d.chance(30) else {}
        return d.call(d.tensor(d.one(*types), shape), axis=d.axes(len(shape)), **keep)

    for name in names.split():
        add(name, draw, **more)


reduction("reduce_sum reduce_mean reduce_prod", NUMBERS, calls=60)
reduction("reduce_max reduce_min", REALS)
reduction("reduce_all reduce_any", ("bool", "bool", "bool", "int32"))
reduction("reduce_logsumexp", WIDE)
reduction("math.reduce_euclidean_norm", NUMBERS)
reduction("math.reduce_std math.reduce_variance", (*FLOATS, *COMPLEX, "int32"), scale=4)
reduction("count_nonzero", (*REALS, "bool"))


def _many(d: Draw) -> Call:
    """Enough small integers that their sum does not fit into their type."""
    dtype = d.one("uint8", "int8", "int16", "uint16", "int32", "int64")
    return d.call(d.tensor(dtype, (d.between(100, 900),), d.one("positive", "special")))


add("reduce_mean of many", _many, function=lambda tf, x: tf.reduce_mean(x), calls=60)
add("reduce_sum of many", _many, function=lambda tf, x: tf.reduce_sum(x), calls=30)


def _arg(d: Draw) -> Call:
    shape = d.shape(1)
    out = {"output_type": Dtype("int32")} if d.chance(30) else {}
    return d.call(d.tensor(d.one(*REALS), shape), axis=d.axis(len(shape)), **out)


add("argmax", _arg)
add("argmin", _arg)


def _cumulative(d: Draw, types: Sequence[str]) -> Call:
    shape = d.shape(1)
    flags = {k: True for k in ("exclusive", "reverse") if d.chance(40)}
    return d.call(d.tensor(d.one(*types), shape), axis=d.axis(len(shape)), **flags)


add("cumsum", lambda d: _cumulative(d, NUMBERS))
add("cumprod", lambda d: _cumulative(d, NUMBERS))
add("math.cumulative_logsumexp", lambda d: _cumulative(d, WIDE))


def _norm(d: Draw) -> Call:
    shape = d.shape(1)
    axis = d.axis(len(shape)) if d.chance(70) else None
    order = d.one("euclidean", 1, 2, float("inf"), 3.0)
    return d.call(d.tensor(d.one(*WIDE), shape), ord=order, axis=axis, keepdims=d.chance(30))


add("norm", _norm)


def _moments(d: Draw) -> Call:
    shape = d.shape(1)
    axes = sorted({d.axis(len(shape)) % max(1, len(shape)) for _ in range(d.between(1, 2))})
    return d.call(d.tensor(d.one(*FLOATS), shape, d.one("plain", "")), axes, keep_dims=d.chance(30))


add("nn.moments", _moments)
add("nn.sufficient_statistics", _moments)


def _weighted_moments(d: Draw) -> Call:
    shape = d.shape(1)
    axes = [d.axis(len(shape)) % len(shape)]
    x, w = d.tensor("float32", shape, "plain"), d.tensor("float32", shape, "positive")
    return d.call(x, axes, w)


add("nn.weighted_moments", _weighted_moments, scale=4)


def _l2_normalize(d: Draw) -> Call:
    shape = d.shape(1)
    return d.call(d.tensor(d.one(*WIDE), shape), axis=d.axis(len(shape)))


add("nn.l2_normalize", _l2_normalize)
add("math.zero_fraction", lambda d: d.call(d.tensor(d.one(*REALS), d.shape())))


def _softmax(d: Draw) -> Call:
    shape = d.shape(1)
    return d.call(d.tensor(d.one(*FLOATS), shape), axis=d.axis(len(shape)))


add("nn.softmax", _softmax)
add("nn.log_softmax", _softmax)


# -- segments ------------------------------------------------------------------------------------


def _ids(d: Draw, count: int, high: int, ordered: bool) -> list[int]:
    ids = [d.below(high) for _ in range(count)]
    if ordered and not d.invalid():
        ids.sort()
    if ids and d.invalid():
        ids[d.below(count)] = d.one(-1, high + 3)
    return ids


def _segment(d: Draw, types: Sequence[str]) -> Call:
    shape = d.shape(1)
    count = shape[0] + 1 if d.invalid() else shape[0]
    ids = np.array(_ids(d, count, 4, True), d.one("int32", "int64"))
    return d.call(d.tensor(d.one(*types), shape), T(ids))


def _unsorted(d: Draw, types: Sequence[str]) -> Call:
    shape = d.shape(1)
    count = shape[0] + 1 if d.invalid() else shape[0]
    ids = np.array(_ids(d, count, 4, False), d.one("int32", "int64"))
    return d.call(d.tensor(d.one(*types), shape), T(ids), d.one(4, 5, 4, 0))


for _name in ("sum", "mean", "prod", "max", "min"):
    _types = (*REALS,) if _name in ("max", "min") else NUMBERS
    add(f"segment_{_name}", lambda d, types=_types: _segment(d, types), calls=45)
    add(f"unsorted_segment_{_name}", lambda d, types=_types: _unsorted(d, types), calls=45)
add("unsorted_segment_sqrt_n", lambda d: _unsorted(d, NUMBERS))


def _sparse_segment(d: Draw) -> Call:
    shape = d.shape(1)
    count = d.between(0, 5)
    indices = [d.below(max(1, shape[0])) for _ in range(count)]
    if count and d.invalid():
        indices[0] = d.one(-1, shape[0])
    ids = _ids(d, count, 4, True)
    sized = {"num_segments": d.one(4, 5, 2)} if d.chance(30) else {}
    dtype = d.one("int32", "int32", "int64")
    indices_array, ids_array = np.array(indices, dtype), np.array(ids, "int32")
    return d.call(d.tensor(d.one(*WIDE), shape), T(indices_array), T(ids_array), **sized)


for _name in ("sum", "mean", "sqrt_n"):
    add(f"sparse_segment_{_name}", _sparse_segment)


def _bincount(d: Draw) -> Call:
    limits = {k: d.between(0, 6) for k in ("minlength", "maxlength") if d.chance(30)}
    values = d.array("int32", d.shape(1, 1, 9), "positive")
    if values.size and d.invalid():
        values[0] = -2
    if d.chance(30):
        limits["weights"] = d.tensor(d.one("float32", "int32"), values.shape, "plain")
    return d.call(T(values), **limits)


add("bincount", _bincount)


def _histogram(d: Draw) -> Call:
    dtype = d.one("float32", "float64", "int32", "int64")
    span = d.one([-2, 2], [0, 4], [3, 3], [4, 1])
    values = d.tensor(dtype, d.shape(), "plain")
    return d.call(values, np.array(span, dtype), nbins=d.one(1, 3, 5))


add("histogram_fixed_width", _histogram)


def _confusion(d: Draw) -> Call:
    shape = d.shape(1, 1, 8)
    labels, predictions = d.array("int32", shape, "unit"), d.array("int32", shape, "positive") % 3
    if labels.size and d.invalid():
        labels[0] = -1
    classes = {"num_classes": d.one(3, 4, 1)} if d.chance(50) else {}
    return d.call(T(labels), T(predictions), **classes)


add("confusion_matrix", _confusion)


def _in_top_k(d: Draw) -> Call:
    rows, classes = d.size(), d.size(5)
    targets = d.array("int32", (rows,), "positive") % max(1, classes)
    if rows and d.invalid():
        targets[0] = classes
    return d.call(d.tensor("float32", (rows, classes)), T(targets), d.between(0, 3))


add("nn.in_top_k", _in_top_k)


def _top_k(d: Draw) -> Call:
    shape = d.shape(1)
    most = shape[-1] if shape else 1
    k = most + 1 if d.invalid() else d.between(0, most)
    return d.call(d.tensor(d.one(*REALS), shape), k)


add("nn.top_k", _top_k)


def _sort(d: Draw) -> Call:
    shape = d.shape(1)
    order = {"direction": d.one("ASCENDING", "DESCENDING", "DESCENDING")} if d.chance(50) else {}
    return d.call(d.tensor(d.one(*FLOATS, *INTS), shape), axis=d.axis(len(shape)), **order)


add("sort", _sort)
add("argsort", _sort)
