"""CTC: the loss against a sum over all paths, its errors, and decoders on small inputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace as tf
from headrace.ops.nn import ctc_kernels as kernels


def _log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def _collapsed(path, blank):
    merged = [k for k, _ in itertools.groupby(path)]
    return tuple(k for k in merged if k != blank)


def _all_paths(logits, label):
    """The log-probability of a label sequence, added up over all paths."""
    log_y = _log_softmax(logits.astype(np.float64))
    steps, classes = logits.shape
    total = sum(
        np.exp(sum(log_y[t, k] for t, k in enumerate(path)))
        for path in itertools.product(range(classes), repeat=steps)
        if _collapsed(path, classes - 1) == tuple(label)
    )
    return np.log(total)


def _sparse(rows):
    indices = [[b, t] for b, row in enumerate(rows) for t in range(len(row))]
    values = np.array([v for row in rows for v in row], np.int32)
    return tf.SparseTensor(
        np.array(indices, np.int64).reshape(-1, 2), values, [len(rows), max(map(len, rows))]
    )


LABELS = [[0, 1], [1, 1], [0]]
LENGTHS = [5, 4, 2]


def test_loss_is_the_sum_over_all_paths_and_its_gradient_fits():
    x = np.random.RandomState(0).randn(5, 3, 3)
    fed = tf.placeholder(tf.float64, [None, None, 3])
    loss = tf.nn.ctc_loss(_sparse(LABELS), fed, LENGTHS)
    gradient = tf.gradients(loss, fed)[0]
    with tf.Session() as session:
        value, grad = session.run([loss, gradient], {fed: x})
        direction = np.random.RandomState(1).randn(*x.shape)
        ahead, behind = (
            session.run(loss, {fed: x + sign * 1e-6 * direction}).sum() for sign in (1, -1)
        )
    expected = [-_all_paths(x[:n, b], LABELS[b]) for b, n in enumerate(LENGTHS)]
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose((ahead - behind) / 2e-6, (grad * direction).sum(), rtol=1e-6)
    assert not grad[4:, 1].any()
    assert not grad[2:, 2].any()


def test_loss_inside_a_branch_equals_that_outside():
    x = tf.constant(np.random.RandomState(0).randn(5, 3, 3).astype(np.float32))
    outside = tf.nn.ctc_loss(_sparse(LABELS), x, LENGTHS)
    inside = tf.cond(
        tf.placeholder_with_default(True, []),
        lambda: tf.nn.ctc_loss(_sparse(LABELS), x, LENGTHS),
        lambda: tf.zeros([3]),
    )
    grads = [tf.gradients(y, x)[0] for y in (outside, inside)]
    with tf.Session() as session:
        a, b, (da, db) = session.run([outside, inside, grads])
    np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(da, db, rtol=1e-5, atol=1e-6)


def test_second_derivative_is_refused():
    x = tf.zeros([5, 3, 3])
    gradient = tf.gradients(tf.nn.ctc_loss(_sparse(LABELS), x, LENGTHS), x)[0]
    with pytest.raises(LookupError, match="second"):
        tf.gradients(gradient, x)


@pytest.mark.parametrize(
    ("rows", "lengths", "message"),
    [
        ([[0], [1, 1, 1]], [3, 2], r"required: 3, available: 2\)1You can turn"),
        ([[0], []], [3, 2], "Labels length is zero in batch 1"),
        ([[0], [2, 1]], [3, 2], "non-null label .* batch: 1 num_classes: 3 labels: 2,1"),
        ([[0, -1], [1]], [3, 2], "nonnegative integers, batch: 0 labels: 0,-1"),
        ([[0], [1]], [3, 6], r"sequence_length\(1\) <= 4"),
        ([[0], [1]], [3, -2], r"seq_len\(1\) < 0"),
    ],
)
def test_labels_and_lengths_that_do_not_fit(rows, lengths, message):
    fed = tf.placeholder(tf.int32, [2])
    loss = tf.nn.ctc_loss(_sparse(rows), tf.zeros([4, 2, 3]), fed)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(loss, {fed: lengths})


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([[0, 0], [2, 0]], r"indices\[1\] = \[2,0\] is out of bounds: need 0 <= index < \[2,1\]"),
        ([[1, 0], [0, 0]], r"indices\[1\] = \[0,0\] is out of order"),
        ([[0, 0], [0, 0]], r"indices\[1\] = \[0,0\] is repeated"),
    ],
)
def test_labels_that_are_no_matrix(indices, message):
    labels = tf.SparseTensor(indices, tf.constant([0, 1]), [3, 1])
    loss = tf.nn.ctc_loss(labels, tf.zeros([4, 2, 3]), [4, 4])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(loss)


def test_inputs_may_come_first_as_in_releases_before_1_0():
    labels, inputs = (
        _sparse([[0], [1]]),
        tf.constant(np.random.RandomState(0).rand(4, 2, 3), tf.float32),
    )
    old, new = tf.nn.ctc_loss(inputs, labels, [4, 4]), tf.nn.ctc_loss(labels, inputs, [4, 4])
    with tf.Session() as session:
        np.testing.assert_array_equal(*session.run([old, new]))


def test_arguments_that_do_not_fit():
    with pytest.raises(TypeError, match="SparseTensor"):
        tf.nn.ctc_loss(tf.zeros([2, 2], tf.int32), tf.zeros([4, 2, 3]), [4, 4])
    with pytest.raises(ValueError, match="rank 3"):
        tf.nn.ctc_loss(_sparse([[0], [1]]), tf.zeros([4, 3]), [4, 4])
    with pytest.raises(ValueError, match="not compatible"):
        tf.nn.ctc_loss(_sparse([[0], [1]]), tf.zeros([4, 2, 3]), [4, 4, 4])
    decoded = tf.nn.ctc_beam_search_decoder(np.zeros((4, 2, 3), np.float32), [4, 4], 2, 3)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="requested"):
        session.run(decoded)


def test_few_sizes_of_padded_labels():
    sizes = sorted({kernels.padded_size(n) for n in range(200)})
    assert sizes == [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]


def test_wide_beam_finds_the_most_probable_labels():
    x = np.random.RandomState(3).randn(4, 1, 3)
    (decoded,), scores = tf.nn.ctc_beam_search_decoder(x, [4], 50, merge_repeated=False)
    with tf.Session() as session:
        value, score = session.run([decoded, scores])
    labels = {_collapsed(p, 2) for p in itertools.product(range(3), repeat=4)}
    best = max(labels, key=lambda label: _all_paths(x[:, 0], label))
    assert tuple(value.values) == best
    np.testing.assert_allclose(score[0, 0], _all_paths(x[:, 0], best), rtol=1e-9)


def test_recogniser_learns_to_read():
    """Noisy renderings of label sequences are read back by the greedy decoder."""
    rng = np.random.RandomState(5)
    shapes = rng.randn(4, 6)

    def batch():
        rows = [rng.choice(4, rng.randint(1, 4)) for _ in range(16)]
        x, lengths = np.zeros((16, 12, 6)), []
        for b, row in enumerate(rows):
            drawn = [shapes[k] for k in row for _ in range(rng.randint(2, 5))]
            x[b, : len(drawn)] = drawn + 0.3 * rng.randn(len(drawn), 6)
            lengths.append(len(drawn))
        indices = [[b, t] for b, row in enumerate(rows) for t in range(len(row))]
        return x, lengths, (np.array(indices), np.concatenate(rows), np.array([16, 3])), rows

    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, None, 6])
    lengths = tf.placeholder(tf.int32, [None])
    labels = tf.sparse_placeholder(tf.int32)
    cell = tf.nn.rnn_cell.LSTMCell(16)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    w = tf.get_variable("w", [16, 5])
    logits = tf.transpose(tf.tensordot(outputs, w, [[2], [0]]), [1, 0, 2])
    loss = tf.reduce_mean(tf.nn.ctc_loss(labels, logits, lengths))
    train = tf.train.AdamOptimizer(0.03).minimize(loss)
    (decoded,), _ = tf.nn.ctc_greedy_decoder(logits, lengths)
    dense = tf.sparse_tensor_to_dense(decoded, default_value=-1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            values, n, fed, rows = batch()
            session.run(train, {x: values, lengths: n, labels: tf.SparseTensorValue(*fed)})
        values, n, _, rows = batch()
        read = session.run(dense, {x: values, lengths: n})
    merged = [[k for k, _ in itertools.groupby(row)] for row in rows]
    right = sum([k for k in got if k >= 0] == want for got, want in zip(read, merged, strict=True))
    assert right >= 12
