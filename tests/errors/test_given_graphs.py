"""What takes a graph, a session or a tensor says so when it gets something else."""

from __future__ import annotations

import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize(
    "call",
    [
        tf.train.get_global_step,
        tf.train.create_global_step,
        tf.train.get_or_create_global_step,
        tf.profiler.profile,
        tf.profiler.advise,
        tf.profiler.Profiler,
    ],
)
def test_a_graph(call):
    with pytest.raises(
        TypeError, match=r"graph must be a tf.Graph, or None.*; got 'g' of type str"
    ):
        call("g")
    with tf.Session() as session, pytest.raises(TypeError, match=r"a session.* its attribute gra"):
        call(session)


def test_a_global_step():
    with tf.Session() as session:
        with pytest.raises(TypeError, match="global_step takes a session first, got 3"):
            tf.train.global_step(3, session)
        with pytest.raises(TypeError, match='"global_step" must be a Variable or Tensor: 4'):
            tf.train.global_step(session, 4)


@pytest.mark.parametrize("value", [3, "a", None, [1]])
def test_a_tensor(value):
    with pytest.raises(TypeError, match="get_static_value takes a tensor of a graph, got"):
        tf.get_static_value(value)


class _Saver:
    def state(self, name):
        return None

    def save_state(self, name, value):
        return None


def test_what_saves_states():
    cell, steps = tf.nn.rnn_cell.BasicLSTMCell(3), [tf.zeros([2, 4])]
    for saver, message in [
        (None, r"state_saver must have the methods state\(name\) and save_state.*; None has no st"),
        (_Saver(), r"state_saver.state\('c'\) gave None, not the state of that name"),
    ]:
        with pytest.raises(TypeError, match=message):
            tf.nn.static_state_saving_rnn(cell, steps, saver, ("c", "h"))
    with pytest.raises(TypeError, match=r"The argument 'cell' \(3\) is not an RNNCell"):
        tf.nn.static_state_saving_rnn(3, steps, _Saver(), "c")


@pytest.mark.parametrize(
    ("args", "size", "kind", "message"),
    [
        (3, 4, TypeError, r"linear takes a tensor \[batch, n\] or a list of such, got 3 of type"),
        (["a"], 4, TypeError, "got 'a' of type str"),
        (None, 4, ValueError, "`args` must be specified"),
        (lambda: tf.zeros([2, 3]), "x", TypeError, "output_size must be an integer, got 'x'"),
        (lambda: tf.zeros([2, 3]), 2.5, TypeError, "output_size must be an integer, got 2.5"),
        (lambda: tf.zeros([2, 3], tf.int32), 2, ValueError, "only supports floating point"),
        (lambda: tf.constant([["a"]]), 2, ValueError, "only supports floating point"),
        (lambda: tf.zeros([3]), 2, ValueError, "expecting 2D arguments"),
    ],
)
def test_a_linear_layer(args, size, kind, message):
    from headrace.rnn.linear import linear

    with pytest.raises(kind, match=message):
        linear(args() if callable(args) else args, size, True)
    assert tf.global_variables() == []
