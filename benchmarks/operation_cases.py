"""One operation at a time: what `operations.py` sweeps, as builders over both modules.

A case makes its output from its inputs, which are variables, so that no time goes into feeding.
Each is built at up to three sizes: `cache` (a few thousand elements), `memory` (a few million) and
`rows` (many short rows). Its gradient is that with respect to all inputs of a floating type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

SIZES = ("cache", "memory", "rows")
SHAPES = {"cache": (64, 256), "memory": (2048, 2048), "rows": (200_000, 16)}
PREFIX = "operation "

Arrays = list[np.ndarray]
#: From the module and the inputs to the output.
Body = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """An operation with its inputs at each size.

    Args:
        inputs: from the shape of a size, and a generator, to the values of the inputs.
        body: from the module and the tensors of the inputs to the output.
        shapes: by size; a size that is not there is not built.
        differentiable: whether the gradient is a case too.
    """

    name: str
    inputs: Callable[[tuple[int, ...], np.random.RandomState], Arrays]
    body: Body
    shapes: dict[str, tuple[int, ...]]
    differentiable: bool = True

    def arrays(self, size: str) -> Arrays:
        """The values of the inputs."""
        return self.inputs(self.shapes[size], np.random.RandomState(4))

    def build(self, tf: ModuleType, size: str, part: str) -> tuple[Any, Any]:
        """The session and what it fetches in each step."""
        arrays = self.arrays(size)
        variables = [tf.Variable(array, trainable=False) for array in arrays]
        made = self.body(tf, *variables)
        if part == "gradient":
            sources = [v for v, a in zip(variables, arrays, strict=True) if a.dtype.kind == "f"]
            made = [g for g in tf.gradients(made, sources) if g is not None]
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        return session, made


def _normal(count: int = 1) -> Callable[[tuple[int, ...], np.random.RandomState], Arrays]:
    return lambda shape, rng: [rng.standard_normal(shape).astype("f") for _ in range(count)]


def _positive(count: int = 1) -> Callable[[tuple[int, ...], np.random.RandomState], Arrays]:
    return lambda shape, rng: [rng.uniform(0.1, 0.9, shape).astype("f") for _ in range(count)]


def of_name(path: str) -> Body:
    """The function of the module at a dotted path, applied to all inputs."""

    def body(tf: ModuleType, *inputs: Any) -> Any:
        function: Any = tf
        for name in path.split("."):
            function = getattr(function, name)
        return function(*inputs)

    return body


def space_to_depth(module: ModuleType, x: Any) -> Any:
    """Blocks of 2x2 as channels, of an array or tensor as NumPy and PyTorch have them."""
    n, h, w, c = x.shape
    blocks = x.reshape(n, h // 2, 2, w // 2, 2, c).swapaxes(2, 3)
    return blocks.reshape(n, h // 2, w // 2, 4 * c)


def depth_to_space(module: ModuleType, x: Any) -> Any:
    """The way back."""
    n, h, w, c = x.shape
    blocks = x.reshape(n, h, w, 2, 2, c // 4).swapaxes(2, 3)
    return blocks.reshape(n, 2 * h, 2 * w, c // 4)


#: Of these nothing is differentiated.
_STEPS = ("floor", "ceil", "round", "floordiv")


def elementwise() -> Iterator[Case]:
    signed = "abs negative exp sign square tanh sigmoid sin cos tan sinh cosh atan erf erfc"
    signed += " floor ceil round expm1 nn.relu nn.relu6 nn.elu nn.selu nn.softplus nn.softsign"
    signed += " nn.leaky_relu nn.softmax nn.log_softmax nn.l2_loss"
    for name in signed.split():
        yield Case(name, _normal(), of_name(name), SHAPES, name not in _STEPS)
    for name in [
        "log",
        "log1p",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "lgamma",
        "digamma",
        "asin",
        "acos",
    ]:
        yield Case(name, _positive(), of_name(name), SHAPES)
    for name in [
        "add",
        "subtract",
        "multiply",
        "maximum",
        "minimum",
        "squared_difference",
        "atan2",
    ]:
        yield Case(name, _normal(2), of_name(name), SHAPES)
    for name in ["divide", "pow", "floordiv", "mod"]:
        yield Case(name, _positive(2), of_name(name), SHAPES, name not in _STEPS)
    for name in ["less", "equal"]:
        yield Case(name, _normal(2), of_name(name), SHAPES, differentiable=False)
    yield Case("add_n of 8", _normal(8), lambda tf, *xs: tf.add_n(xs), SHAPES)
    yield Case("where", _normal(2), lambda tf, x, y: tf.where(x > y, x, y), SHAPES)
    yield Case("clip_by_value", _normal(), lambda tf, x: tf.clip_by_value(x, -1.0, 1.0), SHAPES)
    yield Case("cast to int32", _normal(), lambda tf, x: tf.cast(x, tf.int32), SHAPES, False)
    yield Case("add a row", _row, lambda tf, x, b: x + b, SHAPES)
    yield Case("multiply a column", _column, lambda tf, x, b: x * b, SHAPES)
    yield Case("nn.bias_add", _row, of_name("nn.bias_add"), SHAPES)


def _row(shape: tuple[int, ...], rng: np.random.RandomState) -> Arrays:
    return [rng.standard_normal(s).astype("f") for s in (shape, shape[-1:])]


def _column(shape: tuple[int, ...], rng: np.random.RandomState) -> Arrays:
    return [rng.standard_normal(s).astype("f") for s in (shape, (shape[0], 1))]


def reductions() -> Iterator[Case]:
    def along(name: str, axis: int | None) -> Body:
        return lambda tf, x: getattr(tf, name)(x, axis=axis)

    for name in ["sum", "mean", "max", "prod", "logsumexp"]:
        for axis in (None, 0, 1):
            title = f"reduce_{name}, axis {axis}"
            yield Case(title, _normal(), along(f"reduce_{name}", axis), SHAPES)
    for axis in (0, 1):
        yield Case(f"argmax, axis {axis}", _normal(), along("argmax", axis), SHAPES, False)
        yield Case(f"cumsum, axis {axis}", _normal(), along("cumsum", axis), SHAPES)
    yield Case("reduce_any", _normal(), lambda tf, x: tf.reduce_any(x > 9.0, 1), SHAPES, False)
    yield Case("nn.moments", _normal(), lambda tf, x: tf.stack(tf.nn.moments(x, [0])), SHAPES)
    yield Case("norm, axis 1", _normal(), lambda tf, x: tf.norm(x, axis=1), SHAPES)
    yield Case("nn.l2_normalize", _normal(), lambda tf, x: tf.nn.l2_normalize(x, 1), SHAPES)
    yield Case("clip_by_norm", _normal(), lambda tf, x: tf.clip_by_norm(x, 1.0), SHAPES)


def layouts() -> Iterator[Case]:
    simple: dict[str, Body] = {
        "transpose": lambda tf, x: tf.transpose(x),
        "reverse": lambda tf, x: tf.reverse(x, [1]),
        "tile": lambda tf, x: tf.tile(x, [2, 2]),
        "concat": lambda tf, x: tf.concat([x, x], 1),
        "stack": lambda tf, x: tf.stack([x, x, x]),
        "split": lambda tf, x: tf.split(x, 4, 1)[1],
        "slice": lambda tf, x: x[1:, 3:],
        "stride of 2": lambda tf, x: x[::2, ::2],
        "pad": lambda tf, x: tf.pad(x, [[1, 1], [2, 2]]),
        "mirror pad": lambda tf, x: tf.pad(x, [[1, 1], [2, 2]], "REFLECT"),
        "roll": lambda tf, x: tf.roll(x, 3, 1),
        "reshape": lambda tf, x: tf.reshape(x, [-1, 4]),
        "matrix_band_part": lambda tf, x: tf.matrix_band_part(x, -1, 0),
    }
    for name, body in simple.items():
        yield Case(name, _normal(), body, SHAPES)
    for axes in ([0, 2, 1], [2, 1, 0], [1, 0, 2]):
        body = _permuted(axes)
        shapes = {"cache": (16, 32, 32), "memory": (64, 256, 256), "rows": (50_000, 8, 8)}
        yield Case(f"transpose {axes}", _normal(), body, shapes)
    images = {"cache": (4, 16, 16, 16), "memory": (16, 128, 128, 16), "rows": (5_000, 8, 8, 4)}
    for name in ("space_to_depth", "depth_to_space"):
        body = _with_two(name)
        yield Case(name, _normal(), body, images)


def _permuted(axes: list[int]) -> Body:
    return lambda tf, x: tf.transpose(x, axes)


def _with_two(name: str) -> Body:
    return lambda tf, x: getattr(tf, name)(x, 2)


def _with_ids(classes: int | None = None, order: bool = False, part: float = 1.0):
    """Rows, and an int32 id for each (or for a part of them)."""

    def inputs(shape: tuple[int, ...], rng: np.random.RandomState) -> Arrays:
        count = max(1, int(shape[0] * part))
        ids = rng.randint(0, classes or shape[0], count).astype(np.int32)
        return [rng.standard_normal(shape).astype("f"), np.sort(ids) if order else ids]

    return inputs


def lookups() -> Iterator[Case]:
    yield Case("gather", _with_ids(), of_name("gather"), SHAPES)
    yield Case("gather, axis 1", _with_columns, lambda tf, x, i: tf.gather(x, i, axis=1), SHAPES)
    yield Case(
        "gather_nd", _with_ids(), lambda tf, x, i: tf.gather_nd(x, tf.expand_dims(i, 1)), SHAPES
    )
    yield Case(
        "scatter_nd",
        _with_ids(),
        lambda tf, x, i: tf.scatter_nd(tf.expand_dims(i, 1), x, x.shape),
        SHAPES,
    )
    yield Case("embedding_lookup", _with_ids(), of_name("nn.embedding_lookup"), SHAPES)
    yield Case("one_hot", _with_ids(64), lambda tf, x, i: tf.one_hot(i, 64), SHAPES, False)
    yield Case("boolean_mask", _with_ids(2), lambda tf, x, i: tf.boolean_mask(x, i > 0), SHAPES)
    yield Case(
        "dynamic_partition",
        _with_ids(4),
        lambda tf, x, i: tf.concat(tf.dynamic_partition(x, i, 4), 0),
        SHAPES,
    )
    yield Case(
        "unique",
        _with_ids(),
        lambda tf, x, i: tf.unique(i)[0],
        {"cache": (4096, 1), "memory": (1_000_000, 1)},
        False,
    )
    yield Case("where, places", _normal(), lambda tf, x: tf.where(x > 0.0), SHAPES, False)
    for name in ["sum", "mean", "max", "min", "prod"]:
        body = of_name(f"segment_{name}")
        yield Case(f"segment_{name}", _with_ids(50, order=True), body, SHAPES)
    for name in ["sum", "max"]:
        body = _unsorted(name)
        yield Case(f"unsorted_segment_{name}", _with_ids(50), body, SHAPES)
    yield Case("sparse_segment_sum", _with_ids(), _sums_of_four, SHAPES)


def _sums_of_four(tf: ModuleType, x: Any, ids: Any) -> Any:
    return tf.sparse_segment_sum(x, ids, tf.cast(tf.range(tf.size(ids)) // 4, tf.int32))


def _unsorted(name: str) -> Body:
    return lambda tf, x, i: getattr(tf, f"unsorted_segment_{name}")(x, i, 50)


def _with_columns(shape: tuple[int, ...], rng: np.random.RandomState) -> Arrays:
    return [rng.standard_normal(shape).astype("f"), rng.permutation(shape[1]).astype(np.int32)]


def sorts() -> Iterator[Case]:
    yield Case("sort", _normal(), lambda tf, x: tf.sort(x), SHAPES)
    yield Case("argsort", _normal(), lambda tf, x: tf.argsort(x), SHAPES, False)
    yield Case("top_k of 10", _normal(), lambda tf, x: tf.nn.top_k(x, 10)[0], SHAPES)
    many = {"cache": (1, 4096), "memory": (64, 50_000)}
    yield Case("top_k of 1,000", _normal(), lambda tf, x: tf.nn.top_k(x, 1000)[0], many)
    yield Case("in_top_k", _with_ids(16), lambda tf, x, i: tf.nn.in_top_k(x, i, 5), SHAPES, False)


def randoms() -> Iterator[Case]:
    for name in ["random_normal", "random_uniform", "truncated_normal", "random_gamma"]:
        yield Case(
            name, _nothing, _drawn(name), {"cache": (64, 256), "memory": (2048, 2048)}, False
        )
    yield Case("random_shuffle", _normal(), of_name("random_shuffle"), SHAPES, False)
    yield Case(
        "multinomial",
        _normal(),
        lambda tf, x: tf.multinomial(x, 10),
        {"cache": (64, 256), "rows": (10_000, 16)},
        False,
    )
    yield Case("nn.dropout", _normal(), lambda tf, x: tf.nn.dropout(x, 0.5), SHAPES)


def _nothing(shape: tuple[int, ...], rng: np.random.RandomState) -> Arrays:
    return [np.array(shape, np.int32)]


def _drawn(name: str) -> Body:
    if name == "random_gamma":
        return lambda tf, shape: tf.random_gamma(shape, 2.0)
    return lambda tf, shape: getattr(tf, name)(shape)


def products() -> Iterator[Case]:
    squares = {"cache": (64, 64), "memory": (1024, 1024)}
    yield Case("matmul", _normal(2), of_name("matmul"), squares)
    yield Case(
        "matmul, first transposed",
        _normal(2),
        lambda tf, x, y: tf.matmul(x, y, transpose_a=True),
        squares | {"rows": (100_000, 16)},
    )
    batches = {"cache": (16, 32, 32), "memory": (64, 256, 256), "rows": (20_000, 8, 8)}
    yield Case("matmul of batches", _normal(2), of_name("matmul"), batches)
    yield Case("einsum", _normal(2), lambda tf, x, y: tf.einsum("bij,bkj->bik", x, y), batches)
    yield Case(
        "tensordot",
        _normal(2),
        lambda tf, x, y: tf.tensordot(x, y, [[1, 2], [1, 2]]),
        {"cache": (16, 8, 8), "memory": (512, 32, 32)},
    )
    capsules = {"cache": (4, 96, 10, 16, 8), "rows": (50, 1152, 10, 16, 8)}
    yield Case("matmul of capsules", _capsules, of_name("matmul"), capsules)
    definite = {"cache": (32, 32), "memory": (512, 512), "rows": (2000, 8, 8)}
    for name in ["cholesky", "matrix_inverse"]:
        yield Case(name, _definite, of_name(name), definite)
    yield Case("matrix_determinant", _of_volume_one, of_name("matrix_determinant"), definite)
    yield Case("matrix_solve", _definite, lambda tf, x: tf.matrix_solve(x, x[..., :1]), definite)
    yield Case(
        "self_adjoint_eig",
        _definite,
        lambda tf, x: tf.self_adjoint_eig(x)[0],
        {"cache": (32, 32), "memory": (256, 256)},
    )
    yield Case(
        "svd",
        _normal(),
        lambda tf, x: tf.svd(x, compute_uv=False),
        {"cache": (32, 16), "memory": (256, 128)},
        False,
    )
    yield Case(
        "fft", _normal(), lambda tf, x: tf.abs(tf.fft(tf.cast(x, tf.complex64))), SHAPES, False
    )


def _capsules(shape: tuple[int, ...], rng: np.random.RandomState) -> Arrays:
    return [rng.standard_normal(s).astype("f") for s in (shape, (*shape[:-2], shape[-1], 1))]


def _definite(shape: tuple[int, ...], rng: np.random.RandomState) -> Arrays:
    x = rng.standard_normal(shape)
    return [(x @ np.swapaxes(x, -1, -2) / shape[-1] + np.eye(shape[-1])).astype("f")]


def _of_volume_one(shape: tuple[int, ...], rng: np.random.RandomState) -> Arrays:
    """So scaled that the determinant is near 1: that of 512x512 overflows otherwise."""
    (x,) = _definite(shape, rng)
    return [x / np.exp(np.linalg.slogdet(x)[1] / shape[-1])[..., None, None]]


IMAGES = {"cache": (2, 16, 16, 8), "memory": (8, 56, 56, 64), "rows": (256, 8, 8, 8)}


def images() -> Iterator[Case]:
    window = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    bodies: dict[str, Body] = {
        "nn.max_pool": lambda tf, x: tf.nn.max_pool(x, **window),
        "nn.avg_pool": lambda tf, x: tf.nn.avg_pool(x, **window),
        "nn.lrn": lambda tf, x: tf.nn.local_response_normalization(x),
        "resize bilinear": lambda tf, x: tf.image.resize_bilinear(x, [24, 24]),
        "resize nearest": lambda tf, x: tf.image.resize_nearest_neighbor(x, [24, 24]),
        "resize bicubic": lambda tf, x: tf.image.resize_bicubic(x, [24, 24]),
        "flip_left_right": lambda tf, x: tf.image.flip_left_right(x),
        "batch norm": _batch_norm,
        "layer norm": _layer_norm,
    }
    for name, body in bodies.items():
        yield Case(name, _normal(), body, IMAGES)
    yield Case("extract_image_patches", _normal(), _patches, IMAGES, False)
    convolved: dict[str, tuple[tuple[int, ...], Body]] = {
        "nn.conv2d": ((3, 3, 0, 32), lambda tf, x, w: tf.nn.conv2d(x, w, [1] * 4, "SAME")),
        "nn.depthwise_conv2d": (
            (3, 3, 0, 1),
            lambda tf, x, w: tf.nn.depthwise_conv2d(x, w, [1] * 4, "SAME"),
        ),
    }
    for name, (kernel, body) in convolved.items():
        yield Case(name, _with_kernel(kernel), body, IMAGES)
    volumes = {"cache": (1, 8, 8, 8, 4), "memory": (2, 16, 32, 32, 16)}
    yield Case(
        "nn.conv3d",
        _with_kernel((3, 3, 3, 0, 16)),
        lambda tf, x, w: tf.nn.conv3d(x, w, [1] * 5, "SAME"),
        volumes,
    )
    yield Case(
        "nn.max_pool3d",
        _normal(),
        lambda tf, x: tf.nn.max_pool3d(x, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME"),
        volumes,
    )
    waves = {"cache": (2, 64, 16), "memory": (16, 1024, 64)}
    yield Case(
        "nn.conv1d", _with_kernel((5, 0, 32)), lambda tf, x, w: tf.nn.conv1d(x, w, 1, "SAME"), waves
    )


def _with_kernel(kernel: tuple[int, ...]):
    """Inputs, and weights of that kernel; its 0 stands for the channels of the inputs."""

    def inputs(shape: tuple[int, ...], rng: np.random.RandomState) -> Arrays:
        weights = tuple(size or shape[-1] for size in kernel)
        return [rng.standard_normal(s).astype("f") for s in (shape, weights)]

    return inputs


def _patches(tf: ModuleType, x: Any) -> Any:
    return tf.extract_image_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME")


def _batch_norm(tf: ModuleType, x: Any) -> Any:
    ones = [1.0] * int(x.shape[-1])
    return tf.nn.fused_batch_norm(x, tf.constant(ones), tf.constant(ones))[0]


def _layer_norm(tf: ModuleType, x: Any) -> Any:
    mean, variance = tf.nn.moments(x, [1, 2, 3], keep_dims=True)
    return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-5)


def _labelled(shape: tuple[int, ...], rng: np.random.RandomState) -> Arrays:
    """Logits, and what is true as probabilities."""
    logits, labels = _positive(2)(shape, rng)
    return [logits, labels / labels.sum(1, keepdims=True)]


def losses() -> Iterator[Case]:
    yield Case(
        "sparse softmax cross-entropy",
        _with_ids(16),
        lambda tf, x, i: tf.nn.sparse_softmax_cross_entropy_with_logits(logits=x, labels=i),
        SHAPES,
    )
    yield Case(
        "softmax cross-entropy",
        _labelled,
        lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits_v2(logits=x, labels=y),
        SHAPES,
    )
    yield Case(
        "sigmoid cross-entropy",
        _positive(2),
        lambda tf, x, y: tf.nn.sigmoid_cross_entropy_with_logits(logits=x, labels=y),
        SHAPES,
    )
    yield Case(
        "mean_squared_error",
        _normal(2),
        lambda tf, x, y: tf.losses.mean_squared_error(x, y),
        SHAPES,
    )
    yield Case("huber_loss", _normal(2), lambda tf, x, y: tf.losses.huber_loss(x, y), SHAPES)


def loops() -> Iterator[Case]:
    short = {"cache": (64, 256)}
    yield Case("map_fn", _normal(), lambda tf, x: tf.map_fn(lambda v: v * 2.0, x), short)
    yield Case("scan", _normal(), lambda tf, x: tf.scan(lambda a, v: a + v, x), short)
    yield Case("foldl", _normal(), lambda tf, x: tf.foldl(lambda a, v: a + v, x), short)
    yield Case(
        "py_func",
        _normal(),
        lambda tf, x: tf.py_func(lambda v: v + 1, [x], tf.float32),
        SHAPES,
        False,
    )


GROUPS = (
    elementwise,
    reductions,
    layouts,
    lookups,
    sorts,
    randoms,
    products,
    images,
    losses,
    loops,
)
CASES: dict[str, Case] = {case.name: case for group in GROUPS for case in group()}


@dataclass(frozen=True)
class Operation:
    """A case at one size, its value or its gradient."""

    case: str
    size: str
    part: str  # or "gradient"

    @property
    def name(self) -> str:
        return PREFIX + json.dumps([self.case, self.size, self.part])

    @property
    def title(self) -> str:
        shape = "x".join(map(str, CASES[self.case].shapes[self.size]))
        return f"{self.case}{', gradient' * (self.part == 'gradient')} on {shape}"

    def __call__(self, tf: ModuleType) -> tuple[Any, Any]:
        return CASES[self.case].build(tf, self.size, self.part)

    def arrays(self) -> Arrays:
        """The values of its inputs, the same on each side."""
        return CASES[self.case].arrays(self.size)

    @classmethod
    def named(cls, name: str) -> Operation:
        return cls(*json.loads(name.removeprefix(PREFIX)))


def all_operations() -> Iterator[Operation]:
    """Every case at every size it has: its value, then its gradient."""
    for case in CASES.values():
        for size in case.shapes:
            yield Operation(case.name, size, "value")
            if case.differentiable:
                yield Operation(case.name, size, "gradient")
