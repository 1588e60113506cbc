"""Python's operators on tensors, and the arithmetic functions that follow Python's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import default_graph_stack
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import apply_op, convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import OpDef, get_op_def

Operator = Callable[[Tensor, Any], Any]

#: What ``/`` computes integers in, as in Python a true division gives a float.
_DIVISION_TYPES = {
    dtypes.int8: dtypes.float32,
    dtypes.uint8: dtypes.float32,
    dtypes.int16: dtypes.float32,
    dtypes.uint16: dtypes.float32,
    dtypes.int32: dtypes.float64,
    dtypes.uint32: dtypes.float64,
    dtypes.int64: dtypes.float64,
    dtypes.uint64: dtypes.float64,
}


def _is_foreign(value: Any) -> bool:
    """Whether another class (a sparse tensor) takes over the operator by its reflected method."""
    return getattr(value, "_owns_operators", False)


def _binary(name: str, build: Callable[[Any, Any, str], Any]) -> tuple[Operator, Operator]:
    """``x op value`` and ``value op x``: the other operand becomes a tensor of the type of x."""

    def forward(x: Tensor, y: Any) -> Any:
        if isinstance(y, Tensor):
            return build(x, y, name)
        if _is_foreign(y):
            return NotImplemented
        with default_graph_stack.current().name_scope(name) as scope:
            return build(x, _operand(y, x, "y"), scope)

    def reflected(y: Tensor, x: Any) -> Any:
        with default_graph_stack.current().name_scope(name) as scope:
            return build(_operand(x, y, "x"), y, scope)

    forward.__name__, reflected.__name__ = f"__{name}__", f"__r{name}__"
    return forward, reflected


def _operand(value: Any, other: Tensor, name: str) -> Tensor:
    return convert_to_tensor(value, other.dtype, name)


def _op_builder(op_type: str) -> Callable[[Any, Any, str], Any]:
    definition: OpDef = get_op_def(op_type)
    return lambda x, y, name: apply_op(definition, (x, y), {"name": name})


def _add(x: Any, y: Any, name: str) -> Any:
    if x.dtype is dtypes.string:
        return raw.StringJoin([x, y], name=name)
    return apply_op(_ADD, (x, y), {"name": name})


_ADD = get_op_def("AddV2")


def _truediv(x: Tensor, y: Tensor, name: str) -> Tensor:
    if x.dtype is not y.dtype:
        raise TypeError(
            f"x and y must have the same dtype, got {x.dtype!r} != {y.dtype!r}: use tf.cast"
        )
    wide = _DIVISION_TYPES.get(x.dtype)
    if wide is not None:
        with default_graph_stack.current().name_scope(name) as scope:
            return raw.RealDiv(raw.Cast(x, DstT=wide), raw.Cast(y, DstT=wide), name=scope)
    return raw.RealDiv(x, y, name=name)


def _logic(logical: str, bitwise: str) -> Callable[[Any, Any, str], Any]:
    """Logic on booleans; on integers the bits."""

    def build(x: Tensor, y: Tensor, name: str) -> Any:
        op = logical if x.dtype is dtypes.bool else bitwise
        return getattr(raw, op)(x, y, name=name)

    return build


def _xor(x: Tensor, y: Tensor, name: str) -> Any:
    if x.dtype is not dtypes.bool:
        return raw.BitwiseXor(x, y, name=name)
    return raw.NotEqual(x, y, name=name)


def _matmul(x: Tensor, y: Tensor, name: str) -> Any:
    from headrace.ops.math.matmul import matmul

    return matmul(x, y, name=name)


def _comparison(op_type: str) -> Callable[[Tensor, Any], Any]:
    build = _op_builder(op_type)

    def compare(x: Tensor, y: Any) -> Any:
        if _is_foreign(y):
            return NotImplemented
        return build(x, y, op_type)

    return compare


def _negative(x: Tensor) -> Any:
    return raw.Neg(x)


def _absolute(x: Tensor) -> Any:
    from headrace.ops.math.cast import abs

    return abs(x)


def _invert(x: Tensor) -> Any:
    return raw.LogicalNot(x) if x.dtype is dtypes.bool else raw.Invert(x)


_floordiv = _op_builder("FloorDiv")
_div_exact = _op_builder("RealDiv")


def _div_python2(x: Tensor, y: Tensor, name: str) -> Any:
    """Integers rounded down, others exactly."""
    return (_floordiv if x.dtype.is_integer else _div_exact)(x, y, name)


def _install() -> None:
    table: dict[str, Callable[[Any, Any, str], Any]] = {
        "add": _add,
        "sub": _op_builder("Sub"),
        "mul": _op_builder("Mul"),
        "div": _div_python2,
        "truediv": _truediv,
        "floordiv": _floordiv,
        "mod": _op_builder("FloorMod"),
        "pow": _op_builder("Pow"),
        "and": _logic("LogicalAnd", "BitwiseAnd"),
        "or": _logic("LogicalOr", "BitwiseOr"),
        "xor": _xor,
        "matmul": _matmul,
    }
    for name, build in table.items():
        forward, reflected = _binary(name, build)
        Tensor._override_operator(f"__{name}__", forward)
        Tensor._override_operator(f"__r{name}__", reflected)
    for operator, op_type in {
        "lt": "Less",
        "le": "LessEqual",
        "gt": "Greater",
        "ge": "GreaterEqual",
    }.items():
        Tensor._override_operator(f"__{operator}__", _comparison(op_type))
    Tensor._override_operator("__neg__", _negative)
    Tensor._override_operator("__abs__", _absolute)
    Tensor._override_operator("__invert__", _invert)


_install()


# -- the functions ------------------------------------------------------------------------------


def _operands(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors; a Python value takes the type of the tensor beside it."""
    if isinstance(y, Tensor) and not isinstance(x, Tensor):
        return convert_to_tensor(x, y.dtype, "x"), y
    x = convert_to_tensor(x, name="x")
    return x, convert_to_tensor(y, x.dtype, "y")


@public("divide", "math.divide")
@composite_function
def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x / y`` as Python does it: integers give floats. Their shapes broadcast.

    Raises:
        TypeError: if a Python value does not fit the type of the tensor beside it.
        ValueError: if two tensors differ in type, or the shapes do not broadcast.
        InvalidArgumentError: when run, if shapes known only then do not broadcast.
    """
    with default_graph_stack.current().name_scope(name or "truediv") as scope:
        return _truediv(*_operands(x, y), scope)


@public("truediv", "math.truediv")
@composite_function
def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x / y``: int8, int16 give float32, int32 and int64 give float64. Their shapes broadcast.

    Raises:
        TypeError: if a Python value does not fit the type of the tensor beside it.
        ValueError: if two tensors differ in type, or the shapes do not broadcast.
        InvalidArgumentError: when run, if shapes known only then do not broadcast.

    >>> with tf.Session() as session:
    ...     session.run(truediv([1, 2], [2, 4])).tolist()
    [0.5, 0.5]
    """
    with default_graph_stack.current().name_scope(name or "truediv") as scope:
        result: Tensor = _truediv(*_operands(x, y), scope)
        return result


@public("div")
@composite_function
def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x / y`` as Python 2 does it: integers are rounded down. Their shapes broadcast.

    Raises:
        TypeError: if a Python value does not fit the type of the tensor beside it.
        ValueError: if two tensors differ in type, or the shapes do not broadcast.
        InvalidArgumentError: when run, if an integer is divided by 0, or shapes known only then do
            not broadcast.
    """
    with default_graph_stack.current().name_scope(name or "div") as scope:
        result: Tensor = _div_python2(*_operands(x, y), scope)
        return result


@public("floordiv", "math.floordiv")
@composite_function
def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x // y``: rounded down. Their shapes broadcast.

    Raises:
        TypeError: if the types are not real numbers, or a Python value does not fit the tensor's.
        ValueError: if two tensors differ in type, or the shapes do not broadcast.
        InvalidArgumentError: when run, if an integer is divided by 0, or shapes known only then do
            not broadcast.
    """
    with default_graph_stack.current().name_scope(name or "floordiv") as scope:
        result: Tensor = _floordiv(*_operands(x, y), scope)
        return result


@public("scalar_mul", "math.scalar_mul")
def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """``scalar * x``, in the shape of ``x``; IndexedSlices stay sparse.

    Raises:
        TypeError: if ``scalar`` does not fit the type of ``x``.
        ValueError: if ``scalar`` is known not to be a scalar.

    >>> with tf.Session() as session:
    ...     session.run(scalar_mul(2, [1, 2])).tolist()
    [2, 4]
    """
    is_sparse = hasattr(x, "indices") and hasattr(x, "values")
    values = convert_to_tensor(x.values if is_sparse else x)
    scalar = convert_to_tensor(scalar, values.dtype.base_dtype, "scalar")
    if scalar.dims not in ((), None):
        raise ValueError("Only scalar multiply works, got shape " + str(scalar.shape))
    product = raw.Mul(scalar, values, name=name)
    return type(x)(product, x.indices, x.dense_shape) if is_sparse else product


@public("pow", "math.pow")
def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x`` to the power ``y``, elementwise; their shapes broadcast.

    Raises:
        TypeError: if the types differ.
        ValueError: if the shapes do not broadcast.
        InvalidArgumentError: when run, if an integer is raised to a negative power, or shapes known
            only then do not broadcast.
    """
    return raw.Pow(x, y, name=name)
