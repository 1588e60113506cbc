"""Cosine transforms: inverses, and what they refuse; goldens hold TensorFlow's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf

X = np.random.default_rng(1).standard_normal((3, 8))


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_the_inverse_gives_back_the_input(kind: int) -> None:
    norm = "ortho" if kind > 1 else None
    with tf.Graph().as_default(), tf.Session() as session:
        waves = tf.spectral.dct(tf.constant(X), kind, norm=norm)
        back = session.run(tf.spectral.idct(waves, kind, norm=norm))
    assert waves.shape.as_list() == [3, 8]
    np.testing.assert_allclose(back / (1 if norm else 2 * 8 - 2), X, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"type": 5}, "Types I, II, III and IV"),
        ({"n": 0}, "n should be a positive integer"),
        ({"norm": "l2"}, "Expected None or 'ortho', got: 'l2'"),
        ({"type": 1, "norm": "ortho"}, "not supported for the Type-I DCT"),
        ({"type": 1, "n": 1}, "at least two samples, got 1"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.spectral.dct(X, **arguments)
    with pytest.raises(ValueError, match="needs float32 or float64, got int32"):
        tf.spectral.dct(tf.constant([1, 2]))
