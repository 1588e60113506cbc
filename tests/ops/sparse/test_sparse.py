"""Sparse tensors: what the op cases cannot say: host ops, static shapes, bad input, training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.errors import InvalidArgumentError

PLACES = np.array([[0, 1], [0, 3], [2, 0], [2, 2]])
VALUES = np.array([1.5, -2.0, 0.25, 3.0])
DENSE = np.zeros((3, 5))
DENSE[tuple(PLACES.T)] = VALUES


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def fed(indices: Any, values: Any, shape: Any) -> tf.SparseTensor:
    """A SparseTensor of which nothing is known while the graph is built."""
    with_default = tf.placeholder_with_default
    return tf.SparseTensor(
        with_default(np.asarray(indices, np.int64).reshape(-1, len(shape)), [None, len(shape)]),
        with_default(np.asarray(values), [None]),
        with_default(np.asarray(shape, np.int64), [len(shape)]),
    )


def a() -> tf.SparseTensor:
    return fed(PLACES, VALUES, [3, 5])


def run(fetch: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetch, feed)


def random_sparse(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.where(rng.random(shape) < 0.4, rng.integers(1, 9, shape), 0)


def as_dense(value: Any) -> np.ndarray[Any, Any]:
    out = np.zeros(value.dense_shape, value.values.dtype)
    out[tuple(value.indices.T)] = value.values
    return out


@pytest.mark.parametrize("seed", range(8))
def test_parts_and_joins_agree_with_dense_arrays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = random_sparse(rng, (4, 3, 5)), random_sparse(rng, (4, 3, 5))
    sx, sy = (fed(np.argwhere(v), v[v != 0], v.shape) for v in (x, y))
    perm = rng.permutation(3)
    start, size = rng.integers(0, 3, 3), rng.integers(1, 4, 3)
    axis = int(rng.integers(3))
    box = tuple(slice(b, b + n) for b, n in zip(start, size, strict=True))
    got = run(
        {
            "add": tf.sparse_add(sx, sy),
            "maximum": tf.sparse_maximum(sx, sy),
            "minimum": tf.sparse_minimum(sx, sy),
            "concat": tf.sparse_concat(axis, [sx, sy, sx]),
            "transpose": tf.sparse_transpose(sx, perm),
            "reshape": tf.sparse_reshape(sx, [6, -1]),
            "slice": tf.sparse_slice(sx, start, size),
            "sum": tf.sparse_reduce_sum_sparse(sx, [axis, 1]),
            "parts": tf.sparse_split(sp_input=sx, num_split=3, axis=2),
            "back": tf.sparse.from_dense(tf.sparse_tensor_to_dense(sx)),
            "read": tf.deserialize_many_sparse(tf.serialize_many_sparse(sx), tf.int64, rank=3),
        }
    )
    want = {
        "add": x + y,
        "maximum": np.maximum(x, y),
        "minimum": np.minimum(x, y),
        "concat": np.concatenate([x, y, x], axis),
        "transpose": x.transpose(perm),
        "reshape": x.reshape(6, -1),
        "slice": x[box],
        "sum": x.sum((axis, 1) if axis != 1 else 1),
        "back": x,
        "read": x,
    }
    for name, array in want.items():
        np.testing.assert_array_equal(as_dense(got[name]), array, name)
        order = np.lexsort(got[name].indices.T[::-1])
        assert np.array_equal(order, np.arange(order.size)), name
    for part, array in zip(got["parts"], np.split(x, [2, 4], 2), strict=True):
        np.testing.assert_array_equal(as_dense(part), array)


def test_empty_rows_are_filled_and_the_gradient_goes_to_both() -> None:
    sparse, default = a(), tf.constant(7.0, tf.float64)
    filled, empty = tf.sparse_fill_empty_rows(sparse, default)
    loss = tf.reduce_sum(filled.values * [1.0, 2.0, 3.0, 4.0, 5.0])
    gradients = tf.gradients(loss, [sparse.values, default])
    value, rows, (of_values, of_default) = run([filled, empty, gradients])
    assert rows.tolist() == [False, True, False]
    assert value.indices.tolist() == [[0, 1], [0, 3], [1, 0], [2, 0], [2, 2]]
    assert (of_values.tolist(), of_default) == ([1, 2, 4, 5], 3)


def test_the_shape_under_its_name_of_releases_before_1_0() -> None:
    old = tf.SparseTensor(indices=[[0, 1]], values=[5], shape=[2, 2])
    assert old.dense_shape.op.name.endswith("dense_shape")
    np.testing.assert_array_equal(run(tf.sparse_tensor_to_dense(old)), [[0, 5], [0, 0]])
    with pytest.raises(TypeError, match="needs a dense_shape"):
        tf.SparseTensor([[0, 1]], [5])


def test_ops_without_elements() -> None:
    none = fed([], np.zeros(0), [2, 3])
    got = run(
        [
            tf.sparse_tensor_to_dense(none),
            tf.sparse_add(none, none),
            tf.sparse_reorder(none),
            tf.sparse_softmax(none),
            tf.sparse_reduce_sum(none, 1),
            tf.sparse_reduce_max_sparse(none, 0),
            tf.sparse_tensor_dense_matmul(none, np.ones((3, 4))),
            tf.sparse_fill_empty_rows(none, 4.0)[0],
            tf.sets.set_size(tf.cast(none, tf.int32)),
            tf.sparse_reshape(none, [3, -1]),
        ]
    )
    assert got[0].tolist() == [[0] * 3] * 2
    assert got[1].values.size == got[2].values.size == got[3].values.size == 0
    assert got[4].tolist() == [0, 0]
    assert got[5].indices.shape == (0, 1)
    assert got[6].shape == (2, 4)
    assert got[7].indices.tolist() == [[0, 0], [1, 0]]
    assert got[8].tolist() == [0, 0]
    assert got[9].dense_shape.tolist() == [3, 2]


def test_static_shapes() -> None:
    sparse = tf.SparseTensor(PLACES, VALUES, [3, 5])
    assert tf.sparse_reorder(sparse).shape.as_list() == [3, 5]
    assert tf.sparse_reshape(sparse, [-1, 3]).shape.as_list() == [5, 3]
    assert tf.sparse_transpose(sparse).shape.as_list() == [5, 3]
    assert tf.sparse_add(sparse, sparse).shape.as_list() == [3, 5]
    assert tf.sparse_concat(1, [sparse, sparse]).shape.as_list() == [3, 10]
    assert tf.sparse_tensor_to_dense(sparse).shape.as_list() == [3, 5]
    assert tf.sparse_reduce_sum(sparse, 1).shape.as_list() == [3]
    assert tf.sparse_tensor_dense_matmul(sparse, np.ones((5, 2))).shape.as_list() == [3, 2]
    assert (sparse * 2.0).shape.as_list() == [3, 5]
    assert tf.sets.set_size(tf.cast(sparse, tf.int32)).shape.as_list() == [3]


def test_operators() -> None:
    x = a()
    dense = tf.constant(np.arange(15.0).reshape(3, 5) + 1)
    got = run(
        {
            "mul": x * dense,
            "rmul": dense * x,
            "div": x / 4.0,
            "neg": -x,
            "add": x + x,
            "add_dense": x + dense,
            "radd": dense + x,
            "sub": x - x,
            "sub_dense": x - dense,
            "rsub": dense - x,
            "truediv_integers": tf.cast(x, tf.int32) / 2,
        }
    )
    array = np.arange(15.0).reshape(3, 5) + 1
    np.testing.assert_array_equal(as_dense(got["mul"]), DENSE * array)
    np.testing.assert_array_equal(as_dense(got["rmul"]), DENSE * array)
    np.testing.assert_array_equal(as_dense(got["div"]), DENSE / 4)
    np.testing.assert_array_equal(as_dense(got["neg"]), -DENSE)
    np.testing.assert_array_equal(as_dense(got["add"]), 2 * DENSE)
    np.testing.assert_array_equal(as_dense(got["sub"]), 0 * DENSE)
    np.testing.assert_array_equal(got["add_dense"], DENSE + array)
    np.testing.assert_array_equal(got["radd"], DENSE + array)
    np.testing.assert_array_equal(got["sub_dense"], DENSE - array)
    np.testing.assert_array_equal(got["rsub"], array - DENSE)
    assert got["truediv_integers"].values.tolist() == [0.5, -1, 0, 1.5]
    with pytest.raises(TypeError, match=r"use tf\.sparse\.to_dense"):
        dense / x


def test_functions_that_do_not_keep_zero_refuse_a_sparse_tensor() -> None:
    with pytest.raises(TypeError, match=r"SparseTensor is no Tensor.*tf\.sparse\.to_dense"):
        tf.exp(a())
    with pytest.raises(TypeError, match="SparseTensor is no Tensor"):
        tf.reduce_sum(a())
    assert tf.tanh(tf.constant(1.0)).name == "Tanh:0"  # a refused call uses up no name


# (build, message when the graph runs)
BAD: list[tuple[Any, str]] = [
    (
        lambda: tf.sparse_to_dense(fed([[0, 0], [5, 5]], [1, 2], [9, 9]).indices, [3, 2], [1, 2]),
        r"indices\[1\] = \[5,5\] is out of bounds: need 0 <= index < \[3,2\]",
    ),
    (
        lambda: tf.sparse_tensor_to_dense(fed([[1, 0], [0, 1]], [1, 2], [3, 2])),
        r"indices\[1\] = \[0,1\] is out of order",
    ),
    (
        lambda: tf.sparse_tensor_to_dense(fed([[1, 0], [1, 0]], [1, 2], [3, 2])),
        r"indices\[1\] = \[1,0\] is repeated",
    ),
    (
        lambda: tf.sparse_tensor_to_dense(fed([[7, 0]], [1], [3, 2]), validate_indices=False),
        r"Indices are not valid \(out of bounds\).  Shape: \[3,2\]",
    ),
    (
        lambda: tf.sparse_tensor_dense_matmul(fed([[0, 9]], [1.0], [3, 4]), np.ones((4, 2))),
        r"k \(9\) from index\[0,1\] out of bounds \(>=4\)",
    ),
    (
        lambda: tf.sparse_tensor_dense_matmul(a(), np.ones((4, 2))),
        "inner dimension does not match: 5 vs. 4",
    ),
    (lambda: tf.sparse_add(a(), fed([], np.zeros(0), [3, 4])), "got 5 and 4 for dimension 1"),
    (lambda: tf.sparse_add(a(), np.ones((3, 4))), "sparse side 5 vs dense side 4"),
    (
        lambda: tf.sparse_concat(0, [a(), fed([], np.zeros(0), [3, 4])]),
        "expected 5 for dimension 1 but got 4 at position 1",
    ),
    (lambda: tf.sparse_split(sp_input=a(), num_split=9, axis=1), "size \\(5\\), got 9"),
    (lambda: tf.sparse_split(sp_input=a(), num_split=2, axis=4), r"in range \[-2, 2\), got 4"),
    (lambda: tf.sparse_reshape(a(), [4, 4]), "15 dense values, but the requested shape has 16"),
    (lambda: tf.sparse_fill_empty_rows(fed([[7, 0]], [1.0], [3, 4]), 1.0)[1], "7 >= 3"),
    (
        lambda: tf.sparse_reduce_sum(a(), tf.placeholder_with_default([5], [1])),
        "Invalid reduction dimension 5",
    ),
    (lambda: a() * np.ones((3, 4)), "broadcasts dense to sparse only"),
    (lambda: tf.sparse_reset_shape(a(), [2, 9]), "below the old one"),
    (
        lambda: tf.sets.set_size(fed([[0, 1], [0, 0]], [9, 5], [3, 4])),
        "is out of order",
    ),
    (
        lambda: tf.deserialize_many_sparse(tf.serialize_many_sparse(a()), tf.int32),
        "Requested SparseTensor of type int32 but .* == float64",
    ),
    (lambda: tf.deserialize_many_sparse([["a", "b", "c"]], tf.int32), "Could not parse"),
]


@pytest.mark.parametrize(("build", "message"), BAD)
def test_bad_values_are_refused_when_the_graph_runs(build: Any, message: str) -> None:
    fetch = build()
    with pytest.raises(InvalidArgumentError, match=message):
        run(fetch)


def test_bad_shapes_are_refused_while_the_graph_is_built() -> None:
    sparse = tf.SparseTensor(PLACES, VALUES, [3, 5])
    with pytest.raises(ValueError, match="15 elements to shape"):
        tf.sparse_reshape(sparse, [4, 4])
    with pytest.raises(ValueError, match="inner dimension does not match: 5 vs"):
        tf.sparse_tensor_dense_matmul(sparse, np.ones((4, 2)))
    with pytest.raises(ValueError, match="Concat dimension must be in range"):
        tf.sparse_concat(3, [sparse, sparse])
    with pytest.raises(ValueError, match="Keyword arguments are required"):
        tf.sparse_split(1, sparse, 2, 0)
    with pytest.raises(TypeError, match="do you mean to use"):
        tf.sparse_add(1.0, 2.0)
    with pytest.raises(TypeError, match="invalid dtype float64"):
        tf.sets.set_union(sparse, sparse)
    with pytest.raises(ValueError, match="dimension sizes >= sp_input"):
        tf.sparse_reset_shape(sparse, [3, 2])


def test_old_argument_names() -> None:
    x = a()
    got = run(
        [
            tf.sparse_reduce_sum(x, reduction_axes=1, keep_dims=True),
            tf.sparse_concat(concat_dim=0, sp_inputs=[x, x], axis=None).dense_shape,
            tf.sparse_split(sp_input=x, num_split=1, split_dim=0)[0].dense_shape,
            tf.sparse_add(x, x, thresh=10.0).values,
        ]
    )
    assert got[0].shape == (3, 1)
    assert got[1].tolist() == [6, 5]
    assert got[2].tolist() == [3, 5]
    assert got[3].tolist() == []


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("parts", [1, 3])
def test_embedding_of_sets(combiner: str, parts: int) -> None:
    table = np.random.default_rng(0).normal(size=(6, 2))
    ids, weights = np.array([1, 3, 0, 5]), np.array([2.0, 0.5, 4.0, 1.0])
    places = [[0, 0], [0, 1], [2, 0], [2, 4]]
    shards: Any = table if parts == 1 else [table[i::parts] for i in range(parts)]
    got = run(
        tf.nn.embedding_lookup_sparse(
            shards, fed(places, ids, [4, 5]), fed(places, weights, [4, 5]), combiner=combiner
        )
    )
    rows = table[ids] * weights[:, None]
    sums = np.array([rows[:2].sum(0), np.zeros(2), rows[2:].sum(0)])
    sizes = {
        "sum": np.ones(3),
        "mean": np.array([2.5, 1, 5]),
        "sqrtn": np.sqrt([4.25, 1, 17]),
    }[combiner]
    np.testing.assert_allclose(got, sums / sizes[:, None])


def test_safe_embedding_of_sets_with_bad_ids() -> None:
    table = np.arange(12.0).reshape(6, 2)
    ids = fed([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 1]], np.array([1, -2, 5, 3]), [2, 2, 3])
    zeros = tf.nn.safe_embedding_lookup_sparse([table], ids)
    default = tf.nn.safe_embedding_lookup_sparse([table], ids, default_id=4)
    assert zeros.shape.as_list() == [None, None, 2]
    assert run(zeros).tolist() == [[[2, 3], [0, 0]], [[8, 9], [0, 0]]]
    assert run(default).tolist() == [[[2, 3], [8, 9]], [[8, 9], [8, 9]]]


def test_a_sparse_linear_model_learns() -> None:
    """Sparse features times dense weights: the step is compiled but for what is fed."""
    rng = np.random.default_rng(1)
    features = random_sparse(rng, (32, 20)).astype(np.float32)
    truth = rng.normal(size=(20, 1)).astype(np.float32)
    x = tf.sparse_placeholder(tf.float32, [32, 20])
    weights = tf.Variable(tf.zeros([20, 1]))
    loss = tf.reduce_mean(tf.square(tf.sparse_tensor_dense_matmul(x, weights) - features @ truth))
    step = tf.train.GradientDescentOptimizer(0.005).minimize(loss)
    feed = {x: (np.argwhere(features), features[features != 0], [32, 20])}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, step], feed)[0] for _ in range(60)]
    assert losses[-1] < losses[0] / 20


def test_sparse_values_through_cond_and_while() -> None:
    x = a()
    chosen = tf.cond(tf.constant(True), lambda: x * 2.0, lambda: x)
    _, doubled = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * 2.0), [0, x])
    got = run([chosen, doubled])
    assert got[0].values.tolist() == (2 * VALUES).tolist()
    assert got[1].values.tolist() == (8 * VALUES).tolist()


def test_crosses() -> None:
    words = fed([[0, 0], [0, 1], [2, 0]], ["a", "b", "c"], [3, 2])
    numbers = fed([[0, 0], [1, 0], [2, 0], [2, 1]], np.array([1, 2, 3, 4]), [3, 2])
    crossed = tf.sparse.cross([words, numbers, tf.constant([["x"], ["y"], ["z"]])])
    hashed = tf.sparse.cross_hashed([words, numbers], num_buckets=1000)
    got, numbered = run([crossed, hashed])
    assert got.values.tolist() == [b"a_X_1_X_x", b"b_X_1_X_x", b"c_X_3_X_z", b"c_X_4_X_z"]
    assert got.indices.tolist() == [[0, 0], [0, 1], [2, 0], [2, 1]]
    assert got.dense_shape.tolist() == [3, 2]
    assert numbered.values.shape == (4,)
    assert set(numbered.values) <= set(range(1000))
    with pytest.raises(TypeError, match="must be a list"):
        tf.sparse.cross(words)
    with pytest.raises(InvalidArgumentError, match="Expected batch size 3 got 2 at dense tensor 0"):
        run(tf.sparse.cross([words, tf.placeholder_with_default([["x"], ["y"]], None)]))


def test_gradients_of_sparse_segments_by_name() -> None:
    grad = np.arange(4.0).reshape(2, 2) + 1
    got = run(
        [
            tf.sparse_segment_mean_grad(grad, [0, 2, 1], [0, 0, 1], 4),
            tf.sparse_segment_sqrt_n_grad(grad, [0, 2, 1], [0, 0, 1], 4),
        ]
    )
    assert got[0].tolist() == [[0.5, 1], [3, 4], [0.5, 1], [0, 0]]
    np.testing.assert_allclose(got[1][0], np.array([1, 2]) / np.sqrt(2))


def test_masked_slices() -> None:
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0], [3.0]]), tf.constant([4, 5, 6]))
    kept = run(tf.sparse.mask(slices, [5]))
    assert kept.indices.tolist() == [4, 6]
    assert kept.values.tolist() == [[1], [3]]


def test_random_parts_give_a_result_or_an_error_of_the_op() -> None:
    """Places outside, out of order, repeated; values and shapes of other lengths; no crash."""
    indices, values, shape = (tf.placeholder(t) for t in (tf.int64, tf.int64, tf.int64))
    sparse = tf.SparseTensor(indices, values, shape)
    fetches = {
        "dense": tf.sparse_tensor_to_dense(sparse),
        "sum": tf.sparse_reduce_sum(sparse, 0),
        "max": tf.sparse_reduce_max_sparse(sparse, 0),
        "reorder": tf.sparse_reorder(sparse),
        "reshape": tf.sparse_reshape(sparse, [-1, 3]),
        "add": tf.sparse_add(sparse, sparse),
        "concat": tf.sparse_concat(0, [sparse, sparse]),
        "split": tf.sparse_split(sp_input=sparse, num_split=2, axis=0),
        "slice": tf.sparse_slice(sparse, [0, 1], [2, 1]),
        "filled": tf.sparse_fill_empty_rows(sparse, 7),
        "many": tf.serialize_many_sparse(sparse),
        "size": tf.sets.set_size(sparse),
        "union": tf.sets.set_union(sparse, sparse),
        "matmul": tf.sparse_tensor_dense_matmul(sparse, np.ones((3, 2), np.int64)),
        "cross": tf.sparse.cross([sparse, sparse]),
    }
    rng = np.random.default_rng(0)
    failed = dict.fromkeys(fetches, 0)
    with tf.Session() as session:
        for _ in range(60):
            count, rank = rng.integers(0, 3), rng.choice([1, 2, 2, 2, 3])
            feed = {
                indices: rng.integers(-1 if rng.random() < 0.2 else 0, 3, (count, rank)),
                values: rng.integers(0, 5, count if rng.random() < 0.8 else count + 1),
                shape: rng.integers(-1, 4, rank if rng.random() < 0.8 else rank + 1)
                if rng.random() < 0.3
                else np.full(rank, 3),
            }
            for name, fetch in fetches.items():
                try:
                    session.run(fetch, feed)
                except tf.OpError:
                    failed[name] += 1
    assert all(0 < n < 60 for n in failed.values()), failed


def test_gradients_that_tensorflow_lacks() -> None:
    """Each against a difference: no gradient is None without a word."""
    rng = np.random.default_rng(0)
    x, y = tf.placeholder(tf.float64, [4]), tf.placeholder(tf.float64, [3])
    a = tf.SparseTensor(PLACES, x, [3, 5])
    b = tf.SparseTensor([[0, 0], [0, 3], [2, 2]], y, [3, 5])
    dense = tf.constant(rng.normal(size=(1, 5)))
    results = {
        "maximum": tf.sparse_maximum(a, b).values,
        "minimum": tf.sparse_minimum(a, b).values,
        "split": tf.concat([s.values for s in tf.sparse_split(sp_input=a, num_split=2, axis=1)], 0),
        "concat": tf.sparse_concat(1, [b, a, b]).values * np.arange(1.0, 11.0),
        "reduce_max": tf.sparse_reduce_max(a, 1),
        "reduce_max_keep": tf.sparse_reduce_max(a, [-1], keepdims=True),
        "sum_sparse": tf.sparse_reduce_sum_sparse(a, 0).values,
        "sum_sparse_keep": tf.sparse_reduce_sum_sparse(a, 1, keepdims=True).values,
        "max_sparse": tf.sparse_reduce_max_sparse(a, 0).values,
        "plus": tf.raw_ops.SparseDenseCwiseAdd(
            sp_indices=a.indices, sp_values=x, sp_shape=a.dense_shape, dense=dense
        ),
    }
    values = [rng.normal(size=4), rng.normal(size=3)]
    direction = [rng.normal(size=4), rng.normal(size=3)]
    losses = {n: tf.reduce_sum(tf.square(r)) for n, r in results.items()}
    grads = {n: tf.gradients(loss, [x, y]) for n, loss in losses.items()}
    assert all(g[0] is not None for g in grads.values())
    chosen = {n: [g for g in pair if g is not None] for n, pair in grads.items()}
    with tf.Session() as session:
        found = session.run(chosen, dict(zip([x, y], values, strict=True)))
        ends = [
            session.run(
                losses,
                {p: v + s * 1e-6 * d for p, v, d in zip([x, y], values, direction, strict=True)},
            )
            for s in (1, -1)
        ]
    for name, parts in found.items():
        slope = (ends[0][name] - ends[1][name]) / 2e-6
        along = sum(float(np.sum(g * d)) for g, d in zip(parts, direction, strict=False))
        assert slope == pytest.approx(along, rel=1e-5), name
