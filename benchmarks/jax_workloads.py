"""Training steps, products and transfers in plain jitted JAX: what the compiler alone can do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from workloads import Step, digits

Params = Any


def _loop(
    update: Callable[..., Any], state: Any, batch: tuple[np.ndarray, ...] | None = None
) -> Step:
    """A step feeds NumPy arrays and waits for the new state, as a session's step does."""
    batch = digits(100) if batch is None else batch
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


def alexnet(batch: int, half: bool = False) -> Step:
    dtype = jnp.bfloat16 if half else jnp.float32
    layout = ("NHWC", "HWIO", "NHWC")
    convolutions = [(11, 3, 64, 4, 2), (5, 64, 192, 1, 2), (3, 192, 384, 1, 1)]
    convolutions += [(3, 384, 256, 1, 1), (3, 256, 256, 1, 1)]
    rng = np.random.RandomState(3)

    def weights(*shape: int) -> jax.Array:
        values = rng.standard_normal(shape).astype(np.float32)
        return jnp.asarray(values * np.float32(np.sqrt(2 / np.prod(shape[:-1]))))

    def pool(x: jax.Array) -> jax.Array:
        window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, "VALID")

    def loss(params: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
        x, rest = images.astype(dtype), list(params)
        for i, (_, _, _, stride, margin) in enumerate(convolutions):
            w, b = rest.pop(0)
            margins = ((margin, margin), (margin, margin))
            x = jax.lax.conv_general_dilated(
                x, w.astype(dtype), (stride, stride), margins, dimension_numbers=layout
            )
            x = jax.nn.relu(x + b.astype(dtype))
            x = pool(x) if i in (0, 1, 4) else x
        x = x.reshape(x.shape[0], -1)
        for i, (w, b) in enumerate(rest):
            x = x @ w.astype(dtype) + b.astype(dtype)
            x = jax.nn.relu(x) if i < 2 else x
        chosen = jax.nn.log_softmax(x.astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(chosen, labels[:, None], 1))

    @partial(jax.jit, donate_argnums=0)
    def update(params: Params, images: jax.Array, labels: jax.Array) -> Params:
        gradients = jax.grad(loss)(params, images, labels)
        return jax.tree.map(lambda p, g: p - 1e-4 * g, params, gradients)

    params = [(weights(k, k, i, o), jnp.zeros(o)) for k, i, o, _, _ in convolutions]
    sizes = ((9216, 4096), (4096, 4096), (4096, 1000))
    params += [(weights(*s), jnp.zeros(s[1])) for s in sizes]
    images = rng.random_sample((batch, 224, 224, 3)).astype(np.float32)
    return _loop(update, params, (images, rng.randint(1000, size=batch).astype(np.int32)))


def product(size: int, dtype: str) -> Step:
    x = jnp.asarray(np.random.RandomState(0).standard_normal((size, size)), dtype)
    multiply = jax.jit(lambda y, x: (y @ x) / size**0.5, donate_argnums=0)
    held = [x + 0]

    def run() -> None:
        held[0] = multiply(held[0], x)

    return Step(run, lambda: jax.block_until_ready(held[0]))


def feed(megabytes: int) -> Step:
    array = np.ones(megabytes << 18, np.float32)
    total = jax.jit(jnp.sum)

    def run() -> None:
        total(array).block_until_ready()

    return Step(run)


def fetch(megabytes: int) -> Step:
    x = jnp.ones(megabytes << 18, jnp.float32)
    add = jax.jit(lambda x: x + 1)

    def run() -> None:
        np.asarray(add(x))

    return Step(run)


WORKLOADS: dict[str, Callable[[], Step]] = {
    "softmax": softmax,
    "mlp": mlp,
    "mlp_jax": mlp,
    "alexnet_128": partial(alexnet, 128),
    "alexnet_128_bfloat16": partial(alexnet, 128, half=True),
    "product_float32": partial(product, 4096, "float32"),
    "product_bfloat16": partial(product, 8192, "bfloat16"),
    "feed_64mb": partial(feed, 64),
    "fetch_64mb": partial(fetch, 64),
}
