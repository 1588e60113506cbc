"""Random ops: stateless ones against their NumPy kernels; streams have tests of their own."""

from __future__ import annotations

import numpy as np

import headrace.ops.random.draws  # noqa: F401
from headrace.graph import dtypes
from headrace.harness.op_cases import OpCase
from headrace.ops.random import fixed, host, philox, truncated

SHAPE = np.int32([3, 5])
SEED = np.int64([7, -(2**40)])
LOGITS = np.log(np.float32([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]))


def _state() -> philox.State:
    return philox.stateless_state(SEED)


CASES = [
    *[
        OpCase(
            op,
            (SHAPE, SEED),
            {"dtype": dtype},
            expected=lambda shape, seed, draw=draw, dtype=dtype: draw(
                _state(), (3, 5), dtype.np_dtype
            ),
            name=dtype.name,
        )
        for op, draw in (
            ("StatelessRandomUniform", fixed.uniform_np),
            ("StatelessRandomNormal", fixed.normal_np),
            ("StatelessTruncatedNormal", truncated.truncated_normal_np),
        )
        for dtype in (dtypes.float32, dtypes.float64, dtypes.float16)
    ],
    OpCase("StatelessRandomUniform", (np.int32([0, 2]), np.int32([1, 2])), name="empty"),
    *[
        OpCase(
            "StatelessRandomUniformInt",
            (SHAPE, SEED, dtype(-5), dtype(2**30)),
            expected=lambda shape, seed, low, high, dtype=dtype: fixed.uniform_int_np(
                _state(), (3, 5), int(low), int(high), dtype
            ),
        )
        for dtype in (np.int32, np.int64)
    ],
    OpCase(
        "StatelessMultinomial",
        (LOGITS, np.int32(7), SEED),
        expected=lambda logits, n, seed: host.multinomial_np(_state(), logits, 7, np.int64),
        grad=(),
    ),
]
