"""`XlaCallModule`: how files of TensorFlow hold what `JaxCall` calls.

Its attribute ``module`` is the StableHLO of a program of `jax.export`, which TensorFlow runs. What
`jax.export` writes around it (the types and symbolic shapes of inputs and outputs) and the program
of the gradient are in attributes that TensorFlow carries without looking at them. With those it is
the same call here, in programs that know nothing of the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.control.jax_call import Parts, call_attrs, gradient_of_call, shapes_of_call
from headrace.ops.control.jax_programs import as_bytes, keep_inputs, known_dims, load
from headrace.ops.core.build import add_node
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import Traits


def module_call(op: Operation, inputs: Sequence[Tensor]) -> Operation:
    """The `XlaCallModule` that does on ``inputs`` what the `JaxCall` ``op`` does."""
    parts = call_attrs(op)
    program = keep_inputs(as_bytes(parts.program))
    exported = load(program)
    module = exported.mlir_module_serialized
    before, _, after = program.partition(module)
    attrs = {
        "version": exported.calling_convention_version,
        "module": module,
        "Sout": [TensorShape(known_dims(a.shape)) for a in exported.out_avals],
        "Tout": [t.dtype for t in op.outputs],
        "platforms": [p.upper() for p in exported.platforms],
        "disabled_checks": [str(c) for c in exported.disabled_safety_checks],
        "_around": [before, after],
        "_backward": parts.backward,
        "_wrt": list(parts.wrt),
        "_differentiable": list(parts.differentiable),
        "_kept": list(parts.kept),
    }
    made: Operation = add_node(XLA_CALL_MODULE, (list(inputs),), attrs)
    return made


def _program(module: Any, around: Sequence[Any]) -> bytes:
    if len(around) != 2:
        raise ValueError(
            "It holds a StableHLO module that another program than Headrace wrote. Only modules "
            "of its own run here: they tell how shapes and gradients follow. Export the function "
            "that it was made of again with tf.from_jax."
        )
    return b"".join(map(as_bytes, (around[0], module, around[1])))


def _shape(op: Operation) -> Sequence[Dims]:
    return shapes_of_call(op, _program(op.attrs["module"], op.attrs["_around"]))


def _kernel(args: list[Any], *, module: bytes, _around: Sequence[bytes]) -> list[Any]:
    return list(load(_program(module, _around)).call(*args))


def _gradient(op: Operation, *grads: Tensor | None) -> Sequence[Tensor | None]:
    attrs = op.attrs
    names = ("_backward", "_wrt", "_differentiable", "_kept")
    program = _program(attrs["module"], attrs["_around"])
    return gradient_of_call(op, Parts(program, *[attrs[n] for n in names]), grads)


XLA_CALL_MODULE = define_op(
    "XlaCallModule(args: Tin) -> output: Tout",
    attrs=(
        "version: int, module: string, Sout: list(shape), Tout: list(type), Tin: list(type), "
        "platforms: list(string) = [], disabled_checks: list(string) = [], "
        "_around: list(string) = [], _backward: string = '', _wrt: list(int) = [], "
        "_differentiable: list(int) = [], _kept: list(int) = []"
    ),
    shape=_shape,
    kernel=_kernel,
    gradient=_gradient,
    traits=Traits(partial_gradients=True),
)
