"""Factorisations of batches of matrices take turns: jaxlib waits for ever where two meet."""

from __future__ import annotations

import subprocess
import sys

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import headrace as tf
from headrace.executor.matrix_turns import factors_batches, in_turn
from headrace.executor.program import Program
from headrace.settings import flags

_COUNT, _SIZE = 20, 4


@pytest.fixture
def matrices():
    noise = np.random.RandomState(3).standard_normal((_COUNT, _SIZE, _SIZE))
    return (noise + 8 * np.eye(_SIZE)).astype(np.float32)


@jax.custom_jvp
def _squared(x):
    return jnp.linalg.inv(x) @ x @ x @ x


_squared.defjvp(lambda primals, tangents: (_squared(*primals), tangents[0]))


def _several(x):
    """LAPACK in a jitted function, in a rule of its own, in a branch and in a loop."""
    low = jnp.linalg.cholesky(x @ jnp.swapaxes(x, 1, 2))
    branch = lax.cond(x[0, 0, 0] > 0, jnp.linalg.inv, lambda v: v, x)
    _, loop = lax.scan(lambda c, _: (jnp.linalg.inv(c), c.sum()), x, None, 3)
    return {"low": low, "own": _squared(x), "branch": branch, "loop": loop, "one": jnp.float32(1)}


def test_functions_in_turn_give_the_same(matrices):
    expected = jax.jit(_several)(matrices)
    found = jax.jit(in_turn(_several))(matrices)
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, 1e-5, 1e-6, err_msg=name)


def test_each_waits_for_the_one_before_it(matrices):
    def three(x, y, z):
        return lax.linalg.lu(x)[0], jnp.linalg.cholesky(y), lax.linalg.lu(z)[0]

    traced = jax.make_jaxpr(in_turn(three))(matrices, matrices, matrices).jaxpr
    kinds = [equation.primitive.name for equation in traced.eqns]
    wanted = [k for k in kinds if k in ("lu", "cholesky", "optimization_barrier")]
    assert wanted == ["lu", "optimization_barrier", "cholesky", "optimization_barrier", "lu"]


@pytest.mark.parametrize(
    ("function", "batches"),
    [
        (jnp.linalg.inv, True),
        (lambda x: jnp.linalg.inv(x[0]), False),
        (lambda x: x @ x, False),
        (lambda x: lax.fori_loop(0, 3, lambda i, v: jnp.linalg.inv(v), x), True),
    ],
)
def test_programs_with_batches_are_known(matrices, function, batches):
    assert factors_batches(jax.make_jaxpr(function)(matrices).jaxpr) is batches


def test_gradients_of_inverses_take_turns(matrices, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    called = []
    ran = Program._ran
    monkeypatch.setattr(
        Program,
        "_ran",
        lambda self, f, args: (called.append(self.takes_turns), ran(self, f, args))[1],
    )
    x = tf.placeholder(tf.float32, [None, _SIZE, _SIZE])
    (slope,) = tf.gradients(tf.matrix_inverse(x), x)
    with tf.Session() as session:
        for _ in range(2):
            found = session.run(slope, {x: matrices})
            inverse = np.linalg.inv(matrices).swapaxes(1, 2)
            expected = -inverse @ np.ones_like(inverse) @ inverse
            np.testing.assert_allclose(found, expected, 1e-3, 1e-5)
    assert called == [True, True]


_MEET = """
import threading
import numpy as np
import headrace as tf
x = tf.Variable((np.random.rand(2000, 8, 8) + 8 * np.eye(8)).astype("f"))
slope = tf.gradients(tf.matrix_inverse(x), x)
parts = tf.qr(x)
with tf.Session() as session:
    session.run(x.initializer)
    def repeat(fetch):
        for _ in range(300):
            session.run(fetch)
    threads = [threading.Thread(target=repeat, args=(f,)) for f in (slope, parts)]
    [t.start() for t in threads]
    [t.join() for t in threads]
print("done")
"""


@pytest.mark.process
def test_programs_that_meet_do_not_wait_for_ever():
    """A step of the gradient alone hung after some hundred times, on two cores."""
    command = [sys.executable, "-c", _MEET]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "done\n", done.stderr[-2000:]
