"""Public assertions and checks. What the static values already tell is reported at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.checking import summary_text
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_value


@public("Assert", "debugging.Assert")
def Assert(
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that fails, showing ``data``, unless ``condition`` (a scalar) is true.

    Args:
        data: tensors and texts for the message; ``summarize`` elements of each are shown (3).

    Raises:
        InvalidArgumentError: when the graph runs, if the condition is false.
    """
    values = [convert_to_tensor(d) for d in data]
    return raw.Assert(
        convert_to_tensor(condition, dtypes.bool),
        values,
        summarize=3 if summarize is None else summarize,
        name=name,
    )


@public("Print")
def Print(
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """``input_``; when it is computed, ``data`` is printed to standard error.

    Args:
        message: put in front; first_n: print only so many times; summarize: elements of each (3).

    ``input_`` and the tensors in ``data`` may have any shape and dtype.

    Raises:
        ValueError: if ``input_`` is None.
        TypeError: if ``data`` is no list.
    """
    return raw.Print(
        input_,
        [convert_to_tensor(d) for d in data],
        message=message or "",
        first_n=-1 if first_n is None else first_n,
        summarize=3 if summarize is None else summarize,
        name=name,
    )


@public("check_numerics", "debugging.check_numerics")
def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """``tensor``, checked to hold no NaN and no infinity when it is computed.

    The tensor is floating, of any shape, and comes back as it is.

    Raises:
        TypeError: if ``tensor`` is not floating.
        InvalidArgumentError: when run, if an element is NaN or infinite.
    """
    return raw.CheckNumerics(tensor, message=message, name=name)


@public("verify_tensor_all_finite", "debugging.assert_all_finite")
def verify_tensor_all_finite(
    t: Any = None,
    msg: str | None = None,
    name: str | None = None,
    x: Any = None,
    message: Any = None,
) -> Tensor:
    """``t`` (or ``x``), checked to hold no NaN and no infinity; ``msg`` begins the error.

    The tensor is floating, of any shape, and comes back as it is.

    Raises:
        ValueError: if the tensor or the message is missing.
        TypeError: if the tensor is not floating.
        InvalidArgumentError: when run, if an element is NaN or infinite.
    """
    value, text = (t if x is None else x), (msg if message is None else message)
    if value is None or text is None:
        raise ValueError("verify_tensor_all_finite needs a tensor and a message.")
    with get_default_graph().name_scope(name or "VerifyFinite"):
        tensor = convert_to_tensor(value)
        checked = raw.CheckNumerics(tensor, message=text)
        with get_default_graph().control_dependencies([checked.op]):
            return raw.Identity(tensor)


@public("add_check_numerics_ops")
def add_check_numerics_ops() -> Operation:
    """An operation that checks every floating tensor that the graph has so far.

    The tensors may have any shape.

    Raises:
        InvalidArgumentError: when the operation runs, if an element is NaN or infinite.
    """
    graph = get_default_graph()
    made: list[Operation] = []
    for op in graph.get_operations():
        for tensor in op.outputs:
            if tensor.dtype.is_floating:
                with graph.control_dependencies([*made[-1:]]):
                    made.append(raw.CheckNumerics(tensor, message=tensor.name).op)
    with graph.control_dependencies(made):
        return raw.NoOp()


# -- elementwise assertions ---------------------------------------------------------------------


def _statically(condition: Any, data: Sequence[Any], summarize: int | None) -> None:
    """Raise if the condition is known, and false, while the graph is built."""
    if condition is not None and not np.all(condition):
        lines = [
            summary_text(v, -1 if summarize is None else summarize)
            if (v := static_value(d) if isinstance(d, Tensor) else d) is not None
            else str(d)
            for d in data
        ]
        raise InvalidArgumentError(None, None, "\n".join(lines))


def _known(function: Any, *tensors: Tensor) -> Any:
    values = [static_value(t) for t in tensors]
    return None if any(v is None for v in values) else function(*values)


def _require_all(
    condition: Tensor, known: Any, data: list[Any], summarize: int | None, scope: str
) -> Operation:
    _statically(known, data, summarize)
    everywhere = raw.All(condition, raw.Range(0, raw.Rank(condition), 1))
    return Assert(everywhere, data, summarize, name=scope)


def _binary(kind: str, symbol: str, op: str, compare: Any) -> Callable[..., Operation]:
    def check(
        x: Any,
        y: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with get_default_graph().name_scope(name or kind) as scope:
            left = convert_to_tensor(x, name="x")
            right = convert_to_tensor(y, left.dtype if not isinstance(y, Tensor) else None, "y")
            shown = (
                list(data)
                if data is not None
                else [
                    f"Condition x {symbol} y did not hold element-wise:",
                    f"x ({left.name}) = ",
                    left,
                    f"y ({right.name}) = ",
                    right,
                ]
            )
            if message is not None:
                shown = [message, *shown]
            known = _known(compare, left, right)
            return _require_all(getattr(raw, op)(left, right), known, shown, summarize, scope)

    check.__name__ = check.__qualname__ = kind
    check.__doc__ = (
        f"An operation that fails unless ``x {symbol} y`` for all elements.\n\n"
        "    ``x`` and ``y`` have one dtype and shapes that broadcast.\n\n"
        "    Raises:\n"
        "        InvalidArgumentError: at once if the values are known, else when the graph runs.\n"
    )
    return check


assert_equal = public("assert_equal", "debugging.assert_equal")(
    _binary("assert_equal", "==", "Equal", np.equal)
)
assert_none_equal = public("assert_none_equal", "debugging.assert_none_equal")(
    _binary("assert_none_equal", "!=", "NotEqual", np.not_equal)
)
assert_less = public("assert_less", "debugging.assert_less")(
    _binary("assert_less", "<", "Less", np.less)
)
assert_less_equal = public("assert_less_equal", "debugging.assert_less_equal")(
    _binary("assert_less_equal", "<=", "LessEqual", np.less_equal)
)
assert_greater = public("assert_greater", "debugging.assert_greater")(
    _binary("assert_greater", ">", "Greater", np.greater)
)
assert_greater_equal = public("assert_greater_equal", "debugging.assert_greater_equal")(
    _binary("assert_greater_equal", ">=", "GreaterEqual", np.greater_equal)
)


def _signed(kind: str, symbol: str, op: str, compare: Any) -> Callable[..., Operation]:
    def check(
        x: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with get_default_graph().name_scope(name or kind) as scope:
            tensor = convert_to_tensor(x, name="x")
            shown = (
                list(data)
                if data is not None
                else [
                    f"Condition x {symbol} 0 did not hold element-wise:",
                    f"x ({tensor.name}) = ",
                    tensor,
                ]
            )
            if message is not None:
                shown = [message, *shown]
            zero = convert_to_tensor(0, tensor.dtype)
            known = _known(lambda v: compare(v, 0), tensor)
            return _require_all(getattr(raw, op)(tensor, zero), known, shown, summarize, scope)

    check.__name__ = check.__qualname__ = kind
    check.__doc__ = (
        f"An operation that fails unless ``x {symbol} 0`` for all elements, whatever the shape.\n\n"
        "    Raises:\n"
        "        TypeError: if ``x`` does not hold real numbers.\n"
        "        InvalidArgumentError: at once if the values are known, else when the graph runs.\n"
    )
    return check


assert_positive = public("assert_positive", "debugging.assert_positive")(
    _signed("assert_positive", ">", "Greater", np.greater)
)
assert_negative = public("assert_negative", "debugging.assert_negative")(
    _signed("assert_negative", "<", "Less", np.less)
)
assert_non_negative = public("assert_non_negative", "debugging.assert_non_negative")(
    _signed("assert_non_negative", ">=", "GreaterEqual", np.greater_equal)
)
assert_non_positive = public("assert_non_positive", "debugging.assert_non_positive")(
    _signed("assert_non_positive", "<=", "LessEqual", np.less_equal)
)


@public("assert_near", "debugging.assert_near")
def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """An operation that fails unless ``|x - y| <= atol + rtol * |y|`` for all elements.

    Tolerances are ten times the machine precision unless given.

    ``x`` and ``y`` are floating, of one dtype, with shapes that broadcast.

    Raises:
        TypeError: if ``x`` is not floating.
        ValueError: if the shapes do not broadcast, or ``y`` is a tensor of another dtype.
        InvalidArgumentError: at once if the values are known, else when the graph runs.
    """
    with get_default_graph().name_scope(name or "assert_near") as scope:
        left = convert_to_tensor(x, name="x")
        right = convert_to_tensor(y, left.dtype, "y")
        default = 10 * _precision(left.dtype)
        relative = convert_to_tensor(default if rtol is None else rtol, left.dtype, "rtol")
        absolute = convert_to_tensor(default if atol is None else atol, left.dtype, "atol")
        limit = raw.AddV2(absolute, raw.Mul(relative, raw.Abs(right)))
        difference = raw.Abs(raw.Sub(left, right))
        shown = (
            list(data)
            if data is not None
            else [
                "x and y not equal to tolerance rtol = ",
                relative,
                ", atol = ",
                absolute,
                f"x ({left.name}) = ",
                left,
                f"y ({right.name}) = ",
                right,
            ]
        )
        if message is not None:
            shown = [message, *shown]
        known = _known(np.less_equal, difference, limit)
        return _require_all(raw.LessEqual(difference, limit), known, shown, summarize, scope)


def _precision(dtype: dtypes.DType) -> float:
    if not dtype.is_floating:
        raise TypeError(f"assert_near needs floating tensors, got {dtype.name}.")
    return float(np.finfo(dtype.np_dtype).eps) if dtype is not dtypes.bfloat16 else 2.0**-7


def _ordered(x: Any, op: str, name: str) -> Tensor:
    with get_default_graph().name_scope(name):
        flat = raw.Reshape(convert_to_tensor(x), [-1])
        before = raw.StridedSlice(flat, [0], [-1], [1], begin_mask=1)
        after = raw.StridedSlice(flat, [1], [0], [1], end_mask=1)
        return raw.All(getattr(raw, op)(before, after), [0])


@public("is_non_decreasing", "debugging.is_non_decreasing")
def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether no element (in row-major order) is less than the one before it.

    ``x`` has any shape; the result is a bool scalar, true where ``x`` has fewer than two elements.

    Raises:
        TypeError: if ``x`` does not hold real numbers.
    """
    return _ordered(x, "LessEqual", name or "is_non_decreasing")


@public("is_strictly_increasing", "debugging.is_strictly_increasing")
def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether each element (in row-major order) is greater than the one before it.

    ``x`` has any shape; the result is a bool scalar, true where ``x`` has fewer than two elements.

    Raises:
        TypeError: if ``x`` does not hold real numbers.
    """
    return _ordered(x, "Less", name or "is_strictly_increasing")
