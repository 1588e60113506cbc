"""The cases of `operation_cases.py` in PyTorch: those that it has plainly.

A body takes PyTorch and the inputs of its case, as the case's own body takes TensorFlow; indices
are integers of 64 bits, which is what most of its functions take. A gradient is the forward pass
and the way back, in each step: what an eager program does.
"""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from types import ModuleType
from typing import Any

from operation_cases import Body, depth_to_space, of_name, space_to_depth

LOWEST = -3.4028234663852886e38


def _spread(name: str, count: int | None, first: float) -> Body:
    """Rows of the same id together; what none has is `first`."""

    def body(torch: ModuleType, x: Any, ids: Any) -> Any:
        rows = count if count is not None else int(ids[-1]) + 1
        out = torch.full((rows, x.shape[1]), first)
        places = ids[:, None].expand_as(x)
        return out.scatter_reduce(0, places, x, name, include_self=False)

    return body


def _sums(count: int | None) -> Body:
    def body(torch: ModuleType, x: Any, ids: Any) -> Any:
        rows = count if count is not None else int(ids[-1]) + 1
        return torch.zeros(rows, x.shape[1]).index_add(0, ids, x)

    return body


def _rows(torch: ModuleType, x: Any, ids: Any) -> Any:
    """Rows whose gradient is some rows, too, as TensorFlow's `IndexedSlices`."""
    return torch.nn.functional.embedding(ids, x, sparse=True)


def _first_places(torch: ModuleType, x: Any, ids: Any) -> Any:
    found, inverse = torch.unique(ids, return_inverse=True)
    places = torch.arange(len(ids))
    first = torch.full_like(found, len(ids)).scatter_reduce(0, inverse, places, "amin")
    return ids[first.sort()[0]]


def _sums_of_four(torch: ModuleType, x: Any, ids: Any) -> Any:
    return _sums(None)(torch, x[ids], torch.arange(len(ids)) // 4)


def _clip_by_norm(torch: ModuleType, x: Any) -> Any:
    return x / torch.linalg.vector_norm(x).clamp(min=1.0)


def _images_first(function: Any) -> Body:
    """A function of pictures with channels first, on a view of such with channels last."""
    return lambda torch, x, *more: function(torch, x.movedim(-1, 1), *more).movedim(1, -1)


def _pool(name: str) -> Body:
    """Windows of 3 at steps of 2 that may end outside, where TensorFlow has its margin."""

    def body(torch: ModuleType, x: Any) -> Any:
        return getattr(torch.nn.functional, name)(x, 3, 2, ceil_mode=True)

    return _images_first(body)


def _response(torch: ModuleType, x: Any) -> Any:
    # 11 neighbours; PyTorch divides alpha by their number.
    return torch.nn.functional.local_response_norm(x, 11, alpha=11.0, beta=0.5)


def _patches(torch: ModuleType, x: Any) -> Any:
    padded = torch.nn.functional.pad(x, (0, 0, 0, 1, 0, 1))
    windows = padded.unfold(1, 3, 2).unfold(2, 3, 2)
    return windows.permute(0, 1, 2, 4, 5, 3).flatten(3)


def _nearest(torch: ModuleType, x: Any) -> Any:
    return torch.nn.functional.interpolate(x, (24, 24))


def _flat_convolution(torch: ModuleType, x: Any, w: Any) -> Any:
    return torch.nn.functional.conv2d(x, w.permute(3, 2, 0, 1), padding=1)


def _depthwise(torch: ModuleType, x: Any, w: Any) -> Any:
    kernel = w.permute(2, 3, 0, 1)
    return torch.nn.functional.conv2d(x, kernel, padding=1, groups=len(kernel))


def _batch_norm(torch: ModuleType, x: Any) -> Any:
    ones = torch.ones(x.shape[1])
    return torch.nn.functional.batch_norm(x, None, None, ones, ones, True, eps=1e-3)


def _gamma(torch: ModuleType, shape: Any) -> Any:
    return torch.distributions.Gamma(2.0, 1.0).sample(shape.tolist())


def _truncated(torch: ModuleType, shape: Any) -> Any:
    return torch.nn.init.trunc_normal_(torch.empty(*shape.tolist()), a=-2.0, b=2.0)


def _sigmoid_cross_entropy(torch: ModuleType, x: Any, y: Any) -> Any:
    return torch.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none")


#: Functions of the same name, and those of `nn.functional`.
_ALIKE = "abs negative exp sign square tanh sigmoid sin cos tan sinh cosh atan erf erfc floor ceil"
_ALIKE += " round expm1 log log1p sqrt rsqrt reciprocal lgamma digamma asin acos add subtract"
_ALIKE += " multiply maximum minimum atan2 divide pow"
_ACTIVATIONS = "relu relu6 elu selu softplus softsign"

ELEMENTWISE: dict[str, Body] = {
    **{name: of_name(name) for name in _ALIKE.split()},
    **{f"nn.{name}": of_name(f"nn.functional.{name}") for name in _ACTIVATIONS.split()},
    "floordiv": of_name("floor_divide"),
    "mod": of_name("remainder"),
    "less": of_name("lt"),
    "equal": of_name("eq"),
    "squared_difference": lambda torch, x, y: torch.square(x - y),
    "nn.leaky_relu": lambda torch, x: torch.nn.functional.leaky_relu(x, 0.2),
    "nn.softmax": lambda torch, x: torch.softmax(x, -1),
    "nn.log_softmax": lambda torch, x: torch.log_softmax(x, -1),
    "nn.l2_loss": lambda torch, x: torch.square(x).sum() / 2,
    "add_n of 8": lambda torch, *xs: reduce(torch.add, xs),
    "where": lambda torch, x, y: torch.where(x > y, x, y),
    "clip_by_value": lambda torch, x: torch.clamp(x, -1.0, 1.0),
    "cast to int32": lambda torch, x: x.to(torch.int32),
    "add a row": of_name("add"),
    "multiply a column": of_name("multiply"),
    "nn.bias_add": of_name("add"),
}


def _along(name: str, axis: int | None) -> Body:
    return lambda torch, x: getattr(torch, name)(x, dim=axis)


def _products(axis: int | None) -> Body:
    return lambda torch, x: torch.prod(x) if axis is None else torch.prod(x, axis)


def _log_sums(axis: int | None) -> Body:
    return lambda torch, x: torch.logsumexp(x, (0, 1) if axis is None else axis)


REDUCTIONS: dict[str, Body] = {
    **{
        f"reduce_{name}, axis {axis}": _along({"max": "amax"}.get(name, name), axis)
        for name in ("sum", "mean", "max")
        for axis in (None, 0, 1)
    },
    "reduce_max, axis None": lambda torch, x: torch.amax(x),
    **{f"reduce_prod, axis {axis}": _products(axis) for axis in (None, 0, 1)},
    **{f"reduce_logsumexp, axis {axis}": _log_sums(axis) for axis in (None, 0, 1)},
    **{
        f"{name}, axis {axis}": _along(name, axis)
        for name in ("argmax", "cumsum")
        for axis in (0, 1)
    },
    "reduce_any": lambda torch, x: (x > 9.0).any(1),
    "nn.moments": lambda torch, x: torch.stack([x.mean(0), x.var(0, unbiased=False)]),
    "norm, axis 1": lambda torch, x: torch.linalg.vector_norm(x, dim=1),
    "nn.l2_normalize": lambda torch, x: torch.nn.functional.normalize(x, dim=1),
    "clip_by_norm": _clip_by_norm,
}
LAYOUTS: dict[str, Body] = {
    "transpose": lambda torch, x: x.T.contiguous(),
    "reverse": lambda torch, x: x.flip(1),
    "tile": lambda torch, x: x.repeat(2, 2),
    "concat": lambda torch, x: torch.cat([x, x], 1),
    "stack": lambda torch, x: torch.stack([x, x, x]),
    "split": lambda torch, x: x.chunk(4, 1)[1].contiguous(),
    "slice": lambda torch, x: x[1:, 3:].contiguous(),
    "stride of 2": lambda torch, x: x[::2, ::2].contiguous(),
    "pad": lambda torch, x: torch.nn.functional.pad(x, (2, 2, 1, 1)),
    "mirror pad": lambda torch, x: torch.nn.functional.pad(x[None], (2, 2, 1, 1), "reflect")[0],
    "roll": lambda torch, x: x.roll(3, 1),
    "reshape": lambda torch, x: x.reshape(-1, 4).clone(),
    "matrix_band_part": lambda torch, x: x.tril(),
    "transpose [0, 2, 1]": lambda torch, x: x.permute(0, 2, 1).contiguous(),
    "transpose [2, 1, 0]": lambda torch, x: x.permute(2, 1, 0).contiguous(),
    "transpose [1, 0, 2]": lambda torch, x: x.permute(1, 0, 2).contiguous(),
    "flip_left_right": lambda torch, x: x.flip(2),
}
LOOKUPS: dict[str, Body] = {
    "gather": _rows,
    "gather, axis 1": lambda torch, x, i: x.index_select(1, i),
    "gather_nd": _rows,
    "embedding_lookup": _rows,
    "scatter_nd": lambda torch, x, i: torch.zeros_like(x).index_add(0, i, x),
    "one_hot": lambda torch, x, i: torch.nn.functional.one_hot(i, 64).float(),
    "boolean_mask": lambda torch, x, i: x[i > 0],
    "dynamic_partition": lambda torch, x, i: torch.cat([x[i == k] for k in range(4)]),
    "unique": _first_places,
    "where, places": lambda torch, x: (x > 0.0).nonzero(),
    "segment_sum": _sums(None),
    "segment_mean": _spread("mean", None, 0.0),
    "segment_max": _spread("amax", None, 0.0),
    "segment_min": _spread("amin", None, 0.0),
    "segment_prod": _spread("prod", None, 1.0),
    "unsorted_segment_sum": _sums(50),
    "unsorted_segment_max": _spread("amax", 50, LOWEST),
    "sparse_segment_sum": _sums_of_four,
    "sort": lambda torch, x: x.sort()[0],
    "argsort": lambda torch, x: x.argsort(stable=True),
    "top_k of 10": lambda torch, x: x.topk(10)[0],
    "top_k of 1,000": lambda torch, x: x.topk(1000)[0],
    "in_top_k": lambda torch, x, i: (x.topk(5)[1] == i[:, None]).any(1),
}
RANDOMS: dict[str, Body] = {
    "random_normal": lambda torch, shape: torch.randn(*shape.tolist()),
    "random_uniform": lambda torch, shape: torch.rand(*shape.tolist()),
    "truncated_normal": _truncated,
    "random_gamma": _gamma,
    "random_shuffle": lambda torch, x: x[torch.randperm(len(x))],
    "multinomial": lambda torch, x: torch.multinomial(torch.softmax(x, 1), 10, replacement=True),
    "nn.dropout": lambda torch, x: torch.nn.functional.dropout(x, 0.5),
}
PRODUCTS: dict[str, Body] = {
    "matmul": of_name("matmul"),
    "matmul, first transposed": lambda torch, x, y: x.T @ y,
    "matmul of batches": of_name("matmul"),
    "matmul of capsules": of_name("matmul"),
    "einsum": lambda torch, x, y: torch.einsum("bij,bkj->bik", x, y),
    "tensordot": lambda torch, x, y: torch.tensordot(x, y, ([1, 2], [1, 2])),
    "cholesky": of_name("linalg.cholesky"),
    "matrix_inverse": of_name("linalg.inv"),
    "matrix_determinant": of_name("linalg.det"),
    "matrix_solve": lambda torch, x: torch.linalg.solve(x, x[..., :1]),
    "self_adjoint_eig": of_name("linalg.eigvalsh"),
    "svd": of_name("linalg.svdvals"),
    "fft": lambda torch, x: torch.fft.fft(x.to(torch.complex64)).abs(),
}
IMAGES: dict[str, Body] = {
    "nn.max_pool": _pool("max_pool2d"),
    "nn.avg_pool": _pool("avg_pool2d"),
    "nn.lrn": _images_first(_response),
    "extract_image_patches": _patches,
    "space_to_depth": space_to_depth,
    "depth_to_space": depth_to_space,
    "resize nearest": _images_first(_nearest),
    "batch norm": _images_first(_batch_norm),
    "layer norm": lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[1:]),
    "nn.conv2d": _images_first(_flat_convolution),
    "nn.depthwise_conv2d": _images_first(_depthwise),
    "nn.conv1d": _images_first(
        lambda torch, x, w: torch.nn.functional.conv1d(x, w.permute(2, 1, 0), padding=2)
    ),
    "nn.conv3d": _images_first(
        lambda torch, x, w: torch.nn.functional.conv3d(x, w.permute(4, 3, 0, 1, 2), padding=1)
    ),
    "nn.max_pool3d": _images_first(lambda torch, x: torch.nn.functional.max_pool3d(x, 2, 2)),
}
LOSSES: dict[str, Body] = {
    "sparse softmax cross-entropy": lambda torch, x, i: torch.nn.functional.cross_entropy(
        x, i, reduction="none"
    ),
    "softmax cross-entropy": lambda torch, x, y: torch.nn.functional.cross_entropy(
        x, y, reduction="none"
    ),
    "sigmoid cross-entropy": _sigmoid_cross_entropy,
    "mean_squared_error": lambda torch, x, y: torch.nn.functional.mse_loss(x, y),
    "huber_loss": lambda torch, x, y: torch.nn.functional.huber_loss(x, y),
}
LOOPS: dict[str, Body] = {
    "map_fn": lambda torch, x: torch.stack([v * 2.0 for v in x]),
    "scan": lambda torch, x: torch.stack(list(accumulate(x, torch.add))),
    "foldl": lambda torch, x: reduce(torch.add, x),
}
BODIES = ELEMENTWISE | REDUCTIONS | LAYOUTS | LOOKUPS | RANDOMS | PRODUCTS | IMAGES | LOSSES | LOOPS
