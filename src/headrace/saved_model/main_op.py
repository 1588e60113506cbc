"""What runs when a SavedModel has been loaded."""

from __future__ import annotations

from typing import Any

from headrace.graph.tensor import Operation
from headrace.ops.control.basic import group
from headrace.ops.io.tables import tables_initializer
from headrace.ops.state.variables_api import (
    global_variables_initializer,
    local_variables_initializer,
)

__all__ = ["main_op", "main_op_with_restore"]


def main_op() -> Operation:
    """An operation that initialises all variables and tables."""
    return group(
        global_variables_initializer(), local_variables_initializer(), tables_initializer()
    )


def main_op_with_restore(restore_op_name: Any) -> Operation:
    """The same after an operation that restores variables.

    Raises:
        TypeError: if ``restore_op_name`` is no operation or tensor.
    """
    from headrace.graph.graph import get_default_graph

    with get_default_graph().control_dependencies([main_op()]):
        return group(restore_op_name)
