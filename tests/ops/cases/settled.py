"""Sizes and checks of recurrent networks, and trees of beam search."""

from __future__ import annotations

import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.RandomState(2)
_IDS = _RNG.randint(0, 9, (4, 2, 3)).astype(np.int32)
_PARENTS = _RNG.randint(0, 3, (4, 2, 3)).astype(np.int32)


def _trees(ids, parents, lengths, end):
    steps, batch, width = ids.shape
    out = np.full_like(ids, end)
    for b in range(batch):
        for k in range(width):
            beam = k
            for t in range(min(steps, int(lengths[b])) - 1, -1, -1):
                out[t, b, k], beam = ids[t, b, beam], parents[t, b, beam]
            ends = np.flatnonzero(out[:, b, k] == end)
            if ends.size:
                out[ends[0] :, b, k] = end
    return out


CASES = [
    OpCase(
        "SameRows",
        (_RNG.standard_normal((4, 3)), _RNG.standard_normal((4, 5))),
        {"message": "rows differ."},
        expected=lambda x, like: x,
        grad=(0,),
    ),
    OpCase(
        "RequirePositive",
        (np.int32([3, 1, 2]),),
        {"message": "not positive"},
        expected=lambda x: x,
    ),
    *[
        OpCase(
            "GatherTree",
            (_IDS, _PARENTS, np.int32(lengths), np.int32(end)),
            expected=_trees,
            name=name,
        )
        for name, lengths, end in (
            ("whole", [4, 4], 10),
            ("short", [3, 0], 10),
            ("ended", [4, 9], int(_IDS[1, 0, 0])),
        )
    ],
]
