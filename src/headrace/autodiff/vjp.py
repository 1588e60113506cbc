"""The gradient of any op without a rule of its own: the vector-Jacobian product of its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from headrace import native
from headrace.graph import dtypes
from headrace.graph.attrs import NameAttrList
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.jax_programs import conjugate
from headrace.ops.core.build import apply_op
from headrace.ops.core.registry import OpDef, define_op, get_op_def
from headrace.ops.core.traits import Traits


def _shape(op: Operation) -> list[Any]:
    return [op.inputs[i].dims if i < len(op.inputs) else None for i in op.attrs["wrt"]]


def _static(attrs: dict[str, Any]) -> tuple[int, ...]:
    """The inputs that the differentiated op must know while it is traced."""
    inner = attrs["f"]
    static = get_op_def(inner.name).static
    return static(inner.attrs) if callable(static) else static


class _Forward:
    """The differentiated op in the place of a node: what lowering and kernels look at."""

    def __init__(self, node: Any) -> None:
        inner = node.attrs["f"]
        self.op_def: OpDef = get_op_def(inner.name)
        self.attrs: dict[str, Any] = inner.attrs
        self.name = node.name
        self.op = node.op
        count = node.attrs["forward_inputs"]
        self.inputs = node.inputs[:count]
        self.dtypes = tuple(node.attrs["forward_types"])
        self.dims = (None,) * len(self.dtypes)

    @property
    def type(self) -> str:
        return self.op_def.name


def _lower(evaluation: Any, node: Any, args: Sequence[Any]) -> Sequence[Any]:
    if not evaluation.tracing:
        found: Sequence[Any] = evaluation.host.run_traced(node, args)
        return found
    forward = _Forward(node)
    count = node.attrs["forward_inputs"]
    inputs, grads = list(args[:count]), list(args[count:])
    wrt = node.attrs["wrt"]
    used = node.attrs["used_outputs"]
    read = {i: evaluation.read(inputs[i], node) for i in wrt if _is_handle(inputs[i])}

    def primal(diff: list[Any]) -> list[Any]:
        values = list(inputs)
        scratch = evaluation.scratch()
        for i, value in zip(wrt, diff, strict=True):
            if i in read:
                scratch.state[inputs[i]] = value
            else:
                values[i] = value
        outputs = scratch.evaluate(forward, values)
        return [outputs[i] for i in used]

    start = [read.get(i, inputs[i]) for i in wrt]
    start = [jnp.asarray(s) if isinstance(s, (np.ndarray, np.generic)) else s for s in start]
    with native.portable():  # JAX cannot differentiate calls of the native library
        outputs, pullback = jax.vjp(primal, start)
        cotangents = [conjugate(_match(g, o)) for g, o in zip(grads, outputs, strict=True)]
        (result,) = pullback(cotangents)
    return [conjugate(r) for r in result]


def _is_handle(value: Any) -> bool:
    return type(value).__name__ == "ResourceHandle"


def _match(grad: Any, output: Any) -> Any:
    """An incoming gradient with the type and shape of its output."""
    if not hasattr(output, "dtype"):
        return grad
    return jnp.broadcast_to(jnp.asarray(grad, output.dtype), output.shape)


SYMBOLIC_GRADIENT = define_op(
    "SymbolicGradient(input: Tin) -> output: Tout",
    attrs=(
        "Tin: list(type), Tout: list(type), f: func, forward_inputs: int, "
        "forward_types: list(type), wrt: list(int), used_outputs: list(int)"
    ),
    shape=_shape,
    lower=_lower,
    static=_static,
    traits=Traits(only_here="it differentiates a kernel of ours"),
)

_DIFFERENTIABLE = frozenset(
    {
        dtypes.float16,
        dtypes.bfloat16,
        dtypes.float32,
        dtypes.float64,
        dtypes.complex64,
        dtypes.complex128,
    }
)


def is_differentiable(dtype: dtypes.DType) -> bool:
    """Whether values of this type have gradients."""
    return dtype in _DIFFERENTIABLE


def kernel_gradient(op: Operation, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Gradients of all inputs of ``op`` as one op that differentiates the kernel.

    Source: reverse mode as in ``jax.vjp``; the forward computation is traced again, and XLA merges
    it with the original where both are in one program.
    """
    effects = op.op_def.effects
    is_lowered = op.op_def.lower is not None

    def differentiable(position: int, dtype: dtypes.DType) -> bool:
        if dtype is dtypes.resource:
            return is_lowered or position in effects.reads
        return is_differentiable(dtype) or (is_lowered and dtype is dtypes.variant)

    wrt = [i for i, t in enumerate(op.inputs) if differentiable(i, t.dtype)]
    used = [i for i, g in enumerate(grads) if g is not None]
    if not wrt or not used:
        return [None] * len(op.inputs)
    attrs = {k: v for k, v in op.attrs.items() if not k.startswith("_")}
    results = apply_op(
        SYMBOLIC_GRADIENT,
        ([*op.inputs, *[grads[i] for i in used]],),
        {
            "f": NameAttrList(op.type, attrs),
            "forward_inputs": len(op.inputs),
            "forward_types": [t.dtype for t in op.outputs],
            "wrt": wrt,
            "used_outputs": used,
            "Tout": [_gradient_type(op.inputs[i]) for i in wrt],
        },
    )
    by_input = dict(zip(wrt, results, strict=True))
    return [by_input.get(i) for i in range(len(op.inputs))]


def _gradient_type(tensor: Tensor) -> dtypes.DType:
    """The type of the gradient with respect to an input: for a variable's handle, of its value."""
    if tensor.dtype is dtypes.resource:
        result: dtypes.DType = tensor.op.attrs.get("dtype", dtypes.float32)
        return result
    return tensor.dtype
