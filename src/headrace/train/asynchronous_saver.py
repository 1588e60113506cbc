"""Checkpoints that are written while training goes on.

A save is two steps. The first holds the values on the tasks that have them, large ones as copies.
The second, which a thread runs, writes what is held; then the checkpoint is made the latest.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from headrace.files.paths import as_path
from headrace.graph.graph import Graph
from headrace.graph.tensor import Operation
from headrace.ops.control.basic import group
from headrace.ops.core.build import raw
from headrace.train import checkpoint_state
from headrace.train.restore_check import ancestors
from headrace.train.saver import SavePlace, Saver

__all__ = ["AsynchronousSaver"]


class AsynchronousSaver:
    """Saves what a `Saver` saves, in a thread; one checkpoint after the other.

    Args:
        saver: whose checkpoints these are, sharded or not. Its operations must be in ``graph``, to
            which others are added.
        consistent: in a cluster, hold the values while no step of any worker uses them, on all
            tasks at the same time.

    Raises:
        ValueError: if the operations of the saver are none that are known here.
    """

    def __init__(self, saver: Saver, graph: Graph, consistent: bool = False) -> None:
        self._saver = saver
        self._hold: Operation | None = None
        self._write: Operation | None = None
        if not saver.is_empty:
            self._hold, self._write = _added(saver, graph, consistent)
        self._under_way: _Save | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a save has begun whose `result` nobody has asked for."""
        return self._under_way is not None

    @property
    def is_done(self) -> bool:
        """Whether `result` need not wait."""
        return self._under_way is None or not self._under_way.is_alive()

    def begin(self, session: Any, save_path: Any, global_step: Any = None) -> None:
        """Hold the values that the variables of a session have now, and begin to write them.

        Args:
            session, save_path, global_step: as for `Saver.save`.

        Raises:
            RuntimeError: if another save is under way.
            DeadlineExceededError: if it is to be consistent, and steps do not end in time. They
                have gone on; the next one waits for longer.
            OpError: if the values cannot be read.
        """
        if self._under_way is not None:
            raise RuntimeError("A save is under way: ask for its result before the next.")
        saver = self._saver
        path, state_name = saver._place(session, save_path, global_step, None)
        place = saver._new_place(session, path)
        if self._hold is not None:
            saver._prepare(session)
            saver._write(session, self._hold, place)
        directory = os.path.dirname(as_path(save_path))
        self._under_way = _Save(saver, session, self._write, place, directory, state_name)
        self._under_way.start()

    def result(self) -> str:
        """Wait until the save is over; the path of the checkpoint.

        Raises:
            RuntimeError: if none is under way.
            OpError: if it failed; nothing of it is left.
        """
        save, self._under_way = self._under_way, None
        if save is None:
            raise RuntimeError("No save is under way.")
        save.join()
        if save.error is not None:
            raise save.error
        return save.path

    def forget(self) -> None:
        """Have no part in a save whose session is gone: it will not become the latest."""
        if self._under_way is not None:
            self._under_way.forget()
            self._under_way = None


class _Save(threading.Thread):
    """The second half of a save."""

    def __init__(
        self,
        saver: Saver,
        session: Any,
        write: Any,
        place: SavePlace,
        directory: str,
        state_name: str,
    ) -> None:
        super().__init__(name="checkpoint writer", daemon=True)
        self.path = place.path
        self.error: BaseException | None = None
        self._saver, self._session, self._write, self._place = saver, session, write, place
        self._directory, self._state_name = directory, state_name
        self._lock = threading.Lock()
        self._is_forgotten = False

    def run(self) -> None:
        try:
            if self._write is not None:
                self._saver._write(self._session, self._write, self._place)
            with self._lock:
                if not self._is_forgotten:
                    self._publish()
        except BaseException as error:  # who asks for the result gets it
            self.error = error

    def _publish(self) -> None:
        saver = self._saver
        with self._session.graph.as_default():
            saver.export_meta_graph(checkpoint_state.meta_path(self.path))
        if not saver.is_empty:
            saver._keep(self.path, self._directory, self._state_name, "meta")

    def forget(self) -> None:
        with self._lock:
            self._is_forgotten = True


def _added(saver: Saver, graph: Graph, consistent: bool) -> tuple[Operation, Operation]:
    """The operations that hold what a saver saves, and that write it."""
    last = graph.get_tensor_by_name(saver.saver_def.save_tensor_name).op
    found = ancestors(last)
    saves = [op for op in found if op.type == "SaveV2"]
    merges = [op for op in found if op.type == "MergeV2Checkpoints"]
    if not saves:
        raise ValueError(
            f"Saver {saver.saver_def.save_tensor_name} writes no files by SaveV2: its builder has "
            "operations of its own. Save by it while the training waits (asynchronous=False)."
        )
    holds: list[Operation] = []
    writes: list[Operation] = []
    with (
        graph.as_default(),
        graph.name_scope("save_asynchronously"),
        graph.control_dependencies(None),
    ):
        marks = [raw.StepAlone()] if consistent else []
        for save in saves:
            before, key = list(save.control_inputs), save.name
            with graph.device(save.device), graph.control_dependencies([*before, *marks]):
                prefix, names, specs, *tensors = save.inputs
                held = raw.HoldForSave(prefix, names, specs, tensors, key=key)
                size = save.attrs["_max_file_bytes"]
                holds.append(held)
            with graph.device(save.device):
                writes.append(raw.SaveHeld(save.inputs[0], key=key, max_file_bytes=size))
        for merge in merges:
            # The list of parts that the saver has made waits for its own saves.
            with graph.device(merge.device), graph.control_dependencies(list(writes)):
                parts = raw.Pack([save.inputs[0] for save in saves], axis=0)
                writes.append(raw.MergeV2Checkpoints(parts, merge.inputs[1], delete_old_dirs=True))
        return group(*holds), group(*writes)
