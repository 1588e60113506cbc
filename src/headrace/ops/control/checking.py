"""Ops that check or show values while the graph runs: Assert, Print, CheckNumerics."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import like_first
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, EXTERNAL, Effects, NotDifferentiable, define_op
from headrace.ops.core.traits import ELEMENTWISE, LOOKS


def summary_text(value: Any, limit: int) -> str:
    """The first ``limit`` elements of an array as text (all, if negative), rows in brackets."""
    array = np.asarray(value)
    if array.ndim == 0:
        return element_text(array[()])
    shown = array.size if limit < 0 else min(limit, array.size)
    texts = [element_text(v) for v in array.reshape(-1)[:shown]]
    if array.ndim == 1:
        return " ".join(texts) + ("..." if shown < array.size else "")
    position = 0

    def row(axis: int) -> str:
        nonlocal position
        if axis == array.ndim - 1:
            start, position = position, position + array.shape[axis]
            part = " ".join(texts[start:position])
            return f"{part}..." if start < shown < position else part
        parts = []
        for _ in range(array.shape[axis]):
            if position >= shown and array.size:
                break
            parts.append(f"[{row(axis + 1)}]")
        return "".join(parts)

    text = row(0)
    return text if shown == array.size or text.endswith(("...", "...]")) else f"{text}..."


def element_text(value: Any) -> str:
    """One element of an array, as messages show it."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (float, np.floating, ml_dtypes.bfloat16)):
        return _shortest(value)
    return str(value)


def _shortest(value: Any) -> str:
    """The few digits that tell a number of its type from its neighbours, as TensorFlow prints."""
    few, many = (15, 17) if isinstance(value, (float, np.float64)) else (6, 9)
    text = f"{value:.{few}g}"
    kind = type(value)
    return text if kind(text) == value or value != value else f"{value:.{many}g}"


# -- Assert -------------------------------------------------------------------------------------


def _assert_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims:
        raise ValueError(f"The condition of Assert must be a scalar, got shape {dims}.")
    return []


def _assert(condition: Any, data: list[Any]) -> Any:
    if isinstance(condition, (np.ndarray, np.generic)) and condition:
        return ()
    # A known failure waits for the program too: this may be a branch that is not taken.
    checks.require(jnp.asarray(condition), checks.SHOWS_TENSORS)
    return ()


def _assert_np(condition: Any, data: list[Any], *, summarize: int) -> Any:
    if not condition:
        shown = "".join(f" [{summary_text(d, summarize)}]" for d in data)
        raise InvalidArgumentError(None, None, f"{checks.SHOWS_TENSORS}:{shown}")
    return ()


define_op(
    "Assert(condition: bool, data: T)",
    attrs="T: list(type) >= 1, summarize: int = 3",
    shape=_assert_shape,
    kernel=_assert,
    interpret=_assert_np,
    effects=Effects(external=True, checks=True),
    gradient=NotDifferentiable("it has no outputs"),
)

# -- Print --------------------------------------------------------------------------------------

#: How often each Print op has printed.
_printed: weakref.WeakKeyDictionary[Operation, int] = weakref.WeakKeyDictionary()


def _print(
    context: Any, value: Any, data: list[Any], *, message: str, first_n: int, summarize: int
) -> Any:
    op = context.node.op
    count = _printed.get(op, 0)
    if first_n < 0 or count < first_n:
        _printed[op] = count + 1
        shown = "".join(f"[{summary_text(d, summarize)}]" for d in data)
        sys.stderr.write(f"{message}{shown}\n")
        sys.stderr.flush()
    return (value,)


define_op(
    "Print(input: T, data: U) -> output: T",
    attrs='T: type, U: list(type), message: string = "", first_n: int = -1, summarize: int = 3',
    shape=like_first,
    host=_print,
    effects=EXTERNAL,
    gradient=lambda op, grad: [grad, *[None] * (len(op.inputs) - 1)],
    traits=LOOKS,
)

# -- CheckNumerics ------------------------------------------------------------------------------


def _literal(message: str) -> str:
    return message.replace("{", "{{").replace("}", "}}")


def _check_numerics(x: Any, *, message: str) -> Any:
    nan, infinite = jnp.isnan(x).any(), jnp.isinf(x).any()
    text = _literal(message)
    checks.require(~(nan & infinite), f"{text} : Tensor had Inf and NaN values")
    checks.require(~nan, f"{text} : Tensor had NaN values")
    checks.require(~infinite, f"{text} : Tensor had Inf values")
    return x


def _check_numerics_np(x: Any, *, message: str) -> Any:
    nan, infinite = np.isnan(x).any(), np.isinf(x).any()
    if nan or infinite:
        kinds = " and ".join([*["Inf"] * bool(infinite), *["NaN"] * bool(nan)])
        raise InvalidArgumentError(None, None, f"{message} : Tensor had {kinds} values")
    return x


def _check_numerics_gradient(op: Operation, grad: Tensor) -> list[Any]:
    text = "Not a number (NaN) or infinity (Inf) values detected in gradient. "
    return [raw.CheckNumerics(grad, message=text + op.attrs["message"])]


define_op(
    "CheckNumerics(tensor: T) -> output: T",
    attrs="T: floating, message: string",
    shape=like_first,
    kernel=_check_numerics,
    interpret=_check_numerics_np,
    gradient=_check_numerics_gradient,
    effects=CHECKS,
    traits=ELEMENTWISE.but(linear=slice(1)),
)
