"""What optimisers share whose step is one operation."""

from __future__ import annotations

from typing import Any

from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw
from headrace.ops.embeddings.tables_api import EmbeddingTable
from headrace.train import slot_creator
from headrace.train.optimizer import Optimizer

__all__ = ["RuleOptimizer"]


class RuleOptimizer(Optimizer):
    """An optimiser whose step is one op: ``ResourceApply<rule>``, and one for sparse gradients."""

    _rule = ""
    #: Names of the slots, in the order in which the op takes them.
    _slot_order: tuple[str, ...] = ()

    def _inputs(self, var: Any) -> dict[str, Any]:
        """The op's arguments beside variable, slots, gradient and indices."""
        raise NotImplementedError

    def _handles(self, var: Any) -> list[Tensor]:
        slots = [self.get_slot(var, s) for s in self._slot_order]
        return [var.handle, *[s.handle for s in slots if s is not None]]

    def _apply_to_table(self, table: EmbeddingTable, grad: Tensor, keys: Tensor) -> Operation:
        slots: list[Any] = [self.get_slot(table, s) for s in self._slot_order]
        return table.apply_rule(self._rule, slots, self._inputs(table), grad, keys)

    def _apply(self, kind: str, var: Any, **gradient: Any) -> Operation:
        definition = getattr(raw, kind + self._rule)
        arguments = {**self._inputs(var), **gradient, "use_locking": self._use_locking}
        op: Operation = definition(*self._handles(var), **arguments)
        return op

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._apply("ResourceApply", var, grad=grad)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, var: Any, indices: Tensor
    ) -> Any:
        # The op itself sums the gradients of equal rows, without leaving the compiled region.
        return self._apply("ResourceSparseApply", var, grad=grad, indices=indices)

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        return self._resource_apply_sparse_duplicate_indices(grad, var, indices)

    def _constant_slot(
        self, var: Any, value: float, slot_name: str, op_name: str | None = None
    ) -> None:
        if isinstance(var, EmbeddingTable):
            self._table_slot(var, slot_name, op_name or self._name, value)
            return
        start = slot_creator.filled(var, value)
        self._get_or_make_slot(var, start, slot_name, op_name or self._name)
