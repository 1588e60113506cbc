"""Names that Python 3 and NumPy had in the years of the 1.x releases, and have dropped since.

`headrace run` restores them in the program's process, which is the program's own; importing
`headrace.compat.tensorflow` changes nothing outside Headrace. Only what is missing is set, and only
where today's library has the same thing under another name.
"""

from __future__ import annotations

import collections
import collections.abc
import ctypes
import errno
import fractions
import gc
import importlib
import importlib.util
import inspect
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["restore"]

_NUMPY: dict[str, Any] = {
    "Inf": np.inf,
    "Infinity": np.inf,
    "NAN": np.nan,
    "NINF": -np.inf,
    "NaN": np.nan,
    "PINF": np.inf,
    "alltrue": np.all,
    "asscalar": lambda a: a.item(),
    "bool8": np.bool_,
    "complex": complex,
    "complex_": np.complex128,
    "cumproduct": np.cumprod,
    "float": float,
    "float_": np.float64,
    "in1d": np.isin,
    "infty": np.inf,
    "int": int,
    "long": int,
    "math": math,
    "msort": lambda a: np.sort(a, axis=0),
    "object": object,
    "object0": np.object_,
    "product": np.prod,
    "rank": np.ndim,
    "round_": np.round,
    "row_stack": np.vstack,
    "sometrue": np.any,
    "str": str,
    "string_": np.bytes_,
    "trapz": np.trapezoid,
    "unicode": str,
    "unicode_": np.str_,
}


def restore() -> None:
    """Set what is missing."""
    for name, value in _NUMPY.items():
        # NumPy answers for dropped names with an error of its own.
        if name not in vars(np):
            setattr(np, name, value)
    for name in collections.abc.__all__:
        _set(collections, name, getattr(collections.abc, name))
    _set(fractions, "gcd", math.gcd)
    _set(inspect, "getargspec", _getargspec)
    _set(os, "errno", errno)
    _set(threading.Thread, "isAlive", threading.Thread.is_alive)
    _set(time, "clock", time.process_time)
    _restore_element_tree()
    if not hasattr(np.ndarray, "tostring"):
        _add_method(np.ndarray, "tostring", _tostring)


def _set(owner: Any, name: str, value: Any) -> None:
    if not hasattr(owner, name):
        setattr(owner, name, value)


def _getargspec(func: Any) -> Any:
    from headrace.compat.util import getargspec

    return getargspec(func)


def _restore_element_tree() -> None:
    """The accelerated module is the only one now."""
    name = "xml.etree.cElementTree"
    if importlib.util.find_spec("xml.etree.cElementTree") is None:
        sys.modules[name] = importlib.import_module("xml.etree.ElementTree")


def _tostring(array: Any, order: Any = "C") -> bytes:
    """The bytes of an array: `ndarray.tobytes` under its old name."""
    data: bytes = array.tobytes(order)
    return data


def _add_method(cls: type, name: str, function: Callable[..., Any]) -> None:
    """Give a class that is written in C one more method.

    Such classes refuse ``setattr``; their dictionary is the one thing that their read-only view
    refers to, and the interpreter has to be told that it changed.
    """
    (names,) = gc.get_referents(cls.__dict__)
    names[name] = function
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))
