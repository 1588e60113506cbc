"""The softmax and MLP steps in plain jitted JAX: what the compiler alone can do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from workloads import Step, _images

Params = Any


def _loop(update: Callable[..., Any], state: Any) -> Step:
    """A step feeds NumPy arrays and waits for the new state, as a session's step does."""
    batch = _images(100)
    held = [state]

    def run() -> None:
        held[0] = jax.block_until_ready(update(held[0], *batch))

    return Step(run)


def softmax() -> Step:
    def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
        w, b = params
        return -jnp.sum(y * jax.nn.log_softmax(x @ w + b))

    @partial(jax.jit, donate_argnums=0)
    def update(params: Params, x: jax.Array, y: jax.Array) -> Params:
        gradients = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.001 * g, params, gradients)

    return _loop(update, (jnp.zeros((784, 10)), jnp.zeros(10)))


def mlp() -> Step:
    def loss(layers: Params, x: jax.Array, y: jax.Array) -> jax.Array:
        *hidden, (w, b) = layers
        for v, c in hidden:
            x = jax.nn.relu(x @ v + c)
        return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(x @ w + b), axis=1))

    @partial(jax.jit, donate_argnums=0)
    def update(state: Any, x: jax.Array, y: jax.Array) -> Any:
        layers, m, v, power1, power2 = state
        gradients = jax.grad(loss)(layers, x, y)
        rate = 1e-4 * jnp.sqrt(1 - power2) / (1 - power1)
        m = jax.tree.map(lambda a, g: a + (g - a) * 0.1, m, gradients)
        v = jax.tree.map(lambda a, g: a + (g * g - a) * 0.001, v, gradients)
        layers = jax.tree.map(lambda p, a, b: p - rate * a / (jnp.sqrt(b) + 1e-8), layers, m, v)
        return layers, m, v, power1 * 0.9, power2 * 0.999

    rng = np.random.RandomState(1)
    sizes = ((784, 512), (512, 512), (512, 10))
    layers = [
        (jnp.asarray(rng.standard_normal(s) * np.sqrt(2 / s[0]), jnp.float32), jnp.zeros(s[1]))
        for s in sizes
    ]
    m, v = jax.tree.map(jnp.zeros_like, layers), jax.tree.map(jnp.zeros_like, layers)
    return _loop(update, (layers, m, v, jnp.float32(0.9), jnp.float32(0.999)))


WORKLOADS = {"softmax": softmax, "mlp": mlp, "mlp_jax": mlp}
