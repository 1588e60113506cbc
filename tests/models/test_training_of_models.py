"""Each network, made narrow, learns from a few real pictures or words that packages ship."""

from __future__ import annotations

import numpy as np
import pytest
import real_inputs
import sklearn.datasets

import headrace as tf

NARROW = {"classes": 2, "width": 1 / 16}

#: Networks for pictures in colour: function, size of the pictures, rate, arguments.
PICTURES = {
    "alexnet": (tf.models.alexnet, 63, 3e-3, NARROW),
    "overfeat": (tf.models.overfeat, 71, 3e-3, NARROW),
    "vgg_a": (tf.models.vgg_a, 32, 3e-3, NARROW),
    "vgg_16": (tf.models.vgg_16, 32, 3e-3, NARROW),
}


def _minimize(loss, optimizer):
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return optimizer.minimize(loss)


def _losses(train, loss, feed, steps):
    """The loss before each of the steps, and behind them."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        found = [session.run([loss, train], feed)[0] for _ in range(steps)]
        assert np.isfinite(found).all()
        return [*found, session.run(loss, feed)]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n != "alexnet" else []) for n in PICTURES]
)
def test_networks_for_pictures_learn_to_tell_photographs(name):
    network, size, rate, arguments = PICTURES[name]
    images, labels = real_inputs.pieces(size, 8)
    tf.set_random_seed(4)
    logits = network(tf.constant(images), training=True, **arguments)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    losses = _losses(_minimize(loss, tf.train.AdamOptimizer(rate)), loss, None, 10)
    assert min(losses[-3:]) < 0.8 * losses[0]


@pytest.mark.slow
def test_lenet_learns_digits():
    images, labels = real_inputs.digits(32, 50)
    tf.set_random_seed(4)
    logits = tf.models.lenet(tf.constant(images * 1.275 - 0.1))
    loss = tf.models.lenet_loss(logits, tf.constant(labels))
    losses = _losses(_minimize(loss, tf.train.AdamOptimizer(3e-3)), loss, None, 40)
    assert losses[-1] < 0.3 * losses[0]


def test_lenet_loss_is_the_equation():
    logits = -np.array([[3.0, 1.0], [0.5, 2.0]])
    labels = [1, 0]
    right = np.array([1.0, 0.5])
    expected = np.mean(right + np.log(np.exp(-1.5) + np.exp(logits).sum(1)))
    with tf.Session() as session:
        value = session.run(tf.models.lenet_loss(tf.constant(logits, tf.float32), labels, 1.5))
    np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_capsules_learn_digits_and_draw_them():
    images, labels = real_inputs.digits(28, 10)
    tf.set_random_seed(4)
    poses = tf.models.capsule_network(tf.constant(images), width=1 / 32)
    picture = tf.models.capsule_reconstruction(poses, tf.constant(labels))
    error = tf.reduce_sum(tf.square(picture - images.reshape(10, 784)), axis=1)
    loss = tf.models.capsule_loss(poses, labels) + 0.0005 * tf.reduce_mean(error)
    losses = _losses(_minimize(loss, tf.train.AdamOptimizer(3e-3)), loss, None, 30)
    assert losses[-1] < 0.7 * losses[0]
    assert tf.models.capsule_loss(poses, labels).shape.as_list() == []


@pytest.mark.slow
def test_dcgan_learns_to_tell_what_is_drawn():
    images, _ = real_inputs.pieces(64, 8)
    noise = np.random.RandomState(1).uniform(-1, 1, (8, 100)).astype(np.float32)
    tf.set_random_seed(4)
    made = tf.models.dcgan_generator(tf.constant(noise), width=1 / 16)
    real = tf.models.dcgan_discriminator(tf.constant(images), width=1 / 16)
    judged = tf.models.dcgan_discriminator(made, width=1 / 16)
    judge, painter = tf.models.dcgan_losses(real, judged)
    steps = [
        tf.train.AdamOptimizer(2e-3, beta1=0.5).minimize(loss, var_list=tf.trainable_variables(of))
        for loss, of in ((judge, "discriminator"), (painter, "generator"))
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, drawn = session.run([judge, made])
        for _ in range(10):
            session.run(steps[0])
        assert session.run(judge) < 0.5 * first
        before = session.run(painter)
        for _ in range(5):
            session.run(steps[1])
        assert session.run(painter) < before
        assert np.abs(session.run(made) - drawn).max() > 1e-3


def test_word_lstm_learns_a_text_and_goes_on_with_it():
    text = real_inputs.words(4 * 2 * 10 + 1, 50)
    tf.set_random_seed(4)
    words, targets = (t.reshape(4, 20) for t in (text[:-1], text[1:]))
    first, state = tf.models.word_lstm(tf.constant(words[:, :10]), None, 50, 32)
    with tf.variable_scope("", reuse=True):
        second, _ = tf.models.word_lstm(tf.constant(words[:, 10:]), state, 50, 32)
        whole, _ = tf.models.word_lstm(tf.constant(words), None, 50, 32)
    loss = tf.models.word_loss(tf.concat([first, second], 1), tf.constant(targets))
    difference = tf.reduce_max(tf.abs(tf.concat([first, second], 1) - whole))
    train = _minimize(loss, tf.train.AdamOptimizer(2e-2))
    losses = _losses(train, loss, None, 30)
    assert losses[-1] < 0.6 * losses[0]
    assert losses[0] == pytest.approx(np.log(50), rel=0.02)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(difference) < 1e-5


def _small_transformer(sources, targets):
    return tf.models.transformer(
        sources, targets, vocabulary=50, units=32, layers=2, heads=4, inner=64, dropout=0.0
    )


def test_transformer_learns_to_turn_sentences_round():
    sources = real_inputs.words(4 * 10, 50).reshape(4, 10)
    targets = sources[:, ::-1].copy()
    tf.set_random_seed(4)
    logits = _small_transformer(tf.constant(sources), tf.constant(targets))
    loss = tf.models.transformer_loss(logits, tf.constant(targets))
    losses = _losses(_minimize(loss, tf.train.AdamOptimizer(3e-3)), loss, None, 30)
    assert losses[-1] < 0.6 * losses[0]


def test_transformer_sees_neither_the_future_nor_what_is_not_there():
    sources, targets = (tf.placeholder(tf.int32, [1, 6]) for _ in range(2))
    logits = _small_transformer(sources, targets)
    source, target = [[5, 6, 7, 0, 0, 0]], [[8, 9, 10, 11, 12, 13]]
    later = [[8, 9, 10, 11, 30, 31]]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        told = session.run(logits, {sources: source, targets: target})
        other = session.run(logits, {sources: source, targets: later})
    np.testing.assert_allclose(told[:, :5], other[:, :5], atol=1e-5)
    assert np.abs(told[:, 5:] - other[:, 5:]).max() > 1e-3


def test_wide_and_deep_learns_who_has_cancer():
    features, labels = sklearn.datasets.load_breast_cancer(return_X_y=True)
    numbers = np.float32((features - features.mean(0)) / features.std(0))
    # Each of three columns cut in four equal parts: categories, and their combination.
    cuts = np.quantile(features[:, :3], [0.25, 0.5, 0.75], axis=0)
    categories = np.int64((features[:, np.newaxis, :3] > cuts).sum(1))
    sizes = [4, 4, 4]
    cross = tf.models.crossed(tf.constant(categories), sizes, 100)
    tf.set_random_seed(4)
    logits = tf.models.wide_and_deep(
        tf.expand_dims(cross, 1), tf.constant(categories), tf.constant(numbers), 100, sizes, [32]
    )
    loss = tf.models.wide_and_deep_loss(logits, tf.constant(labels, tf.float32))
    losses = _losses(tf.models.wide_and_deep_step(loss), loss, None, 30)
    assert losses[-1] < 0.2 * losses[0]
    with tf.Session() as session:
        buckets = session.run(cross)
    same = {tuple(row): bucket for row, bucket in zip(categories, buckets, strict=True)}
    assert all(same[tuple(row)] == each for row, each in zip(categories, buckets, strict=True))
    assert len(set(buckets)) > 20
