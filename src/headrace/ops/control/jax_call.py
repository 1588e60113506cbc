"""`JaxCall`: a JAX function in a graph, as the program that `jax.export` makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.graph.dtypes import DType, as_dtype
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.control.jax_programs import (
    FlatFunction,
    JaxProgram,
    Pair,
    as_bytes,
    gradient_of,
    infer,
    load,
    trace,
)
from headrace.ops.core.build import add_node, raw
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import Traits


@dataclass(frozen=True)
class Parts:
    """What an operation that calls a program holds; see `jax_programs.Pair` for its fields."""

    program: bytes
    backward: bytes
    wrt: Sequence[int]
    differentiable: Sequence[int]
    kept: Sequence[int]


def call_attrs(op: Operation) -> Parts:
    """What a `JaxCall` holds."""
    names = ("program", "backward", "wrt", "differentiable", "kept")
    return Parts(*[op.attrs[n] for n in names])


def shapes_of_call(op: Operation, program: bytes) -> Sequence[Dims]:
    """The shapes of the outputs of an operation that calls ``program``.

    Raises:
        ValueError: if its inputs have other types or shapes than the program takes.
    """
    types = [a.dtype for a in load(program).in_avals]
    if [t.dtype.np_dtype for t in op.inputs] != types:
        wanted, got = [str(t) for t in types], [t.dtype.name for t in op.inputs]
        raise ValueError(f"The program takes inputs of types {wanted}; it was given {got}.")
    return infer(program, [t.dims for t in op.inputs])


def _shape(op: Operation) -> Sequence[Dims]:
    return shapes_of_call(op, as_bytes(op.attrs["program"]))


def _kernel(args: list[Any], *, program: bytes) -> list[Any]:
    return list(load(as_bytes(program)).call(*args))


def _gradient(op: Operation, *grads: Tensor | None) -> Sequence[Tensor | None]:
    return gradient_of_call(op, call_attrs(op), grads)


def gradient_of_call(
    op: Operation, parts: Parts, grads: Sequence[Tensor | None]
) -> Sequence[Tensor | None]:
    """The gradients for the inputs of an operation that calls a program."""
    used = tuple(i for i, g in enumerate(grads) if g is not None)
    if parts.backward and set(used) <= set(parts.differentiable):
        values = [*op.inputs, *op.outputs]
        taken = [values[i] for i in parts.kept]
        for i in parts.differentiable:
            grad = grads[i]
            taken.append(raw.ZerosLike(op.outputs[i]) if grad is None else grad)
        wrt = tuple(parts.wrt)
        types = [op.inputs[i].dtype for i in wrt]
        results: Sequence[Tensor] = call(taken, types, {"program": parts.backward}, "backward")
    else:
        wrt = tuple(i for i, t in enumerate(op.inputs) if t.dtype.is_floating or t.dtype.is_complex)
        results = _gradient_by_tracing(op, parts.program, grads, wrt, used)
    found = dict(zip(wrt, results, strict=True))
    return [found.get(i) for i in range(len(op.inputs))]


def _gradient_by_tracing(
    op: Operation,
    program: bytes,
    grads: Sequence[Tensor | None],
    wrt: tuple[int, ...],
    used: tuple[int, ...],
) -> Sequence[Tensor]:
    function = getattr(program, "function", None)
    if function is None:
        raise LookupError(
            f"'{op.name}' is a JAX program out of a file, which holds gradients of the first order "
            "only. Build it again from its function (tf.from_jax) for higher ones."
        )
    inputs = [*op.inputs, *[g for g in grads if g is not None]]
    assert isinstance(program, JaxProgram)
    return _call_of(gradient_of(program, wrt, used), inputs, "gradient")


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
    traits=Traits(partial_gradients=True),
)
