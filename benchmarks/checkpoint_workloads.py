"""Checkpoints that are timed: saving and restoring large variables, as both libraries do it."""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

VARIABLES = 4


class Checkpoint:
    """Variables of so many megabytes together, and a folder to save them to.

    They are written and read through the page cache of the system: what is timed is the library,
    and what it asks of the memory, more than the disk.
    """

    def __init__(self, tf: ModuleType, megabytes: int) -> None:
        rows = (megabytes << 20) // (4 * 256 * VARIABLES)
        for i in range(VARIABLES):
            tf.get_variable(f"table{i}", shape=[rows, 256], initializer=tf.ones_initializer())
        self._saver = tf.train.Saver(max_to_keep=1)
        self._session = tf.Session()
        self._session.run(tf.global_variables_initializer())
        folder = tempfile.mkdtemp(prefix="headrace-bench-")
        self._end = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._path = f"{folder}/model"
        self.save()

    def save(self) -> float:
        """Seconds of a save under the same name, as in training with one checkpoint."""
        start = time.perf_counter()
        self._saver.save(self._session, self._path, write_meta_graph=False)
        return time.perf_counter() - start

    def restore(self) -> float:
        """Seconds of a restore in a session that has values already."""
        start = time.perf_counter()
        self._saver.restore(self._session, self._path)
        return time.perf_counter() - start


#: Name, title, what is timed, megabytes.
ROWS: tuple[tuple[str, str, Callable[[Checkpoint], Any], int], ...] = (
    ("save_128mb", "save 128 MB", Checkpoint.save, 128),
    ("restore_128mb", "restore 128 MB", Checkpoint.restore, 128),
    ("save_1gb", "save 1 GB", Checkpoint.save, 1024),
    ("restore_1gb", "restore 1 GB", Checkpoint.restore, 1024),
)
