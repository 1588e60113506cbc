"""What is restored after a failure: from which checkpoint, and on which tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import Any

from headrace import logging
from headrace.errors import DataLossError, FailedPreconditionError, NotFoundError, OpError
from headrace.graph.devices import DeviceSpec
from headrace.graph.keys import GraphKeys
from headrace.train.checkpoint.reader import CheckpointReader
from headrace.train.checkpoint_state import checkpoint_exists
from headrace.train.global_step import get_global_step
from headrace.train.places import Places, short


def restore_newest(restore: Callable[[str], None], state: Any) -> str:
    """Restore the newest checkpoint that is not damaged; which one that was.

    Args:
        restore: ``restore(path)`` restores one.
        state: the CheckpointState that lists them.

    Raises:
        DataLossError, NotFoundError: what is wrong with the newest, if all are damaged.
        OpError: if the graph does not fit it.
    """
    newest: str = state.model_checkpoint_path
    older: list[str] = [p for p in reversed(state.all_model_checkpoint_paths) if p != newest]
    first: OpError | None = None
    for path in (newest, *older):
        try:
            if not checkpoint_exists(path):
                raise NotFoundError(None, None, f"There is no {path}.index.")
            restore(path)
        except (DataLossError, NotFoundError) as error:
            if isinstance(error, NotFoundError) and _is_whole(path):
                raise  # it is the graph that does not fit
            logging.error("Checkpoint %s cannot be restored: %s", path, error.message)
            first = first or error
        else:
            if first is not None:
                logging.warning("Training goes on from the older checkpoint %s.", path)
            return path
    assert first is not None
    raise first


def _is_whole(path: str) -> bool:
    """Whether all files of a checkpoint are there, and its index can be read."""
    try:
        return checkpoint_exists(path) and not CheckpointReader(path).missing_files()
    except OpError:
        return False


def tasks_without_values(session: Any, ready_op: Any) -> set[str]:
    """The tasks that have lost variables or tables, by ``ready_op``, which names them.

    None are returned if something is missing that is on no named task, or if all tasks that have
    variables have lost some: then there is nothing to keep.
    """
    graph, where = session.graph, Places.of_session(session)
    places = {v.op.name: where.of(v.op) for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
    for resource in graph.get_collection(GraphKeys.RESOURCES):
        places[resource.handle.name] = where.of(resource.handle.op)
    if ready_op is None or ready_op.dtype.name != "string":
        return set()
    missing = [name.decode() for name in session.run(ready_op).reshape(-1)]
    lost = {places.get(name, "") for name in missing}
    named = all(DeviceSpec.from_string(task).job for task in lost)
    return lost if named and lost < set(places.values()) else set()


def tell_what_is_lost(session: Any, tasks: Collection[str], path: str) -> None:
    """Say in the log which updates a checkpoint does not have, as far as the global step tells."""
    saved = path.rpartition("-")[2]
    what = "all updates"
    step = get_global_step(session.graph)
    where = Places.of_session(session)
    if step is not None and saved.isdigit() and where.of(step.op) not in tasks:
        with contextlib.suppress(FailedPreconditionError):  # its task was lost since
            what = f"the updates of {int(session.run(step)) - int(saved)} global steps"
    logging.warning(
        "Variables of %s were lost, and restored from %s: %s since then are lost there. Other "
        "tasks keep theirs.",
        ", ".join(map(short, sorted(tasks))),
        path,
        what,
    )
