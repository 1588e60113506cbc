"""Bijectors: there and back, and their Jacobians against slopes."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

b = tf.contrib.distributions.bijectors

CASES = [
    b.Identity(),
    b.Exp(),
    b.Softplus(),
    b.Sigmoid(),
    b.AffineScalar(shift=1.0, scale=-3.0),
    b.Chain([b.AffineScalar(scale=100.0), b.Sigmoid()]),
    b.Invert(b.AffineScalar(scale=4.0)),
]


@pytest.mark.parametrize("bijector", CASES, ids=lambda x: x.name)
def test_there_and_back(bijector):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([-2.0, 0.1, 3.0], tf.float64)
        y = bijector.forward(x)
        slope = tf.log(tf.abs(tf.gradients(y, x)[0]))
        found = session.run(
            [
                bijector.inverse(y),
                bijector.forward_log_det_jacobian(x),
                -bijector.inverse_log_det_jacobian(y),
                slope,
            ]
        )
    np.testing.assert_allclose(found[0], [-2.0, 0.1, 3.0])
    np.testing.assert_allclose(found[1], found[3])
    np.testing.assert_allclose(found[2], found[3])


def test_events_add_up_and_what_has_no_formula_says_so():
    with tf.Graph().as_default(), tf.Session() as session:
        x = np.arange(6.0).reshape(2, 3)
        assert session.run(b.Exp(event_ndims=1).forward_log_det_jacobian(x)).tolist() == [3, 12]
        with pytest.raises(NotImplementedError, match="Bijector has no forward"):
            b.Bijector().forward(x)
    with pytest.raises(ValueError, match="event_ndims must be an integer of at least 0, not -1"):
        b.Exp(event_ndims=-1)
