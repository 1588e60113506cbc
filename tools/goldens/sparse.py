"""Sparse family: conversion, arithmetic, parts, reductions, sets, strings, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

NEEDS = ("sparse_add", "sets")


def _sparse(tf: Any, places: Any, values: Any, shape: Any) -> Any:
    return tf.SparseTensor(
        tf.constant(places, tf.int64, [len(places), len(shape)]), tf.constant(values), shape
    )


def _a(tf: Any) -> Any:
    return _sparse(tf, [[0, 1], [0, 3], [2, 0], [2, 2]], [1.5, -2.0, 0.25, 3.0], [3, 5])


def _b(tf: Any) -> Any:
    return _sparse(tf, [[0, 0], [0, 3], [1, 4], [2, 2]], [0.5, 2.0, -1.0, 4.0], [3, 5])


def _flat(**sparse: Any) -> dict[str, Any]:
    """The parts of each SparseTensor as outputs of their own."""
    found = {}
    for name, value in sparse.items():
        found |= {
            f"{name}_indices": value.indices,
            f"{name}_values": value.values,
            f"{name}_shape": value.dense_shape,
        }
    return found


@golden(needs=NEEDS)
def to_dense(tf: Any) -> dict[str, Any]:
    a = _a(tf)
    words = _sparse(tf, [[0, 1], [1, 0]], ["x", "yz"], [2, 3])
    return {
        "zero": tf.sparse_tensor_to_dense(a),
        "default": tf.sparse_tensor_to_dense(a, default_value=9.0),
        "words": tf.sparse_tensor_to_dense(words),
        "words_default": tf.sparse_tensor_to_dense(words, default_value="-"),
        "scalar": tf.sparse_to_dense(3, [5], 7),
        "vector": tf.sparse_to_dense([1, 3], [5], [7, 8], default_value=-1),
        "one_value": tf.sparse_to_dense([[0, 1], [1, 1]], [2, 2], 4.0),
        "repeated": tf.sparse_to_dense([[1, 1], [1, 1]], [2, 2], [4, 5], validate_indices=False),
        "indicator": tf.sparse_to_indicator(
            _sparse(tf, [[0, 0], [0, 1], [2, 0]], [3, 1, 0], [3, 2]), 4
        ),
        **_flat(
            from_dense=tf.sparse.from_dense([[0, 2, 0], [3, 0, 4]]),
            from_words=tf.sparse.from_dense([["", "a"], ["b", ""]]),
            eye=tf.sparse.eye(2, 4, tf.float64),
        ),
    }


@golden(needs=NEEDS)
def two_operands(tf: Any) -> dict[str, Any]:
    a, b = _a(tf), _b(tf)
    dense = tf.constant(np.arange(15, dtype=np.float32).reshape(3, 5))
    return {
        "plus_dense": tf.sparse_add(a, dense),
        "dense_plus": tf.sparse_add(dense, a),
        "matmul": tf.sparse_tensor_dense_matmul(a, tf.transpose(dense)),
        "matmul_adjoint": tf.sparse_tensor_dense_matmul(a, dense, adjoint_a=True),
        "matmul_adjoint_b": tf.sparse_tensor_dense_matmul(a, dense, adjoint_b=True),
        **_flat(
            add=tf.sparse_add(a, b),
            add_threshold=tf.sparse_add(a, b, 0.3),
            maximum=tf.sparse_maximum(a, b),
            minimum=tf.sparse_minimum(a, b),
            times=a * dense,
            times_row=dense[1] * a,
            over=a / tf.constant([[2.0], [4.0], [8.0]]),
            times_number=a * 3.0,
        ),
    }


@golden(needs=NEEDS)
def reductions(tf: Any) -> dict[str, Any]:
    a = _a(tf)
    three = _sparse(tf, [[0, 1, 0], [0, 1, 2], [1, 0, 2]], [-1, -2, 5], [2, 2, 3])
    outputs: dict[str, Any] = {}
    for name, axis in (("all", None), ("zero", 0), ("last", -1), ("both", [0, 1]), ("none", [])):
        for keep in (False, True):
            label = f"{name}_{keep}"
            outputs[f"sum_{label}"] = tf.sparse_reduce_sum(a, axis, keepdims=keep)
            outputs[f"max_{label}"] = tf.sparse_reduce_max(three, axis, keepdims=keep)
            outputs |= _flat(
                **{
                    f"sum_sparse_{label}": tf.sparse_reduce_sum_sparse(three, axis, keepdims=keep),
                    f"max_sparse_{label}": tf.sparse_reduce_max_sparse(a, axis, keepdims=keep),
                }
            )
    return outputs


@golden(needs=NEEDS)
def places(tf: Any) -> dict[str, Any]:
    a = _a(tf)
    mixed = _sparse(tf, [[2, 2], [0, 3], [2, 0], [0, 1]], [1, 2, 3, 4], [3, 5])
    filled, empty = tf.sparse_fill_empty_rows(a, 7.0)
    parts = tf.sparse_split(sp_input=a, num_split=3, axis=1)
    rows = tf.sparse_split(sp_input=a, num_split=2, axis=0)
    return {
        "empty_rows": empty,
        **_flat(
            reorder=tf.sparse_reorder(mixed),
            reshape=tf.sparse_reshape(a, [5, 3]),
            reshape_inferred=tf.sparse_reshape(a, [1, -1, 3]),
            transpose=tf.sparse_transpose(a),
            transpose_perm=tf.sparse_transpose(tf.sparse_reshape(a, [3, 1, 5]), [2, 0, 1]),
            expand=tf.sparse.expand_dims(a, 1),
            expand_first=tf.sparse.expand_dims(a, 0),
            expand_last=tf.sparse.expand_dims(a),
            reset=tf.sparse_reset_shape(a),
            reset_larger=tf.sparse_reset_shape(a, [4, 9]),
            retain=tf.sparse_retain(a, [True, False, False, True]),
            slice=tf.sparse_slice(a, [0, 1], [3, 2]),
            slice_over=tf.sparse_slice(a, [2, 1], [9, 9]),
            filled=filled,
            part0=parts[0],
            part1=parts[1],
            part2=parts[2],
            rows0=rows[0],
            rows1=rows[1],
            concat0=tf.sparse_concat(0, [a, _b(tf)]),
            concat1=tf.sparse_concat(1, [a, _b(tf), a]),
            concat_expanded=tf.sparse_concat(
                -1, [a, tf.sparse_reset_shape(a, [4, 7])], expand_nonconcat_dim=True
            ),
            merge=tf.sparse_merge(
                _sparse(tf, [[0, 0], [0, 1], [2, 0]], [3, 1, 0], [3, 2]),
                _sparse(tf, [[0, 0], [0, 1], [2, 0]], [0.5, 1.5, 2.5], [3, 2]),
                4,
            ),
        ),
    }


@golden(needs=NEEDS)
def functions_of_values(tf: Any) -> dict[str, Any]:
    a = _a(tf)
    return _flat(
        softmax=tf.sparse_softmax(a),
        abs=tf.abs(a),
        negative=tf.negative(a),
        sign=tf.sign(a),
        square=tf.square(a),
        tanh=tf.tanh(a),
        sqrt=tf.sqrt(tf.square(a)),
        cast=tf.cast(a, tf.int64),
    )


@golden(needs=NEEDS)
def sets(tf: Any) -> dict[str, Any]:
    a = _sparse(tf, [[0, 0], [0, 1], [1, 0], [1, 2]], [9, 5, 2, 2], [3, 4])
    b = _sparse(tf, [[0, 0], [1, 0], [2, 0]], [5, 3, 1], [3, 9])
    words = _sparse(tf, [[0, 0], [1, 0], [1, 1]], ["b", "b", "a"], [2, 2])
    dense = [[1, 2], [3, 3], [0, 7]]
    deep = [[[1, 2]], [[3, 1]]]
    return {
        "size": tf.sets.set_size(a),
        **_flat(
            union=tf.sets.set_union(a, b),
            intersection=tf.sets.set_intersection(a, b),
            difference=tf.sets.set_difference(a, b),
            difference_back=tf.sets.set_difference(a, b, aminusb=False),
            dense_sparse=tf.sets.set_union(tf.constant(dense), b),
            sparse_dense=tf.sets.set_difference(b, tf.constant(dense)),
            dense_dense=tf.sets.set_intersection(dense, [[2, 1, 1], [3, 4, 4], [8, 7, 9]]),
            deep=tf.sets.set_union(deep, [[[1, 2]], [[3, 4]]]),
            words=tf.sets.set_union(words, tf.constant([["c", "a"], ["a", "c"]])),
        ),
    }


@golden(needs=(*NEEDS, "decode_raw", "substr"))
def strings(tf: Any) -> dict[str, Any]:
    a = _a(tf)
    words = _sparse(tf, [[0, 1], [1, 0]], ["x", "yz"], [3, 3])
    many = tf.serialize_many_sparse(a)
    return {
        "values_of_first": tf.decode_raw(tf.substr(many[0, 1], 8, 8), tf.float32),
        **_flat(
            back=tf.deserialize_many_sparse(many, tf.float32, rank=2),
            back_words=tf.deserialize_many_sparse(tf.serialize_many_sparse(words), tf.string),
            batch=tf.deserialize_many_sparse(
                tf.stack([tf.serialize_sparse(a), tf.serialize_sparse(_b(tf))]), tf.float32
            ),
        ),
    }


@golden(needs=NEEDS)
def gradients(tf: Any) -> dict[str, Any]:
    a, b = _a(tf), _b(tf)
    x, y = a.values, b.values
    dense = tf.constant(np.arange(15, dtype=np.float32).reshape(3, 5) - 6.5)
    weights = tf.constant(np.linspace(-1, 1, 20).astype(np.float32))

    def of(name: str, value: Any, wrt: Any) -> dict[str, Any]:
        size = int(np.prod(value.shape.as_list()))
        loss = tf.reduce_sum(tf.reshape(value, [-1]) * weights[:size])
        return {f"{name}_{i}": g for i, g in enumerate(tf.gradients(loss, wrt))}

    def weighted(name: str, value: Any, wrt: Any) -> dict[str, Any]:
        factor = tf.cast(tf.range(tf.size(value)), tf.float32) + 1.0
        return {
            f"{name}_{i}": g for i, g in enumerate(tf.gradients(tf.reduce_sum(value * factor), wrt))
        }

    filled, _ = tf.sparse_fill_empty_rows(a, tf.constant(7.0))
    product = tf.sparse_tensor_dense_matmul(a, dense, adjoint_a=True)
    return {
        **of("to_dense", tf.sparse_tensor_to_dense(a), [x]),
        **of("matmul", tf.sparse_tensor_dense_matmul(a, tf.transpose(dense))[:, :2], [x, dense]),
        **of("matmul_adjoint", product[:4, :4], [x, dense]),
        **of("sum", tf.sparse_reduce_sum(a, 0), [x]),
        **of("sum_keep", tf.sparse_reduce_sum(a, 1, keepdims=True), [x]),
        **of("plus_dense", tf.sparse_add(a, dense), [x, dense]),
        **weighted("add", tf.sparse_add(a, b).values, [x, y]),
        **weighted("slice", tf.sparse_slice(a, [0, 1], [3, 2]).values, [x]),
        **weighted("filled", filled.values, [x]),
        **weighted("reorder", tf.sparse_transpose(a).values, [x]),
        **weighted("softmax", tf.sparse_softmax(a).values, [x]),
        **weighted("times", (a * dense).values, [x, dense]),
        **weighted("over_row", (a / dense[1]).values, [x, dense]),
    }


@golden(needs=NEEDS)
def crosses(tf: Any) -> dict[str, Any]:
    words = _sparse(tf, [[0, 0], [0, 1], [2, 0]], ["a", "bc", "a longer feature"], [3, 2])
    numbers = _sparse(tf, [[0, 0], [1, 1], [2, 0], [2, 1]], [7, -8, 9, 10], [3, 2])
    dense = tf.constant([["x", "z"], ["y", "w"], ["v", "u"]])
    cross, hashed = tf.sparse.cross, tf.sparse.cross_hashed
    return _flat(
        words=cross([words, dense]),
        numbers=cross([tf.cast(numbers, tf.int64), dense]),
        three=cross([words, tf.cast(numbers, tf.int64), dense]),
        hashed=hashed([words, dense]),
        hashed_key=hashed([words, dense], hash_key=5),
        hashed_buckets=hashed([words, dense], num_buckets=100),
        hashed_numbers=hashed([tf.cast(numbers, tf.int64), dense], num_buckets=1000),
        hashed_all=hashed([words, tf.cast(numbers, tf.int64), dense]),
    )
