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
    def has_nothing(self) -> bool:
        """Whether a tensor without elements takes part."""
        arrays = [*self.call.tensors(), *map(np.asarray, self.got)]
        return any(a.size == 0 for a in arrays)

    @property
    def has_extremes(self) -> bool:
        """Whether a number near the end of its type, an infinity or a NaN takes part."""
        return any(_is_extreme(a) for a in self.call.tensors() if a.dtype.kind == "f")

    @property
    def has_nan(self) -> bool:
        return any(np.isnan(a).any() for a in self.call.tensors() if a.dtype.kind == "f")

    def of(self, *names: str) -> bool:
        return self.result.name in names


def _is_extreme(array: np.ndarray[Any, Any]) -> bool:
    limit = float(np.finfo(array.dtype).max) / 16
    with np.errstate(invalid="ignore"):
        return bool((~(np.abs(array.astype(np.float64)) < limit)).any())


_SUMS_OF_INTEGERS = (
    "math.reduce_euclidean_norm",
    "nn.moments",
    "reduce_mean",
    "reduce_mean of many",
    "segment_mean",
    "unsorted_segment_mean",
    "unsorted_segment_sqrt_n",
)
_RANK_BEFORE = (
    "argsort",
    "linalg.adjoint",
    "nn.embedding_lookup",
    "nn.pool",
    "sort",
    "tensordot",
)
_NAN_ORDER = ("argsort", "nn.top_k", "sort")
_NO_CHECK = ("gather", "unsorted_segment_prod", "unsorted_segment_sum")

#: Whether a difference explains a disagreement, by its key.
DIFFERENCES: dict[str, Callable[[Disagreement], bool]] = {
    "more types": lambda d: d.more_lenient and d.result.error == "TypeError",
    "tensors without elements": lambda d: d.more_lenient and d.has_nothing,
    "shapes known late": lambda d: (
        d.more_lenient
        and d.result.error in ("TypeError", "ValueError")
        and d.call.known in ("rank", "nothing")
    ),
    "ranks known early": lambda d: (
        d.of(*_RANK_BEFORE) and d.form == "built" and d.call.known == "nothing"
    ),
    "sums of integers": lambda d: (
        d.answers and d.of(*_SUMS_OF_INTEGERS) and d.call.tensors()[0].dtype.kind in "iu"
    ),
    "order of NaN": lambda d: d.answers and d.of(*_NAN_ORDER) and d.has_nan,
    "multiply and add at once": lambda d: (
        d.form == "compiled" and d.of("cross", "nn.embedding_lookup") and d.has_extremes
    ),
    "erf of the largest numbers": lambda d: d.answers and d.of("erf") and d.has_extremes,
    "quotients below the smallest number": lambda d: (
        d.answers and d.of("floordiv", "div", "floor_div", "floormod", "mod") and d.has_extremes
    ),
    "statistics of nothing": lambda d: d.answers and d.of("nn.fused_batch_norm") and d.has_nothing,
    "NaN among logarithms of sums": lambda d: (
        d.answers and d.of("math.cumulative_logsumexp") and d.has_nan
    ),
    "saturate_cast": lambda d: d.answers and d.of("saturate_cast"),
    "where of a scalar": lambda d: (
        d.more_lenient and d.of("where of a condition") and d.call.tensors()[0].ndim == 0
    ),
    "memory that nobody wrote": lambda d: (
        d.answers
        and d.of("nn.conv2d_backprop_filter", "signal.irfft", "signal.irfft2d", "signal.irfft3d")
        and d.has_nothing
    ),
    "indices into nothing": lambda d: (
        not d.answers
        and d.of(*_NO_CHECK)
        and ("not in" in d.text or "out of range" in d.text)
        and any(v.size == 0 for v in d.result.values)
    ),
}


def known_difference(disagreement: Disagreement) -> str | None:
    """The key of the difference that explains a disagreement, or None."""
    for key, applies in DIFFERENCES.items():
        if applies(disagreement):
            return key
    return None
