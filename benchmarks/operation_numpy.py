"""The cases of `operation_cases.py` in NumPy: values of those that it has plainly.

A body takes NumPy and the inputs of its case, as the case's own body takes TensorFlow; indices
are integers of 64 bits, which is what NumPy indexes with.
"""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from types import ModuleType
from typing import Any

import numpy
from operation_cases import Body, depth_to_space, of_name, space_to_depth

#: Numbers are drawn by one generator, as programs do.
DRAWS = numpy.random.default_rng(4)
COLUMN = (slice(None), None)


def _softmax(np: ModuleType, x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _log_sums(np: ModuleType, x: Any, axis: int | None = -1, keep: bool = True) -> Any:
    top = x.max(axis, keepdims=True)
    sums = np.log(np.exp(x - top).sum(axis, keepdims=True)) + top
    return sums if keep else sums.squeeze(axis)


def _elu(np: ModuleType, x: Any, alpha: float = 1.0, scale: float = 1.0) -> Any:
    scale, alpha = np.float32(scale), np.float32(alpha)
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _norms(np: ModuleType, x: Any) -> Any:
    return np.sqrt(np.sum(np.square(x), 1, keepdims=True))


def _starts(np: ModuleType, ids: Any) -> Any:
    """Where each id begins among sorted ones."""
    return np.flatnonzero(np.diff(ids, prepend=-1))


def _segments(name: str) -> Body:
    def body(np: ModuleType, x: Any, ids: Any) -> Any:
        starts = _starts(np, ids)
        made = getattr(np, name).reduceat(x, starts, axis=0)
        out = np.full((ids[-1] + 1, *x.shape[1:]), int(name == "multiply"), x.dtype)
        out[ids[starts]] = made
        return out

    return body


def _segment_means(np: ModuleType, x: Any, ids: Any) -> Any:
    counts = np.maximum(np.bincount(ids), 1).astype(x.dtype)
    return _segments("add")(np, x, ids) / counts[COLUMN]


def _unsorted(name: str, first: float) -> Body:
    def body(np: ModuleType, x: Any, ids: Any) -> Any:
        out = np.full((50, *x.shape[1:]), first, x.dtype)
        getattr(np, name).at(out, ids, x)
        return out

    return body


def _scattered(np: ModuleType, x: Any, ids: Any) -> Any:
    out = np.zeros_like(x)
    np.add.at(out, ids, x)
    return out


def _first_places(np: ModuleType, ids: Any) -> Any:
    _, first = np.unique(ids, return_index=True)
    return ids[np.sort(first)]


def _top(count: int) -> Body:
    def body(np: ModuleType, x: Any) -> Any:
        return np.sort(np.partition(x, -count, axis=-1)[:, -count:], axis=-1)[:, ::-1]

    return body


def _chosen(np: ModuleType, x: Any, ids: Any) -> Any:
    return np.take_along_axis(x, ids[COLUMN], 1)


def _sparse_cross_entropy(np: ModuleType, x: Any, ids: Any) -> Any:
    return (_log_sums(np, x) - _chosen(np, x, ids))[:, 0]


def _sigmoid_cross_entropy(np: ModuleType, x: Any, y: Any) -> Any:
    return np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))


def _huber(np: ModuleType, x: Any, y: Any) -> Any:
    error = np.abs(x - y)
    near = np.minimum(error, 1)
    return np.mean(np.float32(0.5) * near * near + (error - near))


def _layer_norm(np: ModuleType, x: Any) -> Any:
    axes = (1, 2, 3)
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axes, keepdims=True, mean=mean) + np.float32(1e-5))


def _batch_norm(np: ModuleType, x: Any) -> Any:
    mean = x.mean((0, 1, 2))
    return (x - mean) / np.sqrt(x.var((0, 1, 2)) + np.float32(1e-3)) + 1


def _patches(np: ModuleType, x: Any) -> Any:
    padded = np.pad(x, [(0, 0), (0, 1), (0, 1), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
    ordered = windows.transpose(0, 1, 2, 4, 5, 3)
    return ordered.reshape(*ordered.shape[:3], -1)


#: Functions of the same name.
_ALIKE = "abs negative exp sign square tanh sin cos tan sinh cosh floor ceil round expm1 log log1p"
_ALIKE += " sqrt reciprocal add subtract multiply maximum minimum divide pow mod less equal"

ELEMENTWISE: dict[str, Body] = {
    **{name: of_name(name) for name in _ALIKE.split()},
    "atan": of_name("arctan"),
    "asin": of_name("arcsin"),
    "acos": of_name("arccos"),
    "atan2": of_name("arctan2"),
    "floordiv": of_name("floor_divide"),
    "sigmoid": lambda np, x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda np, x: 1 / np.sqrt(x),
    "squared_difference": lambda np, x, y: np.square(x - y),
    "nn.relu": lambda np, x: np.maximum(x, 0),
    "nn.relu6": lambda np, x: np.clip(x, 0, 6),
    "nn.elu": _elu,
    "nn.selu": lambda np, x: _elu(np, x, 1.6732632423543772, 1.0507009873554805),
    "nn.softplus": lambda np, x: np.logaddexp(x, np.float32(0)),
    "nn.softsign": lambda np, x: x / (1 + np.abs(x)),
    "nn.leaky_relu": lambda np, x: np.maximum(x, np.float32(0.2) * x),
    "nn.softmax": _softmax,
    "nn.log_softmax": lambda np, x: x - _log_sums(np, x),
    "nn.l2_loss": lambda np, x: np.vdot(x, x) / 2,
    "add_n of 8": lambda np, *xs: reduce(np.add, xs),
    "where": lambda np, x, y: np.where(x > y, x, y),
    "clip_by_value": lambda np, x: np.clip(x, -1, 1),
    "cast to int32": lambda np, x: x.astype(np.int32),
    "add a row": of_name("add"),
    "multiply a column": of_name("multiply"),
    "nn.bias_add": of_name("add"),
}


def _along(name: str, axis: int | None) -> Body:
    return lambda np, x: getattr(np, name)(x, axis=axis)


REDUCTIONS: dict[str, Body] = {
    **{
        f"reduce_{name}, axis {axis}": _along(name, axis)
        for name in ("sum", "mean", "max", "prod")
        for axis in (None, 0, 1)
    },
    **{
        f"{name}, axis {axis}": _along(name, axis)
        for name in ("argmax", "cumsum")
        for axis in (0, 1)
    },
    "reduce_logsumexp, axis None": lambda np, x: _log_sums(np, x, None, False),
    "reduce_logsumexp, axis 0": lambda np, x: _log_sums(np, x, 0, False),
    "reduce_logsumexp, axis 1": lambda np, x: _log_sums(np, x, 1, False),
    "reduce_any": lambda np, x: np.any(x > 9.0, 1),
    "nn.moments": lambda np, x: np.stack([np.mean(x, 0), np.var(x, 0)]),
    "norm, axis 1": lambda np, x: _norms(np, x)[:, 0],
    "nn.l2_normalize": lambda np, x: x / np.maximum(_norms(np, x), np.float32(1e-6)),
    "clip_by_norm": lambda np, x: x / np.maximum(np.sqrt(np.vdot(x, x)), 1),
}
LAYOUTS: dict[str, Body] = {
    "transpose": lambda np, x: x.T.copy(),
    "reverse": lambda np, x: x[:, ::-1].copy(),
    "tile": lambda np, x: np.tile(x, [2, 2]),
    "concat": lambda np, x: np.concatenate([x, x], 1),
    "stack": lambda np, x: np.stack([x, x, x]),
    "split": lambda np, x: np.split(x, 4, 1)[1].copy(),
    "slice": lambda np, x: x[1:, 3:].copy(),
    "stride of 2": lambda np, x: x[::2, ::2].copy(),
    "pad": lambda np, x: np.pad(x, [[1, 1], [2, 2]]),
    "mirror pad": lambda np, x: np.pad(x, [[1, 1], [2, 2]], "reflect"),
    "roll": lambda np, x: np.roll(x, 3, 1),
    "reshape": lambda np, x: x.reshape(-1, 4).copy(),
    "matrix_band_part": lambda np, x: np.tril(x),
    "transpose [0, 2, 1]": lambda np, x: x.transpose(0, 2, 1).copy(),
    "transpose [2, 1, 0]": lambda np, x: x.transpose(2, 1, 0).copy(),
    "transpose [1, 0, 2]": lambda np, x: x.transpose(1, 0, 2).copy(),
    "space_to_depth": space_to_depth,
    "depth_to_space": depth_to_space,
    "extract_image_patches": _patches,
    "flip_left_right": lambda np, x: x[:, :, ::-1].copy(),
}
LOOKUPS: dict[str, Body] = {
    "gather": lambda np, x, i: np.take(x, i, 0),
    "gather, axis 1": lambda np, x, i: np.take(x, i, 1),
    "gather_nd": lambda np, x, i: np.take(x, i, 0),
    "embedding_lookup": lambda np, x, i: np.take(x, i, 0),
    "scatter_nd": _scattered,
    "one_hot": lambda np, x, i: (i[COLUMN] == np.arange(64)).astype(np.float32),
    "boolean_mask": lambda np, x, i: x[i > 0],
    "dynamic_partition": lambda np, x, i: np.concatenate([x[i == k] for k in range(4)]),
    "unique": lambda np, x, i: _first_places(np, i),
    "where, places": lambda np, x: np.argwhere(x > 0.0),
    "segment_sum": _segments("add"),
    "segment_mean": _segment_means,
    "segment_max": _segments("maximum"),
    "segment_min": _segments("minimum"),
    "segment_prod": _segments("multiply"),
    "unsorted_segment_sum": _unsorted("add", 0.0),
    "unsorted_segment_max": _unsorted("maximum", float(numpy.finfo("f").min)),
    "sparse_segment_sum": lambda np, x, i: np.add.reduceat(x[i], np.arange(0, len(i), 4), axis=0),
    "sort": of_name("sort"),
    "argsort": lambda np, x: np.argsort(x, kind="stable"),
    "top_k of 10": _top(10),
    "top_k of 1,000": _top(1000),
    "in_top_k": lambda np, x, i: (x > _chosen(np, x, i)).sum(1) < 5,
}
RANDOMS: dict[str, Body] = {
    "random_normal": lambda np, shape: DRAWS.standard_normal(shape, np.float32),
    "random_uniform": lambda np, shape: DRAWS.random(shape, np.float32),
    "random_gamma": lambda np, shape: DRAWS.standard_gamma(2.0, shape, np.float32),
    "random_shuffle": lambda np, x: DRAWS.permutation(x),
    "nn.dropout": lambda np, x: np.where(DRAWS.random(x.shape, np.float32) < 0.5, 2 * x, 0),
}
PRODUCTS: dict[str, Body] = {
    "matmul": of_name("matmul"),
    "matmul, first transposed": lambda np, x, y: x.T @ y,
    "matmul of batches": of_name("matmul"),
    "matmul of capsules": of_name("matmul"),
    "einsum": lambda np, x, y: np.einsum("bij,bkj->bik", x, y, optimize=True),
    "tensordot": lambda np, x, y: np.tensordot(x, y, [[1, 2], [1, 2]]),
    "cholesky": of_name("linalg.cholesky"),
    "matrix_inverse": of_name("linalg.inv"),
    "matrix_determinant": of_name("linalg.det"),
    "matrix_solve": lambda np, x: np.linalg.solve(x, x[..., :1]),
    "self_adjoint_eig": of_name("linalg.eigvalsh"),
    "svd": lambda np, x: np.linalg.svd(x, compute_uv=False),
    "fft": lambda np, x: np.abs(np.fft.fft(x.astype(np.complex64))),
}
LAYERS: dict[str, Body] = {
    "batch norm": _batch_norm,
    "layer norm": _layer_norm,
    "sparse softmax cross-entropy": _sparse_cross_entropy,
    "softmax cross-entropy": lambda np, x, y: (y * (_log_sums(np, x) - x)).sum(1),
    "sigmoid cross-entropy": _sigmoid_cross_entropy,
    "mean_squared_error": lambda np, x, y: np.mean(np.square(x - y)),
    "huber_loss": _huber,
    "map_fn": lambda np, x: np.stack([v * np.float32(2) for v in x]),
    "scan": lambda np, x: np.stack(list(accumulate(x))),
    "foldl": lambda np, x: reduce(np.add, x),
}
BODIES = ELEMENTWISE | REDUCTIONS | LAYOUTS | LOOKUPS | RANDOMS | PRODUCTS | LAYERS
