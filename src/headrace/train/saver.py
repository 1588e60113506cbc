"""tf.train.Saver: saving variables to checkpoints and restoring them."""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace import logging
from headrace.errors import (
    AbortedError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    NotFoundError,
    OpError,
    UnavailableError,
)
from headrace.files.paths import as_path
from headrace.graph.graph import Graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.ops.embeddings import unpublished
from headrace.ops.state import share
from headrace.ops.state.save_slices import prepend_name_scope, strip_name_scope
from headrace.structured_logs import tell
from headrace.train import awaited_checkpoints, checkpoint_state, saveable
from headrace.train.checkpoint import CheckpointReader
from headrace.train.checkpoint.reader import ATTEMPTS
from headrace.train.places import Places, restores_by_task, short
from headrace.train.restore_check import ancestors, check_restorable
from headrace.train.saver_builder import BaseSaverBuilder, BulkSaverBuilder

__all__ = ["BaseSaverBuilder", "BulkSaverBuilder", "Saver"]

#: What savers, also TensorFlow's, put between a path and the parts of a sharded save.
_SUFFIX = re.compile(rb"_temp_[0-9a-f]{32}/part")


class SavePlace(NamedTuple):
    """Where one save goes: the path of the checkpoint, and what its steps are fed."""

    path: str
    feeds: dict[Any, Any]


class Saver:
    """Saves variables to checkpoints and restores them.

    A checkpoint is written whole or not at all, and checked when it is read; restoring compares
    it with the graph before anything is assigned.

    Args:
        var_list: a list of variables, or a dict from names in the checkpoint to variables; all
            global variables and saveable objects by default.
        reshape: restore tensors into variables of other shapes with as many elements.
        sharded: each task writes the variables that it holds, into a file system that all share,
            and the parts become one checkpoint; else all variables go through one task.
        max_to_keep: how many recent checkpoints to keep; None or 0 keeps all.
        keep_checkpoint_every_n_hours: of those to be deleted, keep one for this many hours.
        name: prefix of the saver's ops.
        restore_sequentially: restore the variables one after another, with less memory.
        saver_def: a SaverDef whose ops are in the graph already.
        builder: makes the ops (`BaseSaverBuilder`).
        defer_build: make the ops when `build` is called.
        allow_empty: a saver of nothing is no error.
        write_version: accepted; the format is always TensorFlow's V2.
        pad_step_number: write step numbers with eight digits, so that names sort.
        save_relative_paths: write paths relative to the directory into the state file.
        filename: the default of the saver's path tensor.
        max_file_bytes: a limit for the size of data files.
        incremental_tables: of tables of embeddings write only the rows that have changed since the
            checkpoint before, where this saver wrote that under the same base name; all rows again
            when that has become long. A checkpoint then needs files beside older ones, which stay
            as long as it does. Ours.

    Raises:
        ValueError: if there is nothing to save, or a name or variable comes twice.
        TypeError: if something in ``var_list`` is no variable.

    >>> v = tf.Variable([1.0, 2.0], name="v")
    >>> saver = tf.train.Saver()
    >>> with tf.Session() as sess:
    ...     sess.run(v.initializer)
    ...     saver.save(sess, "./model", global_step=7)
    './model-7'
    >>> with tf.Session() as sess:
    ...     saver.restore(sess, "./model-7")
    ...     sess.run(v).tolist()
    [1.0, 2.0]
    """

    #: What tells the time; tests replace it.
    clock: Callable[[], float] = staticmethod(time.time)

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = 2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
        max_file_bytes: int | None = None,
        incremental_tables: bool = False,
    ) -> None:
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set "
                "defer_build=False or var_list=None."
            )
        if max_file_bytes is not None and max_file_bytes < 1:
            raise ValueError(f"max_file_bytes must be positive; it is {max_file_bytes}")
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._restore_sequentially = restore_sequentially
        self.saver_def = saver_def
        self._allow_empty = allow_empty
        self._is_empty = False
        self._write_version = write_version
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._filename = filename
        self._builder = builder
        self._max_file_bytes = max_file_bytes or 0
        self._incremental_tables = incremental_tables
        self._is_built = False
        #: (path, time of saving), the oldest first.
        self._last_checkpoints: list[tuple[str, float]] = []
        self._to_delete: list[tuple[str, float]] = []
        self._suffixes: list[Tensor] | None = None
        self._next_checkpoint_time = 0.0
        #: Held during a save: of two threads that save, the one that reads later values is later
        #: to name its checkpoint the latest.
        self._saving = threading.RLock()
        if not defer_build:
            self.build()
        if self.saver_def is not None:
            _check_saver_def(self.saver_def)
            self._write_version = self.saver_def.version
            self._start_keeping()

    def _start_keeping(self) -> None:
        hours = self.saver_def.keep_checkpoint_every_n_hours
        self._next_checkpoint_time = self.clock() + hours * 3600

    # -- ops --------------------------------------------------------------------------------

    def build(self) -> None:
        """Add the saver's ops to the default graph; does nothing the second time."""
        if self._is_built:
            return
        self._is_built = True
        if self.saver_def is not None:
            if self._name:
                self.saver_def = self._in_scope(self.saver_def, self._name)
            return
        if self._var_list is None:
            self._var_list = saveable.all_saveable_objects()
        if not self._var_list:
            if not self._allow_empty:
                raise ValueError(
                    "No variables to save: make them before the Saver, or use allow_empty=True."
                )
            self._is_empty = True
            return
        if self._builder is None:
            self._builder = BulkSaverBuilder(self._write_version)
        if self._max_file_bytes:
            self._builder.max_file_bytes = self._max_file_bytes
        if self._incremental_tables:
            self._builder.incremental_tables = True
        self.saver_def = self._builder.build(
            self._var_list,
            reshape=self._reshape,
            sharded=self._sharded,
            max_to_keep=self._max_to_keep,
            keep_checkpoint_every_n_hours=self._keep_checkpoint_every_n_hours,
            name=self._name,
            restore_sequentially=self._restore_sequentially,
            filename=self._filename,
        )
        self._start_keeping()

    @staticmethod
    def _in_scope(saver_def: Any, scope: str) -> Any:
        moved = type(saver_def)()
        moved.CopyFrom(saver_def)
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            setattr(moved, field, prepend_name_scope(getattr(saver_def, field), scope))
        return moved

    def _check_built(self) -> None:
        if not self._is_built:
            raise RuntimeError(
                "`build()` should be called before save if defer_build==True was given."
            )

    # -- saving -----------------------------------------------------------------------------

    def save(
        self,
        sess: Any,
        save_path: Any,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Save the variables of a session. Of several threads one at a time saves.

        Args:
            sess: the session.
            save_path: path or URL of the checkpoint; missing directories are made.
            global_step: a number, tensor or variable that is appended to ``save_path``.
            latest_filename: the name of the state file, ``checkpoint`` by default.
            meta_graph_suffix: suffix of the file for the graph.
            write_meta_graph: whether to write the graph beside the checkpoint.
            write_state: whether to update the state file, and to delete old checkpoints.
            strip_default_attrs: leave attributes with default values out of the graph.

        Returns:
            The path to give to `restore`; None if the saver is empty.

        Raises:
            TypeError: if ``sess`` is no session.
            ValueError: if names collide.
            FailedPreconditionError: if a variable has no value.
            OpError: if the files cannot be written; the checkpoints that exist stay as they are.
        """
        with self._saving:
            path, state_name = self._place(sess, save_path, global_step, latest_filename)
            if not _writes(sess):
                logging.info("The checkpoint %s is written by the chief alone.", path)
                if write_state and not self._is_empty:
                    folder = os.path.dirname(as_path(save_path))
                    awaited_checkpoints.expect(
                        checkpoint_state.state_path(folder, state_name), path
                    )
                return None if self._is_empty else path
            if not self._is_empty:
                fetched = self.saver_def.save_tensor_name
                self._prepare(sess)
                written = self._write(sess, fetched, self._new_place(sess, path))
                path = written.decode() if isinstance(written, bytes) else str(written)
            if write_meta_graph:
                with sess.graph.as_default():
                    self.export_meta_graph(
                        checkpoint_state.meta_path(path, meta_graph_suffix),
                        strip_default_attrs=strip_default_attrs,
                        save_debug_info=save_debug_info,
                    )
            if self._is_empty:
                return None
            if write_state:
                self._keep(path, os.path.dirname(as_path(save_path)), state_name, meta_graph_suffix)
            return path

    def _place(
        self, sess: Any, save_path: Any, global_step: Any, latest_filename: str | None
    ) -> tuple[str, str]:
        """The path of a checkpoint to be written, and the name of the state file."""
        self._check_built()
        state_name = as_path(latest_filename or "checkpoint")
        if os.path.split(state_name)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        _check_session(sess)
        save_path = as_path(save_path)
        path: str = save_path
        if global_step is not None:
            path = f"{save_path}-{self._step_text(sess, global_step)}"
        elif os.path.basename(save_path) == state_name and not self._sharded:
            raise ValueError(
                f"'latest_filename' collides with 'save_path': '{state_name}' and '{save_path}'"
            )
        return path, state_name

    def _keep(self, path: str, directory: str, state_name: str, meta_graph_suffix: str) -> None:
        """Make a checkpoint that has been written the latest, and remove old ones."""
        with self._saving:
            self._record(path)
            checkpoint_state.update_state(
                directory,
                path,
                all_model_checkpoint_paths=self.last_checkpoints,
                latest_filename=state_name,
                save_relative_paths=self._save_relative_paths,
            )
            self._delete_old(meta_graph_suffix)

    def _new_place(self, sess: Any, path: str) -> SavePlace:
        """Where a save goes. Parts of a sharded one get a folder that no other save has: a task may
        still be at work for one that was given up."""
        feeds: dict[Any, Any] = {}
        if not self._is_empty:
            feeds[self.saver_def.filename_tensor_name] = path
            for suffix in self._part_suffixes(sess.graph):
                own = suffix.op.attrs["value"].item()[len("_temp_") :][:16].decode()
                feeds[suffix] = f"_temp_{own}{uuid.uuid4().hex[:16]}/part"
        return SavePlace(path, feeds)

    def _part_suffixes(self, graph: Graph) -> list[Tensor]:
        """The constants that tell parts of sharded saves from the path of the checkpoint."""
        if self._suffixes is None:
            saved = graph.get_tensor_by_name(self.saver_def.save_tensor_name)
            found = (t for op in ancestors(saved.op) for t in op.inputs if op.type == "StringJoin")
            self._suffixes = [
                t
                for t in found
                if t.op.type == "Const" and _SUFFIX.fullmatch(t.op.attrs["value"].item())
            ]
        return self._suffixes

    def _prepare(self, sess: Any) -> None:
        """Run what has to come before the variables are read."""
        before = sess.graph.get_collection(GraphKeys._BEFORE_SAVE)
        if before:
            sess.run(before)

    def _write(self, sess: Any, fetched: Any, place: SavePlace) -> Any:
        """Run the save, or a part of it; nothing of it stays if an operation of it failed."""
        try:
            return sess.run(fetched, place.feeds)
        except (AbortedError, CancelledError, DeadlineExceededError, UnavailableError):
            raise  # a task may go on with its part of the save
        except OpError:
            unpublished.remove_beside(place.path)
            raise

    def _step_text(self, sess: Any, global_step: Any) -> str:
        if not isinstance(global_step, (int, np.integer)):
            global_step = sess.run(global_step)
        return f"{int(global_step):08d}" if self._pad_step_number else str(int(global_step))

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """A MetaGraphDef of the default graph with this saver, written to ``filename`` if given."""
        from headrace.train.meta_graph import export_meta_graph

        return export_meta_graph(
            filename=filename,
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
            save_debug_info=save_debug_info,
        )

    # -- restoring --------------------------------------------------------------------------

    def restore(self, sess: Any, save_path: Any) -> None:
        """Give the variables of a session the values of a checkpoint, also of TensorFlow's V1.

        The variables need no initialisation before. Nothing is assigned unless all fits. If the
        checkpoint is saved again meanwhile, the variables get the values of the new one, all.

        Raises:
            ValueError: if there is no checkpoint at ``save_path``.
            NotFoundError: if the checkpoint lacks variables of this saver.
            InvalidArgumentError: if types or shapes differ.
            DataLossError: if the checkpoint is cut off or damaged.
            AbortedError: if it was saved again each time that it was read.
        """
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        self._check_built()
        _check_session(sess)
        path = as_path(save_path)
        awaited_checkpoints.wait_for(path, checkpoint_state.checkpoint_exists)
        if not checkpoint_state.checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        text = "Restoring parameters from %s"
        tell(logging.get_logger(), "checkpoint_restored", text, path, fields={"path": path})
        self._run_restores(sess, path, [self.saver_def.restore_op_name])

    def restores_tasks(self, sess: Any, tasks: Collection[str]) -> bool:
        """Whether each of some tasks, by their full names, can be restored alone.

        A sharded saver can do so, as it reads for each task what is its own.
        """
        return not self._is_empty and self._restores_of(sess).keys() >= set(tasks)

    def restore_tasks(self, sess: Any, save_path: str, tasks: Collection[str]) -> None:
        """Restore only what lies on some tasks. Raises as `restore`."""
        what, told = ", ".join(map(short, sorted(tasks))), {"path": save_path}
        log, text = logging.get_logger(), "Restoring %s from %s"
        tell(log, "checkpoint_restored", text, what, save_path, fields=told)
        found = self._restores_of(sess)
        self._run_restores(sess, save_path, [n for t in sorted(tasks) for n in found.get(t, ())])

    def _restores_of(self, sess: Any) -> dict[str, list[str]]:
        name = self.saver_def.restore_op_name
        return restores_by_task(sess.graph, name, Places.of_session(sess))

    def _run_restores(self, sess: Any, path: str, names: Sequence[str]) -> None:
        graph: Graph = sess.graph
        ops = [graph.get_operation_by_name(name) for name in names]
        filename = graph.get_tensor_by_name(self.saver_def.filename_tensor_name)
        for _ in range(ATTEMPTS):
            reader = CheckpointReader(path)
            alone = sum(check_restorable(op, filename, reader) for op in ops) < 2
            try:
                sess.run(ops, {filename: path})
            except (NotFoundError, DataLossError):
                if alone or reader.is_current():
                    raise
                continue
            # One operation alone reads from one save, and again by itself where that is needed.
            if alone or reader.is_current():
                return
        raise AbortedError(
            None, None, f"Checkpoint {path} was saved again each time that it was read."
        )

    # -- what is kept -----------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to save."""
        return self._is_empty

    @property
    def last_checkpoints(self) -> list[str]:
        """Paths of the checkpoints that were saved and not deleted, the oldest first."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: Sequence[Any]) -> None:
        """Deprecated: use `set_last_checkpoints_with_time`."""
        if not isinstance(last_checkpoints, list):
            raise AssertionError("last_checkpoints must be a list.")
        self._last_checkpoints = [
            (c[0], c[1]) if isinstance(c, tuple) else (c, float("inf")) for c in last_checkpoints
        ]

    def set_last_checkpoints_with_time(
        self, last_checkpoints_with_time: Sequence[tuple[str, float]]
    ) -> None:
        """Set the paths of old checkpoints and when they were saved, the oldest first."""
        if not isinstance(last_checkpoints_with_time, list):
            raise AssertionError("last_checkpoints_with_time must be a list.")
        self._last_checkpoints = last_checkpoints_with_time

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Take over those of ``checkpoint_paths`` that exist, as if this saver had saved them."""
        there = [p for p in checkpoint_paths if checkpoint_state.checkpoint_exists(p)]
        times = checkpoint_state.get_checkpoint_mtimes(there)
        self.set_last_checkpoints_with_time(list(zip(there, times, strict=True)))

    def _record(self, path: str) -> None:
        """Note a new checkpoint, and which old one is no longer among those to keep."""
        limit = self.saver_def.max_to_keep
        if not limit:
            return
        self._last_checkpoints = [c for c in self._last_checkpoints if c[0] != path]
        self._last_checkpoints.append((path, self.clock()))
        while len(self._last_checkpoints) > limit:
            self._to_delete.append(self._last_checkpoints.pop(0))

    def _delete_old(self, meta_graph_suffix: str) -> None:
        while self._to_delete:
            path, saved_at = self._to_delete.pop(0)
            if saved_at > self._next_checkpoint_time:
                hours = self.saver_def.keep_checkpoint_every_n_hours
                self._next_checkpoint_time += hours * 3600
                continue
            checkpoint_state.remove_checkpoint(path, self.saver_def.version, meta_graph_suffix)

    # -- messages ---------------------------------------------------------------------------

    def as_saver_def(self) -> Any:
        """The SaverDef message."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The SaverDef message as seen from inside a scope; None if the saver is outside."""
        if export_scope is None:
            return self.saver_def
        if not self.saver_def.filename_tensor_name.startswith(export_scope):
            return None
        moved = type(self.saver_def)()
        moved.CopyFrom(self.saver_def)
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            setattr(moved, field, strip_name_scope(getattr(moved, field), export_scope))
        return moved

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """The saver whose ops are in the default graph already."""
        return Saver(saver_def=saver_def, name=import_scope)


def _check_saver_def(saver_def: Any) -> None:
    if getattr(getattr(saver_def, "DESCRIPTOR", None), "name", "") != "SaverDef":
        raise ValueError(f"saver_def must be a SaverDef, got {saver_def!r}")
    if not saver_def.save_tensor_name:
        raise ValueError(f"saver_def must specify the save_tensor_name: {saver_def}")
    if not saver_def.restore_op_name:
        raise ValueError(f"saver_def must specify the restore_op_name: {saver_def}")


def _check_session(sess: Any) -> None:
    if not (hasattr(sess, "run") and hasattr(sess, "graph")):
        raise TypeError(f"'sess' must be a Session; {sess}")


def _writes(sess: Any) -> bool:
    """Whether checkpoints of a session are this worker's to write, of a script that many run."""
    is_managed = getattr(getattr(sess, "_engine", None), "is_managed", True)
    return is_managed or share.writes()
