"""Array ops that pass, describe, fill or reshape tensors (see api.py for the public names)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from headrace.graph.shapes import TensorShape, merge_static, num_elements_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import (
    both,
    checked_axis,
    fail,
    int_const,
    like_first,
    scalar_shape,
    shape_tensor,
    size_text,
    static_ints,
    unknown,
    vector_length,
)
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, EXTERNAL, NotDifferentiable, define_op
from headrace.ops.core.static import static_shape
from headrace.ops.core.traits import LOOKS, PICKED, RESHAPED, SAME, Traits

SHAPE_ONLY = NotDifferentiable("it depends on shapes only")
INTEGERS = NotDifferentiable("its values are integers")


def _free(op: Operation) -> float:
    return 0.0


# -- passing values on --------------------------------------------------------------------------


def _same(x: Any) -> Any:
    return x


def _pass_gradient(op: Operation, grad: Any) -> list[Any]:
    return [grad]


def _prevented(op: Operation, grad: Any) -> list[Any]:
    raise LookupError(f"Gradient explicitly disabled. Reason: {op.attrs['message']!r}")


def _same_list(values: list[Any]) -> Any:
    return list(values)


def _with_default_shape(op: Operation) -> list[Dims]:
    dims = op.attrs["shape"].as_tuple
    given = op.inputs[0].dims
    try:
        merge_static(given, dims)
    except ValueError:
        raise ValueError(
            f"The default value has shape {shape_text(given)}, which does not fit the "
            f"placeholder's shape {shape_text(dims)}."
        ) from None
    return [dims]


#: Of ragged and sparse tensors it hands on the values.
_SAME_EACH = SAME.but(elementwise=True, keeps_zero=True)

for _name in ("Identity", "Snapshot", "GuaranteeConst"):
    define_op(
        f"{_name}(input: T) -> output: T",
        attrs="T: type",
        shape=like_first,
        kernel=_same,
        interpret=_same,
        gradient=_pass_gradient,
        cost=_free,
        traits=_SAME_EACH,
    )
define_op(
    "StopGradient(input: T) -> output: T",
    attrs="T: type",
    shape=like_first,
    kernel=_same,
    interpret=_same,
    gradient=NotDifferentiable("it stops gradients"),
    cost=_free,
    traits=_SAME_EACH,
)
define_op(
    "PreventGradient(input: T) -> output: T",
    attrs='T: type, message: string = ""',
    shape=like_first,
    kernel=_same,
    interpret=_same,
    gradient=_prevented,
    cost=_free,
    traits=_SAME_EACH,
)
define_op(
    "IdentityN(input: T) -> output: T",
    attrs="T: list(type) >= 1",
    shape=lambda op: [t.dims for t in op.inputs],
    kernel=_same_list,
    interpret=_same_list,
    gradient=lambda op, *grads: list(grads),
    cost=_free,
    traits=Traits(hands_on="each", computes=False),
)
# Not pure: a step may feed it, so its default must not be taken for its value.
define_op(
    "PlaceholderWithDefault(input: dtype) -> output: dtype",
    attrs="dtype: type, shape: shape",
    shape=_with_default_shape,
    kernel=_same,
    interpret=_same,
    gradient=_pass_gradient,
    effects=EXTERNAL,
    cost=_free,
)


def _ensure_shape(x: Any, *, shape: TensorShape) -> Any:
    wanted = shape.as_tuple
    actual = tuple(x.shape)
    if wanted is not None and (
        len(wanted) != len(actual)
        or any(w is not None and w != a for w, a in zip(wanted, actual, strict=True))
    ):
        raise fail(
            f"Shape of tensor {size_text(x)} is not compatible with expected shape "
            f"{shape_text(wanted)}."
        )
    return x


define_op(
    "EnsureShape(input: T) -> output: T",
    attrs="shape: shape, T: type",
    shape=lambda op: [merge_static(op.inputs[0].dims, op.attrs["shape"].as_tuple)],
    kernel=_ensure_shape,
    interpret=_ensure_shape,
    gradient=_pass_gradient,
    cost=_free,
    traits=LOOKS,
)

# -- describing shapes --------------------------------------------------------------------------


def _rank_vector(tensor: Tensor) -> Dims:
    dims = tensor.dims
    return (None,) if dims is None else (len(dims),)


def _shape(x: Any, *, out_type: Any) -> Any:
    return np.asarray(x.shape, out_type.np_dtype)


def _shape_n(values: list[Any], *, out_type: Any) -> Any:
    return [np.asarray(x.shape, out_type.np_dtype) for x in values]


def _size(x: Any, *, out_type: Any) -> Any:
    return np.asarray(x.size, out_type.np_dtype)


def _rank(x: Any) -> Any:
    return np.asarray(len(x.shape), np.int32)


define_op(
    "Shape(input: T) -> output: out_type",
    attrs="T: type, out_type: index = int32",
    shape=lambda op: [_rank_vector(op.inputs[0])],
    kernel=_shape,
    interpret=_shape,
    gradient=SHAPE_ONLY,
    shape_only=True,
    cost=_free,
    traits=Traits(light=True, as_shape=lambda op: op.inputs[0].dims),
)
define_op(
    "ShapeN(input: N * T) -> output: N * out_type",
    attrs="N: int >= 1, T: type, out_type: index = int32",
    shape=lambda op: [_rank_vector(t) for t in op.inputs],
    kernel=_shape_n,
    interpret=_shape_n,
    gradient=SHAPE_ONLY,
    shape_only=True,
    cost=_free,
)
define_op(
    "Size(input: T) -> output: out_type",
    attrs="T: type, out_type: index = int32",
    shape=scalar_shape,
    kernel=_size,
    interpret=_size,
    gradient=SHAPE_ONLY,
    shape_only=True,
    cost=_free,
)
define_op(
    "Rank(input: T) -> output: int32",
    attrs="T: type",
    shape=scalar_shape,
    kernel=_rank,
    interpret=_rank,
    gradient=SHAPE_ONLY,
    shape_only=True,
    cost=_free,
)

# -- reshaping ----------------------------------------------------------------------------------


def _reshape_shape(op: Operation) -> list[Dims]:
    tensor, shape = op.inputs
    if shape.dims is not None and len(shape.dims) != 1:
        raise ValueError(f"Shape must be a vector but has shape {shape_text(shape.dims)}.")
    wanted = static_shape(shape)
    if wanted is None:
        return [None]
    count = num_elements_static(tensor.dims)
    if count is None:
        return [wanted]
    gap, product = -1, 1
    for i, size in enumerate(wanted):
        if size is not None:
            product *= size
        elif gap >= 0:
            return [wanted]
        else:
            gap = i
    if gap < 0:
        if product != count:
            raise ValueError(_reshape_message(count, wanted, product))
        return [wanted]
    if product == 0:
        return [wanted]
    if count % product:
        raise ValueError(
            f"Dimension size must be evenly divisible by {product} but is {count}: cannot reshape "
            f"a tensor of shape {shape_text(tensor.dims)} to {shape_text(wanted)}."
        )
    return [(*wanted[:gap], count // product, *wanted[gap + 1 :])]


def _reshape_message(count: int, wanted: Any, product: int) -> str:
    sizes = ",".join(str(s) for s in wanted)
    return f"Cannot reshape a tensor with {count} elements to shape [{sizes}] ({product} elements)"


def _reshape(x: Any, shape: Any) -> Any:
    sizes = shape.tolist()
    if -1 in sizes:
        gap = sizes.index(-1)
        rest = math.prod(sizes[:gap] + sizes[gap + 1 :])
        if rest < 0:
            raise fail(f"Only one input size may be -1, not both {gap} and another: shape {sizes}.")
        if rest == 0:
            raise fail(
                "Reshape cannot infer the missing input size for an empty tensor unless all "
                f"specified input sizes are non-zero: shape {sizes}."
            )
        if x.size % rest:
            raise fail(
                f"Input to reshape is a tensor with {x.size} values, but the requested shape "
                f"{sizes} requires a multiple of {rest}."
            )
        sizes[gap] = x.size // rest
    wanted = math.prod(sizes)
    if wanted != x.size or min(sizes, default=0) < 0:
        raise fail(
            f"Input to reshape is a tensor with {x.size} values, but the requested shape {sizes} "
            f"has {wanted}."
        )
    return x.reshape(tuple(sizes))


def _reshape_back(op: Operation, grad: Tensor) -> list[Any]:
    """For every op that only reshapes its first input."""
    back = raw.Reshape(grad, shape_tensor(op.inputs[0]))
    return [back, *[None] * (len(op.inputs) - 1)]


define_op(
    "Reshape(tensor: T, shape: Tshape) -> output: T",
    attrs="T: type, Tshape: index = int32",
    shape=_reshape_shape,
    kernel=_reshape,
    interpret=_reshape,
    gradient=_reshape_back,
    static=(1,),
    cost=_free,
    traits=RESHAPED,
)


def _expand_dims_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    axis = static_ints(op.inputs[1])
    if dims is None:
        return [None]
    if axis is None:
        return [unknown(len(dims) + 1)]
    at = checked_axis(_only(axis), len(dims) + 1, "dim")
    return [(*dims[:at], 1, *dims[at:])]


def _only(values: tuple[int, ...]) -> int:
    if len(values) != 1:
        raise ValueError(f"'dim' must be a single value, got {list(values)}.")
    return int(values[0])


def _expand_dims(x: Any, dim: Any) -> Any:
    at = checked_axis(_only(tuple(dim.ravel().tolist())), x.ndim + 1, "dim")
    return x.reshape((*x.shape[:at], 1, *x.shape[at:]))


define_op(
    "ExpandDims(input: T, dim: Tdim) -> output: T",
    attrs="T: type, Tdim: index = int32",
    shape=_expand_dims_shape,
    kernel=_expand_dims,
    interpret=_expand_dims,
    gradient=_reshape_back,
    static=(1,),
    cost=_free,
    traits=RESHAPED,
)


def _squeezed(dims: Any, axes: tuple[int, ...]) -> Any:
    """The sizes that are left; ``dims`` may hold None."""
    if not axes:
        return tuple([d for d in dims if d != 1])
    gone = {checked_axis(a, len(dims), "Squeeze dimension") for a in axes}
    for a in sorted(gone):
        if dims[a] is not None and dims[a] != 1:
            raise ValueError(f"Can not squeeze dim[{a}], expected a dimension of 1, got {dims[a]}")
    return tuple([d for i, d in enumerate(dims) if i not in gone])


def _squeeze_shape(op: Operation) -> list[Dims]:
    dims, axes = op.inputs[0].dims, op.attrs["squeeze_dims"]
    if dims is None or (not axes and None in dims):
        return [None]
    return [_squeezed(dims, axes)]


def _squeeze(x: Any, *, squeeze_dims: tuple[int, ...]) -> Any:
    return x.reshape(_squeezed(x.shape, squeeze_dims))


define_op(
    "Squeeze(input: T) -> output: T",
    attrs="T: type, squeeze_dims: list(int) = []",
    shape=_squeeze_shape,
    kernel=_squeeze,
    interpret=_squeeze,
    gradient=_reshape_back,
    cost=_free,
    traits=RESHAPED,
)

# -- transposing --------------------------------------------------------------------------------


def _checked_perm(perm: Any, rank: int) -> tuple[int, ...]:
    if len(perm) != rank:
        raise ValueError(
            f"transpose expects a vector of size {rank}. But input(1) is a vector of size "
            f"{len(perm)}"
        )
    axes = tuple([p + rank if p < 0 else p for p in perm])
    if sorted(axes) != list(range(rank)):
        raise ValueError(f"perm must be a permutation of the {rank} dimensions, got {list(perm)}")
    return axes


def _transpose_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    perm = static_ints(op.inputs[1])
    length = vector_length(op.inputs[1])
    if perm is None:
        rank = len(dims) if dims is not None else length
        if dims is not None and length is not None and length != len(dims):
            _checked_perm([0] * length, len(dims))
        return [None if rank is None else unknown(rank)]
    if dims is None:
        return [unknown(len(perm))]
    return [tuple([dims[p] for p in _checked_perm(perm, len(dims))])]


def _transpose(xp: Any, x: Any, perm: Any) -> Any:
    return xp.transpose(x, _checked_perm(perm.tolist(), x.ndim))


def _conjugate_transpose(xp: Any, x: Any, perm: Any) -> Any:
    return xp.conj(_transpose(xp, x, perm)).astype(x.dtype)


def _inverse_perm(perm: Tensor) -> Tensor:
    known = static_ints(perm)
    if known is None:
        return raw.InvertPermutation(perm)
    rank = len(known)
    return int_const(np.argsort([p % rank for p in known]) if rank else [])


define_op(
    "Transpose(x: T, perm: Tperm) -> y: T",
    attrs="T: type, Tperm: index = int32",
    shape=_transpose_shape,
    **both(_transpose),
    gradient=lambda op, grad: [raw.Transpose(grad, _inverse_perm(op.inputs[1])), None],
    static=(1,),
    traits=PICKED,
)
define_op(
    "ConjugateTranspose(x: T, perm: Tperm) -> y: T",
    attrs="T: type, Tperm: index = int32",
    shape=_transpose_shape,
    **both(_conjugate_transpose),
    gradient=lambda op, grad: [raw.ConjugateTranspose(grad, _inverse_perm(op.inputs[1])), None],
    static=(1,),
)


def _invert_permutation(x: Any) -> Any:
    inverse = jnp.argsort(x)
    ordered = x[inverse]
    outside = (ordered < 0) | (ordered >= x.size)
    twice = ordered[1:] == ordered[:-1]
    if x.size:
        wrong = ordered[jnp.argmax(outside)]
        checks.require(~outside.any(), "{0} is not between 0 and {1}", wrong, x.size)
    if x.size > 1:
        wrong = ordered[jnp.argmax(twice)]
        checks.require(~twice.any(), "{0} is duplicated in the input.", wrong)
    return inverse.astype(x.dtype)


def _invert_permutation_np(x: Any) -> Any:
    ordered = sorted(x.tolist())
    for value in ordered:
        if not 0 <= value < x.size:
            raise fail(f"{value} is not between 0 and {x.size}")
    for value, following in itertools.pairwise(ordered):
        if value == following:
            raise fail(f"{value} is duplicated in the input.")
    return np.argsort(x).astype(x.dtype)


def _invert_permutation_shape(op: Operation) -> list[Dims]:
    return [(vector_length(op.inputs[0]),)]


define_op(
    "InvertPermutation(x: T) -> y: T",
    attrs="T: index = int32",
    shape=_invert_permutation_shape,
    kernel=_invert_permutation,
    interpret=_invert_permutation_np,
    gradient=INTEGERS,
    effects=CHECKS,
)
