"""The first value of a row: a function of its key and the table's seed.

Each element is one of 65,536 quantiles of the distribution, equally likely and chosen by 16 bits of
a hash of seed, key and column. So it does not matter when a row is made, beside which others, or on
which machine; and a batch of rows is made by a few passes over integers and one look-up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.ops.core.parallel import in_pieces
from headrace.ops.embeddings.key_index import Keys, mixed

_LEVELS = 1 << 16
_PER_WORD = 4
#: Rows of a piece that one thread works on.
_PIECE = 1 << 10
_GAMMA = np.uint64(0x9E3779B97F4A7C15)


class RowStart(NamedTuple):
    """How rows start.

    Attributes:
        kind: "constant" (``numbers``: one for all elements, or one for each), "uniform" (lowest
            and highest), "normal" or "truncated_normal" (mean and standard deviation; the latter
            has nothing beyond two of these).
    """

    kind: str
    numbers: tuple[float, ...]
    seed: int = 0


def quantiles(start: RowStart, dtype: Any) -> NDArray[Any]:
    """The values that elements may have, in rising order."""
    level = (np.arange(_LEVELS) + 0.5) / _LEVELS
    first, second = start.numbers
    if start.kind == "uniform":
        return (first + (second - first) * level).astype(dtype)
    from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]

    if start.kind == "truncated_normal":
        level = ndtr(-2.0) + level * (ndtr(2.0) - ndtr(-2.0))
    result: NDArray[Any] = (first + second * ndtri(level)).astype(dtype)
    return result


class FirstRows:
    """Makes the rows of keys.

    >>> import numpy as np
    >>> start = FirstRows(RowStart("uniform", (-1.0, 1.0), seed=3), 4, np.float32)
    >>> rows = start.of(np.array([17, 4, 17]))
    >>> rows.shape, bool((rows[0] == rows[2]).all()), bool((rows[0] == rows[1]).any())
    ((3, 4), True, False)
    """

    def __init__(self, start: RowStart, width: int, dtype: Any) -> None:
        self._width = width
        self._dtype = np.dtype(dtype)
        self._seed = int(mixed(np.array([start.seed]))[0])
        constant = start.kind == "constant"
        numbers = np.array(start.numbers, self._dtype)
        self._constant = np.broadcast_to(numbers, (width,)) if constant else None
        self._quantiles = None if constant else quantiles(start, self._dtype)

    def of(self, keys: Keys, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """The first rows of keys: ``[len(keys), width]``.

        Args:
            out: where to write them, and what to return then.
        """
        if out is None:
            out = np.empty((len(keys), self._width), self._dtype)
        if self._constant is not None:
            out[:] = self._constant
            return out
        states = mixed(keys, self._seed)
        words = -(-self._width // _PER_WORD)
        steps = np.arange(1, words + 1, dtype=np.uint64) * _GAMMA

        def piece(begin: int, end: int) -> None:
            bits = mixed((states[begin:end, None] + steps).view(np.int64)).view(np.uint16)
            chosen = bits.reshape(end - begin, -1)[:, : self._width]
            out[begin:end] = self._quantiles[chosen]  # type: ignore[index]

        in_pieces(len(keys), _PIECE, lambda size: piece)
        return out
