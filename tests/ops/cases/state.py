"""Variable ops have effects: their own tests run them, in order, compiled and interpreted."""

from __future__ import annotations

_STATE = "tests/ops/state/test_state.py"
_SCATTERS = ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")
_ND_SCATTERS = ("Add", "Max", "Min", "Sub", "Update")

COVERED = {
    "AssignAddVariableOp": _STATE,
    "AssignSubVariableOp": _STATE,
    "AssignVariableOp": _STATE,
    "DestroyResourceOp": _STATE,
    "NoOp": _STATE,
    "ReadVariableOp": _STATE,
    "ResourceCountUpTo": _STATE,
    "ResourceGather": _STATE,
    "ResourceGatherNd": _STATE,
    "VarHandleOp": "tests/ops/state/test_variables.py",
    "VarIsInitializedOp": _STATE,
    "VariableShape": _STATE,
    **{f"ResourceScatter{kind}": _STATE for kind in _SCATTERS},
    **{f"ResourceScatterNd{kind}": _STATE for kind in _ND_SCATTERS},
}
