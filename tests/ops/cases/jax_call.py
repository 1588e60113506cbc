"""Programs of JAX functions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from headrace.graph import dtypes
from headrace.harness.op_cases import OpCase
from headrace.ops.control.jax_programs import load, trace


def _case(
    name: str, function: Any, *inputs: Any, symbolic: bool = False, in_file: bool = False
) -> OpCase:
    """A call of ``function``, of its outputs alone: what is kept for gradients has no reference."""
    arrays = [np.asarray(i) for i in inputs]
    dims = [tuple(None if symbolic else d for d in a.shape) for a in arrays]
    program = trace(function, dims, [a.dtype for a in arrays], []).program
    results = [np.asarray(r) for r in function(*arrays)]
    attrs: dict[str, Any] = {"program": program}
    if in_file:
        module = load(program).mlir_module_serialized
        attrs = {"module": module, "_around": program.split(module), "version": 10, "Sout": []}
    return OpCase(
        "XlaCallModule" if in_file else "JaxCall",
        (arrays,),
        {**attrs, "Tout": [dtypes.as_dtype(r.dtype) for r in results]},
        expected=lambda given: [np.asarray(r) for r in function(*given)],
        grad=(),  # its programs are no kernels for jax.vjp: see test_from_jax.py
        name=name,
    )


HALVES = np.linspace(-2, 2, 6).reshape(2, 3).astype(np.float32)

CASES = [
    _case("two outputs", lambda x, y: [x * y, jnp.sum(x)], HALVES, HALVES + 1),
    _case("integers", lambda x: [x[::-1] + 1], np.array([1, 2, 3])),
    _case("unknown sizes", lambda x: [jnp.tanh(x)], HALVES, symbolic=True),
    _case("no elements", lambda x: [jnp.sum(x, 0), x], np.zeros((0, 3), np.float32), symbolic=True),
    _case("in a file", lambda x, y: [x * 2, y], HALVES, HALVES + 1, symbolic=True, in_file=True),
]
