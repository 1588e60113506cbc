"""Array ops that pass, describe, reshape, join, split, repeat and reverse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.shapes import TensorShape
from headrace.harness.op_cases import OpCase


def iota(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Distinct small numbers."""
    return (np.arange(np.prod(shape, dtype=int)) * 0.5 - 1).reshape(shape).astype(dtype)


def ints(*values: int, dtype: Any = np.int32) -> np.ndarray:
    return np.array(values, dtype)


X = iota(2, 3, 4)
SCALAR = np.float32(2.5)
FLAGS = np.array([[True, False, True]])
COMPLEX = (iota(2, 3) + 1j * iota(2, 3)).astype(np.complex64)


def _same(x: Any, *_: Any) -> Any:
    return x


def _reverse_sequence(x: Any, lengths: Any) -> Any:
    result = x.copy()
    for b, n in enumerate(lengths):
        result[:n, b] = x[:n, b][::-1]
    return result


CASES = [
    *[
        OpCase(op, (x,), expected=_same)
        for op in ("Identity", "Snapshot", "GuaranteeConst")
        for x in (X, FLAGS)
    ],
    OpCase("StopGradient", (X,), expected=_same),
    OpCase("PreventGradient", (X,), {"message": "no"}, _same, grad=()),
    OpCase("IdentityN", ([X, ints(1, 2)],), {}, lambda values: list(values)),
    OpCase(
        "PlaceholderWithDefault", (X,), {"shape": TensorShape([2, None, 4])}, _same, exact=False
    ),
    OpCase("EnsureShape", (X,), {"shape": TensorShape([None, 3, None])}, _same),
    OpCase("Shape", (X,), {}, lambda x: ints(*x.shape)),
    OpCase("Shape", (SCALAR,), {"out_type": dtypes.int64}, lambda x: np.zeros(0, np.int64)),
    OpCase("ShapeN", ([X, iota(5)],), {}, lambda v: [ints(2, 3, 4), ints(5)]),
    OpCase("Size", (X,), {}, lambda x: np.int32(24)),
    OpCase("Size", (X,), {"out_type": dtypes.int64}, lambda x: np.int64(24)),
    OpCase("Rank", (X,), {}, lambda x: np.int32(3)),
    OpCase("Reshape", (X, ints(4, 6)), {}, lambda x, s: x.reshape(4, 6)),
    OpCase("Reshape", (X, ints(-1, 2, dtype=np.int64)), {}, lambda x, s: x.reshape(-1, 2)),
    OpCase("Reshape", (SCALAR, ints()), {}, _same),
    OpCase("Reshape", (iota(0, 4), ints(2, -1, 2)), {}, lambda x, s: x.reshape(2, 0, 2)),
    OpCase("ExpandDims", (X, np.int32(1)), {}, lambda x, d: x[:, None]),
    OpCase("ExpandDims", (X, np.int32(-1)), {}, lambda x, d: x[..., None]),
    OpCase("Squeeze", (iota(1, 3, 1),), {}, np.squeeze),
    OpCase("Squeeze", (iota(1, 3, 1),), {"squeeze_dims": (-1,)}, lambda x: x[..., 0]),
    OpCase("Transpose", (X, ints(2, 0, 1)), {}, lambda x, p: x.transpose(2, 0, 1)),
    OpCase(
        "Transpose", (X, ints(-1, 0, 1)), {}, lambda x, p: x.transpose(2, 0, 1), name="negative"
    ),
    OpCase("ConjugateTranspose", (COMPLEX, ints(1, 0)), {}, lambda x, p: x.T.conj()),
    OpCase("InvertPermutation", (ints(2, 0, 3, 1),), {}, np.argsort),
    OpCase("Fill", (ints(2, 3), SCALAR), {}, lambda d, v: np.full((2, 3), v)),
    OpCase("Fill", (ints(), np.int32(7)), {}, lambda d, v: v),
    OpCase("ZerosLike", (X,), {}, np.zeros_like),
    OpCase("OnesLike", (FLAGS,), {}, np.ones_like),
    OpCase("BroadcastTo", (iota(3, 1), ints(2, 3, 4)), {}, lambda x, s: np.broadcast_to(x, s)),
    OpCase("BroadcastTo", (SCALAR, ints(2, 0)), {}, lambda x, s: np.broadcast_to(x, s)),
    OpCase("BroadcastArgs", (ints(3, 1), ints(2, 1, 4)), {}, lambda a, b: ints(2, 3, 4)),
    OpCase("Bitcast", (X,), {"type": dtypes.int32}, lambda x: x.view(np.int32)),
    OpCase(
        "Bitcast",
        (iota(2, 3),),
        {"type": dtypes.uint8},
        lambda x: x.view(np.uint8).reshape(2, 3, 4),
    ),
    OpCase(
        "Bitcast",
        (ints(1, 2, dtype=np.int32),),
        {"type": dtypes.int64},
        lambda x: x.view(np.int64)[0],
    ),
    # Joining and splitting.
    OpCase(
        "ConcatV2",
        ([iota(2, 3, 4), iota(2, 5, 4)], np.int32(-2)),
        {},
        lambda v, a: np.concatenate(v, -2),
    ),
    OpCase(
        "ConcatV2",
        ([iota(2, 0), iota(2, 3), iota(2, 1)], np.int64(1)),
        {},
        lambda v, a: np.concatenate(v, 1),
    ),
    OpCase("Concat", (np.int32(0), [iota(2, 3), iota(4, 3)]), {}, lambda a, v: np.concatenate(v)),
    OpCase(
        "ConcatOffset",
        (np.int32(1), [ints(2, 3), ints(2, 5)]),
        {},
        lambda d, s: [ints(0, 0), ints(0, 3)],
    ),
    OpCase("Pack", ([iota(2, 3), iota(2, 3) * 2],), {"axis": -1}, lambda v: np.stack(v, -1)),
    OpCase("Pack", ([SCALAR, SCALAR, SCALAR],), {}, np.stack),
    OpCase("Unpack", (X,), {"num": 3, "axis": 1}, lambda x: [x[:, i] for i in range(3)]),
    OpCase("Unpack", (iota(2),), {"num": 2, "axis": -1}, list),
    OpCase(
        "ParallelConcat",
        ([iota(1, 2, 3), iota(1, 2, 3)],),
        {"shape": TensorShape([2, 2, 3])},
        np.concatenate,
    ),
    OpCase("Split", (np.int32(-1), X), {"num_split": 2}, lambda d, x: np.split(x, 2, -1)),
    OpCase("Split", (np.int32(0), X), {"num_split": 1}, lambda d, x: [x], name="one"),
    OpCase(
        "SplitV",
        (iota(2, 6), ints(1, -1, 2, dtype=np.int64), np.int32(1)),
        {"num_split": 3},
        lambda x, s, d: np.split(x, [1, 4], 1),
    ),
    # Repeating and reversing.
    OpCase("Tile", (iota(2, 3), ints(3, 2)), {}, lambda x, m: np.tile(x, m)),
    OpCase("Tile", (iota(2, 3), ints(1, 0)), {}, lambda x, m: np.tile(x, m)),
    OpCase("Reverse", (X, np.array([True, False, True])), {}, lambda x, d: x[::-1, :, ::-1]),
    OpCase("ReverseV2", (X, ints(-1, 0)), {}, lambda x, a: x[::-1, :, ::-1]),
    OpCase("ReverseV2", (FLAGS, ints()), {}, _same),
    OpCase(
        "ReverseSequence",
        (iota(4, 3, 2), ints(2, 0, 4, dtype=np.int64)),
        {"seq_dim": 0, "batch_dim": 1},
        _reverse_sequence,
    ),
    OpCase("Roll", (X, ints(1, -2), ints(0, -1)), {}, lambda x, s, a: np.roll(x, (1, -2), (0, -1))),
    OpCase("Roll", (X, ints(1, 1), ints(1, 1)), {}, lambda x, s, a: np.roll(x, 2, 1), name="twice"),
    OpCase(
        "Roll", (X, np.int32(-1), np.int32(1)), {}, lambda x, s, a: np.roll(x, -1, 1), name="scalar"
    ),
]
