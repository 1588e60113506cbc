"""Names that Python 3 and NumPy had in the years of the 1.x releases, and have dropped since.

`headrace run` restores them in the program's process, which is the program's own; importing
`headrace.compat.tensorflow` changes nothing outside Headrace. Only what is missing is set. What
NumPy does no longer is in `older_numpy`, other libraries are in `older_modules`, and what files of
a program use of Python 2 is in `older_python`.
"""

from __future__ import annotations

import base64
import builtins
import collections
import collections.abc
import errno
import fractions
import functools
import html
import html.parser
import importlib
import importlib.util
import inspect
import json
import math
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Set
from typing import Any

import numpy as np

from headrace.compat import older_modules, older_numpy

__all__ = ["restore"]

_NUMPY: dict[str, Any] = {
    "Inf": np.inf,
    "Infinity": np.inf,
    "NAN": np.nan,
    "NINF": -np.inf,
    "NaN": np.nan,
    "PINF": np.inf,
    "alltrue": np.all,
    "asfarray": lambda a, dtype=np.float64: np.asarray(a, dtype),
    "asscalar": lambda a: a.item(),
    "bool8": np.bool_,
    "cfloat": np.complex128,
    "complex": complex,
    "complex_": np.complex128,
    "cumproduct": np.cumprod,
    "float": float,
    "float_": np.float64,
    "in1d": np.isin,
    "infty": np.inf,
    "int": int,
    "long": int,
    "longfloat": np.longdouble,
    "mat": np.asmatrix,
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
    _set(html.parser.HTMLParser, "unescape", lambda self, text: html.unescape(text))
    _set(base64, "decodestring", base64.decodebytes)
    _set(base64, "encodestring", base64.encodebytes)
    _restore_element_tree()
    _restore_random()
    _restore_arguments()
    older_numpy.restore()
    older_modules.restore()


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


def _restore_random() -> None:
    """Samples of sets, orders that a function of the program draws, and seeds of any kind."""
    sample, shuffle, seed = random.sample, random.shuffle, random.Random.seed
    if getattr(sample, "__name__", "") == "_sample":
        return

    def _sample(population: Any, k: int, **kwargs: Any) -> Any:
        return sample(tuple(population) if isinstance(population, Set) else population, k, **kwargs)

    def _shuffle(x: Any, random: Callable[[], float] | None = None) -> None:
        if random is None:
            shuffle(x)
            return
        for i in reversed(range(1, len(x))):
            j = int(random() * (i + 1))
            x[i], x[j] = x[j], x[i]

    def _seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        try:
            seed(self, a, version)
        except TypeError:  # a time, or an integer of NumPy
            seed(self, hash(a), version)

    vars(random).update(sample=_sample, shuffle=_shuffle)
    random.Random.seed = _seed  # type: ignore[method-assign]
    random.seed = functools.partial(_seed, random.random.__self__)  # type: ignore[attr-defined]


def _restore_arguments() -> None:
    """Arguments that said what is now so anyway."""
    if getattr(open, "__name__", "") == "_open":
        return
    opened = builtins.open

    def _open(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
        if isinstance(mode, str) and "U" in mode:  # newlines of every kind
            mode = mode.replace("U", "")
            mode = mode if "r" in mode else "r" + mode
        return opened(file, mode, *args, **kwargs)

    def _without_encoding(load: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(load)
        def function(*args: Any, encoding: Any = None, **kwargs: Any) -> Any:
            return load(*args, **kwargs)

        return function

    vars(builtins).update(open=_open)
    for name in ("load", "loads"):
        setattr(json, name, _without_encoding(getattr(json, name)))
