"""How files hold programs of JAX: as StableHLO, which TensorFlow runs."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.graph.tensor import Operation, Tensor
from headrace.graph_files.export_graph import lowers
from headrace.ops.control.jax_module import module_call


@lowers("JaxCall")
def _jax_call(op: Operation, inputs: Sequence[Tensor]) -> Operation:
    return module_call(op, inputs)
