"""The base class of optimisers: compute gradients, process them, apply them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.autodiff.gradients import gradients
from headrace.graph import dtypes
from headrace.graph.devices import DeviceSpec
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.control import basic
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.embeddings.partitioned_tables import PartitionedEmbeddingTable
from headrace.ops.embeddings.tables_api import EmbeddingTable
from headrace.ops.state import share
from headrace.ops.state.partitioned import PartitionedVariable
from headrace.ops.state.variable_updates import variable_of
from headrace.ops.state.variables import Variable
from headrace.train import replica_updates, slot_creator

GradVar = tuple[Any, Any]


class Optimizer:
    """Base of all optimisers.

    A subclass creates its slots in ``_create_slots``, makes tensors of its hyperparameters in
    ``_prepare``, and builds updates in ``_resource_apply_dense`` and ``_resource_apply_sparse``.

    >>> x = tf.Variable(3.0)
    >>> optimizer = tf.train.GradientDescentOptimizer(0.25)
    >>> [(gradient, variable)] = optimizer.compute_gradients(x * x)
    >>> train = optimizer.apply_gradients([(tf.clip_by_norm(gradient, 2.0), variable)])
    >>> with tf.Session() as sess:
    ...     sess.run(x.initializer)
    ...     sess.run(train)
    ...     float(sess.run(x))
    2.5
    """

    #: No gating; all gradients of one op together; all gradients of the graph together.
    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2
    #: Whether it brings the gradients of workers together itself; then no strategy can.
    joins_workers = False

    #: Whether `apply_gradients` waits for what other workers give to theirs.
    waits_for_gradients = False

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        #: slot name -> variable -> slot variable.
        self._slots: dict[str, dict[Any, Variable]] = {}
        self._non_slots: dict[tuple[str, Any], Variable] = {}

    def get_name(self) -> str:
        """The name given at construction."""
        return self._name

    # -- the two halves of minimize ---------------------------------------------------------

    def minimize(
        self,
        loss: Tensor,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """An op that makes one step of training: gradients of ``loss``, applied to the variables.

        Args:
            global_step: a variable to increment after the update.
            var_list: variables to update; all trainable ones by default.

        Raises:
            ValueError: if no variable has a gradient.
        """
        grads_and_vars = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(g is None for g, _ in grads_and_vars):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not "
                f"support gradients, between variables {[str(v) for _, v in grads_and_vars]} and "
                f"loss {loss}."
            )
        return self.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Tensor,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[GradVar]:
        """``(gradient, variable)`` pairs; the gradient is None where the loss does not depend."""
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH.  Not {gate_gradients}"
            )
        if callable(loss):
            loss = loss()
        if not hasattr(loss, "dtype"):
            raise TypeError(f"loss must be a tensor, but got {loss!r}")
        self._assert_valid_dtypes([loss])
        variables = self._variables_to_train(var_list)
        place = replica_updates.joining(self, "compute_gradients")
        if place is not None:
            replica_updates.check_copies(place, variables)
            place.strategy.extended._gradients_begin()
            loss = replica_updates.scaled(loss)
        grads = gradients(
            loss,
            variables,
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == self.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == self.GATE_GRAPH:
            grads = basic.tuple(grads)
        self._assert_valid_dtypes(
            [v for g, v in zip(grads, variables, strict=True) if g is not None]
        )
        return list(zip(grads, variables, strict=True))

    def _variables_to_train(self, var_list: Any) -> list[Any]:
        if var_list is None:
            graph = get_default_graph()
            var_list = [
                *graph.get_collection(GraphKeys.TRAINABLE_VARIABLES),
                *graph.get_collection(GraphKeys.TRAINABLE_EMBEDDING_TABLES),
            ]
        elif isinstance(var_list, dict):
            var_list = list(var_list.values())
        elif not isinstance(var_list, (list, tuple)):
            var_list = [var_list]
        flat: list[Any] = []
        for variable in var_list:
            # A partitioned variable is trained shard by shard.
            in_parts = isinstance(variable, (PartitionedVariable, PartitionedEmbeddingTable))
            flat.extend(variable if in_parts else [variable])
        flat = list(dict.fromkeys(flat))
        if not flat:
            raise ValueError("No variables to optimize.")
        return flat

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradVar],
        global_step: Any = None,
        name: str | None = None,
    ) -> Operation:
        """An op that applies gradients to variables, and then increments ``global_step``.

        Raises:
            TypeError: if a gradient is no tensor, IndexedSlices or None.
            ValueError: if there is no gradient at all.
        """
        pairs = [_checked_pair(g, v) for g, v in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        with_gradient = [v for g, v in pairs if g is not None]
        if not with_gradient:
            raise ValueError(
                f"No gradients provided for any variable: {[str(v) for _, v in pairs]}."
            )
        place = replica_updates.joining(self, "apply_gradients")
        if place is not None:
            return replica_updates.apply_together(self, place, pairs, global_step, name)
        own = share.of(get_default_graph())
        if own is not None:
            return own.apply(self, pairs, global_step, name)
        graph = get_default_graph()
        with basic.init_scope():
            self._create_slots(with_gradient)
        with graph.name_scope(name or self._name) as scope:
            self._prepare()
            updates = self._updates(pairs)
            if global_step is None:
                step = self._finish(updates, scope)
            else:
                with graph.control_dependencies([self._finish(updates, "update")]):
                    step = self._incremented(global_step, scope)
        if step not in graph.get_collection_ref(GraphKeys.TRAIN_OP):
            graph.add_to_collection(GraphKeys.TRAIN_OP, step)
        return step

    def _updates(self, pairs: Sequence[GradVar]) -> list[Any]:
        graph, updates = get_default_graph(), []
        for grad, variable in pairs:
            if grad is not None:
                grad = _summed_before_it_travels(grad, variable)
                with (
                    graph.name_scope(f"update_{variable.op.name}"),
                    graph.colocate_with(variable),
                ):
                    updates.append(self._update(grad, variable))
        return updates

    def _incremented(self, global_step: Any, name: str) -> Operation:
        with get_default_graph().colocate_with(global_step):
            return _increment(global_step, name)

    def _update(self, grad: Any, variable: Any) -> Any:
        if isinstance(variable, EmbeddingTable):
            if not isinstance(grad, IndexedSlices):
                raise TypeError(
                    f"The gradient of the table {variable.op.name} must be IndexedSlices, rows by "
                    f"key; it is {grad!r}."
                )
            return self._apply_to_table(variable, grad.values, grad.indices)
        if isinstance(grad, IndexedSlices):
            update = self._resource_apply_sparse_duplicate_indices(
                grad.values, variable, grad.indices
            )
        else:
            update = self._resource_apply_dense(grad, variable)
        if variable.constraint is None:
            return update
        with get_default_graph().control_dependencies([update]):
            return variable.assign(variable.constraint(variable.read_value())).op

    # -- slots ------------------------------------------------------------------------------

    def get_slot(self, var: Any, name: str) -> Variable | None:
        """The slot of ``var`` called ``name``, or None."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """Names of the kinds of slot this optimiser has made, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """All variables that the optimiser itself owns in the default graph, sorted by name."""
        graph = get_default_graph()
        own = [v for slots in self._slots.values() for v in slots.values()]
        own += list(self._non_slots.values())
        # Slots of tables are no variables: they are with the rows.
        kept = (v for v in own if isinstance(v, Variable) and v.graph is graph)
        return sorted(kept, key=lambda v: v.name)

    def _slot_dict(self, slot_name: str) -> dict[Any, Variable]:
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Variable:
        slots = self._slot_dict(slot_name)
        if var not in slots:
            slots[var] = slot_creator.create_slot(var, val, op_name)
        return slots[var]

    def _get_or_make_slot_with_initializer(
        self,
        var: Any,
        initializer: Callable[..., Any],
        shape: Any,
        dtype: DType,
        slot_name: str,
        op_name: str,
    ) -> Variable:
        slots = self._slot_dict(slot_name)
        if var not in slots:
            slots[var] = slot_creator.create_slot_with_initializer(
                var, initializer, shape, dtype, op_name
            )
        return slots[var]

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        slots = self._slot_dict(slot_name)
        if isinstance(var, EmbeddingTable):
            return self._table_slot(var, slot_name, op_name, 0.0)
        if var not in slots:
            slots[var] = slot_creator.create_zeros_slot(var, op_name)
        return slots[var]

    def _table_slot(self, table: EmbeddingTable, slot_name: str, op_name: str, start: float) -> Any:
        """A slot of a table, whose elements start with one number."""
        slots: dict[Any, Any] = self._slots.setdefault(slot_name, {})
        if table not in slots:
            slots[table] = table.slot(slot_name, op_name, start)
        return slots[table]

    def _create_non_slot_variable(
        self, initial_value: Any, name: str, colocate_with: Any
    ) -> Variable:
        """A variable that all updates of one graph share, such as a power of beta."""
        graph = colocate_with.graph
        key = (name, graph)
        if key not in self._non_slots:
            with graph.colocate_with(colocate_with):
                self._non_slots[key] = Variable(initial_value, name=name, trainable=False)
        return self._non_slots[key]

    def _get_non_slot_variable(self, name: str, graph: Any = None) -> Variable | None:
        return self._non_slots.get((name, (graph or get_default_graph()).outermost))

    # -- for subclasses ---------------------------------------------------------------------

    def _valid_dtypes(self) -> set[DType]:
        """Types of losses and variables that this optimiser takes."""
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    def _assert_valid_dtypes(self, tensors: Sequence[Any]) -> None:
        valid = self._valid_dtypes()
        for tensor in tensors:
            dtype = tensor.dtype.base_dtype
            if dtype not in valid:
                names = sorted(v.name for v in valid)
                raise ValueError(f"Invalid type {dtype!r} for {tensor.name}, expected: {names}.")

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Create the slots of the variables."""

    def _prepare(self) -> None:
        """Make tensors of the hyperparameters, before the updates are built."""

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} must define _resource_apply_dense or _apply_dense."
        )

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._apply_dense(grad, var)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} must define _resource_apply_sparse or _apply_sparse to train "
            f"{var.name}, whose gradient is IndexedSlices."
        )

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        """Update the rows ``indices`` (all different) of ``var``."""
        return self._apply_sparse(IndexedSlices(grad, indices), var)

    def _apply_to_table(self, table: EmbeddingTable, grad: Tensor, keys: Tensor) -> Operation:
        """Update the rows of ``keys``, which may repeat."""
        raise NotImplementedError(
            f"{type(self).__name__} has no rule for tables of embeddings, so it cannot train "
            f"{table.op.name}. Train it by an optimiser of tf.train (SGD, Momentum, Adagrad, Adam, "
            "RMSProp, Ftrl ...): leave it out of var_list here."
        )

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, var: Any, indices: Tensor
    ) -> Any:
        """Update rows whose indices may repeat: gradients of the same row are summed first."""
        summed, distinct = _summed_rows(grad, indices)
        return self._resource_apply_sparse(summed, var, distinct)

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Operation:
        """What completes a step, after all updates."""
        return basic.group(*update_ops, name=name_scope)

    def _call_if_callable(self, param: Any) -> Any:
        return param() if callable(param) else param

    def _hyper(self, value: Any, name: str, var: Any) -> Tensor:
        """A hyperparameter as a tensor of the variable's type."""
        tensor = self._tensor(value, name)
        wanted = var.dtype.base_dtype
        return tensor if tensor.dtype is wanted else raw.Cast(tensor, DstT=wanted)

    def _tensor(self, value: Any, name: str) -> Tensor:
        """A hyperparameter as a tensor, made once for each step that is built."""
        return convert_to_tensor(self._call_if_callable(value), name=name)


def _checked_pair(grad: Any, variable: Any) -> GradVar:
    if not hasattr(variable, "handle"):
        raise NotImplementedError(
            f"Trying to update {variable!r}: only variables can be updated. Pairs are "
            "(gradient, variable)."
        )
    if grad is None or isinstance(grad, (Tensor, IndexedSlices)):
        return grad, variable
    try:
        return convert_to_tensor(grad), variable
    except (TypeError, ValueError):
        raise TypeError(
            "Gradient must be convertible to a Tensor or IndexedSlices, or None: " + repr(grad)
        ) from None


def _summed_before_it_travels(grad: Any, variable: Any) -> Any:
    """Rows of a gradient, those of one index summed where they have to go to another task."""
    if not isinstance(grad, IndexedSlices):
        return grad
    here, there = (DeviceSpec.from_string(x.device or "") for x in (grad.values, variable))
    if there.job is None or (here.job, here.task) == (there.job, there.task):
        return grad
    with get_default_graph().colocate_with(grad.values.op):
        summed, distinct = _summed_rows(grad.values, grad.indices)
    return IndexedSlices(summed, distinct, grad.dense_shape)


def _summed_rows(rows: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """The sums of the rows that have one index, and those indices, each once."""
    distinct, place = raw.Unique(indices)
    return raw.UnsortedSegmentSum(rows, place, raw.Reshape(raw.Shape(distinct), [])), distinct


def _increment(global_step: Any, name: str) -> Operation:
    if isinstance(global_step, Tensor):  # found by its name in the graph
        with contextlib.suppress(TypeError):
            global_step = variable_of(global_step)
    if not hasattr(global_step, "assign_add"):
        raise TypeError(
            f"global_step must be a variable, such as tf.train.get_or_create_global_step(); it is "
            f"{global_step!r}"
        )
    updated = global_step.assign_add(1, name=name, read_value=False)
    return updated.op if isinstance(updated, Tensor) else updated
