"""The op-case table: what an op must give, and the checks that hold for every op.

A case names an op, its inputs and a NumPy reference. ``check_forward``, ``check_shape_rule``,
``check_gradient`` and ``check_round_trip`` are run on each by ``tests/ops/test_op_cases.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.executor.evaluate import as_outputs, flat_static, prepared
from headrace.graph import dtypes
from headrace.graph.graph import Graph
from headrace.graph.shapes import compatible_static
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.build import add_node, constant, placeholder
from headrace.ops.core.registry import (
    ArgDef,
    AttrDef,
    NotDifferentiable,
    OpDef,
    get_op_def,
    grouped,
)
from headrace.passes.ir import Node, make_node
from headrace.session.session import Session

Array = np.ndarray[Any, Any]

#: Relative tolerance by the least precise type among the outputs.
RTOL = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5}
DOUBLE_RTOL = 1e-9
_STEP = 1e-6


@dataclass(frozen=True)
class OpCase:
    """One op on one set of inputs.

    Attributes:
        inputs: arrays in declared order; a list of arrays for a list input.
        attrs: attributes that the inputs do not tell.
        expected: NumPy reference: called with the inputs as declared, gives the output, or a tuple
            of outputs (a list for a list output). None: only the two implementations are compared.
        grad: flat inputs whose gradient is checked; None: all floating ones unless the op is not
            differentiable; ``()``: none.
        rtol, atol: tolerances of the forward values.
        static: flat inputs given as constants; by default those the op declares.
        exact: the shape rule must give every size when the inputs are fully known.
        name: tells cases of one op apart.
    """

    op: str
    inputs: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    expected: Callable[..., Any] | None = None
    grad: tuple[int, ...] | None = None
    rtol: float | None = None
    atol: float | None = None
    static: tuple[int, ...] | None = None
    exact: bool = True
    name: str = ""

    @property
    def op_def(self) -> OpDef:
        return get_op_def(self.op)

    def flat_inputs(self) -> list[Array]:
        """Every input array, lists opened."""
        flat: list[Array] = []
        for value in self.inputs:
            flat.extend(map(np.asarray, value) if isinstance(value, list) else [np.asarray(value)])
        return flat


class Built:
    """A case as an operation in a graph of its own.

    Attributes:
        arrays: the flat inputs; ``constant``: flat positions of those that are constants.
    """

    def __init__(
        self, case: OpCase, arrays: Sequence[Array], dims: Callable[[Array], Any] = np.shape
    ) -> None:
        self.arrays = list(arrays)
        self.graph = Graph()
        first = self._build(case, dims, ())
        static = flat_static(make_node(first)) if case.static is None else case.static
        self.constant = tuple(static)
        if static:
            self.graph = Graph()
            self.op = self._build(case, dims, self.constant)
        else:
            self.op = first

    def _build(self, case: OpCase, dims: Any, static: tuple[int, ...]) -> Operation:
        tensors: list[Tensor] = []
        with self.graph.as_default():
            for i, array in enumerate(self.arrays):
                if i in static:
                    tensors.append(constant(array, dtypes.np_array_dtype(array)))
                else:
                    tensors.append(placeholder(dtypes.np_array_dtype(array), dims(array)))
            sizes = [len(v) if isinstance(v, list) else None for v in case.inputs]
            return add_node(case.op_def, grouped(tensors, sizes), dict(case.attrs))

    @property
    def node(self) -> Node:
        return make_node(self.op)

    def feeds(self) -> dict[Any, Array]:
        return {
            t: a
            for i, (t, a) in enumerate(zip(self.op.inputs, self.arrays, strict=True))
            if i not in self.constant
        }


def run_compiled(node: Node, arrays: Sequence[Array], static: Sequence[int]) -> list[Array]:
    """The kernel under ``jax.jit``.

    Raises:
        InvalidArgumentError: if a check of the kernel fails.
    """
    p = prepared(node)
    assert p.kernel is not None
    kernel = p.kernel
    messages: list[str] = []

    def call(dynamic: dict[int, Any]) -> Any:
        codes: list[Any] = []

        def sink(ok: Any, message: str, data: tuple[Any, ...]) -> None:
            messages.append(message)
            codes.append((ok, data))

        args = [dynamic.get(i, a) for i, a in enumerate(arrays)]
        with checks.collecting(sink):
            return list(as_outputs(kernel(*grouped(args, p.groups)), p.outputs)), codes

    dynamic = {i: a for i, a in enumerate(arrays) if i not in static}
    with jax.enable_x64(True):
        outputs, codes = jax.jit(call)(dynamic)
    for message, (ok, data) in zip(messages, codes, strict=True):
        if not ok:
            raise InvalidArgumentError(None, node.op, message.format(*map(int, data)))
    return [np.asarray(o) for o in outputs]


def run_interpreted(node: Node, arrays: Sequence[Array]) -> list[Array]:
    """The op's NumPy form."""
    p = prepared(node)
    assert p.interpret is not None
    with np.errstate(all="ignore"):
        outputs = as_outputs(p.interpret(*grouped(list(arrays), p.groups)), p.outputs)
    return [np.asarray(o) for o in outputs]


def assert_close(
    got: Array, want: Any, what: str, rtol: float | None = None, atol: float | None = None
) -> None:
    """Equal shapes and types, and values equal up to the precision of the type."""
    want = np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    name = got.dtype.name
    if got.dtype.kind in "biuOSU":
        assert np.array_equal(got, want), f"{what}:\n{got}\nexpected\n{want}"
        return
    rtol = RTOL.get(name, DOUBLE_RTOL) if rtol is None else rtol
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        got.astype(wide), want.astype(wide), rtol, rtol if atol is None else atol, err_msg=what
    )


def check_forward(case: OpCase) -> None:
    """Compiled, interpreted and expected outputs agree, in the declared types."""
    built = Built(case, case.flat_inputs())
    node = built.node
    results = [("compiled", run_compiled(node, built.arrays, built.constant))]
    if case.op_def.interpret is not None:
        results.append(("interpreted", run_interpreted(node, built.arrays)))
    for how, outputs in results:
        assert len(outputs) == len(node.dtypes), f"{how}: {len(outputs)} outputs"
        for output, dtype in zip(outputs, node.dtypes, strict=True):
            assert output.dtype == dtype.np_dtype, f"{how}: {output.dtype}, declared {dtype.name}"
    if case.expected is not None:
        with np.errstate(all="ignore"):
            want = as_outputs(case.expected(*case.inputs), len(node.dtypes))
        results.append(("expected", list(want)))
    how_want, want = results[-1]
    for how, outputs in results[:-1]:
        for i, (got, reference) in enumerate(zip(outputs, want, strict=True)):
            text = f"output {i}, {how} against {how_want}"
            assert_close(got, reference, text, case.rtol, case.atol)


def check_shape_rule(case: OpCase) -> None:
    """The shape rule fits the outputs, whatever is known of the inputs."""
    arrays = case.flat_inputs()
    full = Built(case, arrays)
    outputs = run_compiled(full.node, arrays, full.constant)
    for output, actual in zip(full.op.outputs, outputs, strict=True):
        if case.exact:
            assert output.dims == actual.shape, f"rule {output.dims}, kernel {actual.shape}"
        else:
            assert compatible_static(output.dims, actual.shape), f"{output.dims}, {actual.shape}"
    for dims in (lambda a: (None,) * a.ndim, lambda a: None):
        partial = Built(case, arrays, dims)
        for output, actual in zip(partial.op.outputs, outputs, strict=True):
            assert compatible_static(output.dims, actual.shape), f"{output.dims}, {actual.shape}"


def _differentiable(case: OpCase, built: Built) -> list[int]:
    if case.grad is not None:
        return list(case.grad)
    if isinstance(case.op_def.gradient, NotDifferentiable):
        return []
    return [
        i
        for i, t in enumerate(built.op.inputs)
        if i not in built.constant and (t.dtype.is_floating or t.dtype.is_complex)
    ]


def _in_double(case: OpCase) -> list[Array]:
    """The inputs in double precision where the op takes it, so that differences are exact."""
    arrays = case.flat_inputs()
    wide = [
        a.astype(np.float64 if a.dtype == np.float32 else np.complex128)
        if a.dtype in (np.float32, np.complex64)
        else a
        for a in arrays
    ]
    if any(case.op_def.attrs[name].kind == "type" for name in case.attrs):
        return arrays
    try:
        Built(case, wide)
    except (TypeError, ValueError):
        return arrays
    return wide


def check_gradient(case: OpCase, seed: int = 0) -> None:
    """The gradient in the graph is the kernel's VJP, and agrees with a finite difference."""
    from headrace.autodiff.gradients import gradients

    built = Built(case, _in_double(case))
    wrt = _differentiable(case, built)
    if not wrt:
        return
    rng = np.random.default_rng(seed)
    ys = [t for t in built.op.outputs if t.dtype.is_floating or t.dtype.is_complex]
    node = built.node
    outputs = run_compiled(node, built.arrays, built.constant)
    seeds = [_random_like(rng, outputs[t.value_index]) for t in ys]
    with built.graph.as_default():
        xs = [built.op.inputs[i] for i in wrt]
        found = gradients(ys, xs, [constant(s) for s in seeds])
        assert None not in found, f"no gradient for inputs {wrt}: {found}"
        got = Session(graph=built.graph).run([_dense(g) for g in found], built.feeds())
    chosen = {t.value_index: s for t, s in zip(ys, seeds, strict=True)}
    want = _kernel_vjp(node, built, wrt, chosen)
    single = any(a.dtype in (np.float32, np.complex64) for a in [*got, *seeds])
    rtol = 2e-4 if single else 1e-7
    for i, mine, reference in zip(wrt, got, want or got, strict=True):
        assert_close(mine, reference, f"gradient of input {i} against the VJP", rtol)
    if not single:
        _check_difference(built, wrt, got, chosen, rng)


def _dense(gradient: Any) -> Any:
    from headrace.ops.core.build import convert_to_tensor

    return convert_to_tensor(gradient)


def _random_like(rng: np.random.Generator, array: Array) -> Array:
    values = rng.uniform(0.5, 1.5, array.shape)
    if array.dtype.kind == "c":
        return np.asarray(values + 1j * rng.uniform(0.5, 1.5, array.shape)).astype(array.dtype)
    return np.asarray(values).astype(array.dtype)


def _kernel_vjp(
    node: Node, built: Built, wrt: list[int], seeds: dict[int, Array]
) -> list[Array] | None:
    """``jax.vjp``; conjugated in and out, for JAX's convention for complex numbers is the other.

    None where JAX has no derivative: the finite difference alone decides then.
    """
    p = prepared(node)
    assert p.kernel is not None
    kernel = p.kernel

    def call(values: list[Any]) -> list[Any]:
        args: list[Any] = list(built.arrays)
        for i, value in zip(wrt, values, strict=True):
            args[i] = value
        outputs = as_outputs(kernel(*grouped(args, p.groups)), p.outputs)
        return [outputs[i] for i in seeds]

    def pull(values: list[Any], cotangents: list[Any]) -> Any:
        with checks.collecting(None):
            return jax.vjp(call, values)[1](cotangents)[0]

    with jax.enable_x64(True):
        values = [built.arrays[i] for i in wrt]
        try:
            results = jax.jit(pull)(values, [np.conj(s) for s in seeds.values()])
        except NotImplementedError:
            return None
    return [np.conj(np.asarray(r)) for r in results]


def _check_difference(
    built: Built,
    wrt: list[int],
    grads: Sequence[Array],
    seeds: dict[int, Array],
    rng: np.random.Generator,
) -> None:
    """One random direction: the central difference against the product with the gradients."""
    directions = [_random_like(rng, built.arrays[i]) for i in wrt]
    sums = []
    for sign in (1, -1):
        arrays = list(built.arrays)
        for i, direction in zip(wrt, directions, strict=True):
            arrays[i] = arrays[i] + sign * _STEP * direction
        node = built.node
        if node.op_def.interpret is not None:
            outputs = run_interpreted(node, arrays)
        else:
            outputs = run_compiled(node, arrays, built.constant)
        sums.append(sum(np.sum(np.conj(s) * outputs[i]).real for i, s in seeds.items()))
    difference = (sums[0] - sums[1]) / (2 * _STEP)
    product = sum(np.sum(np.conj(g) * d).real for g, d in zip(grads, directions, strict=True))
    np.testing.assert_allclose(difference, product, 1e-4, 1e-4, err_msg="finite difference")


def check_round_trip(case: OpCase) -> None:
    """The op survives a GraphDef: same inputs, types and attributes."""
    check_in_files(Built(case, case.flat_inputs()).op)


def check_in_files(op: Operation) -> None:
    """An op survives a GraphDef, with the graph it is in: same inputs, types and attributes."""
    from headrace.graph.graph_def import graph_to_graph_def
    from headrace.graph_files.import_graph import import_graph_def

    message = graph_to_graph_def(op.graph, own_checks=True)
    copy = Graph()
    with copy.as_default():
        import_graph_def(message, name="")
    twin = copy.get_operation_by_name(op.name)
    assert twin.type == op.type
    assert [t.name for t in twin.inputs] == [t.name for t in op.inputs]
    assert [t.dtype for t in twin.outputs] == [t.dtype for t in op.outputs]
    assert graph_to_graph_def(copy, own_checks=True) == message


def smallest(op_def: OpDef, **attrs: Any) -> Operation:
    """An op in a graph of its own, made from its definition alone.

    Inputs are placeholders of unknown shape, in the first type that the op allows, and attributes
    have their defaults, or the least value of their kind.

    Args:
        attrs: attributes whose value the definition does not tell.

    Raises:
        ValueError: if the op needs an attribute that holds a function, and it is not given.
    """
    values = {n: attrs.get(n, _least(a)) for n, a in op_def.attrs.items()}
    graph = Graph()
    with graph.as_default():
        tensors: list[Any] = []
        for arg in op_def.inputs:
            count = arg.size(values) if arg.is_list else 1
            types = values[arg.type_list_attr] if arg.type_list_attr else (_type_of(arg, values),)
            made = [placeholder(types[i % len(types)]) for i in range(count)]
            tensors.append(made if arg.is_list else made[0])
        return add_node(op_def, tensors, values)


def _type_of(arg: ArgDef, attrs: dict[str, Any]) -> dtypes.DType:
    found = arg.dtype if arg.type_attr is None else attrs[arg.type_attr]
    assert found is not None
    return found


def _least(attr: AttrDef) -> Any:
    """The default of an attribute, or the least value of its kind."""
    if attr.has_default:
        return attr.default
    kind = attr.kind.removeprefix("list(").removesuffix(")")
    if kind == "func":
        raise ValueError(f"attribute '{attr.name}' holds a function: it has to be given.")
    allowed = sorted(attr.allowed or (), key=str)
    preferred = [v for v in (dtypes.float32, dtypes.int32) if not allowed or v in allowed]
    value: Any = {
        "type": (preferred or allowed)[0],
        "string": allowed[0] if allowed else "a",
        "int": 1,
        "float": 0.5,
        "bool": True,
        "shape": (2,),
        "tensor": np.zeros((), np.float32),
    }[kind]
    if kind == attr.kind:
        return max(value, attr.minimum or 0) if kind == "int" else value
    return (value,) * max(attr.minimum or 0, 1)
