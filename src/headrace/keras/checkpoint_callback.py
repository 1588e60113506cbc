"""`tf.keras.callbacks.ModelCheckpoint` under the file names of 1.x."""

from __future__ import annotations

import os
from typing import Any

from headrace.keras.loading import load_keras

_CALLBACK: Any = load_keras().callbacks.ModelCheckpoint
_ENDING = ".weights.h5"


class ModelCheckpoint(_CALLBACK):  # type: ignore[misc]
    """Saves a model, or its weights, after epochs.

    Args:
        filepath: the file; it may hold ``{epoch}`` and names of logs. Weights go into any file, as
            in 1.x: Keras 3 by itself asks for a name that ends in ``.weights.h5``.
        monitor, verbose, save_best_only, save_weights_only, mode: as in Keras.
        period: ignored but for 1; Keras 3 counts with ``save_freq``.

    Raises:
        ValueError: if a whole model is to be saved under a name that Keras does not know.

    >>> import tempfile
    >>> import numpy as np
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saving = tf.keras.callbacks.ModelCheckpoint(f"{folder}/w.h5", save_weights_only=True)
    ...     history = model.fit(np.eye(2), np.eye(2)[:1].T, verbose=0, callbacks=[saving])
    ...     os.listdir(folder)
    ['w.h5']
    """

    def __init__(
        self,
        filepath: str,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        period: int = 1,
        save_freq: Any = "epoch",
        **kwargs: Any,
    ) -> None:
        if period != 1:
            raise ValueError(
                f"ModelCheckpoint: period={period} is not there; give save_freq, in batches."
            )
        path = os.fspath(filepath)
        known = path if not save_weights_only or path.endswith(_ENDING) else path + _ENDING
        super().__init__(
            known, monitor, verbose, save_best_only, save_weights_only, mode, save_freq, **kwargs
        )
        self.filepath = path
