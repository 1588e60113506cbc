"""Python functions as ops: ``tf.py_func``.

The op holds a token; the function stays in this process and is never written to a graph file.
"""

from __future__ import annotations

import itertools
import traceback
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, overload

import numpy as np

from headrace.errors import (
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import add_node, convert_to_tensor
from headrace.ops.core.public import public
from headrace.ops.core.registry import EXTERNAL, NotDifferentiable, OpDef, define_op

#: Modules whose frames are no concern of who wrote the function.
_PACKAGE = f"{__name__.partition('.')[0]}."


class _Script:
    """A registered function; it lives as long as the graph that calls it."""

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


_scripts: weakref.WeakValueDictionary[str, _Script] = weakref.WeakValueDictionary()
_numbers = itertools.count()

#: What an exception of the function becomes; others are UnknownError.
_ERRORS: tuple[tuple[type[Exception], Callable[..., OpError]], ...] = (
    (StopIteration, OutOfRangeError),
    (MemoryError, ResourceExhaustedError),
    (NotImplementedError, UnimplementedError),
    (TypeError, InvalidArgumentError),
    (ValueError, InvalidArgumentError),
)


def _call(context: Any, inputs: list[Any], *, token: str, Tout: tuple[DType, ...]) -> Any:
    op = context.node.op
    script = _scripts.get(token)
    if script is None:
        raise InvalidArgumentError(
            None,
            op,
            f"The Python function {token} is not in this process: functions are not part of graph "
            "files. Build the graph again with tf.py_func.",
        )
    try:
        result = script.function(*[_argument(i) for i in inputs])
    except OpError:
        raise
    except Exception as error:
        kind: Callable[..., OpError] = UnknownError
        kind = next((e for base, e in _ERRORS if isinstance(error, base)), kind)
        error.__traceback__ = _from_the_function(error.__traceback__)
        message = f"{type(error).__name__}: {error}"
        if error.__traceback__ is not None:
            message += "\n" + "".join(traceback.format_exception(error))
        raise kind(None, op, message) from error
    return _results(op, token, result, Tout)


def _from_the_function(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package above the function; None if there is no more.

    Then the function was not entered, as it takes other arguments.
    """
    inner = trace
    while inner is not None and inner.tb_frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        inner = inner.tb_next
    if inner is None and trace is not None:  # a function of this package
        return trace.tb_next
    return inner


def _argument(value: Any) -> Any:
    """A private copy: the function may write into what it is given. Scalars as NumPy scalars."""
    array = np.array(value)
    return array[()] if array.ndim == 0 else array


def _results(op: Operation, token: str, result: Any, types: tuple[DType, ...]) -> list[Any]:
    values = list(result) if isinstance(result, (list, tuple)) else [result]
    if not types and (result is None or len(values) == 0):
        return []
    if len(values) != len(types):
        raise InvalidArgumentError(
            None,
            op,
            f"{token} returns {len(values)} values, but expects to see {len(types)} values.",
        )
    return [
        _checked(op, token, i, v, t) for i, (v, t) in enumerate(zip(values, types, strict=True))
    ]


def _checked(op: Operation, token: str, index: int, value: Any, dtype: DType) -> Any:
    if dtype is dtypes.string:
        array = np.asarray(value, object)
        flat = [v.encode() if isinstance(v, str) else v for v in array.reshape(-1)]
        if all(isinstance(v, bytes) for v in flat):
            result = np.empty(array.shape, object)
            result.reshape(-1)[:] = flat
            return result
    array = np.asarray(value)
    if array.dtype != dtype.np_dtype:
        raise InvalidArgumentError(
            None,
            op,
            f"{index}-th value returned by {token} is {array.dtype}, but expects {dtype.name}",
        )
    return array


def _define(name: str) -> OpDef:
    return define_op(
        f"{name}(input: Tin) -> output: Tout",
        attrs="token: string, Tin: list(type), Tout: list(type)",
        host=_call,
        gradient=NotDifferentiable("a Python function has no known gradient"),
        effects=EXTERNAL,
    )


PY_FUNC = _define("PyFunc")
PY_FUNC_STATELESS = _define("PyFuncStateless")


@overload
def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: list[Any] | tuple[Any, ...],
    stateful: bool = True,
    name: str | None = None,
) -> list[Tensor]: ...
@overload
def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,
    stateful: bool = True,
    name: str | None = None,
) -> Tensor: ...


@public("py_func")
def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Call a Python function on NumPy values when the graph runs.

    Args:
        func: takes as many arrays as there are inputs, returns one value or a list, of the types
            ``Tout`` exactly and of any shape.
        inp: tensors.
        Tout: type of the result, or a list of types.
        stateful: whether calls may differ for the same inputs, and so are not merged or left out.

    Returns:
        A tensor, a list of tensors when ``Tout`` is a list, or the operation when it is empty.
        Shapes are unknown; use ``set_shape``.

    Raises:
        ValueError: if ``func`` cannot be called.
        InvalidArgumentError: when run, if the results do not fit ``Tout``.
        UnknownError: when run, for what ``func`` raises, with its traceback.
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable, got func of type {type(func)}")
    many = isinstance(Tout, (list, tuple))
    types = tuple(dtypes.as_dtype(t) for t in (Tout if many else [Tout]))
    token = f"pyfunc_{next(_numbers)}"
    script = _scripts[token] = _Script(func)
    keep = get_default_graph().outermost.__dict__.setdefault("_py_funcs", [])
    keep.append(script)
    definition = PY_FUNC if stateful else PY_FUNC_STATELESS
    attrs = {"token": token, "Tout": types, "name": name}
    op = add_node(definition, [[convert_to_tensor(i) for i in inp]], attrs)
    if not types:
        return op
    return list(op.outputs) if many else op.outputs[0]
