"""Tools of the elementwise families: table rows for ops, broadcasting, and its gradient."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from headrace.graph.shapes import broadcast_static
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.array_util import like_first
from headrace.ops.core.build import apply_op, raw
from headrace.ops.core.registry import (
    PURE,
    Effects,
    GradientRule,
    NotDifferentiable,
    OpDef,
    define_op,
)
from headrace.ops.core.traits import ELEMENTWISE, Traits
from headrace.ops.math.examples import example_of

Gradient = GradientRule | NotDifferentiable | None
Kernel = Callable[..., Any]

FLOATS = "{bfloat16, float16, float32, float64}"
INEXACT = "{bfloat16, float16, float32, float64, complex64, complex128}"
INTEGERS = "{int8, int16, int32, int64, uint8, uint16, uint32, uint64}"
SIGNED = "{bfloat16, float16, float32, float64, int8, int16, int32, int64, complex64, complex128}"
REALS = "real"
NUMBERS = "numeric"

BOOLEAN = NotDifferentiable("the result is boolean")
INTEGER = NotDifferentiable("the result is of an integer type")


def broadcast_shape(op: Operation) -> list[Dims]:
    """Shape rule: both inputs broadcast together."""
    x, y = op.inputs
    return [broadcast_static(x.dims, y.dims)]


def no_gradient(count: int) -> GradientRule:
    """A rule that gives None for each input: piecewise constant functions."""
    return lambda op, *grads: [None] * count


def flat_function(op: Operation, *grads: Tensor) -> list[Tensor | None]:
    """The gradient of a piecewise constant function of one input."""
    return [None]


# -- rows of the op tables ----------------------------------------------------------------------


def unary(
    op_name: str,
    types: str,
    kernel: Kernel,
    interpret: Kernel | None,
    gradient: Gradient,
    doc: str,
    *,
    output: str = "T",
    argument: str = "x",
    traits: Traits = ELEMENTWISE,
) -> Callable[..., Tensor]:
    """Define an op of one input that keeps its shape; returns the public function."""
    definition = define_op(
        f"{op_name}({argument}: T) -> y: {output}",
        attrs=f"T: {types}",
        shape=like_first,
        kernel=kernel,
        interpret=interpret,
        gradient=gradient,
        traits=traits,
    )

    def function(x: Any, name: str | None = None) -> Tensor:
        result: Tensor = apply_op(definition, (x,), {"name": name})
        return result

    return documented(function, definition, op_name, doc)


#: What the few binary ops call their output that do not call it "z"; function bodies use the names.
_RESULTS = {"NextAfter": "output", "RandomGammaGrad": "output"}


def binary(
    op_name: str,
    types: str,
    kernel: Kernel,
    interpret: Kernel | None,
    gradient: Gradient,
    doc: str,
    *,
    output: str = "T",
    arguments: str = "x y",
    effects: Effects = PURE,
    traits: Traits = ELEMENTWISE,
    cost: Callable[[Operation], float] | None = None,
) -> Callable[..., Tensor]:
    """Define an op of two inputs that broadcast; returns the public function."""
    first, second = arguments.split()
    definition = define_op(
        f"{op_name}({first}: T, {second}: T) -> {_RESULTS.get(op_name, 'z')}: {output}",
        attrs=f"T: {types}",
        shape=broadcast_shape,
        kernel=kernel,
        interpret=interpret,
        gradient=gradient,
        effects=effects,
        traits=traits,
        cost=cost,
        checked=_divisor_of_integers,
    )
    return binary_function(definition, op_name, doc, arguments)


def _divisor_of_integers(attrs: dict[str, Any]) -> tuple[int, ...]:
    """What ops of two inputs may refuse: a divisor or exponent, and of integers only."""
    return (1,) if attrs["T"].is_integer else ()


def binary_function(
    definition: OpDef, default_name: str, doc: str, arguments: str = "x y"
) -> Callable[..., Tensor]:
    """The public function of an op of two inputs, which callers may give by name."""

    def build(x: Any, y: Any, name: str | None) -> Tensor:
        result: Tensor = apply_op(definition, (x, y), {"name": name or default_name})
        return result

    return documented(_SPELLINGS[arguments](build), definition, default_name, doc)


def _x_y(build: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return build(x, y, name)

    return function


def _y_x(build: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(y: Any, x: Any, name: str | None = None) -> Tensor:
        return build(y, x, name)

    return function


def _a_x(build: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(a: Any, x: Any, name: str | None = None) -> Tensor:
        return build(a, x, name)

    return function


def _x_q(build: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(x: Any, q: Any, name: str | None = None) -> Tensor:
        return build(x, q, name)

    return function


def _x1_x2(build: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(x1: Any, x2: Any, name: str | None = None) -> Tensor:
        return build(x1, x2, name)

    return function


#: Functions of two inputs by the names of their arguments; other spellings are not public.
_SPELLINGS: dict[str, Callable[[Callable[..., Tensor]], Callable[..., Tensor]]] = {
    "x y": _x_y,
    "y x": _y_x,
    "a x": _a_x,
    "x q": _x_q,
    "x1 x2": _x1_x2,
    "alpha sample": _x_y,
}


def documented(
    function: Callable[..., Tensor], definition: OpDef, op_name: str, doc: str
) -> Callable[..., Tensor]:
    """Name and describe a function made from a table row."""
    function.__name__ = function.__qualname__ = op_name
    names = list(inspect.signature(function).parameters)[:-1]  # the last one is `name`
    if len(names) == 1:
        function.__doc__ = f"""{doc}

Elementwise ({op_name}).

Args:
    {names[0]}: a tensor of any shape{_types(definition)}

Returns:
    A tensor of the same shape.

Raises:
    TypeError: if the input has a type that {op_name} does not take.
{example_of(op_name)}"""
        return function
    function.__doc__ = f"""{doc}

Elementwise ({op_name}).

Args:
    {", ".join(names)}: tensors of one type, whose shapes broadcast: from the last dimension on,
        sizes are equal, or one of them is 1 or missing{_types(definition)}

Returns:
    A tensor; the result has the broadcast shape.

Raises:
    TypeError: if the types differ, or {op_name} does not take them.
    ValueError: if the shapes do not broadcast.
    InvalidArgumentError: when run, if shapes known only then do not.
{example_of(op_name)}"""
    return function


@functools.cache  # few sets of types serve all rows, and importing is to stay fast
def _types_text(allowed: frozenset[Any]) -> str:
    listed = ", ".join(sorted(dtype.name for dtype in allowed))
    return textwrap.indent("\n".join(textwrap.wrap(f"{listed}.", 88)), " " * 8)


def _types(definition: OpDef) -> str:
    """The end of a description: which types the op takes, on lines of their own."""
    allowed = definition.attrs["T"].allowed if "T" in definition.attrs else None
    return f". Types:\n{_types_text(allowed)}" if allowed else "."


# -- kernels ------------------------------------------------------------------------------------


def broadcast(x: Any, y: Any) -> tuple[Any, Any]:
    """Traced values brought to one shape.

    Raises:
        ValueError: if the shapes do not fit.
    """
    xs, ys = x.shape, y.shape
    if xs == ys:
        return x, y
    try:
        # JAX's function takes sizes that are symbols, too (`jax.export`).
        shape = lax.broadcast_shapes(xs, ys)
    except ValueError:
        raise ValueError(f"Incompatible shapes: {list(xs)} vs. {list(ys)}") from None
    return _spread(x, shape), _spread(y, shape)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    if x.shape == shape:
        return x
    return lax.broadcast_in_dim(x, shape, range(len(shape) - len(x.shape), len(shape)))


def lifted(function: Kernel) -> Kernel:
    """A kernel from a ``lax`` function of two arrays of one shape."""

    def kernel(x: Any, y: Any) -> Any:
        if x.shape != y.shape:
            x, y = broadcast(x, y)
        return function(x, y)

    return kernel


def scalar(value: float, like: Any) -> Any:
    """A NumPy scalar of the type of ``like``: Python numbers would widen bfloat16."""
    return like.dtype.type(value)


# -- gradients ----------------------------------------------------------------------------------


def conj(tensor: Tensor) -> Tensor:
    """The complex conjugate; the tensor itself where it is real."""
    return raw.Conj(tensor) if tensor.dtype.is_complex else tensor


def unbroadcast(op: Operation, gx: Tensor | None, gy: Tensor | None) -> list[Tensor | None]:
    """Sum the gradients of two broadcast inputs over what was broadcast.

    With equal static shapes nothing is added to the graph; with known ones a Sum where needed;
    else one SumLike, which looks at the shapes when the step runs.
    """
    x, y = op.inputs[0], op.inputs[1]
    xs, ys = x.dims, y.dims
    if x is y or (xs is not None and xs == ys and None not in xs):
        return [gx, gy]
    rank = 0 if xs is None or ys is None else max(len(xs), len(ys))
    return [
        None if gx is None else sum_to(gx, x, repeated_axes(xs, ys), rank),
        None if gy is None else sum_to(gy, y, repeated_axes(ys, xs), rank),
    ]


def repeated_axes(own: Dims, other: Dims) -> list[int] | None:
    """Axes of the result along which an input of shape ``own`` was repeated; None if unknown."""
    if own is None or other is None:
        return None
    rank = max(len(own), len(other))
    lead = rank - len(own)
    padded = (1,) * (rank - len(other)) + tuple(other)
    axes = list(range(lead))
    for i, (size, against) in enumerate(zip(own, padded[lead:], strict=True), lead):
        if size is None and against != 1:
            return None
        if size == 1 and against != 1:
            axes.append(i)
    return axes


def sum_to(grad: Tensor, x: Tensor, axes: Sequence[int] | None, rank: int) -> Tensor:
    """``grad`` (of ``rank``) summed over ``axes`` (None: unknown) into the shape of ``x``."""
    if axes is None:
        return raw.SumLike(grad, x)
    if not axes:
        return grad
    lead = rank - len(x.dims or ())
    indices = np.array(axes, np.int32)
    if axes[-1] < lead:
        return raw.Sum(grad, indices)
    total = raw.Sum(grad, indices, keep_dims=True)
    return total if lead == 0 else raw.Reshape(total, shape_of(x))


def shape_of(x: Tensor) -> Any:
    """The shape of ``x``: a constant where it is known, else a Shape op."""
    dims = x.dims
    if dims is not None and None not in dims:
        return np.array(dims, np.int32)
    return raw.Shape(x)
