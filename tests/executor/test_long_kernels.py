"""Which programs may keep their caller."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from headrace.executor.long_kernels import takes_long


def _takes_long(function, *shapes):
    args = [np.ones(shape, "f") for shape in shapes]
    return takes_long(jax.jit(function).trace(*args).jaxpr.jaxpr)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.linalg.svd(x, compute_uv=False),
        jnp.linalg.qr,
        jnp.linalg.inv,
        jnp.linalg.eigh,
        lax.linalg.cholesky,
        lambda x: lax.linalg.triangular_solve(x, x, left_side=True),
        lambda x: jnp.sort(x.reshape(-1)),
        lambda x: lax.top_k(x.reshape(-1), 3),
        lambda x: lax.cond(x[0, 0] > 0, jnp.linalg.inv, lambda y: y, x),
        jax.grad(lambda x: jnp.linalg.slogdet(x)[1]),
    ],
)
def test_factorisations_and_sorting_of_much_take_long(function):
    assert _takes_long(function, (300, 300))
    assert not _takes_long(function, (4, 4))


def test_in_a_loop_they_take_long_whatever_their_size():
    def loop(x):
        return lax.while_loop(lambda a: a[0, 0] < 9, lambda a: lax.top_k(a, 4)[0] + 1, x)

    assert _takes_long(loop, (4, 4))


def test_what_xla_counts_does_not():
    assert not _takes_long(lambda x: jnp.tanh(x @ x), (300, 300))
    assert not _takes_long(lambda x: jnp.zeros(()), (0, 3))
