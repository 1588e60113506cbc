"""Sums that several take are made once: no gradient has those of all later layers in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.executor import made_once
from headrace.executor.made_once import LEAST_ELEMENTS
from headrace.settings import flags


def _held(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of what programs hold, from now on."""
    shapes: list[tuple[int, ...]] = []

    def barrier(values: list[Any]) -> list[Any]:
        shapes.extend(value.shape for value in values)
        return real(values)

    real = made_once.barrier
    monkeypatch.setattr(made_once, "barrier", barrier)
    return shapes


def _residual_gradient(layers: int, size: int) -> tuple[list[tf.Tensor], np.ndarray]:
    x = np.linspace(-1, 1, size, dtype=np.float32).reshape(-1, 64)
    first = tf.Variable(x, trainable=False)
    h, scales = first.read_value(), [tf.Variable(np.float32(1 + i)) for i in range(layers)]
    for scale in scales:
        h += tf.sin(h * scale)
    return tf.gradients(h, [*scales, first]), x


@pytest.mark.parametrize("size", [LEAST_ELEMENTS // 2, 4 * LEAST_ELEMENTS])
def test_sums_of_a_residual_network_are_held_where_they_are_large(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "interpret", "never")
    held = _held(monkeypatch)
    gradients, x = _residual_gradient(3, size)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(gradients)
    assert set(held) == ({x.shape} if size >= LEAST_ELEMENTS else set())
    assert [g.shape for g in found] == [(), (), (), x.shape]
    # By hand: d h / d scale = cos(h * scale) * h, backwards through 1 + scale * cos(h * scale).
    values, wanted = [x.astype(np.float64)], []
    for i in range(3):
        values.append(values[-1] + np.sin(values[-1] * (1 + i)))
    back = np.ones_like(values[0])
    for i in reversed(range(3)):
        cosine = np.cos(values[i] * (1 + i))
        wanted.append((back * cosine * values[i]).sum())
        back = back * (1 + (1 + i) * cosine)
    for got, want in zip(found, [*reversed(wanted), back], strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("takers", [1, 2])
def test_what_one_takes_is_left_to_the_compiler(
    takers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "interpret", "never")
    held = _held(monkeypatch)
    x = tf.placeholder(tf.float32, [LEAST_ELEMENTS])
    total = tf.add_n([x, 2 * x])
    with tf.Session() as session:
        found = session.run([tf.sin(total), tf.cos(total)][:takers], {x: np.ones(LEAST_ELEMENTS)})
    np.testing.assert_allclose(found[0], np.sin(np.full(LEAST_ELEMENTS, 3.0)), rtol=1e-5)
    assert held == [(LEAST_ELEMENTS,)] * (takers - 1)
