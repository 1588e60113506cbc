"""tf.contrib.cudnn_rnn: networks against stacks of compatible cells, through checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

cudnn = tf.contrib.cudnn_rnn
LAYERS, UNITS, DEPTH, STEPS, BATCH = 2, 4, 3, 5, 2


def _inputs():
    return np.random.RandomState(0).randn(STEPS, BATCH, DEPTH).astype(np.float32)


def _saved_network(kind, path, **options):
    """Outputs of a network with random parameters, which it saves."""
    tf.set_random_seed(3)
    start = tf.random_normal_initializer(stddev=0.5, seed=2)
    network = kind(LAYERS, UNITS, kernel_initializer=start, bias_initializer=start, **options)
    outputs, states = network(tf.constant(_inputs()))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([outputs, *states])
        tf.train.Saver([network.saveable]).save(session, str(path))
    tf.reset_default_graph()
    return found


@pytest.mark.parametrize(
    ("kind", "cell", "form"),
    [
        (cudnn.CudnnLSTM, cudnn.CudnnCompatibleLSTMCell, "lstm"),
        (cudnn.CudnnGRU, cudnn.CudnnCompatibleGRUCell, "gru"),
    ],
)
def test_cells_restored_from_a_network_compute_the_same(kind, cell, form, tmp_path):
    outputs, h, *c = _saved_network(kind, tmp_path / "model")
    stack = tf.nn.rnn_cell.MultiRNNCell([cell(UNITS) for _ in range(LAYERS)])
    with tf.variable_scope(f"cudnn_{form}"):
        same, state = tf.nn.dynamic_rnn(
            stack, tf.constant(_inputs()), dtype=tf.float32, time_major=True
        )
    with tf.Session() as session:
        tf.train.Saver().restore(session, str(tmp_path / "model"))
        found, last = session.run([same, state])
    np.testing.assert_allclose(found, outputs, rtol=1e-5, atol=1e-6)
    last_h = [s.h for s in last] if c else last
    np.testing.assert_allclose(last_h, h, rtol=1e-5, atol=1e-6)


def test_two_directions_restored_as_a_stack(tmp_path):
    outputs, *_ = _saved_network(cudnn.CudnnLSTM, tmp_path / "model", direction="bidirectional")
    assert outputs.shape == (STEPS, BATCH, 2 * UNITS)

    def cells():
        return [cudnn.CudnnCompatibleLSTMCell(UNITS) for _ in range(LAYERS)]

    with tf.variable_scope("cudnn_lstm"):
        same, _, _ = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
            cells(), cells(), tf.constant(_inputs()), dtype=tf.float32, time_major=True
        )
    with tf.Session() as session:
        tf.train.Saver().restore(session, str(tmp_path / "model"))
        np.testing.assert_allclose(session.run(same), outputs, rtol=1e-5, atol=1e-6)


def test_parameters_survive_a_checkpoint(tmp_path):
    network = cudnn.CudnnGRU(LAYERS, UNITS, bias_initializer=tf.random_normal_initializer())
    outputs, _ = network(tf.constant(_inputs()))
    saver = tf.train.Saver([network.saveable])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(outputs)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(network.kernel.assign(tf.zeros_like(network.kernel)))
        saver.restore(session, path)
        np.testing.assert_allclose(session.run(outputs), before, rtol=1e-5, atol=1e-6)


def test_lengths_and_batch_major_inputs():
    x = tf.constant(_inputs())
    network = cudnn.CudnnRNNTanh(LAYERS, UNITS, direction="bidirectional", seed=1)
    outputs, (h,) = network(x, sequence_lengths=[2, 5])
    cut, (h_cut,) = network(x[:2, :1])
    turned, _ = network(tf.transpose(x, [1, 0, 2]), sequence_lengths=[2, 5], time_major=False)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        a, b, c, ha, hb = session.run([outputs, cut, turned, h, h_cut])
    np.testing.assert_allclose(a[:2, :1], b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ha[:, :1], hb, rtol=1e-5, atol=1e-6)
    assert not a[2:, 0].any()
    np.testing.assert_allclose(c.transpose(1, 0, 2), a, rtol=1e-5, atol=1e-6)


def test_class_of_older_releases_learns():
    """The caller keeps the parameters: the style of the language model tutorial."""
    network = cudnn.CudnnLSTM(num_layers=1, num_units=8, input_size=DEPTH, dropout=0.0)
    with tf.Session() as session:
        size = session.run(network.params_size())
    assert size == 4 * 8 * (DEPTH + 8) + 8 * 8
    params = tf.get_variable(
        "params", initializer=tf.random_uniform([size], -0.3, 0.3, seed=5), validate_shape=False
    )
    saveable = cudnn.RNNParamsSaveable(
        network, network.params_to_canonical, network.canonical_to_params, params
    )
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, saveable)
    zeros = tf.zeros([1, BATCH, 8])
    outputs, h, c = network(tf.constant(_inputs()), zeros, zeros, params, True)
    assert h.shape.as_list() == c.shape.as_list() == [1, BATCH, 8]
    loss = tf.reduce_mean(tf.square(outputs[:, :, 0] - 0.5))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = session.run(loss)
        for _ in range(60):
            session.run(train)
        assert session.run(loss) < 0.2 * first


def test_bad_arguments():
    with pytest.raises(ValueError, match="Invalid direction"):
        cudnn.CudnnLSTM(1, 2, direction="up")
    with pytest.raises(ValueError, match="skip_input"):
        cudnn.CudnnLSTM(1, 2, input_mode="skip_input")
    with pytest.raises(ValueError, match="3 dims"):
        cudnn.CudnnLSTM(1, 2)(tf.zeros([2, 3]))
    with pytest.raises(TypeError, match="expecting tuple"):
        cudnn.CudnnGRU(1, 2)(tf.zeros([2, 3, 4]), initial_state=tf.zeros([1, 3, 2]))
    with pytest.raises(ValueError, match="unknown since layer"):
        _ = cudnn.CudnnGRU(1, 2).input_size
