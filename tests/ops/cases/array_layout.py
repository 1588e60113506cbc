"""Padding, space/batch/depth, diagonals, bands and one-hot."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase


def _iota(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) * 0.5 - 1).reshape(shape).astype(np.float32)


def _ints(*values: Any, dtype: Any = np.int32) -> np.ndarray:
    return np.array(values, dtype)


X = _iota(3, 4)
PADS = _ints((2, 1), (1, 3))
SQUARES = _iota(2, 3, 4)


def _depth_to_space(x: np.ndarray, b: int) -> np.ndarray:
    n, h, w, c = x.shape
    result = np.zeros((n, h * b, w * b, c // (b * b)), x.dtype)
    for i in range(b):
        for j in range(b):
            part = (i * b + j) * (c // (b * b))
            result[:, i::b, j::b] = x[..., part : part + c // (b * b)]
    return result


def _space_to_depth(x: np.ndarray, b: int) -> np.ndarray:
    return np.concatenate([x[:, i::b, j::b] for i in range(b) for j in range(b)], -1)


def _space_to_batch(x: np.ndarray, block: Any, pads: Any) -> np.ndarray:
    x = np.pad(x, [(0, 0), *[tuple(p) for p in pads], (0, 0)])
    if len(block) == 1:
        return np.concatenate([x[:, i :: block[0]] for i in range(block[0])])
    return np.concatenate(
        [x[:, i :: block[0], j :: block[1]] for i in range(block[0]) for j in range(block[1])]
    )


def _batch_to_space(x: np.ndarray, block: Any, crops: Any) -> np.ndarray:
    n = x.shape[0] // (block[0] * block[1])
    h, w = x.shape[1] * block[0], x.shape[2] * block[1]
    result = np.zeros((n, h, w, x.shape[3]), x.dtype)
    for i in range(block[0]):
        for j in range(block[1]):
            part = (i * block[1] + j) * n
            result[:, i :: block[0], j :: block[1]] = x[part : part + n]
    (a, b), (c, d) = crops
    return result[:, a : h - b, c : w - d]


def _mirror_grad(mode: str) -> Any:
    def reference(dy: np.ndarray, pads: np.ndarray) -> np.ndarray:
        sizes = [n - a - b for n, (a, b) in zip(dy.shape, pads, strict=True)]
        result = np.zeros(sizes, dy.dtype)
        index = [np.pad(np.arange(n), p, mode=mode) for n, p in zip(sizes, pads, strict=True)]
        np.add.at(result, np.ix_(*index), dy)
        return result

    return reference


def _set_diag(x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    result = x.copy()
    for i in range(diagonal.shape[-1]):
        result[..., i, i] = diagonal[..., i]
    return result


def _band(x: np.ndarray, lower: Any, upper: Any) -> np.ndarray:
    low = x if upper < 0 else np.tril(x, int(upper))
    return low if lower < 0 else np.triu(low, -int(lower))


NHWC = _iota(2, 4, 6, 3)
NCHW = {"block_size": 2, "data_format": "NCHW"}
BATCHED = _iota(12, 2, 3, 2)

CASES = [
    OpCase("Pad", (X, PADS), {}, lambda x, p: np.pad(x, p)),
    OpCase("Pad", (_iota(0, 2), _ints((1, 1), (0, 0))), {}, lambda x, p: np.pad(x, p)),
    OpCase(
        "PadV2",
        (X, PADS.astype(np.int64), np.float32(-7)),
        {},
        lambda x, p, c: np.pad(x, p, constant_values=c),
    ),
    OpCase("MirrorPad", (X, PADS), {"mode": "REFLECT"}, lambda x, p: np.pad(x, p, "reflect")),
    OpCase(
        "MirrorPad",
        (X, _ints((3, 3), (4, 0))),
        {"mode": "SYMMETRIC"},
        lambda x, p: np.pad(x, p, "symmetric"),
    ),
    OpCase("MirrorPadGrad", (_iota(6, 8), PADS), {"mode": "REFLECT"}, _mirror_grad("reflect")),
    OpCase(
        "MirrorPadGrad",
        (_iota(9, 8), _ints((3, 3), (4, 0))),
        {"mode": "SYMMETRIC"},
        _mirror_grad("symmetric"),
    ),
    OpCase("SpaceToBatchND", (NHWC, _ints(2, 3), _ints((0, 0), (2, 1))), {}, _space_to_batch),
    OpCase("SpaceToBatchND", (_iota(2, 4, 3), _ints(3), _ints((1, 1))), {}, _space_to_batch),
    OpCase(
        "SpaceToBatch",
        (NHWC, _ints((1, 1), (0, 2))),
        {"block_size": 2},
        lambda x, p: _space_to_batch(x, (2, 2), p),
    ),
    OpCase("BatchToSpaceND", (BATCHED, _ints(2, 3), _ints((0, 1), (1, 0))), {}, _batch_to_space),
    OpCase(
        "BatchToSpace",
        (BATCHED, _ints((1, 0), (0, 2))),
        {"block_size": 2},
        lambda x, c: _batch_to_space(x, (2, 2), c),
    ),
    OpCase("SpaceToDepth", (NHWC,), {"block_size": 2}, lambda x: _space_to_depth(x, 2)),
    OpCase(
        "SpaceToDepth",
        (NHWC.transpose(0, 3, 1, 2),),
        NCHW,
        lambda x: _space_to_depth(x.transpose(0, 2, 3, 1), 2).transpose(0, 3, 1, 2),
    ),
    OpCase(
        "DepthToSpace", (_iota(2, 3, 5, 12),), {"block_size": 2}, lambda x: _depth_to_space(x, 2)
    ),
    OpCase(
        "DepthToSpace",
        (_iota(2, 12, 3, 5),),
        NCHW,
        lambda x: _depth_to_space(x.transpose(0, 2, 3, 1), 2).transpose(0, 3, 1, 2),
    ),
    OpCase("MatrixDiag", (_iota(2, 3),), {}, lambda x: np.stack([np.diag(r) for r in x])),
    OpCase("MatrixDiagPart", (SQUARES,), {}, lambda x: np.diagonal(x, 0, -2, -1)),
    OpCase("MatrixDiagPart", (_iota(4, 3),), {}, np.diagonal, name="tall"),
    OpCase("MatrixSetDiag", (SQUARES, _iota(2, 3) * 9), {}, _set_diag),
    OpCase("MatrixSetDiag", (_iota(4, 3), _iota(3) * 9), {}, _set_diag, name="tall"),
    *[
        OpCase("MatrixBandPart", (SQUARES, np.int64(a), np.int64(b)), {}, _band, name=f"{a},{b}")
        for a, b in ((-1, 0), (0, -1), (1, 1))
    ],
    OpCase("Diag", (_iota(2, 3),), {}, lambda x: np.diag(x.ravel()).reshape(2, 3, 2, 3)),
    OpCase("DiagPart", (_iota(2, 3, 2, 3),), {}, lambda x: np.einsum("ijij->ij", x)),
    OpCase(
        "OneHot",
        (_ints((0, 2), (-1, 127), dtype=np.int8), np.int32(200), np.float32(5), np.float32(-1)),
        {},
        lambda i, n, on, off: np.where(i[..., None] == np.arange(200), on, off),
        name="deeper than its indices can say",
    ),
    OpCase(
        "OneHot",
        (_ints((0, 2), (-1, 5), (1, 1)), np.int32(4), np.float32(5), np.float32(-1)),
        {},
        lambda i, n, on, off: np.where(i[..., None] == np.arange(4), on, off),
    ),
    OpCase(
        "OneHot",
        (_ints((0, 2), (-1, 5), (1, 1), dtype=np.int64), np.int32(4), True, False),
        {"axis": 0},
        lambda i, n, on, off: i[None] == np.arange(4)[:, None, None],
    ),
]
