"""Sums of products in index notation: einsum and tensordot."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.graph.graph import default_graph_stack
from headrace.graph.shapes import broadcast_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import define_op
from headrace.ops.core.static import static_value
from headrace.ops.core.traits import Traits
from headrace.ops.math import products
from headrace.ops.math.elementwise_util import conj


def _split(equation: str) -> tuple[list[str], str]:
    """The labels of each input and of the output."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    if not arrow:
        raise ValueError(f"Einsum equation {equation!r} needs '->' and the output's labels.")
    inputs = left.split(",")
    for labels in (*inputs, right):
        plain = labels.replace("...", "", 1)
        if not all(c in string.ascii_letters for c in plain):
            raise ValueError(f"Invalid character in einsum equation {equation!r}.")
    if len(set(right.replace("...", ""))) != len(right.replace("...", "")):
        raise ValueError(f"The output of einsum equation {equation!r} repeats a label.")
    unknown = set(right) - set(left)
    if unknown - {"."}:
        raise ValueError(f"Output label {sorted(unknown)[0]!r} of {equation!r} is in no input.")
    return inputs, right


def _einsum_shape(op: Operation) -> list[Dims]:
    inputs, output = _split(op.attrs["equation"])
    if len(inputs) != len(op.inputs):
        raise ValueError(
            f"Expected {len(inputs)} inputs for equation {op.attrs['equation']!r} but got "
            f"{len(op.inputs)}"
        )
    sizes: dict[str, int | None] = {}
    rest: Dims = ()
    for labels, tensor in zip(inputs, op.inputs, strict=True):
        covered = _read_labels(labels, tensor.dims, sizes)
        rest = broadcast_static(rest, covered)
    dims: list[int | None] = []
    before, ellipsis, after = output.partition("...")
    dims += [sizes.get(c) for c in before]
    if ellipsis:
        if rest is None:
            return [None]
        dims += rest
    return [(*dims, *[sizes.get(c) for c in after])]


def _read_labels(labels: str, dims: Dims, sizes: dict[str, int | None]) -> Dims:
    """Note the size of each label; returns the sizes that ``...`` stands for."""
    before, ellipsis, after = labels.partition("...")
    named = len(before) + len(after)
    if dims is None:
        return None if ellipsis else ()
    if len(dims) < named or (len(dims) != named and not ellipsis):
        raise ValueError(f"Labels {labels!r} do not fit an input of shape {shape_text(dims)}.")
    middle = len(dims) - len(after)
    pairs = [
        *zip(before, dims[: len(before)], strict=True),
        *zip(after, dims[middle:], strict=True),
    ]
    for label, size in pairs:
        known = sizes.get(label)
        if known is None:
            sizes[label] = size
        elif size is not None and size != known:
            raise ValueError(
                f"Expected dimension {known} for label {label!r} but got {size} in an input of "
                f"shape {shape_text(dims)}."
            )
    return dims[len(before) : middle]


def _einsum(inputs: list[Any], *, equation: str) -> Any:
    # JAX's own hook for products made elsewhere; there is no public one.
    return jnp.einsum(equation, *inputs, _dot_general=products.dot_general)


def _einsum_np(inputs: list[Any], *, equation: str) -> Any:
    dtype = inputs[0].dtype
    if dtype.itemsize == 2 and dtype.kind in "fV":
        inputs = [x.astype(np.float32) for x in inputs]
    return np.asarray(np.einsum(*_summed_alone(equation, inputs))).astype(dtype)


def _summed_alone(equation: str, inputs: list[Any]) -> list[Any]:
    """Labels of one input alone are summed before anything is multiplied.

    That is the order of compiled programs and of TensorFlow; infinities tell it from others.
    """
    labels, output = _split(equation)
    if len(inputs) == 1:
        return [equation, *inputs]
    kept, arrays = [], []
    for i, (own, array) in enumerate(zip(labels, inputs, strict=True)):
        needed = {*output, *"".join(labels[:i] + labels[i + 1 :]), "."}
        rest = "".join(c for c in own if c in needed)
        kept.append(rest)
        arrays.append(array if rest == own else np.einsum(f"{own}->{rest}", array))
    return [f"{','.join(kept)}->{output}", *arrays]


def _einsum_cost(op: Operation) -> float:
    sizes: dict[str, int | None] = {}
    for labels, tensor in zip(_split(op.attrs["equation"])[0], op.inputs, strict=True):
        _read_labels(labels, tensor.dims, sizes)
    return 2.0 * float(np.prod([s or 1 for s in sizes.values()], dtype=np.float64))


def _einsum_grad(op: Operation, g: Tensor) -> list[Tensor | None] | None:
    """Two plain inputs: each gradient is an einsum again."""
    (a, b), output = _split(op.attrs["equation"])
    x, y = op.inputs
    return [
        raw.Einsum([g, conj(y)], equation=f"{output},{b}->{a}"),
        raw.Einsum([conj(x), g], equation=f"{a},{output}->{b}"),
    ]


def _is_plain(equation: str) -> bool:
    """Whether both gradients are einsums: no ellipsis, trace, or label summed inside one input."""
    inputs, output = _split(equation)
    if len(inputs) != 2 or "." in equation:
        return False
    a, b = inputs
    no_trace = all(len(set(labels)) == len(labels) for labels in (a, b))
    return no_trace and set(a) <= {*b, *output} and set(b) <= {*a, *output}


def _gradient(op: Operation, g: Tensor) -> Any:
    if _is_plain(op.attrs["equation"]):
        return _einsum_grad(op, g)
    return NotImplemented


define_op(
    "Einsum(inputs: N * T) -> output: T",
    attrs="equation: string, T: numeric, N: int >= 1",
    shape=_einsum_shape,
    kernel=_einsum,
    interpret=_einsum_np,
    gradient=_gradient,
    cost=_einsum_cost,
    traits=Traits(linear="each"),
)


@public("einsum", "linalg.einsum")
def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """The sum of products of ``inputs`` that ``equation`` describes, in Einstein's notation.

    Args:
        equation: labels of the dimensions of each input, separated by commas, then ``->`` and the
            labels of the output. Without ``->`` the output has, in alphabetical order, the labels
            that stand once. ``...`` stands for dimensions that broadcast.
        inputs: tensors of one type.
        name: name of the op.

    Raises:
        ValueError: if the equation is malformed or does not fit the shapes.
        TypeError: for an unknown keyword.

    >>> einsum("ij,jk->ik", constant([[1.0, 2.0]]), constant([[3.0], [4.0]])).shape.as_list()
    [1, 1]
    """
    name = kwargs.pop("name", None)
    kwargs.pop("optimize", None)
    if kwargs:
        raise TypeError(f"invalid keyword arguments for this function: {sorted(kwargs)}")
    tensors: list[Tensor] = []
    dtype = next((x.dtype for x in inputs if isinstance(x, Tensor)), None)
    for x in inputs:
        tensors.append(convert_to_tensor(x, dtype))
    with default_graph_stack.current().name_scope(name or "einsum"):
        return raw.Einsum(tensors, equation=_explicit(equation))


def _explicit(equation: str) -> str:
    """The equation with its output written out."""
    if not isinstance(equation, str):
        raise TypeError(f"The equation of einsum is a string, not {equation!r}.")
    equation = equation.replace(" ", "")
    if "->" in equation:
        return equation
    once = [c for c in sorted(set(equation)) if c.isalpha() and equation.count(c) == 1]
    return f"{equation}->{'...' if '...' in equation else ''}{''.join(once)}"


# -- tensordot ----------------------------------------------------------------------------------


@public("tensordot", "linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The product of ``a`` and ``b`` summed over pairs of axes.

    Args:
        a, b: tensors of one type whose ranks are known.
        axes: a number N (the last N axes of ``a`` with the first N of ``b``), or two lists of
            axes that go together.

    Returns:
        A tensor with the remaining axes of ``a``, then those of ``b``.

    Raises:
        ValueError: if the axes do not fit, a rank is unknown, or ``axes`` is not a constant.
    """
    with default_graph_stack.current().name_scope(name or "Tensordot") as scope:
        dtype = b.dtype if isinstance(b, Tensor) and not isinstance(a, Tensor) else None
        a = convert_to_tensor(a, dtype, "a")
        b = convert_to_tensor(b, a.dtype, "b")
        if a.dims is None or b.dims is None:
            raise ValueError("tensordot needs the ranks of both inputs; use set_shape.")
        a_axes, b_axes = _axis_pairs(axes, len(a.dims), len(b.dims))
        letters = iter(string.ascii_letters)
        a_labels = [next(letters) for _ in a.dims]
        b_labels = [next(letters) for _ in b.dims]
        for i, j in zip(a_axes, b_axes, strict=True):
            b_labels[j] = a_labels[i]
        kept = [c for c in a_labels if c not in b_labels]
        kept += [c for c in b_labels if c not in a_labels]
        equation = f"{''.join(a_labels)},{''.join(b_labels)}->{''.join(kept)}"
        return raw.Einsum([a, b], equation=equation, name=scope)


def _axis_pairs(axes: Any, a_rank: int, b_rank: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, Tensor):
        value = static_value(axes)
        if value is None:
            raise ValueError("tensordot needs axes that are known while the graph is built.")
        axes = value.tolist()
    if isinstance(axes, (int, np.integer)):
        if axes < 0 or axes > min(a_rank, b_rank):
            raise ValueError(f"'axes' must be between 0 and {min(a_rank, b_rank)}, but is {axes}.")
        return list(range(a_rank - axes, a_rank)), list(range(axes))
    if len(axes) != 2:
        raise ValueError(f"'axes' must be an integer or have length 2, but is {axes!r}.")
    first, second = ([x] if isinstance(x, (int, np.integer)) else list(x) for x in axes)
    if len(first) != len(second):
        raise ValueError(f"Different number of contraction axes: {len(first)} and {len(second)}.")
    for group, rank in ((first, a_rank), (second, b_rank)):
        for axis in group:
            if not -rank <= axis < rank:
                raise ValueError(f"Axis {axis} is out of range for a tensor of rank {rank}.")
    return [int(i) % a_rank for i in first], [int(i) % b_rank for i in second]
