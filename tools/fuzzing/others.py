"""Strings, sparse tensors, functions of functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzzing.draws import NUMBERS, REALS, WIDE, Call, Draw, Dtype, Sparse, T
from fuzzing.table import add

WORDS = (
    "",
    "a",
    "ab",
    "Hello World",
    "1",
    "-2.5",
    "1e3",
    "nan",
    "x,y",
    " padded ",
    "äöü",
    "0x1F",
    "2147483648",
    "inf",
)


def _strings(d: Draw, shape: Any = None, words: tuple[str, ...] = WORDS) -> np.ndarray[Any, Any]:
    shape = d.shape(0, 2) if shape is None else shape
    flat = [d.one(*words).encode() for _ in range(int(np.prod(shape)))]
    array = np.empty(len(flat), object)
    array[:] = flat
    return array.reshape(shape)


def strings(names: str, *extra: Any, **more: Any) -> None:
    def draw(d: Draw) -> Call:
        return d.call(T(_strings(d)), *[e(d) if callable(e) else e for e in extra])

    for name in names.split():
        add(name, draw, **more)


strings("strings.length strings.strip encode_base64")
strings("strings.upper strings.lower")
strings(
    "strings.to_hash_bucket_fast strings.to_hash_bucket",
    lambda d: d.one(1, 7, 1000, 0 if d.invalid() else 5),
)
strings("strings.regex_replace", "[a-l]+", "<\\0>")
strings("strings.regex_full_match", "[a-z,]*")
NUMERALS = (*[w for w in WORDS if w[:1].isdigit() or w[:1] == "-"], "7", "0", "12 ", "nan")


def _to_number(d: Draw) -> Call:
    texts = _strings(d, (d.between(0, 2),), WORDS if d.invalid() else NUMERALS)
    return d.call(T(texts), Dtype(d.one("float32", "int32", "int64", "float64")))


add("strings.to_number", _to_number, calls=45)
strings(
    "strings.unicode_transcode",
    function=lambda tf, x: tf.strings.unicode_transcode(x, "UTF-8", "UTF-16-BE"),
)
add("decode_base64", lambda d: d.call(T(_strings(d))))


def _substr(d: Draw) -> Call:
    texts = _strings(d)
    return d.call(T(texts), d.between(-3, 3), d.between(0, 4) if not d.invalid() else -1)


add("strings.substr", _substr)


def _join(d: Draw) -> Call:
    shape = d.shape(0, 2)
    parts = [T(_strings(d, shape if d.chance(70) else ())) for _ in range(d.between(1, 3))]
    if d.invalid():
        parts.append(T(_strings(d, (*shape, 2))))
    return d.call(parts, separator=d.one("", "-"))


add("strings.join", _join)


def _reduce_join(d: Draw) -> Call:
    texts = _strings(d, d.shape(1, 2))
    return d.call(T(texts), d.axis(texts.ndim) if d.chance(70) else None, separator=d.one("", ","))


add("strings.reduce_join", _reduce_join)


def _as_string(d: Draw) -> Call:
    dtype = d.one("float32", "float64", "int32", "int64", "bool", "uint8", "complex64")
    more: dict[str, Any] = {}
    if d.chance(50) and dtype.startswith("float"):
        more = {"precision": d.one(0, 2, 5), "scientific": d.chance(30)}
    if d.chance(30):
        more |= {"width": d.one(4, 8), "fill": d.one("", "0", " ")}
    return d.call(d.tensor(dtype, d.shape()), **more)


add("as_string", _as_string, calls=45)
add("string_split", lambda d: d.call(T(_strings(d, (d.between(0, 4),))), d.one(" ", ",", "")))


# -- sparse --------------------------------------------------------------------------------------


def _sparse(d: Draw, types: Any = WIDE, rank: int = 2, dense: Any = None) -> Sparse:
    shape = [d.between(1, 4) for _ in range(rank)] if dense is None else dense
    cells = d.permutation(int(np.prod(shape)))[: d.between(0, 5)]
    indices = np.array([np.unravel_index(c, shape) for c in sorted(cells)], "int64")
    values = d.array(d.one(*types), (len(cells),), "plain")
    return Sparse(indices.reshape(len(cells), len(shape)), values, np.array(shape, "int64"))


def _with_sparse(d: Draw, *args: Any, **kwargs: Any) -> Call:
    call = d.call(*args, **kwargs)
    call.known = "constant" if call.known == "constant" else "full"
    return call


def _sparse_matmul(d: Draw) -> Call:
    sparse = _sparse(d, ("float32", "float64", "int32"))
    rows = int(sparse.shape[1]) + d.invalid()
    return _with_sparse(d, sparse, d.tensor(sparse.values.dtype.name, (rows, d.size()), "plain"))


add("sparse.sparse_dense_matmul", _sparse_matmul)
add("sparse.reduce_sum", lambda d: _with_sparse(d, _sparse(d), d.one(None, 0, 1, -1, [0, 1], 2)))
add("sparse.reduce_max", lambda d: _with_sparse(d, _sparse(d), d.one(None, 0, 1, -1)))
add("sparse.to_dense", lambda d: _with_sparse(d, _sparse(d, NUMBERS)))
add("sparse.reorder", lambda d: _with_sparse(d, _sparse(d, NUMBERS)))
add("sparse.transpose", lambda d: _with_sparse(d, _sparse(d), [1, 0]))
add("sparse.softmax", lambda d: _with_sparse(d, _sparse(d)), scale=5)
add(
    "sparse.add",
    lambda d: _with_sparse(d, _sparse(d, dense=[3, 3]), _sparse(d, dense=[3, 3]), 0.0),
    function=lambda tf, a, b, t: tf.sparse.add(
        tf.cast(a, tf.float32), tf.cast(b, tf.float32), threshold=t
    ),
)
add(
    "sparse.slice",
    lambda d: _with_sparse(d, _sparse(d), [d.between(0, 2), 0], [d.between(0, 3), 2]),
)
add("sparse.fill_empty_rows", lambda d: _with_sparse(d, _sparse(d, ("float32",)), 7.0))
add("sparse.reset_shape", lambda d: _with_sparse(d, _sparse(d), [d.between(3, 6), 4]))
add("sparse.reshape", lambda d: _with_sparse(d, _sparse(d), d.one([-1], [-1, 1], [2, -1], [4, 4])))
add(
    "sparse.concat",
    lambda d: _with_sparse(
        d, d.one(0, 1, -1, 2), [_sparse(d, ("float32",), dense=[3, n]) for n in (3, d.one(3, 3, 2))]
    ),
)
add(
    "sparse.split",
    lambda d: _with_sparse(d, _sparse(d), d.between(1, 3), d.one(0, 1)),
    function=lambda tf, x, n, a: tf.sparse.split(sp_input=x, num_split=n, axis=a),
)
add(
    "sparse.maximum",
    lambda d: _with_sparse(
        d, _sparse(d, ("float32",), dense=[3, 3]), _sparse(d, ("float32",), dense=[3, 3])
    ),
)


def _to_dense(d: Draw) -> Call:
    size = d.between(1, 4)
    indices = np.array(sorted(d.permutation(size)[: d.between(0, size)]), "int32").reshape(-1, 1)
    if len(indices) and d.invalid():
        indices[-1] = d.one(-1, size)
    return d.call(T(indices), [size], d.tensor(d.one(*REALS), (len(indices),)))


add("sparse_to_dense", _to_dense)


# -- functions of functions ----------------------------------------------------------------------


def _rows(d: Draw) -> Call:
    return d.call(d.tensor(d.one("float32", "int32", "float64"), d.shape(1), "plain"))


add("map_fn", _rows, function=lambda tf, x: tf.map_fn(lambda r: r * 2, x))
add("scan", _rows, function=lambda tf, x: tf.scan(lambda a, r: a + r, x), calls=60)
add(
    "scan in reverse",
    _rows,
    function=lambda tf, x: tf.scan(lambda a, r: a + 2 * r, x, reverse=True),
)
add("foldl", _rows, function=lambda tf, x: tf.foldl(lambda a, r: a + r, x))
add("foldr", _rows, function=lambda tf, x: tf.foldr(lambda a, r: a - r, x))
add(
    "while_loop",
    _rows,
    function=lambda tf, x: tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a + x), [tf.constant(0), x], back_prop=False
    ),
)
add("cond", _rows, function=lambda tf, x: tf.cond(tf.size(x) > 3, lambda: x + 1, lambda: x - 1))
add(
    "gradients of a sum",
    _rows,
    function=lambda tf, x: tf.gradients(tf.reduce_sum(tf.square(tf.cast(x, tf.float32))), [x]),
)
add(
    "cast to a string and back",
    _rows,
    function=lambda tf, x: tf.strings.to_number(tf.as_string(x), tf.float32),
)
