"""What NumPy did in the years of the 1.x releases and refuses since, for programs of that time.

`restore` changes NumPy in the whole process; only `headrace run` calls it. Today's errors stay
where Headrace or JAX ask for an array, so that their own messages stay as they are.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["restore", "set_method"]

#: Packages that count on what NumPy refuses today.
_OF_TODAY = ("headrace", "jax", "jaxlib", "ml_dtypes", "numpy")
#: Functions that made an array of objects of rows of different lengths.
_OF_ONE_ARRAY = """
    append argsort array_split atleast_1d copy delete expand_dims flip insert max mean min ndim
    ravel repeat roll save savez savez_compressed shape size sort squeeze sum take tile transpose
    unique where
""".split()  # noqa: SIM905
_OF_ARRAYS = ("concatenate", "hstack", "stack", "vstack")
_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


def restore() -> None:
    """Let NumPy do what it did."""
    if getattr(np.array, "_of_the_era", False):
        return
    for name in ("array", "asarray", "asanyarray"):
        setattr(np, name, _lenient(getattr(np, name)))
    for name in ("vstack", "hstack", "dstack", "stack", "column_stack"):
        setattr(np, name, _of_any_iterable(getattr(np, name)))
    for name in _OF_ONE_ARRAY:
        setattr(np, name, _of_rows(getattr(np, name), _objects))
    for name in _OF_ARRAYS:
        setattr(np, name, _of_rows(getattr(np, name), _each_an_array))
    for name in ("choice", "permutation"):
        setattr(np.random, name, _of_rows(getattr(np.random, name), _objects))
    np.reshape = _with_newshape(np.reshape)
    np.fromstring = _fromstring(np.fromstring)
    np.set_printoptions = _set_printoptions(np.set_printoptions)
    np.set_printoptions(legacy="1.25")  # numbers in lists are shown as numbers
    set_method(np.ndarray, "__float__", _scalar(np.ndarray.__float__))
    set_method(np.ndarray, "__int__", _scalar(np.ndarray.__int__))
    for method in (_tostring, _ptp, _itemset, _newbyteorder):
        name = method.__name__.removeprefix("_")
        if not hasattr(np.ndarray, name):
            set_method(np.ndarray, name, method)


def set_method(cls: type, name: str, function: Callable[..., Any]) -> None:
    """Give a class that is written in C a method, which may be a special one.

    Such classes refuse ``setattr`` by a flag alone; without it the interpreter does all that
    belongs to it, subclasses included.
    """
    flags = ctypes.c_ulong.from_address(id(cls) + _flags_offset())
    was = flags.value
    flags.value = was & ~_IMMUTABLE
    try:
        setattr(cls, name, function)
    finally:
        flags.value = flags.value | (was & _IMMUTABLE)


@functools.cache
def _flags_offset() -> int:
    """Where the flags of a class lie in its object."""
    word = ctypes.sizeof(ctypes.c_ulong)
    classes = (int, dict, np.ndarray, np.generic)
    size: int = vars(type)["__basicsize__"].__get__(type)
    for offset in range(0, size - word, word):
        if all(ctypes.c_ulong.from_address(id(c) + offset).value == c.__flags__ for c in classes):
            return offset
    raise RuntimeError("cannot find the flags of a class: this Python is not CPython as known")


def _lenient(convert: Callable[..., Any]) -> Callable[..., Any]:
    """``np.array`` as it was.

    Rows of different lengths give an array of objects, and ``copy=False`` copies where it must.
    """

    @functools.wraps(convert)
    def array(*args: Any, **kwargs: Any) -> Any:
        try:
            return convert(*args, **kwargs)
        except ValueError as error:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.partition(".")[0] in _OF_TODAY:
                raise
            if "inhomogeneous shape" in str(error) and len(args) < 2 and "dtype" not in kwargs:
                return convert(*args, dtype=object, **kwargs)
            if kwargs.get("copy") is False:
                return convert(*args, **{**kwargs, "copy": None})
            raise

    array._of_the_era = True  # type: ignore[attr-defined]
    return array


def _of_rows(function: Callable[..., Any], convert: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of arrays that takes rows of different lengths.

    Args:
        convert: makes what the function takes of an argument that has such rows.
    """

    @functools.wraps(function)
    def of_rows(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.partition(".")[0] in _OF_TODAY or "inhomogeneous shape" not in str(error):
                raise
        converted = [convert(a) if isinstance(a, (list, tuple)) else a for a in args]
        return function(*converted, **kwargs)

    return of_rows


def _objects(rows: Any) -> Any:
    """An array, of lists if they have different lengths."""
    try:
        return np.array(rows)
    except ValueError:
        return np.array(rows, dtype=object)


def _each_an_array(rows: Any) -> Any:
    return [_objects(row) for row in rows]


def _with_newshape(reshape: Callable[..., Any]) -> Callable[..., Any]:
    """``np.reshape`` whose second argument may have its old name."""

    @functools.wraps(reshape)
    def function(a: Any, *args: Any, **kwargs: Any) -> Any:
        if "newshape" in kwargs:
            args = (kwargs.pop("newshape"), *args)
        return reshape(a, *args, **kwargs)

    return function


def _of_any_iterable(stack: Callable[..., Any]) -> Callable[..., Any]:
    """A stacking function that takes what `map` gives, too."""

    @functools.wraps(stack)
    def function(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(arrays, "__getitem__") and hasattr(arrays, "__iter__"):
            arrays = list(arrays)
        return stack(arrays, *args, **kwargs)

    return function


def _fromstring(text_only: Callable[..., Any]) -> Callable[..., Any]:
    """``np.fromstring`` with its binary mode."""

    @functools.wraps(text_only)
    def fromstring(
        string: Any, dtype: Any = float, count: int = -1, sep: str = "", **kwargs: Any
    ) -> Any:
        if sep:
            return text_only(string, dtype=dtype, count=count, sep=sep, **kwargs)
        data = string.encode("latin-1") if isinstance(string, str) else string
        return np.frombuffer(data, dtype=dtype, count=count).copy()

    return fromstring


def _set_printoptions(strict: Callable[..., Any]) -> Callable[..., Any]:
    """``np.set_printoptions``: a threshold of NaN printed everything."""

    @functools.wraps(strict)
    def set_printoptions(*args: Any, **kwargs: Any) -> Any:
        threshold = kwargs.get("threshold")
        if isinstance(threshold, float) and (math.isnan(threshold) or math.isinf(threshold)):
            kwargs["threshold"] = sys.maxsize
        return strict(*args, **kwargs)

    return set_printoptions


def _scalar(strict: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A conversion to a Python scalar that takes every array of one element."""

    def convert(array: Any) -> Any:
        return strict(array.reshape(()) if array.ndim and array.size == 1 else array)

    return convert


def _tostring(array: Any, order: Any = "C") -> bytes:
    """The bytes of an array: `ndarray.tobytes` under its old name."""
    data: bytes = array.tobytes(order)
    return data


def _ptp(array: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The largest less the smallest element."""
    return np.ptp(array, axis, out, keepdims)


def _itemset(array: Any, *args: Any) -> None:
    """Set one element: the index (none, flat or a tuple) comes first."""
    *index, value = args
    if len(index) == 1 and not isinstance(index[0], tuple):
        array.flat[index[0]] = value
    else:
        array[index[0] if index and isinstance(index[0], tuple) else tuple(index)] = value


def _newbyteorder(array: Any, new_order: Any = "S") -> Any:
    """The same bytes read in another order."""
    return array.view(array.dtype.newbyteorder(new_order))
