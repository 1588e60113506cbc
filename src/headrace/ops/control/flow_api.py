"""``tf.cond`` and ``tf.while_loop``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from headrace.graph import dtypes, nest
from headrace.graph.composite import CompositeTensor
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape, shape_text
from headrace.graph.tensor import Dims, Operation, Operators, Tensor
from headrace.ops.control.functions import Leaf, Structure, build_body, call_op, unify_captures
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_value

#: What branches and loops turn into a tensor. Checkers see the type of a result that is made of
#: these; lists of one, composite values and deeper structures are Any to them.
Value: TypeAlias = (
    Operators | Operation | float | str | bytes | np.ndarray[Any, np.dtype[Any]] | np.generic
)

# -- branches -----------------------------------------------------------------------------------


@overload
def cond(
    pred: Any,
    true_fn: Callable[[], Value],
    false_fn: Callable[[], Value],
    strict: Literal[False] = False,
    name: str | None = None,
) -> Tensor: ...
@overload
def cond(
    pred: Any,
    true_fn: Callable[[], tuple[Value, Value]],
    false_fn: Callable[[], tuple[Value, Value]],
    strict: Literal[False] = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def cond(
    pred: Any,
    true_fn: Callable[[], tuple[Value, Value, Value]],
    false_fn: Callable[[], tuple[Value, Value, Value]],
    strict: Literal[False] = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any: ...
@public("cond")
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """What ``true_fn()`` gives if the scalar ``pred`` is true, else what ``false_fn()`` gives.

    Only the ops that the chosen function makes run; ops made outside and used inside run always.

    Args:
        pred: boolean scalar tensor.
        true_fn, false_fn: functions without arguments that return tensors, or equal nested
            structures of tensors, or operations.
        strict: keep a list of one tensor as it is, instead of returning the tensor.
        fn1, fn2: former names of ``true_fn`` and ``false_fn``.

    Raises:
        TypeError: if ``pred`` is a Python bool, no boolean, or a function cannot be called.
        ValueError: if ``pred`` is no scalar, or the functions return different structures or types.
    """
    true_fn = _renamed(true_fn, fn1, "fn1", "true_fn")
    false_fn = _renamed(false_fn, fn2, "fn2", "false_fn")
    if isinstance(pred, (bool, np.bool_)):
        raise TypeError("pred must not be a Python bool")
    graph = get_default_graph()
    with graph.name_scope(name or "cond"):
        truth = _scalar_predicate(pred)
        branches = [Branch("true", true_fn, strict), Branch("false", false_fn, strict)]
        check_branches(branches, "true_fn and false_fn")
        bodies = [b.body for b in branches]
        captured = unify_captures(bodies)
        attrs = {
            "then_branch": bodies[0],
            "else_branch": bodies[1],
            "Tout": [t.dtype for t in bodies[0].outputs],
        }
        op = call_op("If", "StatelessIf", bodies, [truth, captured], attrs, "If")
        return branches[0].pack(op)


def _scalar_predicate(pred: Any) -> Tensor:
    truth: Tensor = convert_to_tensor(pred, name="pred")
    if truth.dtype is not dtypes.bool:
        raise TypeError(f"pred must be a boolean scalar, not {truth!r}. Compare it: x > 0.")
    if truth.dims is None:
        truth = raw.EnsureShape(truth, shape=())
    elif truth.dims:
        raise ValueError(
            f"pred must be a scalar, not {truth!r}. To choose element by element use tf.where."
        )
    return truth


def _renamed(
    function: Callable[[], Any] | None, old: Callable[[], Any] | None, old_name: str, name: str
) -> Callable[[], Any]:
    if old is not None:
        if function is not None:
            raise TypeError(f"{old_name} and {name} may not be set simultaneously.")
        function = old
    elif function is None:
        raise TypeError(f"cond(): {name} argument required")
    if not callable(function):
        raise TypeError(f"{name} must be callable.")
    return function


class Branch:
    """One traced branch: its body, and the structure of its result."""

    def __init__(self, name: str, function: Callable[[], Any], strict: bool) -> None:
        self.name = name

        def build_branch() -> Structure:
            result = function()
            if result is None:
                raise ValueError(f"{name}_fn must have a return value.")
            if not strict:
                nest.check_depth(result)
                result = unpack_singleton(result)
            return Structure(nest.map_structure(_as_value, result))

        self.body, self.structure = build_body(name, build_branch, ())
        local = [
            t if t.graph is self.body else self.body.capture(t) for t in self.structure.tensors
        ]
        self.body.outputs = local

    def pack(self, op: Operation) -> Any:
        return self.structure.pack(op.outputs)


def _as_value(value: Any) -> Any:
    """An operation becomes a tensor whose computation runs it."""
    if isinstance(value, Operation):
        with get_default_graph().control_dependencies([value]):
            return raw.Identity(constant(True), name="ran")
    return value if isinstance(value, CompositeTensor) else convert_to_tensor(value)


def unpack_singleton(result: Any) -> Any:
    if isinstance(result, (list, tuple)) and len(result) == 1 and not hasattr(result, "_fields"):
        return unpack_singleton(result[0])
    return result


def check_branches(branches: Sequence[Branch], names: str) -> None:
    first = branches[0]
    for other in branches[1:]:
        try:
            nest.assert_same_structure(first.structure.form, other.structure.form)
        except (TypeError, ValueError) as error:
            raise type(error)(f"Incompatible return types of {names}: {error}") from None
        a, b = first.structure.tensors, other.structure.tensors
        if len(a) != len(b):
            raise ValueError(f"{names} must return the same number of results.")
        for x, y in zip(a, b, strict=True):
            if x.dtype is not y.dtype:
                raise ValueError(
                    f"Outputs of {names} must have the same type: {x.dtype.name}, {y.dtype.name}"
                )


#: Functions of two to four loop variables. A list of one comes back as its element, so that only
#: the number of arguments of its functions tells the type of a loop over a list.
_OfSeveral: TypeAlias = (
    Callable[[Tensor, Tensor], Any]
    | Callable[[Tensor, Tensor, Tensor], Any]
    | Callable[[Tensor, Tensor, Tensor, Tensor], Any]
)

# -- while --------------------------------------------------------------------------------------


@overload
def while_loop(
    cond: Callable[[Tensor], Any],
    body: Callable[[Tensor], Any],
    loop_vars: Value | tuple[Value],
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: Literal[False] = False,
) -> Tensor: ...
@overload
def while_loop(
    cond: Callable[[Tensor, Tensor], Any],
    body: Callable[[Tensor, Tensor], Any],
    loop_vars: tuple[Value, Value],
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def while_loop(
    cond: Callable[[Tensor, Tensor, Tensor], Any],
    body: Callable[[Tensor, Tensor, Tensor], Any],
    loop_vars: tuple[Value, Value, Value],
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def while_loop(
    cond: _OfSeveral,
    body: _OfSeveral,
    loop_vars: list[Value] | list[Tensor],
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> list[Tensor]: ...
@overload
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any: ...
@public("while_loop")
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeat ``body`` while ``cond`` is true.

    Args:
        cond: function of the loop variables that returns a boolean scalar.
        body: function of the loop variables that returns new ones of the same structure.
        loop_vars: list or tuple of tensors, TensorArrays or nested structures of these.
        shape_invariants: shapes for the loop variables, less specific than those they start with,
            if shapes change from one iteration to the next.
        back_prop: whether gradients may flow through the loop.
        parallel_iterations, swap_memory: accepted; the compiler schedules loops itself.
        maximum_iterations: scalar limit of the number of iterations.
        return_same_structure: return a list of one loop variable as such.

    Returns:
        The loop variables after the last iteration.

    Raises:
        TypeError: if ``cond`` or ``body`` cannot be called, or types change in the body.
        ValueError: if ``loop_vars`` is empty, or shapes or structure change in the body.
    """
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if not isinstance(loop_vars, (list, tuple)):
        loop_vars = [loop_vars]
    if not loop_vars:
        raise ValueError("No loop variables provided")
    if not isinstance(parallel_iterations, int) or parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    graph = get_default_graph()
    with graph.name_scope(name or "while"):
        builder = _While(cond, body, loop_vars, shape_invariants, maximum_iterations)
        op = builder.build(parallel_iterations)
        outputs = list(op.outputs[builder.counters : builder.counters + len(builder.start.tensors)])
        if not back_prop:
            outputs = [raw.StopGradient(t) if t.dtype.is_floating else t for t in outputs]
        result = builder.start.pack(outputs)
    if len(loop_vars) == 1 and not return_same_structure:
        return result[0]
    return result


class _While:
    """Traces the two functions of a loop and adds the op."""

    def __init__(
        self,
        cond: Callable[..., Any],
        body: Callable[..., Any],
        loop_vars: Any,
        shape_invariants: Any,
        maximum_iterations: Any,
    ) -> None:
        self.cond_fn = cond
        self.body_fn = body
        self.start = Structure(nest.map_structure(_loop_variable, loop_vars))
        self.limit = _limit(maximum_iterations)
        #: One hidden loop variable counts the iterations if their number is limited.
        self.counters = 0 if self.limit is None else 1
        self.dims = self._invariants(loop_vars, shape_invariants)

    def _invariants(self, loop_vars: Any, shape_invariants: Any) -> list[Dims]:
        if shape_invariants is None:
            return [t.dims for t in self.start.tensors]
        nest.assert_same_structure(
            nest.map_structure(lambda _: 0, list(loop_vars)),
            _shapes_as_leaves(list(shape_invariants), list(loop_vars)),
        )
        given = nest.flatten_up_to(list(loop_vars), list(shape_invariants))
        found: list[Dims] = []
        for leaf, shape in zip(self.start.leaves, given, strict=True):
            if len(leaf.tensors) > 1 or leaf.tensors[0].dtype is dtypes.variant:
                found.extend(t.dims for t in leaf.tensors)
                continue
            dims = TensorShape(shape).as_tuple
            _check_start(leaf.tensors[0], dims)
            found.append(dims)
        return found

    def build(self, parallel_iterations: int) -> Operation:
        counter = [constant(np.int32(0), name="loop_counter")] * self.counters
        start = [*counter, *self.start.tensors]
        signature: list[Any] = [(dtypes.int32, (), "loop_counter")] * self.counters
        signature += [
            (t.dtype, dims, t.op.name.rpartition("/")[2] or "var")
            for t, dims in zip(self.start.tensors, self.dims, strict=True)
        ]
        cond_graph, _ = build_body("cond", self._cond, signature)
        body_graph, _ = build_body("body", self._body, signature)
        captured = unify_captures([cond_graph, body_graph])
        body_graph.outputs = [
            *body_graph.outputs,
            *[body_graph.captures[t] for t in captured],
        ]
        attrs = {
            "cond": cond_graph,
            "body": body_graph,
            "parallel_iterations": parallel_iterations,
        }
        bodies = [cond_graph, body_graph]
        return call_op("While", "StatelessWhile", bodies, [[*start, *captured]], attrs, "While")

    def _cond(self, *tensors: Tensor) -> None:
        graph = get_default_graph()
        assert isinstance(graph, FuncGraph)
        go = convert_to_tensor(self.cond_fn(*self.start.pack(tensors[self.counters :])))
        if go.dtype is not dtypes.bool or go.dims not in ((), (1,), None):
            raise TypeError(
                f"cond must return a boolean scalar, not a {go.dtype.name} tensor of shape "
                f"{go.shape}."
            )
        if go.dims == (1,):
            go = raw.Reshape(go, constant(np.zeros(0, np.int32)))
        if self.limit is not None:
            go = raw.LogicalAnd(raw.Less(tensors[0], self.limit), go)
        graph.outputs = [go if go.graph is graph else graph.capture(go)]

    def _body(self, *tensors: Tensor) -> None:
        graph = get_default_graph()
        assert isinstance(graph, FuncGraph)
        packed = self.start.pack(tensors[self.counters :])
        result = self.body_fn(*packed)
        if not isinstance(result, (list, tuple)) or (len(packed) == 1 and len(result) != 1):
            result = [result]
        nest.assert_same_structure(list(packed), list(result), check_types=False)
        outputs: list[Tensor] = []
        for leaf, value in zip(self.start.leaves, nest.flatten(list(result)), strict=True):
            outputs.extend(self._converted(leaf, value))
        for start, inner, dims, out in zip(
            self.start.tensors, tensors[self.counters :], self.dims, outputs, strict=True
        ):
            _check_end(start, inner, dims, out)
        counter = [raw.AddV2(tensors[0], constant(np.int32(1)))] if self.counters else []
        graph.outputs = [t if t.graph is graph else graph.capture(t) for t in [*counter, *outputs]]

    @staticmethod
    def _converted(start: Leaf, value: Any) -> list[Tensor]:
        dtype = start.tensors[0].dtype if len(start.tensors) == 1 else None
        if isinstance(value, Tensor) or hasattr(value, "dtype"):
            dtype = None  # a wrong type is reported with its own message
        return Leaf(value, dtype).tensors


def _loop_variable(value: Any) -> Any:
    return value if isinstance(value, CompositeTensor) else convert_to_tensor(value)


def _shapes_as_leaves(shapes: Any, structure: Any) -> Any:
    """``shapes`` in the form of ``structure``: what stands for a leaf counts as a leaf."""
    if not nest.is_sequence(structure):
        return 0
    if isinstance(structure, Mapping):
        return {k: _shapes_as_leaves(shapes[k], structure[k]) for k in structure}
    if not isinstance(shapes, (list, tuple)) or len(shapes) != len(structure):
        return shapes
    items = [_shapes_as_leaves(a, b) for a, b in zip(shapes, structure, strict=True)]
    return type(structure)(*items) if hasattr(structure, "_fields") else type(structure)(items)


def _limit(maximum_iterations: Any) -> Tensor | None:
    if maximum_iterations is None:
        return None
    limit = convert_to_tensor(maximum_iterations, name="maximum_iterations")
    if limit.dims not in ((), None):
        raise ValueError(f"maximum_iterations must be a scalar, saw shape: {limit.shape}")
    known = static_value(limit)
    if known is not None:
        return constant(np.int32(known), name="maximum_iterations")
    return limit if limit.dtype is dtypes.int32 else raw.Cast(limit, DstT=dtypes.int32)


def _check_start(tensor: Tensor, dims: Dims) -> None:
    if not _at_most(tensor.dims, dims):
        raise ValueError(
            f"The shape invariant specified for {tensor.name} is not compatible with the initial "
            f"shape of the loop variable. It enters the loop with shape {shape_text(tensor.dims)}, "
            f"but the specified shape invariant is {shape_text(dims)}."
        )


def _at_most(specific: Dims, general: Dims) -> bool:
    """Whether every shape that fits ``specific`` fits ``general``."""
    if general is None:
        return True
    if specific is None or len(specific) != len(general):
        return False
    return all(g is None or s == g for s, g in zip(specific, general, strict=True))


def _check_end(start: Tensor, inner: Tensor, dims: Dims, out: Tensor) -> None:
    if out.dtype is not start.dtype:
        raise TypeError(
            f"Loop var {start.name} enters the loop with type {start.dtype!r}, but has type "
            f"{out.dtype!r} after 1 iteration."
        )
    if not _at_most(out.dims, dims):
        raise ValueError(_not_invariant(inner, dims, out))


def _not_invariant(inner: Tensor, dims: Dims, out: Tensor) -> str:
    return (
        f"The shape for {inner.name} is not an invariant for the loop. It enters the loop with "
        f"shape {shape_text(dims)}, but has shape {shape_text(out.dims)} after one iteration. "
        "Provide shape invariants using either the `shape_invariants` argument of tf.while_loop "
        "or set_shape() on the loop variables."
    )
