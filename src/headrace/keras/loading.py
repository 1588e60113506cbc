"""Keras itself: imported when a program first uses `tf.keras`, on its JAX backend."""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from typing import Any

_lock = threading.RLock()
_loaded: dict[str, Any] = {}


def load_keras() -> Any:
    """The module `keras`.

    Raises:
        ImportError: if it is not installed, or runs on another backend than JAX.
    """
    with _lock:
        if "keras" not in _loaded:
            _loaded["keras"] = _import()
    return _loaded["keras"]


def _import() -> Any:
    if "keras" not in sys.modules:
        os.environ.setdefault("KERAS_BACKEND", "jax")
    try:
        keras: Any = import_module("keras")
    except ModuleNotFoundError as error:
        if error.name not in ("keras", "optree", "h5py", "namex", "tensorflow", "torch"):
            raise
        if error.name in ("tensorflow", "torch"):
            raise ImportError(
                _other_backend(os.environ.get("KERAS_BACKEND", "tensorflow"))
            ) from None
        raise ImportError(
            f"tf.keras is Keras 3, which is not installed ({error}). Install it with "
            "`pip install headrace[keras]`."
        ) from None
    if not hasattr(keras, "StatelessScope"):
        if not hasattr(keras, "__version__"):
            raise ImportError(
                f"tf.keras needs Keras 3, but {getattr(keras, '__file__', None) or keras} hides "
                "it: it has the name keras, and is no Keras. Give it another name."
            )
        raise ImportError(
            f"tf.keras needs Keras 3; keras {getattr(keras, '__version__', '?')} is installed. "
            "Install it with `pip install headrace[keras]`."
        )
    backend = keras.config.backend()
    if backend != "jax":
        raise ImportError(_other_backend(backend))
    hide_alias()
    return keras


def hide_alias() -> None:
    """Where `tensorflow` is another name of Headrace, Keras is told that there is no TensorFlow.

    It asks for classes that only TensorFlow 2 has as soon as a module of that name can be imported.
    """
    if type(sys.modules.get("tensorflow")).__module__.startswith("headrace."):
        import_module("keras.src.utils.module_utils").tensorflow._available = False


def _other_backend(backend: str) -> str:
    return (
        f"tf.keras runs Keras on its JAX backend, but Keras was told to use '{backend}' "
        "(the environment variable KERAS_BACKEND, ~/.keras/keras.json, or an `import keras` "
        "before). Set KERAS_BACKEND=jax before Keras is first imported, or use tf.keras first."
    )


def keras_part(path: str) -> Any:
    """The module ``keras.<path>``."""
    load_keras()
    return import_module(f"keras.{path}") if path else _loaded["keras"]


def keras_inner(path: str) -> Any:
    """The module ``keras.src.<path>``, for what Keras does not export."""
    load_keras()
    return import_module(f"keras.src.{path}")
