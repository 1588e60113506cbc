"""`tf.keras.callbacks.TensorBoard` with our event files: that of Keras needs TensorFlow."""

from __future__ import annotations

import os
from typing import Any

from headrace.graph.proto import Summary
from headrace.keras.loading import load_keras
from headrace.summary.writer import FileWriter

_CALLBACK: Any = load_keras().callbacks.Callback


class TensorBoard(_CALLBACK):  # type: ignore[misc]
    """Writes losses and metrics of each epoch to event files in ``log_dir``.

    Those of training are in ``train`` below it, those of validation in ``validation``.

    Args:
        log_dir: the folder.
        update_freq: ``"epoch"``, or ``"batch"`` or a number of batches for losses of batches too.

    >>> import tempfile
    >>> import numpy as np
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tensorboard = tf.keras.callbacks.TensorBoard(folder)
    ...     history = model.fit(np.eye(2), np.eye(2)[:1].T, verbose=0, callbacks=[tensorboard])
    ...     sorted(os.listdir(folder))
    ['train']
    """

    def __init__(
        self,
        log_dir: str = "./logs",
        histogram_freq: int = 0,
        batch_size: int = 32,
        write_graph: bool = True,
        write_grads: bool = False,
        write_images: bool = False,
        update_freq: Any = "epoch",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.log_dir = os.fspath(log_dir)
        self._each = {"epoch": 0, "batch": 1}.get(update_freq, update_freq)
        self._writers: dict[str, FileWriter] = {}
        self._batches = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Count the batch, and write what it gave where that was asked for."""
        self._batches += 1
        if self._each and self._batches % self._each == 0:
            for name, value in (logs or {}).items():
                self._write("train", f"batch_{name}", value, self._batches)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write what the epoch gave."""
        for name, value in (logs or {}).items():
            kind = "validation" if name.startswith("val_") else "train"
            self._write(kind, f"epoch_{name.removeprefix('val_')}", value, epoch)
        for writer in self._writers.values():
            writer.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Close the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def _write(self, kind: str, tag: str, value: Any, step: int) -> None:
        writer = self._writers.get(kind)
        if writer is None:
            writer = self._writers[kind] = FileWriter(os.path.join(self.log_dir, kind))
        one = Summary.Value(tag=tag, simple_value=float(value))
        writer.add_summary(Summary(value=[one]), step)
