"""AlexNet training step in plain JAX: our convolution and pooling kernels against lax's.

Shows what the kernels and the compiler options are worth without any graph around them. All
variants run interleaved in one process, so that other load on the machine hits them alike:

    python benchmarks/kernels_conv.py [--repeats 6] [--batch 16] [--json FILE]

The network is the one-column AlexNet of the convnet benchmarks, NHWC float32, batch 16, SGD.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.ops.nn import conv_kernels, pool_kernels

NO_YNN_CONVOLUTIONS = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"}
# (kernel, inputs, outputs, stride, padding, pooled after)
CONVOLUTIONS = (
    (11, 3, 64, 4, 2, True),
    (5, 64, 192, 1, 2, True),
    (3, 192, 384, 1, 1, False),
    (3, 384, 256, 1, 1, False),
    (3, 256, 256, 1, 1, True),
)
DENSE = ((9216, 4096), (4096, 4096), (4096, 1000))
POOL: dict[str, Any] = {"ksize": (1, 3, 3, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
Params = list[jax.Array]


def our_conv(x: jax.Array, w: jax.Array, stride: int, pad: int) -> jax.Array:
    attrs: dict[str, Any] = {
        "strides": (1, stride, stride, 1),
        "padding": "EXPLICIT",
        "explicit_paddings": (0, 0, pad, pad, pad, pad, 0, 0),
        "platform": jax.default_backend(),
    }

    @jax.custom_vjp
    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        return conv_kernels.convolution(x, w, **attrs)

    def backward(saved: tuple[jax.Array, jax.Array], dy: jax.Array) -> tuple[jax.Array, jax.Array]:
        x, w = saved
        dx = conv_kernels.convolution_backprop_input(x.shape, w, dy, **attrs)
        return dx, conv_kernels.convolution_backprop_filter(x, w.shape, dy, **attrs)

    run.defvjp(lambda x, w: (run(x, w), (x, w)), backward)
    return run(x, w)


def our_pool(x: jax.Array) -> jax.Array:
    attrs: dict[str, Any] = {**POOL, "platform": jax.default_backend()}

    @jax.custom_vjp
    def run(x: jax.Array) -> jax.Array:
        return pool_kernels.max_pool(x, **attrs)

    def forward(x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        y = run(x)
        return y, (x, y)

    def backward(saved: tuple[jax.Array, jax.Array], dy: jax.Array) -> tuple[jax.Array]:
        x, y = saved
        return (pool_kernels.max_pool_grad(x, y, dy, **attrs),)

    run.defvjp(forward, backward)
    return run(x)


def lax_conv(x: jax.Array, w: jax.Array, stride: int, pad: int) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (stride, stride), [(pad, pad)] * 2, dimension_numbers=layout
    )


def lax_pool(x: jax.Array) -> jax.Array:
    pooled = lax.reduce_window(x, -jnp.inf, lax.max, POOL["ksize"], POOL["strides"], "VALID")
    return jnp.asarray(pooled)


def make_loss(
    convolve: Callable[[jax.Array, jax.Array, int, int], jax.Array],
    pooling: Callable[[jax.Array], jax.Array],
) -> Callable[[Params, jax.Array, jax.Array], jax.Array]:
    def loss(params: Params, x: jax.Array, labels: jax.Array) -> jax.Array:
        pairs = iter(zip(params[::2], params[1::2], strict=True))
        for _, _, _, stride, pad, pooled in CONVOLUTIONS:
            w, b = next(pairs)
            x = jax.nn.relu(convolve(x, w, stride, pad) + b)
            x = pooling(x) if pooled else x
        x = x.reshape(x.shape[0], -1)
        for _ in DENSE[:-1]:
            w, b = next(pairs)
            x = jax.nn.relu(x @ w + b)
        w, b = next(pairs)
        scores = jax.nn.log_softmax(x @ w + b)
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))

    return loss


def make_params(rng: np.random.Generator) -> Params:
    shapes: list[tuple[int, ...]] = [(k, k, ci, co) for k, ci, co, *_ in CONVOLUTIONS]
    shapes += DENSE
    params = []
    for shape in shapes:
        scale = float(np.sqrt(2.0 / np.prod(shape[:-1])))
        params += [
            jnp.asarray(rng.standard_normal(shape, dtype=np.float32) * scale),
            jnp.zeros(shape[-1], jnp.float32),
        ]
    return params


VARIANTS = {
    "lax, default options": (lax_conv, lax_pool, {}),
    "lax": (lax_conv, lax_pool, NO_YNN_CONVOLUTIONS),
    "our pools": (lax_conv, our_pool, NO_YNN_CONVOLUTIONS),
    "ours, default options": (our_conv, our_pool, {}),
    "ours": (our_conv, our_pool, NO_YNN_CONVOLUTIONS),
}


def compile_step(name: str, args: tuple[Any, ...]) -> tuple[Callable[..., Any], float]:
    convolve, pooling, options = VARIANTS[name]
    loss = make_loss(convolve, pooling)

    def step(params: Params, x: jax.Array, labels: jax.Array) -> tuple[jax.Array, Params]:
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        return value, [p - 0.01 * g for p, g in zip(params, grads, strict=True)]

    begin = time.perf_counter()
    cpu = jax.default_backend() == "cpu"
    jitted = jax.jit(step, donate_argnums=0, compiler_options=options if cpu else {})
    return jitted.lower(*args).compile(), time.perf_counter() - begin


def measure(names: Sequence[str], batch: int, repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds of one step (minimum, median) and seconds of compilation, per variant."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((batch, 224, 224, 3), dtype=np.float32))
    labels = jnp.asarray(rng.integers(0, 1000, batch).astype(np.int32))
    params = make_params(rng)
    steps, compiled = {}, {}
    for name in names:
        steps[name], compiled[name] = compile_step(name, (params, x, labels))
    times: dict[str, list[float]] = {name: [] for name in names}
    for repeat in range(repeats + 1):
        for name in names:
            begin = time.perf_counter()
            value, params = steps[name](params, x, labels)
            for output in (value, *params):
                output.block_until_ready()
            if repeat:  # the first call of each touches fresh memory
                times[name].append((time.perf_counter() - begin) * 1e3)
    return {
        name: {
            "min_ms": min(taken),
            "median_ms": statistics.median(taken),
            "compile_s": compiled[name],
        }
        for name, taken in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--variants", nargs="*", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = measure(options.variants, options.batch, options.repeats)
    for name, row in rows.items():
        print(
            f"{name:24} min {row['min_ms']:7.1f} ms   median {row['median_ms']:7.1f} ms   "
            f"compile {row['compile_s']:.1f} s"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
