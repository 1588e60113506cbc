"""Control flow and lists: ops that take functions or lists have tests of their own."""

from __future__ import annotations

_FLOW = "tests/ops/control/test_control_flow.py"
_LISTS = "tests/ops/control/test_tensor_array.py"

COVERED = {
    **dict.fromkeys(
        ("Enter", "Exit", "LoopCond", "Merge", "NextIteration"),
        "tests/compat/test_control_flow_by_hand.py",
    ),
    **dict.fromkeys(
        (
            "Case",
            "If",
            "PartitionedCall",
            "StatefulPartitionedCall",
            "StatelessCase",
            "StatelessIf",
            "StatelessWhile",
            "While",
        ),
        _FLOW,
    ),
    **dict.fromkeys(("Scan", "StatelessScan"), "tests/ops/control/test_functional.py"),
    **dict.fromkeys(
        ("TensorArrayLog", "TensorArrayUses"), "tests/ops/control/test_tensor_array_uses.py"
    ),
    **dict.fromkeys(
        ("OptionalFromValue", "OptionalGetValue", "OptionalHasValue", "OptionalNone", "Switch"),
        "tests/graph_files/test_foreign_graphs.py",
    ),
    **dict.fromkeys(
        (
            "EmptyTensorList",
            "TensorListConcatV2",
            "TensorListFromTensor",
            "TensorListGather",
            "TensorListGetItem",
            "TensorListLength",
            "TensorListOneItem",
            "TensorListPopBack",
            "TensorListPushBack",
            "TensorListReserve",
            "TensorListScatterIntoExistingList",
            "TensorListSetItem",
            "TensorListSplit",
            "TensorListStack",
            "TensorListAccumulate",
            "TensorListAdd",
            "TensorListZerosLike",
            "TensorListResize",
            "TensorListElementShape",
            "TensorListScatterV2",
        ),
        _LISTS,
    ),
}
