"""Products and images split over devices give what they give on one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace as tf

DEVICES = ["/cpu:0", "/cpu:1", "/cpu:2"]
CONFIG = tf.ConfigProto(device_count={"CPU": 3})
A = np.random.RandomState(0).randn(4, 7).astype(np.float32)
B = np.random.RandomState(1).randn(7, 8).astype(np.float32)
IMAGES = np.random.RandomState(2).randn(2, 13, 9, 3).astype(np.float32)


def run(*fetches):
    with tf.Session(config=CONFIG) as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


@pytest.mark.parametrize("by", ["columns", "rows"])
def test_a_product_and_its_gradients(by):
    a, b = tf.constant(A), tf.constant(B)
    whole, parts = tf.matmul(a, b), tf.parallel.matmul(a, b, DEVICES, by)
    assert {op.device for op in tf.get_default_graph().get_operations() if op.type == "MatMul"} == {
        "",
        *(f"/device:CPU:{i}" for i in range(3)),
    }
    pairs = [
        (whole, parts),
        *zip(*(tf.gradients(y * y, [a, b]) for y in (whole, parts)), strict=True),
    ]
    for expected, found in run(*pairs):
        np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def test_of_sizes_that_only_the_step_knows():
    a, b = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None, None])
    for by in ("columns", "rows"):
        y = tf.parallel.matmul(a, b, DEVICES[:2], by)
        with tf.Session(config=CONFIG) as session:
            found = session.run(y, {a: A[:, :6], b: B[:6]})
        np.testing.assert_allclose(found, A[:, :6] @ B[:6], 1e-4)


def test_of_no_rows():
    assert run(tf.parallel.matmul(tf.zeros([0, 7]), tf.constant(B), DEVICES))[0].shape == (0, 8)


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_of_a_variable_stay_where_they_are(axis):
    with tf.device(lambda op: f"/cpu:{op.name.count('part_1')}"):
        weights = tf.get_variable(
            "w", initializer=B, partitioner=tf.fixed_size_partitioner(2, axis=axis)
        )
    y = tf.parallel.matmul(A, weights)
    products = [op for op in tf.get_default_graph().get_operations() if op.type == "MatMul"]
    assert [op.colocation_groups()[0] for op in products] == [
        f"loc:@{part.op.name}".encode() for part in weights
    ]
    np.testing.assert_allclose(run(y)[0], A @ B, 1e-4)


def test_what_cannot_be_split():
    with pytest.raises(ValueError, match="by is 'columns' or 'rows', but it is 'row'"):
        tf.parallel.matmul(A, B, DEVICES, "row")
    with pytest.raises(ValueError, match="needs devices"):
        tf.parallel.matmul(A, B)
    with pytest.raises(ValueError, match="2 parts of b, but 3 devices"):
        tf.parallel.matmul(A, [B[:, :4], B[:, 4:]], DEVICES)
    with pytest.raises(ValueError, match="cannot be cut into 9 parts along axis 1"):
        tf.parallel.matmul(A, B, ["/cpu:0"] * 9)


WINDOWS = list(itertools.product((1, 2, 3, 5), (1, 2, 3), ("SAME", "VALID"), (1, 2, 3)))


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_convolutions_by_rows(devices):
    pairs = []
    for size, stride, padding, dilation in WINDOWS:
        if stride > 1 and dilation > 1:
            continue
        filters = tf.constant(np.random.RandomState(size).randn(size, 3, 3, 2).astype(np.float32))
        strides, dilations = [stride, 2 if stride > 1 else 1], [dilation, 1]
        whole = tf.nn.conv2d(
            IMAGES, filters, [1, *strides, 1], padding, dilations=[1, *dilations, 1]
        )
        if whole.shape[1].value < devices:
            continue
        bands = tf.parallel.split_rows(IMAGES, DEVICES[:devices])
        parts = bands.conv2d(filters, strides, padding, dilations).join()
        assert parts.shape == whole.shape
        pairs.append((whole, parts))
    assert len(pairs) > 25
    for expected, found in run(*pairs):
        np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_network_by_rows_and_its_gradients(padding):
    x = tf.constant(IMAGES)
    filters = [
        tf.constant(np.random.RandomState(i).randn(3, 3, 3, 3) * 0.3, tf.float32) for i in (3, 4)
    ]

    def whole():
        y = tf.nn.relu(tf.nn.conv2d(x, filters[0], [1, 1, 1, 1], padding))
        y = tf.nn.max_pool(y, [1, 3, 2, 1], [1, 2, 2, 1], padding)
        return tf.nn.conv2d(y, filters[1], [1, 1, 1, 1], padding)

    def by_rows():
        bands = tf.parallel.split_rows(x, DEVICES)
        bands = bands.conv2d(filters[0], padding=padding).map(tf.nn.relu)
        bands = bands.max_pool([3, 2], [2, 2], padding)
        return bands.conv2d(filters[1], padding=padding).join()

    results = [whole(), by_rows()]
    gradients = [tf.gradients(tf.reduce_sum(tf.sin(y)), [x, *filters]) for y in results]
    for expected, found in run(results, *zip(*gradients, strict=True)):
        np.testing.assert_allclose(found, expected, 1e-3, 1e-4)


def test_only_the_rows_at_the_borders_travel():
    """A window of three rows needs one row of each neighbour."""
    bands = tf.parallel.split_rows(tf.zeros([1, 12, 4, 3]), DEVICES)
    first = len(tf.get_default_graph().get_operations())
    bands.conv2d(tf.zeros([3, 3, 3, 2]))
    graph = tf.get_default_graph()
    halos = [
        op.outputs[0].shape[1] for op in graph.get_operations()[first:] if op.type == "StridedSlice"
    ]
    assert halos == [1, 1, 1, 1]


def test_what_cannot_be_cut_into_bands():
    with pytest.raises(ValueError, match=r"height of .* must be known"):
        tf.parallel.split_rows(tf.placeholder(tf.float32, [1, None, 4, 3]), DEVICES)
    bands = tf.parallel.split_rows(IMAGES, DEVICES)
    with pytest.raises(ValueError, match="2 rows of output cannot be spread over 3 devices"):
        bands.conv2d(tf.zeros([12, 1, 3, 2]), padding="VALID")
    with pytest.raises(ValueError, match="padding is 'SAME' or 'VALID'"):
        bands.conv2d(tf.zeros([3, 1, 3, 2]), padding="EXPLICIT")
    with pytest.raises(ValueError, match="keeps its rows"):
        bands.map(lambda band: band[:, 1:])
