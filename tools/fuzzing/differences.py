"""Where Headrace is meant to differ from TensorFlow, each under the key of its row in the docs.

`docs/differences.md` has a row for each key; a test holds the two to each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzzing.draws import Call
from fuzzing.store import Result


@dataclass(frozen=True)
class Disagreement:
    """A call with another outcome than TensorFlow's.

    Attributes:
        form: ``built``, ``interpreted`` or ``compiled``.
        text: what Headrace did.
        answers: whether it gave values; they stand in ``got``.
    """

    result: Result
    call: Call
    form: str
    text: str
    answers: bool = False
    got: tuple[Any, ...] = ()

    def __str__(self) -> str:
        stored = self.result.error or self.result.values
        return (
            f"{self.result.name} #{self.result.draw} {self.form}: {self.text}\n"
            f"    call: {self.call}\n    TensorFlow: {stored}"
        )

    @property
    def more_lenient(self) -> bool:
        """A value where TensorFlow has an error."""
        return self.answers and bool(self.result.error)

    @property
    def disagrees(self) -> bool:
        """Other values than TensorFlow's."""
        return self.answers and not self.result.error

    @property
    def fails(self) -> bool:
        """An error where TensorFlow has values."""
        return not self.answers and not self.result.error

    @property
    def gives_nothing(self) -> bool:
        """Whether a result, here or there, has no elements."""
        return any(np.size(v) == 0 for v in (*self.got, *self.result.values))

    @property
    def takes_nothing(self) -> bool:
        """Whether an argument has no elements."""
        return any(a.size == 0 for a in self.call.tensors())

    @property
    def has_extremes(self) -> bool:
        """Whether a number near the end of its type, an infinity or a NaN takes part."""
        return any(_is_extreme(a) for a in self.call.tensors() if a.dtype.kind == "f")

    @property
    def has_nan(self) -> bool:
        return any(np.isnan(a).any() for a in self.call.tensors() if a.dtype.kind == "f")

    @property
    def dtype(self) -> str:
        """The type of the first tensor."""
        return self.call.tensors()[0].dtype.name


@dataclass(frozen=True)
class Difference:
    """A difference that is meant.

    Attributes:
        functions: the only ones it is about.
        most: as many of the stored calls it explains at most; at least one.
        applies: whether it explains a disagreement of one of the functions.
    """

    functions: tuple[str, ...]
    most: int
    applies: Callable[[Disagreement], bool]

    def explains(self, disagreement: Disagreement) -> bool:
        return disagreement.result.name in self.functions and self.applies(disagreement)


def _is_extreme(array: np.ndarray[Any, Any]) -> bool:
    limit = float(np.finfo(array.dtype).max) / 16
    with np.errstate(invalid="ignore"):
        return bool((~(np.abs(array.astype(np.float64)) < limit)).any())


_SMALL = ("int8", "uint8", "int16", "uint16")
#: Types that TensorFlow has no kernel for, by function.
_MORE_TYPES: dict[str, tuple[str, ...]] = {
    "clip_by_average_norm": ("float64",),
    "diag": _SMALL,
    "diag_part": _SMALL,
    "nn.max_pool3d": ("float64",),
    "truncatemod": _SMALL,
    "unsorted_segment_sqrt_n": (*_SMALL, "int32", "int64"),
}


def _is_one_step(d: Disagreement) -> bool:
    """Whether results lie at most one step of 8 bits apart."""
    pairs = zip(d.got, d.result.values, strict=True)
    return all(np.max(np.abs(a - b)) <= 0.05 for a, b in pairs)


#: The differences by their keys.
DIFFERENCES: dict[str, Difference] = {
    "more types": Difference(
        tuple(_MORE_TYPES),
        48,
        lambda d: (
            d.more_lenient
            and d.result.error == "TypeError"
            and d.dtype in _MORE_TYPES[d.result.name]
        ),
    ),
    "results without elements": Difference(
        (
            *("gather_nd", "scatter_nd", "searchsorted", "tensor_scatter_sub", "unravel_index"),
            *("layers.average_pooling2d", "nn.atrous_conv2d", "nn.convolution", "nn.pool"),
            "nn.max_pool_with_argmax",
            *("signal.dct", "signal.idct", "signal.rfft"),
            *("image.image_gradients", "image.sobel_edges"),
        ),
        21,
        lambda d: d.more_lenient and d.takes_nothing and d.gives_nothing,
    ),
    "transforms of padding alone": Difference(
        ("signal.rfft2d", "signal.rfft3d", "signal.irfft2d", "signal.irfft3d"),
        4,
        lambda d: (
            d.more_lenient
            and d.takes_nothing
            and "fft_length" in d.call.kwargs
            and not any(np.any(v) for v in d.got)
        ),
    ),
    "transforms of one": Difference(
        ("signal.irfft2d", "signal.irfft3d"),
        4,
        lambda d: (
            d.more_lenient
            and d.gives_nothing
            and d.call.known == "nothing"
            and d.call.tensors()[0].shape[-1] <= 1
        ),
    ),
    "shapes known late": Difference(
        (
            *("image.central_crop", "nn.atrous_conv2d", "sparse.reset_shape"),
            *("image.rgb_to_yiq", "image.rgb_to_yuv", "image.yiq_to_rgb", "image.yuv_to_rgb"),
            *("signal.irfft", "signal.irfft2d", "signal.irfft3d"),
        ),
        60,
        lambda d: (
            d.more_lenient
            and d.result.error in ("TypeError", "ValueError")
            and d.call.known in ("rank", "nothing")
        ),
    ),
    "ranks known early": Difference(
        (
            *("argsort", "nn.embedding_lookup", "nn.pool", "sort", "tensordot"),
            *("layers.flatten", "layers.max_pooling2d"),
        ),
        37,
        lambda d: (
            d.form == "built"
            and d.call.known == "nothing"
            and ("set_shape" in d.text or "rank is undefined" in d.text)
        ),
    ),
    "sums of integers": Difference(
        ("math.reduce_euclidean_norm", "reduce_mean of many", "unsorted_segment_mean"),
        8,
        lambda d: d.disagrees and np.dtype(d.dtype).kind in "iu",
    ),
    "order of NaN": Difference(("nn.top_k",), 3, lambda d: d.disagrees and d.has_nan),
    "multiply and add at once": Difference(
        ("cross", "nn.embedding_lookup"),
        2,
        lambda d: d.disagrees and d.form == "compiled" and d.has_extremes,
    ),
    "erf of the largest numbers": Difference(
        ("erf",), 1, lambda d: d.disagrees and d.dtype == "float64" and d.has_extremes
    ),
    "quotients below the smallest number": Difference(
        ("floordiv",),
        1,
        lambda d: d.disagrees and d.has_extremes,
    ),
    "halves between steps": Difference(
        ("quantization.fake_quant_with_min_max_vars",),
        1,
        lambda d: d.disagrees and _is_one_step(d),
    ),
    "statistics of nothing": Difference(
        ("nn.fused_batch_norm", "nn.weighted_moments"),
        3,
        lambda d: d.disagrees and d.takes_nothing,
    ),
    "NaN among logarithms of sums": Difference(
        ("math.cumulative_logsumexp",), 2, lambda d: d.disagrees and d.has_nan
    ),
    "saturate_cast": Difference(("saturate_cast",), 2, lambda d: d.disagrees),
    "where of a scalar": Difference(
        ("where of a condition",),
        7,
        lambda d: d.more_lenient and d.call.tensors()[0].ndim == 0,
    ),
    "diagonal of a scalar": Difference(
        ("diag_part",),
        2,
        lambda d: d.fails and d.call.known == "nothing" and d.call.tensors()[0].ndim == 0,
    ),
    "images without pixels": Difference(
        ("image.central_crop",), 1, lambda d: d.fails and d.takes_nothing
    ),
    "a line of no numbers": Difference(
        ("lin_space",), 1, lambda d: d.fails and "num > 0" in d.text
    ),
    "split into the rest": Difference(
        ("split",), 2, lambda d: d.more_lenient and d.call.args[1] == [-1]
    ),
    "strides beyond the window": Difference(
        ("nn.avg_pool3d",),
        1,
        lambda d: (
            d.disagrees
            and d.call.args[3] == "SAME"
            and any(s > k for k, s in zip(d.call.args[1], d.call.args[2], strict=True))
        ),
    ),
    "memory that nobody wrote": Difference(
        ("nn.conv2d_backprop_filter",),
        2,
        lambda d: d.disagrees and d.takes_nothing,
    ),
    "indices into nothing": Difference(
        (
            *("boolean_mask", "gather", "unsorted_segment_min"),
            *("unsorted_segment_prod", "unsorted_segment_sum"),
        ),
        6,
        lambda d: d.fails and ("not in" in d.text or "out of range" in d.text) and d.gives_nothing,
    ),
}


def known_difference(disagreement: Disagreement) -> str | None:
    """The key of the difference that explains a disagreement, or None."""
    for key, difference in DIFFERENCES.items():
        if difference.explains(disagreement):
            return key
    return None
