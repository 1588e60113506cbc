"""Cells and networks: scopes and names, cells of users, states, saved states, and bad arguments."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

rnn_cell = tf.nn.rnn_cell


def _names():
    return [v.name for v in tf.trainable_variables()]


def _run(fetches, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


class _Doubling(rnn_cell.RNNCell):
    """A cell in the old style: it overrides the call and makes variables in it."""

    state_size = 3
    output_size = 3

    def __call__(self, inputs, state, scope=None):
        with tf.variable_scope(scope or type(self).__name__):
            w = tf.get_variable("w", [2, 3], initializer=tf.ones_initializer())
            new = 2 * state + tf.matmul(inputs, w)
        return new, new


class _Adding(rnn_cell.RNNCell):
    """A cell in the newer style: it makes variables in ``call``."""

    def __init__(self, units):
        super().__init__()
        self.units = units

    state_size = property(lambda self: self.units)
    output_size = property(lambda self: self.units)

    def call(self, inputs, state):
        w = tf.get_variable("w", [inputs.shape.as_list()[1], self.units])
        new = state + tf.matmul(inputs, w)
        return new, new


def test_cells_of_users():
    x = tf.ones([1, 3, 2])
    cell = _Adding(4)
    doubled, _ = tf.nn.dynamic_rnn(_Doubling(), x, dtype=tf.float32)
    added, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, scope="mine")
    assert _names() == ["rnn/_Doubling/w:0", "mine/private__adding/w:0"]
    assert [v.name for v in cell.trainable_weights] == ["mine/private__adding/w:0"]
    a, b = _run([doubled, added])
    assert a[0, :, 0].tolist() == [2, 6, 14]
    np.testing.assert_allclose(b[0, 2], 3 * b[0, 0], rtol=1e-5)


def test_scopes_and_reuse():
    x = tf.zeros([2, 3, 4])
    for reuse in (None, True):
        with tf.variable_scope("both", reuse=reuse):
            tf.nn.dynamic_rnn(rnn_cell.BasicLSTMCell(5), x, dtype=tf.float32)
    assert _names() == ["both/rnn/basic_lstm_cell/kernel:0", "both/rnn/basic_lstm_cell/bias:0"]
    with pytest.raises(ValueError, match="already exists"), tf.variable_scope("both"):
        tf.nn.dynamic_rnn(rnn_cell.BasicLSTMCell(5), x, dtype=tf.float32)
    cell = rnn_cell.GRUCell(5, name="shared")
    tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
    tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
    assert len(_names()) == 6
    assert cell.trainable_variables[0].name == "rnn/shared/gates/kernel:0"


def test_names_of_older_releases():
    assert tf.nn.rnn is tf.nn.static_rnn
    assert tf.nn.bidirectional_rnn is tf.nn.static_bidirectional_rnn
    assert tf.nn.state_saving_rnn is tf.nn.static_state_saving_rnn
    assert tf.nn.seq2seq is tf.contrib.legacy_seq2seq
    assert tf.contrib.rnn.BasicLSTMCell is rnn_cell.BasicLSTMCell
    assert rnn_cell.BasicLSTMCell(3, forget_bias=0.0, input_size=7).output_size == 3
    with pytest.raises(AttributeError, match="dynamic_rnn"):
        tf.nn.dynamic_rn  # noqa: B018


def test_zero_states():
    cell = rnn_cell.MultiRNNCell([rnn_cell.LSTMCell(4, num_proj=2), rnn_cell.GRUCell(3)])
    batch = tf.placeholder(tf.int32, [])
    fixed, computed = cell.zero_state(5, tf.float64), cell.zero_state(batch, tf.float32)
    assert isinstance(fixed[0], rnn_cell.LSTMStateTuple)
    assert [s.shape.as_list() for s in (fixed[0].c, fixed[0].h, fixed[1])] == [
        [5, 4],
        [5, 2],
        [5, 3],
    ]
    assert fixed[1].dtype is tf.float64
    assert computed[1].shape.as_list() == [None, 3]
    assert _run(computed, {batch: 2})[0].h.shape == (2, 2)
    assert cell.get_initial_state(tf.zeros([6, 9]))[1].shape.as_list() == [6, 3]
    with pytest.raises(ValueError, match="different from the input"):
        cell.get_initial_state(tf.zeros([6, 9]), batch_size=5)


def test_lengths_of_another_batch_size():
    x, n = tf.placeholder(tf.float32, [None, 3, 2]), tf.placeholder(tf.int32, [None])
    outputs, _ = tf.nn.dynamic_rnn(rnn_cell.GRUCell(2), x, n, dtype=tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="sequence_length"):
        _run(outputs, {x: np.zeros((4, 3, 2)), n: [1, 2]})


def test_inputs_and_outputs_may_be_nests():
    class Pair(rnn_cell.RNNCell):
        state_size = (2, (tf.TensorShape([3, 2]),))
        output_size = (2, 1)

        def call(self, inputs, state):
            a, b = inputs
            s, (t,) = state
            s, t = s + a, t + tf.expand_dims(b, 1)
            return (s, tf.reduce_sum(t, [1, 2])[:, None]), (s, (t,))

    x = (tf.ones([2, 4, 2]), tf.ones([2, 4, 2]) * 2)
    outputs, state = tf.nn.dynamic_rnn(Pair(), x, sequence_length=[4, 2], dtype=tf.float32)
    (a, b), (s, (t,)) = _run([outputs, state])
    assert a[:, :, 0].tolist() == [[1, 2, 3, 4], [1, 2, 0, 0]]
    assert b[:, :, 0].tolist() == [[12, 24, 36, 48], [12, 24, 0, 0]]
    assert s[:, 0].tolist() == [4, 2]
    assert t.shape == (2, 3, 2)


def test_states_are_saved_by_name():
    class Saver:
        def __init__(self):
            self.saved = {}

        def state(self, name):
            return tf.ones([2, 3])

        def save_state(self, name, value):
            self.saved[name] = value
            return tf.no_op()

    saver, cell = Saver(), rnn_cell.GRUCell(3)
    inputs = [tf.ones([2, 4]), tf.ones([2, 4])]
    outputs, state = tf.nn.static_state_saving_rnn(cell, inputs, saver, "h")
    a, b, c = _run([outputs[-1], state, saver.saved["h"]])
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(b, c)
    with pytest.raises(ValueError, match="same type as cell"):
        tf.nn.static_state_saving_rnn(rnn_cell.BasicLSTMCell(3), inputs, saver, "h")


def test_dropout_keeps_the_memory_and_changes_from_run_to_run():
    cell = rnn_cell.DropoutWrapper(rnn_cell.BasicLSTMCell(50), state_keep_prob=0.5, seed=3)
    state = rnn_cell.LSTMStateTuple(tf.ones([1, 50]), tf.ones([1, 50]))
    _, new = cell(tf.ones([1, 2]), state)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run(new), session.run(new)
    assert (first.c != 0).all()
    assert 10 < (first.h == 0).sum() < 40
    assert (first.h != second.h).any()


def test_variational_dropout_drops_the_same_in_all_steps():
    cell = rnn_cell.DropoutWrapper(
        rnn_cell.GRUCell(40),
        output_keep_prob=tf.placeholder_with_default(0.5, []),
        variational_recurrent=True,
        dtype=tf.float32,
    )
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.ones([2, 5, 3]), dtype=tf.float32)
    dropped = _run(outputs) == 0
    assert 5 < dropped[0, 0].sum() < 35
    assert (dropped == dropped[:1, :1]).all()


def test_wrong_arguments_of_cells():
    with pytest.raises(TypeError, match="is not an RNNCell: 'output_size' property is missing"):
        tf.nn.dynamic_rnn(object(), tf.zeros([2, 3, 4]), dtype=tf.float32)
    with pytest.raises(ValueError, match="at least one cell"):
        rnn_cell.MultiRNNCell([])
    with pytest.raises(ValueError, match="is not set"):
        rnn_cell.MultiRNNCell([rnn_cell.BasicLSTMCell(2)], state_is_tuple=False)
    with pytest.raises(ValueError, match="between 0 and 1"):
        rnn_cell.DropoutWrapper(rnn_cell.GRUCell(2), input_keep_prob=1.5)
    with pytest.raises(ValueError, match="dtype must be provided"):
        rnn_cell.DropoutWrapper(rnn_cell.GRUCell(2), variational_recurrent=True)
    with pytest.raises(ValueError, match="only supports floating point inputs"):
        rnn_cell.GRUCell(2, dtype=tf.int32)
    with pytest.raises(ValueError, match="saw shape"):
        rnn_cell.GRUCell(2)(tf.placeholder(tf.float32, [3, None]), tf.zeros([3, 2]))
    with pytest.raises(ValueError, match="Unknown activation"):
        rnn_cell.GRUCell(2, activation="tanhh")


def test_wrong_arguments_of_networks():
    cell, x = rnn_cell.GRUCell(2), tf.zeros([2, 3, 4])
    with pytest.raises(ValueError, match="you must give a dtype"):
        tf.nn.dynamic_rnn(cell, x)
    with pytest.raises(ValueError, match="must be a vector"):
        tf.nn.dynamic_rnn(cell, x, sequence_length=3, dtype=tf.float32)
    with pytest.raises(ValueError, match="must be accessible via shape inference"):
        tf.nn.dynamic_rnn(cell, tf.placeholder(tf.float32, [2, 3, None]), dtype=tf.float32)
    with pytest.raises(TypeError, match="inputs must be a sequence"):
        tf.nn.static_rnn(cell, x, dtype=tf.float32)
    with pytest.raises(ValueError, match="must not be empty"):
        tf.nn.static_rnn(cell, [], dtype=tf.float32)
    with pytest.raises(TypeError, match="loop_fn must be a callable"):
        tf.nn.raw_rnn(cell, None)


def test_gradient_of_a_long_loop_keeps_no_weights():
    """Weights are read once, before the loop: saving them in each step would cost most of it."""
    x = tf.zeros([2, 30, 4])
    outputs, _ = tf.nn.dynamic_rnn(rnn_cell.BasicLSTMCell(8), x, dtype=tf.float32)
    tf.gradients(outputs, tf.trainable_variables())
    loop = next(op for op in tf.get_default_graph().get_operations() if "While" in op.type)
    saved = [loop.get_attr("body").get_tensor_by_name(n) for n in loop.attrs["_saved"]]
    assert saved
    assert all(t.shape.as_list()[0] == 2 for t in saved if t.shape.rank == 2)


class _Own(rnn_cell.GRUCell):
    """A cell of a user: it is unrolled, however long the inputs are."""


@pytest.mark.parametrize("lengths", [None, [14, 3]])
def test_long_lists_of_inputs_become_loops(lengths, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "always")  # compiling the long graph takes seconds
    x = np.random.RandomState(0).randn(14, 2, 3).astype(np.float32)
    found = []
    for kind in (rnn_cell.GRUCell, _Own):
        tf.reset_default_graph()
        start = tf.random_normal_initializer(stddev=0.4, seed=1)
        with tf.variable_scope("net", initializer=start):
            cell = rnn_cell.MultiRNNCell([kind(4, name="a"), kind(3, name="b")])
            outputs, state = tf.nn.static_rnn(
                cell, tf.unstack(tf.constant(x)), dtype=tf.float32, sequence_length=lengths
            )
            seq2seq = tf.contrib.legacy_seq2seq
            more, _ = seq2seq.rnn_decoder(tf.unstack(tf.constant(x)), state, cell)
            attending, _ = seq2seq.attention_decoder(
                tf.unstack(tf.constant(x)),
                state,
                tf.constant(x[:5].transpose(1, 0, 2)),
                cell,
                output_size=2,
                num_heads=2,
                initial_state_attention=lengths is None,
            )
        loss = tf.reduce_sum(tf.square(tf.stack(outputs + more)))
        loss += tf.reduce_sum(tf.square(tf.stack(attending)))
        variables = tf.trainable_variables()
        loops = [op for op in tf.get_default_graph().get_operations() if "While" in op.type]
        assert bool(loops) == (kind is rnn_cell.GRUCell)
        assert len(outputs) == len(more) == len(attending) == 14
        assert outputs[0].shape.as_list() == [2, 3]
        grads = tf.gradients(loss, variables)
        found.append(_run([outputs, state, more, attending, grads]))
        found[-1].append([v.name for v in variables])
    for a, b in zip(*found, strict=True):
        if isinstance(a[0], str):
            assert a == b
            continue
        for u, v in zip(tf.nest.flatten(a), tf.nest.flatten(b), strict=True):
            np.testing.assert_allclose(u, v, rtol=1e-4, atol=1e-5)
