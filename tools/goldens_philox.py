"""Write `tests/golden/philox.npz`: random numbers of TensorFlow's CPU kernels for given seeds.

Run with the peer's interpreter (see `tools/peer/README.md`):

    .peer-venv/bin/python tools/goldens_philox.py

Each case is one raw op, run twice in one session: `<case>/0` and `<case>/1`. bfloat16 arrays are
stored as their bits. `tests/ops/random/test_philox.py` holds the same table of cases.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "philox.npz"

SEEDS = {"seed": 7, "seed2": 11}
WIDE_SEEDS = {"seed": -3, "seed2": 2**40 + 5}
ALPHA = np.array([0.3, 1.0, 2.5, 30.0])
RATE = np.array([0.5, 4.0, 12.0, 100.0])
WEIGHTS = np.array([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0], [0.5, 1.0, 0.0, 1.0]])


def fixed_cases(tf: Any) -> dict[str, Any]:
    raw = tf.raw_ops
    cases: dict[str, Any] = {}
    for name in ("float16", "bfloat16", "float32", "float64"):
        dtype = tf.as_dtype(name)
        cases[f"uniform_{name}"] = raw.RandomUniform(shape=[13], dtype=dtype, **SEEDS)
        cases[f"normal_{name}"] = raw.RandomStandardNormal(shape=[101], dtype=dtype, **SEEDS)
        cases[f"truncated_{name}"] = raw.TruncatedNormal(shape=[301], dtype=dtype, **SEEDS)
    cases["uniform_wide_seeds"] = raw.RandomUniform(shape=[3, 5], dtype=tf.float32, **WIDE_SEEDS)
    for name, low, high in (
        ("int32", -5, 12),
        ("int64", -5, 12),
        ("int32_whole", -(2**31), 2**31 - 1),
        ("int64_whole", -(2**63), 2**63 - 1),
    ):
        kind = np.dtype(name.removesuffix("_whole")).type
        cases[f"uniform_{name}"] = raw.RandomUniformInt(
            shape=[13], minval=kind(low), maxval=kind(high), **SEEDS
        )
    return cases


def host_cases(tf: Any) -> dict[str, Any]:
    raw = tf.raw_ops
    with np.errstate(divide="ignore"):
        logits = np.log(WEIGHTS).astype(np.float32)
    cases: dict[str, Any] = {
        "shuffle": raw.RandomShuffle(value=np.arange(101), **SEEDS),
        "shuffle_rows": raw.RandomShuffle(value=np.arange(22).reshape(11, 2), **SEEDS),
        "multinomial": raw.Multinomial(logits=logits, num_samples=21, **SEEDS),
        "poisson_float32": raw.RandomPoissonV2(
            shape=[25], rate=RATE.astype(np.float32), dtype=tf.float32, **SEEDS
        ),
        "poisson_int64": raw.RandomPoissonV2(shape=[25], rate=RATE, dtype=tf.int64, **SEEDS),
    }
    for name in ("float16", "float32", "float64"):
        cases[f"gamma_{name}"] = raw.RandomGamma(shape=[25], alpha=ALPHA.astype(name), **SEEDS)
    bounds = {"normal": (-1.5, 3.0), "uniform": (-0.5, 0.7), "tail": (2.0, 9.0)}
    for name, (low, high) in bounds.items():
        cases[f"bounded_{name}"] = raw.ParameterizedTruncatedNormal(
            shape=[3, 70],
            means=np.float32([0]),
            stdevs=np.float32([1]),
            minvals=np.float32(low),
            maxvals=np.float32(high),
            **SEEDS,
        )
    cases["bounded_rows"] = raw.ParameterizedTruncatedNormal(
        shape=[3, 40],
        means=np.float32([0, 1, 2]),
        stdevs=np.float32([1, 2, 3]),
        minvals=np.float32([-1, -2, 1.9]),
        maxvals=np.float32([9, 1.1, 2]),
        **SEEDS,
    )
    return cases


def stateless_cases(tf: Any) -> dict[str, Any]:
    raw = tf.raw_ops
    seed = np.array([-4, 2**40 + 9])
    return {
        "stateless_uniform": raw.StatelessRandomUniform(shape=[13], seed=seed),
        "stateless_uniform_int32_seed": raw.StatelessRandomUniform(
            shape=[13], seed=np.array([-4, 9], np.int32)
        ),
        "stateless_normal": raw.StatelessRandomNormal(shape=[13], seed=seed),
        "stateless_truncated": raw.StatelessTruncatedNormal(shape=[13], seed=seed),
        "stateless_int": raw.StatelessRandomUniformInt(
            shape=[13], seed=seed, minval=np.int32(-5), maxval=np.int32(12)
        ),
        "stateless_full_uint64": raw.StatelessRandomUniformFullInt(
            shape=[13], seed=seed, dtype=tf.uint64
        ),
    }


def main() -> None:
    import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,unused-ignore]

    tf.disable_v2_behavior()
    # One thread: two of the kernels give other numbers when threads share the rows.
    config = tf.ConfigProto(intra_op_parallelism_threads=1, device_count={"GPU": 0})
    with tf.Graph().as_default():
        cases = {**fixed_cases(tf), **host_cases(tf), **stateless_cases(tf)}
        with tf.Session(config=config) as session:
            runs = [session.run(cases), session.run(cases)]
    arrays = {}
    for number, results in enumerate(runs):
        for name, value in results.items():
            bits = value.view(np.uint16) if value.dtype.name == "bfloat16" else value
            arrays[f"{name}/{number}"] = bits
    np.savez_compressed(OUT, **arrays)
    print(f"{OUT.name}: {len(arrays)} arrays, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
