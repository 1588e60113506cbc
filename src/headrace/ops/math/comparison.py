"""Comparisons and logic of two inputs that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.graph.composite import composite_function
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core import flops
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import OpDef, define_op
from headrace.ops.core.traits import ELEMENTWISE
from headrace.ops.math.elementwise_util import (
    BOOLEAN,
    NUMBERS,
    REALS,
    Kernel,
    binary,
    binary_function,
    broadcast,
    broadcast_shape,
    lifted,
    scalar,
)

#: One floating point operation for each element.
_COUNTED = ELEMENTWISE.but(flops=flops.per_element(1))


def _compare(name: str, kernel: Kernel, interpret: Kernel, doc: str) -> Any:
    return binary(
        name, REALS, lifted(kernel), interpret, BOOLEAN, doc, output="bool", traits=_COUNTED
    )


greater = public("greater", "math.greater")(_compare("Greater", lax.gt, np.greater, "``x > y``."))
greater_equal = public("greater_equal", "math.greater_equal")(
    _compare("GreaterEqual", lax.ge, np.greater_equal, "``x >= y``.")
)
less = public("less", "math.less")(_compare("Less", lax.lt, np.less, "``x < y``."))
less_equal = public("less_equal", "math.less_equal")(
    _compare("LessEqual", lax.le, np.less_equal, "``x <= y``.")
)


def _equality_shape(op: Operation) -> list[Any]:
    if op.attrs["incompatible_shape_error"]:
        return broadcast_shape(op)
    return [None]


def _fits(x: Any, y: Any) -> bool:
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return True


def _equality(name: str, function: Kernel, numpy: Kernel) -> OpDef:
    """Shapes that do not fit make the values unequal where ``incompatible_shape_error`` is off."""
    when_unfit = np.asarray(name == "NotEqual")

    def kernel(x: Any, y: Any, *, incompatible_shape_error: bool) -> Any:
        if not incompatible_shape_error and not _fits(x, y):
            return when_unfit
        return lifted(function)(x, y)

    def interpret(x: Any, y: Any, *, incompatible_shape_error: bool) -> Any:
        if not incompatible_shape_error and not _fits(x, y):
            return when_unfit
        return np.asarray(numpy(x, y)).astype(np.bool_)  # of strings NumPy makes objects

    return define_op(
        f"{name}(x: T, y: T) -> z: bool",
        attrs="T: type, incompatible_shape_error: bool = True",
        shape=_equality_shape,
        kernel=kernel,
        interpret=interpret,
        gradient=BOOLEAN,
        traits=_COUNTED,
    )


equal = public("equal", "math.equal")(
    binary_function(_equality("Equal", lax.eq, np.equal), "Equal", "``x == y``.")
)
not_equal = public("not_equal", "math.not_equal")(
    binary_function(_equality("NotEqual", lax.ne, np.not_equal), "NotEqual", "``x != y``.")
)


def _logical(name: str, kernel: Kernel, interpret: Kernel) -> OpDef:
    return define_op(
        f"{name}(x: bool, y: bool) -> z: bool",
        shape=broadcast_shape,
        kernel=lifted(kernel),
        interpret=interpret,
        gradient=BOOLEAN,
        traits=ELEMENTWISE,
    )


logical_and = public("logical_and", "math.logical_and")(
    binary_function(
        _logical("LogicalAnd", lax.bitwise_and, np.logical_and), "LogicalAnd", "``x and y``."
    )
)
logical_or = public("logical_or", "math.logical_or")(
    binary_function(
        _logical("LogicalOr", lax.bitwise_or, np.logical_or), "LogicalOr", "``x or y``."
    )
)


@public("logical_xor", "math.logical_xor")
@composite_function
def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> Tensor:
    """Whether exactly one of ``x`` and ``y`` is true, elementwise; their shapes broadcast.

    Raises:
        TypeError: if they are not bool.
        ValueError: if the shapes do not broadcast.
        InvalidArgumentError: when run, if shapes known only then do not.
    """
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    either, both = raw.LogicalOr(x, y), raw.LogicalAnd(x, y)
    return raw.LogicalAnd(either, raw.LogicalNot(both), name=name)


def _approximate(x: Any, y: Any, *, tolerance: float) -> Any:
    x, y = broadcast(x, y)
    if np.dtype(x.dtype).kind in "iu":
        return _near_integers(jnp, x, y, tolerance)
    distance = jnp.abs(lax.sub(x, y))
    return lax.lt(distance, lax.full_like(distance, tolerance))


def _approximate_np(x: Any, y: Any, *, tolerance: float) -> Any:
    if x.dtype.kind in "iu":
        return _near_integers(np, x, y, tolerance)
    distance = np.abs(x - y)
    return distance < scalar(tolerance, distance)


def _near_integers(xp: Any, x: Any, y: Any, tolerance: float) -> Any:
    """The distance of two integers fits the unsigned type of their width, and wraps into it."""
    unsigned = np.dtype(f"u{np.dtype(x.dtype).itemsize}")
    limit = min(max(0, int(tolerance)), int(np.iinfo(unsigned).max))
    distance = xp.maximum(x, y).astype(unsigned) - xp.minimum(x, y).astype(unsigned)
    return distance < unsigned.type(limit)


define_op(
    "ApproximateEqual(x: T, y: T) -> z: bool",
    attrs=f"T: {NUMBERS}, tolerance: float = 1e-05",
    shape=broadcast_shape,
    kernel=_approximate,
    interpret=_approximate_np,
    gradient=BOOLEAN,
)


@public("math.approximate_equal")
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-5, name: str | None = None) -> Tensor:
    """``|x - y| < tolerance``, elementwise, as bool; the shapes must be equal.

    Raises:
        TypeError: if the types differ.
        ValueError: if the shapes do.
        InvalidArgumentError: when run, if shapes known only then differ.
    """
    return raw.ApproximateEqual(x, y, tolerance=tolerance, name=name)
