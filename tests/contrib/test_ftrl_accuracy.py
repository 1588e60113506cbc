"""Logistic regression by FTRL beside scikit-learn's, on real data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from tests.contrib.real_data import real

import headrace as tf


def test_ftrl_comes_to_the_loss_of_scikit_learn() -> None:
    """With the penalty of ``C=1``: the same accuracy within 1 %, the same loss within 2 %."""
    points, labels = real("breast_cancer")
    wanted = labels.astype(np.float32)
    weights, bias = tf.Variable(tf.zeros([points.shape[1], 1])), tf.Variable(0.0)
    logits = tf.squeeze(tf.matmul(tf.constant(points), weights), [1]) + bias
    cross = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.constant(wanted), logits=logits)
    loss = tf.reduce_mean(cross) + tf.reduce_sum(weights * weights) / (2 * len(points))
    train = tf.train.FtrlOptimizer(1.0).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(400):
            sess.run(train)
        found, each = sess.run([loss, logits])
    theirs = LogisticRegression(C=1.0, max_iter=1000).fit(points, labels)
    best = log_loss(labels, theirs.predict_proba(points))
    best += (theirs.coef_**2).sum() / (2 * len(points))
    assert found == pytest.approx(best, rel=0.02)
    assert ((each > 0) == labels).mean() == pytest.approx(theirs.score(points, labels), abs=0.01)
