"""Traced steps measure what runs: compiled regions and host ops, compilations apart."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

import headrace as tf
from headrace.executor import compiling
from headrace.session.timeline import Timeline
from headrace.settings import flags

#: Elements of which a program makes something faster than NumPy does.
LARGE = 200_000
FULL = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


@pytest.fixture
def twice(new_op):
    calls = []

    def kernel(x):
        calls.append("trace")
        return x * 2

    def interpret(x):
        calls.append("interpret")
        return x * 2

    return new_op("TestTwice(x: float) -> y: float", kernel=kernel, interpret=interpret), calls


def traced(sess, fetch, feed):
    metadata = tf.RunMetadata()
    value = sess.run(fetch, feed, options=FULL, run_metadata=metadata)
    (device,) = metadata.step_stats.dev_stats
    return value, device.node_stats, metadata


def test_a_full_trace_times_the_compiled_program(twice):
    op, calls = twice
    x = tf.placeholder(tf.float32, [None])
    y, sess = op(x), tf.Session()
    for _ in range(3):
        sess.run(y, {x: np.ones(LARGE)})
    assert calls == ["interpret", "trace"]
    value, (node,), _ = traced(sess, y, {x: np.ones(LARGE)})
    assert calls == ["interpret", "trace"]  # it ran the program that was there
    np.testing.assert_array_equal(value, np.full(LARGE, 2))
    assert node.node_name == "region of 1 op to TestTwice"
    assert node.timeline_label == "region of 1 op to TestTwice = Region()"
    tensor = node.output[0].tensor_description
    assert [d.size for d in tensor.shape.dim] == [LARGE]
    assert tensor.allocation_description.requested_bytes == 4 * LARGE
    assert node.memory[0].total_bytes == 4 * LARGE


def test_a_compilation_has_a_span_of_its_own(twice):
    op, _ = twice
    x = tf.placeholder(tf.float32, [None])
    y, sess = op(x), tf.Session()
    sess.run(y, {x: np.ones(LARGE)})
    _, nodes, _ = traced(sess, y, {x: np.ones(LARGE)})
    assert [n.timeline_label.partition(" = ")[2] for n in nodes] == ["Compile()", "Region()"]
    compiled, ran = nodes
    assert compiled.all_start_micros + compiled.all_end_rel_micros <= ran.all_start_micros + 1
    _, (ran,), _ = traced(sess, y, {x: np.ones(LARGE)})
    assert ran.timeline_label.endswith("= Region()")


def test_a_timeline_shows_what_takes_what_and_the_memory_between():
    x = tf.placeholder(tf.float32, [1000])
    middle = tf.py_func(lambda a: a + 1, [x * 2.0], tf.float32, name="python")
    middle.set_shape([1000])
    y = tf.reduce_sum(middle, name="y")
    _, _, metadata = traced(tf.Session(), y, {x: np.ones(1000)})
    text = Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True)
    events = json.loads(text)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]

    def joined(phase):
        """The slices at the begin or the end of the arrows, by the arrow."""
        arrows = (e for e in events if e["ph"] == phase)
        return {
            arrow["id"]: e["args"]["name"]
            for arrow in arrows
            for e in slices
            if e["tid"] == arrow["tid"] and e["ts"] <= arrow["ts"] < e["ts"] + e["dur"]
        }

    assert joined("s") == {1: "region of 1 op to mul", 2: "python"}
    assert joined("f") == {1: "python", 2: "region of 1 op to y"}
    live = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert max(live) >= 4000
    assert live[-1] <= 4
    plain = Timeline(metadata.step_stats).generate_chrome_trace_format(show_dataflow=False)
    assert {e["ph"] for e in json.loads(plain)["traceEvents"]} == {"M", "X"}


def test_profiles_of_a_step_count_its_regions(twice):
    op, _ = twice
    x = tf.placeholder(tf.float32, [None])
    with tf.name_scope("inner"):
        y = op(x)
    _, _, metadata = traced(tf.Session(), y, {x: np.ones(5)})
    options = tf.profiler.ProfileOptionBuilder.time_and_memory(min_micros=0, min_bytes=0)
    options = tf.profiler.ProfileOptionBuilder(options).with_empty_output().build()
    root = tf.profiler.profile(tf.get_default_graph(), run_meta=metadata, options=options)
    assert "region: region of 1 op to inner.TestTwice" in {n.name for n in root.children}
    assert root.total_exec_micros > 0


def _slow(seconds):
    """A clock on which each compilation takes so long."""
    times = iter(np.arange(100) * seconds)
    return lambda: next(times)


def test_a_long_compilation_is_told_of_in_one_line(twice, caplog, monkeypatch):
    monkeypatch.setattr(compiling, "clock", _slow(12.34))
    op, _ = twice
    x = tf.placeholder(tf.float32, [None], name="x")
    y, sess = op(x), tf.Session()
    with caplog.at_level(logging.INFO, logger="headrace"):
        for _ in range(4):
            sess.run(y, {x: np.ones(LARGE)})
    assert caplog.messages == [
        "Compiled region of 1 op to TestTwice for /job:localhost/replica:0/task:0/device:CPU:0 "
        f"in 12.3 s, because it runs for the 2nd time. Inputs: x:0 ({LARGE},)"
    ]


def test_other_sizes_are_a_reason_to_compile(twice, caplog, monkeypatch):
    monkeypatch.setattr(compiling, "clock", _slow(3.0))
    monkeypatch.setattr(flags, "interpret", "never")
    op, _ = twice
    x = tf.placeholder(tf.float32, [None], name="x")
    y, sess = op(x), tf.Session()
    with caplog.at_level(logging.INFO, logger="headrace"):
        sess.run(y, {x: np.ones(5)})
        sess.run(y, {x: np.ones(6)})
    first, second = caplog.messages
    assert "because nothing is interpreted (HEADRACE_INTERPRET=never)" in first
    assert "because its inputs have other sizes than before (kind 2 of this region)" in second


def test_short_compilations_are_not_told_of(twice, caplog, monkeypatch):
    monkeypatch.setattr(compiling, "clock", _slow(1.9))
    op, _ = twice
    x = tf.placeholder(tf.float32, [None])
    y, sess = op(x), tf.Session()
    with caplog.at_level(logging.INFO, logger="headrace"):
        for _ in range(3):
            sess.run(y, {x: np.ones(LARGE)})
    assert not caplog.messages
