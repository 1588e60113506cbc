"""Bands of diagonals against loops over the elements of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.default_rng(5)
X = _RNG.standard_normal((2, 4, 6)).astype(np.float32)
TALL = np.swapaxes(X, 1, 2).copy()
PADDING = np.float32(-7)
BANDS = ((1, 1), (-2, -2), (-1, 2), (1, 3), (-3, -1))


def _place(shape: Any, band: Any, align: str, i: int, j: int) -> tuple[int, int] | None:
    """The row and column of element ``(i, j)`` in the packed band."""
    rows, columns = shape
    low, high = band
    if not low <= j - i <= high:
        return None
    lengths = {d: min(rows + min(d, 0), columns - max(d, 0)) for d in range(low, high + 1)}
    above, below = align.split("_")
    side = above if j - i >= 0 else below
    offset = max(lengths.values()) - lengths[j - i] if side == "RIGHT" else 0
    return high - (j - i), min(i, j) + offset


def _packed(x: np.ndarray, band: Any, align: str) -> np.ndarray:
    places = {(i, j): _place(x.shape[-2:], band, align, i, j) for i, j in np.ndindex(x.shape[-2:])}
    width = 1 + max(p[1] for p in places.values() if p is not None)
    out = np.full((len(x), band[1] - band[0] + 1, width), PADDING)
    for (i, j), place in places.items():
        if place is not None:
            out[:, place[0], place[1]] = x[:, i, j]
    return out[:, 0] if band[0] == band[1] else out


def _kept(x: np.ndarray, band: Any, fill: Any) -> np.ndarray:
    """``x`` in the band, and ``fill`` outside."""
    difference = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    return np.where((difference >= band[0]) & (difference <= band[1]), x, fill)


CASES = []
for _version, _align in (("V2", "LEFT_LEFT"), ("V3", "RIGHT_LEFT"), ("V3", "LEFT_RIGHT")):
    _attrs = {"align": _align} if _version == "V3" else {}
    for _band in BANDS:
        for _x in (X, TALL):
            if _x is TALL and (_band not in ((-2, -2), (-1, 2)) or _align == "LEFT_RIGHT"):
                continue
            if _version == "V3" and _band[0] == _band[1]:
                continue
            _k = np.int32(_band if _band[0] != _band[1] else _band[0])
            _first = _band == (-1, 2) and _x is X
            _options = {"attrs": _attrs, "name": f"{_align}{_band}", "grad": None if _first else ()}
            _given = _packed(_x, _band, _align)
            CASES += [
                OpCase(
                    f"MatrixDiagPart{_version}",
                    (_x, _k, PADDING),
                    expected=lambda x, k, p, band=_band, align=_align: _packed(x, band, align),
                    **_options,
                ),
                OpCase(
                    f"MatrixDiag{_version}",
                    (_given, _k, np.int32(_x.shape[1]), np.int32(_x.shape[2]), PADDING),
                    expected=lambda d, k, r, c, p, band=_band, x=_x: _kept(x, band, p),
                    **_options,
                ),
                OpCase(
                    f"MatrixSetDiag{_version}",
                    (np.zeros_like(_x), _given, _k),
                    expected=lambda z, d, k, band=_band, x=_x: _kept(x, band, np.float32(0)),
                    **_options,
                ),
            ]
CASES.append(
    OpCase(
        "MatrixDiagV2",
        (np.int64([1, 2]), np.int32(-1), np.int32(-1), np.int32(-1), np.int64(9)),
        expected=lambda *_: np.int64([[9, 9, 9], [1, 9, 9], [9, 2, 9]]),
        name="square",
    )
)
