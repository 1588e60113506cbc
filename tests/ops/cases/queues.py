"""Queues, barriers and staging areas wait for each other: no table row tests that."""

from __future__ import annotations

_BARRIERS = "tests/ops/io/test_barriers.py"
_STAGING = "tests/ops/io/test_staging.py"
COVERED = {
    "Barrier": _BARRIERS,
    "BarrierClose": _BARRIERS,
    "BarrierIncompleteSize": _BARRIERS,
    "BarrierInsertMany": _BARRIERS,
    "BarrierReadySize": _BARRIERS,
    "BarrierTakeMany": _BARRIERS,
    **dict.fromkeys(
        [
            f"{kind}{what}"
            for kind in ("Map", "OrderedMap")
            for what in (
                *("Clear", "IncompleteSize", "Peek", "Size", "Stage", "Unstage", "UnstageNoKey"),
            )
        ],
        "tests/ops/io/test_map_staging.py",
    ),
    "Stage": _STAGING,
    "StageClear": _STAGING,
    "StagePeek": _STAGING,
    "StageSize": _STAGING,
    "Unstage": _STAGING,
    "FIFOQueueV2": "tests/ops/io/test_queues.py",
    "PaddingFIFOQueueV2": "tests/ops/io/test_queues.py",
    "PriorityQueueV2": "tests/ops/io/test_queues.py",
    "RandomShuffleQueueV2": "tests/ops/io/test_queues.py",
    "QueueCloseV2": "tests/ops/io/test_queues.py",
    "QueueDequeueManyV2": "tests/ops/io/test_queues.py",
    "QueueDequeueUpToV2": "tests/ops/io/test_queues.py",
    "QueueDequeueV2": "tests/ops/io/test_queues_waiting.py",
    "QueueEnqueueManyV2": "tests/ops/io/test_queues.py",
    "QueueEnqueueV2": "tests/ops/io/test_queues_waiting.py",
    "QueueIsClosedV2": "tests/ops/io/test_queues.py",
    "QueueSizeV2": "tests/ops/io/test_queues.py",
}
