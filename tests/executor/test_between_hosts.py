"""What runs between host ops: errors, attributes, and small regions that are never compiled."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.executor.policy import NEVER


def _regions(session, fetch) -> list:
    plan = session._compile(fetch, []).plan
    return [unit.region for unit in plan.units if unit.region is not None]


def _pipeline(size: int) -> tf.Tensor:
    """A queue, arithmetic on what comes out of it, a queue."""
    source, target = tf.FIFOQueue(9, tf.float32), tf.FIFOQueue(9, tf.float32)
    source.enqueue(tf.ones([size]), name="fill")
    tf.identity(target.dequeue(), name="out")
    return target.enqueue(source.dequeue() * 2 + 1, name="step")


@pytest.mark.parametrize(("size", "compiled"), [(100, False), (200_000, True)])
def test_small_regions_between_host_ops_stay_interpreted(size: int, compiled: bool) -> None:
    step = _pipeline(size)
    with tf.Session() as session:
        for _ in range(4):
            session.run(["fill"])
            session.run(step)
            np.testing.assert_array_equal(session.run("out:0"), np.full(size, 3.0))
        (region,) = _regions(session, step)
        (program,) = region._programs.values()
        assert (program.turn.interpretations > NEVER // 2) != compiled


def test_regions_with_variables_are_compiled_as_ever() -> None:
    queue = tf.FIFOQueue(9, tf.float32)
    v = tf.Variable(1.0)
    put, step = queue.enqueue(2.0), v.assign_add(queue.dequeue() * 3)
    with tf.Session() as session:
        session.run(v.initializer)
        for _ in range(4):
            session.run(put)
            session.run(step)
        assert session.run(v) == 25.0
        assert not any(region.between_hosts for region in _regions(session, step))


def test_host_ops_name_themselves_in_errors() -> None:
    with tf.Session() as session:
        wrong = tf.py_func(lambda: 1 / 0, [], tf.float32, name="mine")
        with pytest.raises(tf.errors.OpError, match="mine") as caught:
            session.run(wrong)
        assert caught.value.op.name.startswith("mine")
        queue = tf.FIFOQueue(2, tf.float32, shapes=[[2]], name="shaped")
        put = queue.enqueue(tf.placeholder(tf.float32), name="put")
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected \[2\], got \[3\]") as e:
            session.run(put, {put.inputs[1]: [1.0, 2.0, 3.0]})
        assert e.value.op.name == "put"


def test_what_a_host_op_remembers_belongs_to_its_node() -> None:
    texts = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    k: tf.train.Feature(int64_list=tf.train.Int64List(value=[v]))
                    for k, v in (("a", 300), ("b", -2))
                }
            )
        ).SerializeToString()
    ]
    serialized = tf.placeholder(tf.string, [])
    features = [
        tf.parse_single_example(serialized, {key: tf.FixedLenFeature([], tf.int64)})[key]
        for key in ("a", "b")
    ]
    wrong = tf.parse_single_example(serialized, {"a": tf.FixedLenFeature([2], tf.int64)})["a"]
    missing = tf.parse_single_example(serialized, {"c": tf.FixedLenFeature([], tf.int64, 7)})["c"]
    with tf.Session() as session:
        for _ in range(3):
            assert session.run([*features, missing], {serialized: texts[0]}) == [300, -2, 7]
            with pytest.raises(tf.errors.InvalidArgumentError, match="Key: a"):
                session.run(wrong, {serialized: texts[0]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse"):
                session.run(features[0], {serialized: b"\xff\xff"})


@pytest.mark.parametrize("value", [0, 127, 128, -1, -(2**63), 2**63 - 1])
def test_single_numbers_are_read_exactly(value: int) -> None:
    feature = {"n": tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))}
    text = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    for shape in ([], [1]):
        parsed = tf.parse_single_example(
            tf.constant(text), {"n": tf.FixedLenFeature(shape, tf.int64)}
        )
        step = tf.py_func(lambda n: n, [parsed["n"]], tf.int64)
        with tf.Session() as session:
            for _ in range(2):
                found = session.run(step)
                assert found.shape == tuple(shape)
                assert found.reshape(-1)[0] == value
