"""Slots of variables that are divided among workers, in checkpoints that know nothing of this.

Each worker has the slots of its part alone (`AllReduceOptimizer` with ``sharded=True``). A
checkpoint has them under the names, and in the shapes, that they have where nothing is divided; so
another number of workers, or another way of training, goes on from it.

- *Saving.* The chief reads the parts of all workers. It does so between two of its steps: by then
  all have updated their parts, and the next update waits for the chief's gradients.
- *Restoring.* The chief gets whole slots. When all workers have begun, the hook divides them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.errors import InvalidArgumentError
from headrace.graph.devices import DeviceSpec
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control import basic
from headrace.ops.core.build import raw
from headrace.ops.state.variables import Variable
from headrace.train.saveable import SaveableObject, SaveSpec

__all__ = ["PartSlot", "part_slots", "tasks_of_workers"]

_FIRST_JOBS = ("chief", "master")


def tasks_of_workers(device: str, count: int) -> list[str]:
    """The devices of all workers, in the order of their parts, as seen from the chief's.

    >>> tasks_of_workers("/job:chief/task:0", 3)
    ['/job:chief/task:0', '/job:worker/task:0', '/job:worker/task:1']
    >>> tasks_of_workers("", 2)
    ['/job:worker/task:0', '/job:worker/task:1']
    """
    if count == 1:
        return [device]
    job = DeviceSpec.from_string(device).job or "worker"
    if job in _FIRST_JOBS:
        return [f"/job:{job}/task:0", *(f"/job:worker/task:{i}" for i in range(count - 1))]
    return [f"/job:{job}/task:{i}" for i in range(count)]


class PartSlot:
    """One slot of this worker's part of some variables.

    Args:
        slot: of the variable that holds the part.
        part: that variable; ``variables``: what it is a part of, one after the other.
        tasks: the devices of all workers, in the order of their parts.

    Attributes:
        whole: for each variable the slot as it was restored, on the chief until it is divided.

    Raises:
        InvalidArgumentError: if the slot has another shape than the part.
    """

    def __init__(
        self, slot: Variable, part: Variable, variables: Sequence[Any], tasks: Sequence[str]
    ) -> None:
        if slot.shape.as_list() != part.shape.as_list():
            raise InvalidArgumentError(
                None,
                slot.op,
                "AllReduceOptimizer(sharded=True) needs slots that have an element for each of "
                f"the variable's, but {slot.op.name} has shape {slot.shape}. Use sharded=False.",
            )
        self.slot, self._tasks = slot, tasks
        scope, _, rest = slot.op.name.rpartition(f"{part.op.name}/")
        names = [f"{scope}{v.op.name}/{rest}" for v in variables]
        self.whole = [_holder(slot, v, name) for v, name in zip(variables, names, strict=True)]
        self._flat: Tensor | None = None
        start = 0
        for holder, name in zip(self.whole, names, strict=True):
            saveable = _WholeSlot(holder, name, self._reads(start, holder))
            get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)
            start += holder.shape.num_elements() or 0

    def _reads(self, start: int, holder: Variable) -> Callable[[], Tensor]:
        dims = holder.shape.as_list()

        def read() -> Tensor:
            count = holder.shape.num_elements()
            return raw.Reshape(raw.Slice(self._all_parts(), [start], [count]), dims)

        return read

    def _all_parts(self) -> Tensor:
        """The parts of all workers, read where they are."""
        if self._flat is None:
            handle = self.slot.handle.op
            found = []
            for task in self._tasks:
                with get_default_graph().device(None), get_default_graph().device(task):
                    there = raw.VarHandleOp(
                        dtype=self.slot.dtype.base_dtype,
                        shape=self.slot.shape,
                        container=handle.attrs["container"],
                        shared_name=handle.attrs["shared_name"] or handle.name,
                    )
                    found.append(raw.ReadVariableOp(there, dtype=self.slot.dtype.base_dtype))
            self._flat = found[0] if len(found) == 1 else raw.ConcatV2(found, 0)
        return self._flat

    def divide(self, is_chief: bool, part_of: Callable[[Tensor], Tensor]) -> Operation:
        """An op that gives this worker its part of what the chief has restored.

        Args:
            part_of: makes of a flat tensor this worker's part of the sum over all workers.
        """
        if is_chief:
            flat = [raw.Reshape(h.read_value(), [-1]) for h in self.whole]
        else:
            kind = self.slot.dtype.base_dtype
            flat = [raw.Fill([h.shape.num_elements()], raw.Cast(0, DstT=kind)) for h in self.whole]
        op: Operation = self.slot.assign(part_of(raw.ConcatV2(flat, 0))).op
        return op

    def forget(self) -> Operation:
        """An op that frees what was restored."""
        return basic.group(
            *(raw.DestroyResourceOp(h.handle, ignore_lookup_error=True) for h in self.whole)
        )


class _WholeSlot(SaveableObject):
    """A slot of a whole variable, as it is in checkpoints."""

    def __init__(self, holder: Variable, name: str, read: Callable[[], Tensor]) -> None:
        spec = SaveSpec(read, "", name, holder.dtype.base_dtype, holder.device)
        super().__init__(holder, [spec], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        return self.op.assign(restored_tensors[0]).op


def _holder(slot: Variable, variable: Any, name: str) -> Variable:
    kind, dims = slot.dtype.base_dtype, variable.shape.as_list()
    with get_default_graph().colocate_with(slot):
        return Variable(
            lambda: raw.Fill(dims, raw.Cast(0, DstT=kind)),
            trainable=False,
            collections=[],  # only a saver gives it a value
            name=f"{name}/restored",
        )


def part_slots(
    optimizer: Any, part: Variable, variables: Sequence[Any], tasks: Sequence[str]
) -> list[PartSlot]:
    """The slots that an optimiser has made for a part; they are local variables from now on."""
    graph, found = get_default_graph(), []
    everywhere = graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
    for name in optimizer.get_slot_names():
        slot = optimizer.get_slot(part, name)
        if slot is None:
            continue
        everywhere[:] = [v for v in everywhere if v is not slot]
        graph.add_to_collection(GraphKeys.LOCAL_VARIABLES, slot)
        found.append(PartSlot(slot, part, variables, tasks))
    return found
