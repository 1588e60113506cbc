"""Networks, made narrow, learn from a few real pictures that packages ship."""

from __future__ import annotations

import numpy as np
import pytest
import real_inputs

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


def test_lenet_loss_is_the_equation():
    logits = -np.array([[3.0, 1.0], [0.5, 2.0]])
    labels = [1, 0]
    right = np.array([1.0, 0.5])
    expected = np.mean(right + np.log(np.exp(-1.5) + np.exp(logits).sum(1)))
    with tf.Session() as session:
        value = session.run(tf.models.lenet_loss(tf.constant(logits, tf.float32), labels, 1.5))
    np.testing.assert_allclose(value, expected, rtol=1e-6)
