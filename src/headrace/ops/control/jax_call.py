"""`JaxCall`: a JAX function in a graph, as the program that `jax.export` makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph.dtypes import DType, as_dtype
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.control.jax_programs import (
    FlatFunction,
    Pair,
    gradient_of,
    infer,
    load,
    trace,
)
from headrace.ops.core.build import add_node, raw
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import Traits


def _bytes(value: Any) -> bytes:
    # Bytes that happen to be text arrive as text.
    return value.encode() if isinstance(value, str) else value


def _shape(op: Operation) -> Sequence[Dims]:
    program = _bytes(op.attrs["program"])
    types = [a.dtype for a in load(program).in_avals]
    if [t.dtype.np_dtype for t in op.inputs] != types:
        wanted, got = [str(t) for t in types], [t.dtype.name for t in op.inputs]
        raise ValueError(f"The program takes inputs of types {wanted}; it was given {got}.")
    return infer(program, [t.dims for t in op.inputs])


def _kernel(args: list[Any], *, program: bytes) -> list[Any]:
    return list(load(_bytes(program)).call(*args))


def _gradient(op: Operation, *grads: Tensor | None) -> Sequence[Tensor | None]:
    used = tuple(i for i, g in enumerate(grads) if g is not None)
    backward = op.attrs["backward"]
    differentiable = op.attrs["differentiable"]
    if backward and set(used) <= set(differentiable):
        values = [*op.inputs, *op.outputs]
        kept = [values[i] for i in op.attrs["kept"]]
        given = [
            raw.ZerosLike(op.outputs[i]) if grads[i] is None else grads[i] for i in differentiable
        ]
        wrt = op.attrs["wrt"]
        types = [op.inputs[i].dtype for i in wrt]
        results: Sequence[Tensor] = call([*kept, *given], types, {"program": backward}, "backward")
    else:
        wrt = tuple(i for i, t in enumerate(op.inputs) if t.dtype.is_floating or t.dtype.is_complex)
        results = _gradient_by_tracing(op, grads, wrt, used)
    found = dict(zip(wrt, results, strict=True))
    return [found.get(i) for i in range(len(op.inputs))]


def _gradient_by_tracing(
    op: Operation, grads: Sequence[Tensor | None], wrt: tuple[int, ...], used: tuple[int, ...]
) -> Sequence[Tensor]:
    function = getattr(op.attrs["program"], "function", None)
    if function is None:
        raise LookupError(
            f"'{op.name}' is a JAX program out of a file, which holds gradients of the first order "
            "only. Build it again from its function (tf.from_jax) for higher ones."
        )
    inputs = [*op.inputs, *[g for g in grads if g is not None]]
    return _call_of(gradient_of(op.attrs["program"], wrt, used), inputs, "gradient")


def add_call(
    function: FlatFunction,
    inputs: Sequence[Tensor],
    name: str,
    polymorphic: Sequence[str | None] | None = None,
    one_batch: bool = False,
) -> list[Tensor]:
    """A call of ``function`` (arrays to a list of arrays) in the default graph.

    Args:
        polymorphic: see `tf.from_jax`.
        one_batch: unknown first sizes are one size.

    Raises:
        ValueError: if the rank of an input is not known.
        whatever the function raises as it is traced.
    """
    for tensor in inputs:
        if tensor.dims is None:
            raise ValueError(
                f"{tensor.name} has no known rank, which a JAX function needs. Say it with "
                "set_shape or tf.ensure_shape; single sizes may stay unknown."
            )
    wrt = [i for i, t in enumerate(inputs) if t.dtype.is_floating or t.dtype.is_complex]
    pair = trace(
        function,
        [t.dims for t in inputs],  # type: ignore[misc]
        [t.dtype.np_dtype for t in inputs],
        wrt,
        polymorphic,
        one_batch,
    )
    return _call_of(pair, inputs, name)


def _call_of(pair: Pair, inputs: Sequence[Tensor], name: str) -> list[Tensor]:
    types = [as_dtype(r.dtype) for r in pair.program.results]
    attrs = {
        "program": pair.program,
        "backward": pair.backward or b"",
        "wrt": pair.wrt,
        "differentiable": pair.differentiable,
        "kept": pair.kept,
    }
    return call(inputs, types, attrs, name)[: pair.outputs]


def call(
    inputs: Sequence[Tensor], types: Sequence[DType], attrs: dict[str, Any], name: str
) -> list[Tensor]:
    """A `JaxCall`; returns all of its outputs."""
    op = add_node(JAX_CALL, (list(inputs),), {"Tout": list(types), "name": name, **attrs})
    return list(op.outputs)


JAX_CALL = define_op(
    "JaxCall(args: Tin) -> output: Tout",
    attrs=(
        "Tin: list(type), Tout: list(type), program: string, backward: string = '', "
        "wrt: list(int) = [], differentiable: list(int) = [], kept: list(int) = []"
    ),
    shape=_shape,
    kernel=_kernel,
    gradient=_gradient,
    traits=Traits(only_here="it calls a program of jax.export", partial_gradients=True),
)
