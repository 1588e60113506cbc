"""Sessions: unusual feeds and fetches, kinds of variables, traces, memory."""

from __future__ import annotations

import json
import logging
import weakref

import ml_dtypes
import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import raw
from headrace.session import session as sessions
from headrace.session.timeline import Timeline
from headrace.settings import flags


def test_a_tensor_fed_twice_gets_the_last_value():
    x = tf.placeholder(tf.float32, [], name="x")
    sess = tf.Session()
    assert sess.run(x * 2.0, {x: 1.0, "x:0": 5.0}) == 10.0
    assert sess.run(x * 2.0, {"x:0": 5.0, x: 1.0}) == 2.0


def test_feeds_in_any_order():
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    sess = tf.Session()
    assert sess.run(x - y, {x: 3.0, y: 1.0}) == 2.0
    assert sess.run(x - y, {y: 1.0, x: 3.0}) == 2.0
    assert sess.make_callable(x - y, [y, x])(1.0, 3.0) == 2.0


def test_feeding_and_fetching_can_be_forbidden_later() -> None:
    x, sparse = tf.placeholder(tf.float32, []), tf.sparse_placeholder(tf.float32)
    y, total = x + 1.0, tf.sparse_reduce_sum(sparse)
    value = tf.SparseTensorValue([[0]], [2.0], [1])
    with tf.Session() as session:
        assert session.run(y, {x: 1.0}) == 2.0
        assert session.run(total, {sparse: value}) == 2.0
        session.graph.prevent_feeding(x)
        session.graph.prevent_feeding(sparse.values)
        with pytest.raises(ValueError, match="may not be fed"):
            session.run(y, {x: 1.0})
        with pytest.raises(ValueError, match="may not be fed"):
            session.run(total, {sparse: value})
        assert session.run(y, {y: 4.0}) == 4.0
        session.graph.prevent_fetching(y)
        with pytest.raises(ValueError, match="not fetchable"):
            session.run(y, {y: 4.0})


def test_fetching_what_is_fed_constant_or_repeated():
    x = tf.placeholder(tf.float32, [2])
    c = tf.constant([5.0])
    fed = np.array([1, 2], np.float32)
    got_x, got_c, again = tf.Session().run([x, c, x], {x: fed})
    np.testing.assert_array_equal(got_x, fed)
    np.testing.assert_array_equal(got_c, [5])
    assert again is not fed
    got_c[0] = 0
    assert c.op.attrs["value"][0] == 5


def test_handles_are_fetched_and_fed(interpret):
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    handle = tf.placeholder(tf.resource, [])
    read = raw.ReadVariableOp(handle, dtype=tf.float32)
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    for variable, value in ((v, 1.0), (w, 2.0)):
        assert sess.run(read + 1.0, {handle: sess.run(variable.handle)}) == value + 1


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (tf.bool, [True, False]),
        (tf.complex64, [1 + 2j, 3]),
        (tf.complex128, [1 + 2j, 3]),
        (tf.bfloat16, np.array([1, 2], ml_dtypes.bfloat16)),
        (tf.float16, [1, 2]),
        (tf.float64, [1.5, 2]),
        (tf.int8, [-1, 2]),
        (tf.uint8, [1, 255]),
        (tf.int64, [1, 2**40]),
        (tf.string, [b"one", b"two"]),
        (tf.float32, np.zeros([0, 3], np.float32)),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_variables_of_every_type(dtype, value, interpret):
    v = tf.Variable(tf.constant(value, dtype))
    x = tf.placeholder(dtype, v.shape)
    change = v.assign(x)
    sess = tf.Session()
    sess.run(v.initializer)
    expected = np.array(value, dtype.np_dtype)
    for _ in range(2):
        got, known = sess.run([tf.identity(v), tf.is_variable_initialized(v)])
        assert known
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
        expected = expected[::-1].copy()
        np.testing.assert_array_equal(sess.run(change, {x: expected}), expected)


def test_large_constants_of_any_type():
    texts = tf.constant(np.full(70_000, b"t", object))
    numbers = tf.constant(np.zeros(70_000, np.float32))
    got = tf.Session().run([texts, tf.identity(texts), numbers, numbers + 1.0])
    assert [g.shape for g in got] == [(70_000,)] * 4
    assert got[1][0] == b"t"


def test_random_streams_belong_to_sessions():
    x = tf.random_uniform([3], seed=1)
    one, two = tf.Session(), tf.Session()
    first = [one.run(x) for _ in range(3)]
    assert not np.array_equal(first[0], first[1])
    for expected in first:
        np.testing.assert_array_equal(two.run(x), expected)


def test_interpreted_and_compiled_runs_draw_from_one_stream(monkeypatch):
    x = tf.random_uniform([3], seed=1)
    mixed, compiled = tf.Session(), tf.Session()
    drawn = [mixed.run(x) for _ in range(3)]
    monkeypatch.setattr("headrace.settings.flags.interpret", "never")
    np.testing.assert_allclose([compiled.run(x) for _ in range(3)], drawn, rtol=1e-6)


def test_a_changed_graph_gets_a_new_plan():
    v = tf.Variable(1.0)
    grow = v.assign_add(1.0)
    read = v.read_value()
    sess = tf.Session()
    sess.run(v.initializer)
    assert sess.run(read) == 1.0
    read.op._add_control_input(grow.op)
    assert sess.run(read) == 2.0


def test_a_session_keeps_a_limited_number_of_plans(monkeypatch):
    monkeypatch.setattr(sessions, "MAX_PLANS", 3)
    c = tf.constant(1.0)
    sess = tf.Session()
    sess.run(c)
    kept = weakref.ref(sess._plans[c].plan) if c in sess._plans else None
    for _ in range(10):
        sess.run(tf.identity(c))
        sess.run(c)
    assert len(sess._plans) == 3
    assert kept is None or kept() is not None


def test_units_are_timed_at_lower_trace_levels():
    x = tf.placeholder(tf.float32, [2])
    y = tf.py_func(lambda a: a, [x * 2.0], tf.float32, name="python")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE)
    tf.Session().run(y, {x: [1, 2]}, options=options, run_metadata=metadata)
    (device,) = metadata.step_stats.dev_stats
    assert [n.node_name for n in device.node_stats] == ["region of 1 op to mul", "python"]


def test_no_trace_without_a_trace_level():
    metadata = tf.RunMetadata()
    tf.Session().run(tf.constant(1.0), options=tf.RunOptions(), run_metadata=metadata)
    assert not metadata.step_stats.dev_stats


def test_a_full_trace_by_op_has_each_op_and_the_step_its_effects(monkeypatch):
    monkeypatch.setattr(flags, "trace_ops", True)
    v = tf.Variable([1.0, 2.0], name="v")
    step = v.assign_add([1.0, 1.0], name="grow")
    sess = tf.Session()
    sess.run(v.initializer)
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    np.testing.assert_array_equal(sess.run(step, options=options, run_metadata=metadata), [2, 3])
    np.testing.assert_array_equal(sess.run(v), [2, 3])
    trace = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert "AssignAddVariableOp" in {e["name"] for e in slices}
    assert all(e["dur"] >= 1 for e in slices)


def test_placement_is_logged(caplog):
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.tanh(x, name="y")
    with caplog.at_level(logging.WARNING, logger="headrace.placement"):
        tf.Session(config=tf.ConfigProto(log_device_placement=True)).run(y, {x: 0.0})
    assert "y: (Tanh): /job:localhost/replica:0/task:0/device:CPU:0" in caplog.messages


def test_a_node_keeps_its_control_edges_to_itself():
    """x * 1 is x, but what waits for an update must not make x wait for it."""
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([0.0, 0.0])
    with tf.control_dependencies([v.assign_add(x)]):
        y = x * 1.0
    sess = tf.Session()
    sess.run(v.initializer)
    np.testing.assert_array_equal(sess.run(y, {x: [1, 2]}), [1, 2])
    np.testing.assert_array_equal(sess.run(v), [1, 2])


def test_nested_tuples_as_keys_of_feeds():
    a, b, c = tf.placeholder(tf.float32), tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32)
    total = a + tf.reduce_sum(b) + tf.cast(c, tf.float32)
    with tf.Session() as sess:
        assert sess.run(total, {(a, (b, c)): (1.0, ([2.0, 3.0], 4))}) == 10.0
        assert sess.run(total, {(a, b): (1.0, [2.0, 3.0]), c: 4}) == 10.0
        with pytest.raises(ValueError, match=r"a tuple of 2 tensors as its key.* of 3"):
            sess.run(total, {(a, b): (1.0, [2.0, 3.0], 5), c: 4})
        with pytest.raises(ValueError, match="not float"):
            sess.run(total, {(a, b): 1.0, c: 4})
