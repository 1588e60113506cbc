"""Row partitions of ragged tensors; tests/ops/ragged/test_ragged.py has what runs on the host."""

from __future__ import annotations

import numpy as np

from headrace.harness.op_cases import OpCase

_SPLITS = np.array([0, 2, 2, 5, 6])

CASES = [
    OpCase("RaggedCheckSplits", (_SPLITS, np.int64(6)), expected=lambda s, n: s),
    OpCase("RaggedSameSplits", (_SPLITS, _SPLITS.copy()), expected=lambda a, b: a),
    OpCase("RaggedCheckDense", (_SPLITS, np.int64(4), np.int64(1)), expected=lambda s, r, c: s),
    OpCase(
        "RaggedCheckDense",
        (np.array([0, 3, 6], np.int32), np.int32(1), np.int32(3)),
        expected=lambda s, r, c: s,
        name="columns",
    ),
    OpCase(
        "RaggedRowIds",
        (_SPLITS, np.int64(6)),
        expected=lambda s, n: np.array([0, 0, 2, 2, 2, 3]),
    ),
    OpCase(
        "RaggedRowIds",
        (np.zeros(3, np.int32), np.int32(0)),
        expected=lambda s, n: np.zeros(0, np.int32),
        name="empty",
    ),
    OpCase(
        "RaggedRowIdsToSplits",
        (np.array([0, 0, 2, 2, 2, 3]), np.int64(5)),
        expected=lambda i, n: np.array([0, 2, 2, 5, 6, 6]),
    ),
    OpCase(
        "RaggedRowIdsToSplits",
        (np.zeros(0, np.int32), np.int32(2)),
        expected=lambda i, n: np.zeros(3, np.int32),
        name="empty",
    ),
]
