"""Derivatives of kernels in files: what some of them consist of.

`SymbolicGradient` differentiates a kernel of ours, which no file can hold. Where the differentiated
operation consists of others that have gradients, or its gradient is a short formula, that is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from headrace.graph.tensor import Operation, Tensor
from headrace.graph_files.export_graph import lowers, rule_of, scalar_like
from headrace.ops.control.functions import gradients_of
from headrace.ops.core.build import constant, raw

#: What an operation computes, by operations that have gradients: ``form(attrs, *inputs)``.
Form = Callable[..., list[Any]]
_forms: dict[str, Form] = {}


def _form_of(*op_types: str) -> Callable[[Form], Form]:
    """Decorator: the function writes such operations by others."""

    def register(form: Form) -> Form:
        _forms.update(dict.fromkeys(op_types, form))
        return form

    return register


@_form_of("SigmoidGrad")
def _sigmoid_grad(attrs: Any, y: Tensor, dy: Tensor) -> list[Any]:
    return [raw.Mul(dy, raw.Mul(y, raw.Sub(scalar_like(1, y), y)))]


@_form_of("TanhGrad")
def _tanh_grad(attrs: Any, y: Tensor, dy: Tensor) -> list[Any]:
    return [raw.Mul(dy, raw.Sub(scalar_like(1, y), raw.Square(y)))]


@_form_of("SqrtGrad")
def _sqrt_grad(attrs: Any, y: Tensor, dy: Tensor) -> list[Any]:
    return [raw.RealDiv(raw.Mul(dy, scalar_like(0.5, y)), y)]


@_form_of("RsqrtGrad")
def _rsqrt_grad(attrs: Any, y: Tensor, dy: Tensor) -> list[Any]:
    return [raw.Mul(raw.Mul(dy, scalar_like(-0.5, y)), raw.Mul(y, raw.Square(y)))]


@_form_of("ReciprocalGrad", "InvGrad")
def _reciprocal_grad(attrs: Any, y: Tensor, dy: Tensor) -> list[Any]:
    return [raw.Neg(raw.Mul(dy, raw.Square(y)))]


@_form_of("SoftsignGrad")
def _softsign_grad(attrs: Any, dy: Tensor, x: Tensor) -> list[Any]:
    return [raw.RealDiv(dy, raw.Square(raw.AddV2(scalar_like(1, x), raw.Abs(x))))]


@_form_of("TopK", "TopKV2")
def _top_k(attrs: Any, x: Tensor, k: Tensor | None = None) -> list[Any]:
    """The values taken from the places that the operation finds."""
    k = constant(np.int32(attrs["k"])) if k is None else k
    _, places = raw.TopKV2(x, k, sorted=attrs["sorted"])
    last = raw.StridedSlice(raw.Shape(x), [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    rows = raw.FloorDiv(raw.Size(x), raw.Maximum(last, constant(np.int32(1))))
    starts = raw.Mul(raw.Range(constant(np.int32(0)), rows, constant(np.int32(1))), last)
    count = raw.ConcatV2([raw.ExpandDims(rows, 0), constant(np.array([-1], np.int32))], 0)
    flat = raw.AddV2(raw.Reshape(places, count), raw.ExpandDims(starts, 1))
    values = raw.GatherV2(raw.Reshape(x, [-1]), flat, 0)
    return [raw.Reshape(values, raw.Shape(places)), places]


def _matrix_inverse(attrs: Any, x: Tensor, grad: Tensor) -> Any:
    inverse = raw.MatrixInverse(x)
    return raw.Neg(
        raw.BatchMatMulV2(inverse, raw.BatchMatMulV2(grad, inverse, adj_y=True), adj_x=True)
    )


def _determinant(attrs: Any, x: Tensor, grad: Tensor) -> Any:
    value = raw.MatrixDeterminant(x)
    scale = raw.Mul(grad, raw.Conj(value) if x.dtype.is_complex else value)
    scale = raw.ExpandDims(raw.ExpandDims(scale, -1), -1)
    return raw.Mul(scale, raw.MatrixInverse(x, adjoint=True))


def _fourier(inverse: str, axes: int, multiplies: bool) -> Callable[..., Any]:
    def gradient(attrs: Any, x: Tensor, grad: Tensor) -> Any:
        sizes = raw.StridedSlice(raw.Shape(x), [-axes], [0], [1], end_mask=1)
        size = raw.Cast(raw.Prod(sizes, 0), DstT=x.dtype)
        found = getattr(raw, inverse)(grad)
        return raw.Mul(found, size) if multiplies else raw.RealDiv(found, size)

    return gradient


#: Gradients of operations with one input and output: ``gradient(attrs, input, grad)``.
_GRADIENTS: dict[str, Callable[..., Any]] = {
    "MatrixInverse": _matrix_inverse,
    "MatrixDeterminant": _determinant,
}
for _axes, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _GRADIENTS[f"FFT{_suffix}"] = _fourier(f"IFFT{_suffix}", _axes, True)
    _GRADIENTS[f"IFFT{_suffix}"] = _fourier(f"FFT{_suffix}", _axes, False)


@lowers("SymbolicGradient", sometimes=True)
def _symbolic_gradient(op: Operation, inputs: Sequence[Tensor]) -> list[Any] | None:
    inner, count = op.attrs["f"], op.attrs["forward_inputs"]
    xs, grads = list(inputs[:count]), list(inputs[count:])
    if inner.name in _GRADIENTS and not inner.attrs.get("adjoint"):
        return [_GRADIENTS[inner.name](inner.attrs, xs[0], grads[0])]
    outputs = _outputs(inner, xs)
    if outputs is None:
        return None
    used = [outputs[i] for i in op.attrs["used_outputs"]]
    return gradients_of[0](used, [xs[i] for i in op.attrs["wrt"]], grads)


def _outputs(inner: Any, xs: list[Tensor]) -> Sequence[Any] | None:
    form = _forms.get(inner.name)
    if form is not None:
        return form(inner.attrs, *xs)
    if inner.name in ("SoftmaxGrad", "LogSoftmaxGrad", "SymbolicGradient"):
        stand_in: Any = SimpleNamespace(type=inner.name, attrs=inner.attrs)
        rule = rule_of(inner.name)
        made = None if rule is None else rule(stand_in, xs)
        return None if isinstance(made, Operation) else made
    return None


__all__: list[str] = []
