"""Control flow ops: branches, loops, scans and calls of graph functions.

Source: the functional control flow of TensorFlow's graphs (If, Case, While, PartitionedCall), and
Scan, which those lack. Bodies are FuncGraphs in attributes; all they use comes in as inputs.

Each op can also hand out inner values of its bodies: the attribute ``_saved`` names inner tensors,
and the outputs after the declared ones are lists of their values, one per iteration (for branches
none or one). Gradients ask for them (see autodiff.control_flow).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.func_graph import FuncGraph
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.control import flow_kernels
from headrace.ops.control import tensor_list_kernels as lists
from headrace.ops.control.flow_kernels import is_known
from headrace.ops.control.tensor_list_kernels import TensorList
from headrace.ops.control.trip_count import trip_count
from headrace.ops.core.checks import NeedsValue
from headrace.ops.core.registry import EXTERNAL, PURE, define_op
from headrace.ops.core.shape_flow import output_dims
from headrace.ops.core.traits import CALL, LOOP

_SAVED = "_saved: list(string) = [], _Tsaved: list(type) = []"


# -- branches -----------------------------------------------------------------------------------


def bodies_of(attrs: dict[str, Any]) -> list[FuncGraph]:
    """The branches of a branching op, in the order of their index; for a call its one body."""
    if "branches" in attrs:
        return list(attrs["branches"])
    if "f" in attrs:
        return [attrs["f"]]
    return [attrs["then_branch"], attrs["else_branch"]]


def saved_name(branch: int, tensor: str) -> str:
    """How ``_saved`` names a tensor of one of several branches."""
    return f"{branch}!{tensor}"


def _saved_of(attrs: dict[str, Any], branch: int) -> tuple[str, ...]:
    prefix = f"{branch}!"
    return tuple(n.removeprefix(prefix) for n in attrs["_saved"] if n.startswith(prefix))


def calls_of(attrs: dict[str, Any]) -> list[tuple[FuncGraph, tuple[str, ...]]]:
    """The functions that an op with these attributes calls, with the inner tensors it saves."""
    if "body" in attrs:
        return [(attrs["cond"], ()), (attrs["body"], tuple(attrs["_saved"]))]
    if "y_lists" in attrs:
        return [(attrs["f"], tuple(attrs["_saved"]))]
    return [(body, _saved_of(attrs, i)) for i, body in enumerate(bodies_of(attrs))]


def save(op: Operation, names: Sequence[str]) -> list[Tensor]:
    """The outputs of a control-flow op that hold the inner tensors called ``names``.

    Outputs are added where they are missing: the one change that an op sees after it was made.
    """
    graph = op.graph
    with graph._lock:
        saved = list(op.attrs["_saved"])
        first = len(op.outputs) - len(saved)
        missing = [n for n in names if n not in saved]
        if missing:
            saved += missing
            # Plans that exist hold the old dictionary and go on as they were.
            op.attrs = {
                **op.attrs,
                "_saved": tuple(saved),
                "_Tsaved": (dtypes.variant,) * len(saved),
            }
            new = [Tensor(op, len(op.outputs) + i, dtypes.variant, ()) for i in range(len(missing))]
            op.outputs = (*op.outputs, *new)
            graph._mutations += 1
        return [op.outputs[first + saved.index(n)] for n in names]


def first_argument(attrs: dict[str, Any]) -> int:
    """Which input of an op with these attributes is the first argument of its functions."""
    return 1 if "then_branch" in attrs or "branches" in attrs else 0


def _run_branch(
    evaluation: Any, attrs: dict[str, Any], index: int, args: Sequence[Any]
) -> list[Any]:
    """One branch: its outputs, then all saved values (None for those of other branches)."""
    body = bodies_of(attrs)[index]
    values: list[Any] = evaluation.call(body, args, _saved_of(attrs, index))
    count = len(body.outputs)
    own = iter(values[count:])
    prefix = f"{index}!"
    return values[:count] + [
        next(own) if name.startswith(prefix) else None for name in attrs["_saved"]
    ]


def _lower_branches(evaluation: Any, node: Any, index: Any, args: Sequence[Any]) -> list[Any]:
    attrs = node.attrs
    bodies = bodies_of(attrs)
    if isinstance(index, int):
        values = _run_branch(evaluation, attrs, index, args)
    else:
        run = partial(_run_branch, evaluation, attrs)
        calls = [partial(run, i, args) for i in range(len(bodies))]
        values = flow_kernels.branches(evaluation, node, index, calls, args)
    count = len(bodies[0].outputs)
    saved = [TensorList(() if v is None else (v,)) for v in values[count:]]
    return [*values[:count], *saved]


def _truth(value: Any) -> Any:
    """TensorFlow's truth of a tensor: a scalar that is not zero or empty, an array not empty."""
    if value.ndim:
        return np.bool_(value.size > 0)
    if value.dtype == object:
        return np.bool_(len(value.item()) > 0)
    return value != 0 if value.dtype != bool else value


def _lower_if(evaluation: Any, node: Any, args: Sequence[Any]) -> list[Any]:
    truth = _truth(args[0])
    # Index 0 is the branch for true.
    index: Any = (0 if truth else 1) if is_known(truth) else jnp.where(truth, 0, 1)
    return _lower_branches(evaluation, node, index, args[1:])


def _lower_case(evaluation: Any, node: Any, args: Sequence[Any]) -> list[Any]:
    last = len(node.attrs["branches"]) - 1
    if is_known(args[0]):
        chosen = int(args[0])
        index: Any = chosen if 0 <= chosen <= last else last
    else:
        index = jnp.where((args[0] < 0) | (args[0] > last), last, args[0])
    return _lower_branches(evaluation, node, index, args[1:])


def _lower_call(evaluation: Any, node: Any, args: Sequence[Any]) -> list[Any]:
    return _lower_branches(evaluation, node, 0, args)


def _branch_shapes(op: Operation) -> list[Dims]:
    """What all branches agree on; saved lists are scalars."""
    given = op.attrs.get("output_shapes") or ()
    saved: list[Dims] = [()] * len(op.attrs["_saved"])
    if given:
        return [s.as_tuple for s in given] + saved
    columns = zip(*[b.outputs for b in bodies_of(op.attrs)], strict=True)
    return [common_dims([t.dims for t in column]) for column in columns] + saved


def common_dims(all_dims: Sequence[Dims]) -> Dims:
    """The static shape that fits all of ``all_dims``."""
    first = all_dims[0]
    for dims in all_dims[1:]:
        if first is None or dims is None or len(first) != len(dims):
            return None
        first = tuple(a if a == b else None for a, b in zip(first, dims, strict=True))
    return first


for _name, _effects in (("If", EXTERNAL), ("StatelessIf", PURE)):
    define_op(
        f"{_name}(cond: Tcond, input: Tin) -> (output: Tout, saved: _Tsaved)",
        attrs="Tcond: type, Tin: list(type), Tout: list(type), then_branch: func, "
        f"else_branch: func, output_shapes: list(shape) = [], {_SAVED}",
        shape=_branch_shapes,
        lower=_lower_if,
        effects=_effects,
    )

for _name, _effects in (("Case", EXTERNAL), ("StatelessCase", PURE)):
    define_op(
        f"{_name}(branch_index: int32, input: Tin) -> (output: Tout, saved: _Tsaved)",
        attrs="Tin: list(type), Tout: list(type), branches: list(func) >= 1, "
        f"output_shapes: list(shape) = [], {_SAVED}",
        shape=_branch_shapes,
        lower=_lower_case,
        effects=_effects,
    )

for _name, _effects in (("StatefulPartitionedCall", EXTERNAL), ("PartitionedCall", PURE)):
    define_op(
        f"{_name}(args: Tin) -> (output: Tout, saved: _Tsaved)",
        attrs="Tin: list(type), Tout: list(type), f: func, config: string = '', "
        f"config_proto: string = '', executor_type: string = '', {_SAVED}",
        shape=_branch_shapes,
        lower=_lower_call,
        traits=CALL,
        effects=_effects,
    )

# -- outputs of switches -------------------------------------------------------------------------


def _switch(context: Any, data: Any, pred: Any, *, _taken: int) -> Any:
    if _taken >= 0 and bool(pred) != bool(_taken):
        side = ("false", "true")[_taken]
        raise InvalidArgumentError(
            None,
            None,
            f"Output {_taken} of a Switch has no value: its predicate would have to be {side}.",
        )
    return data, data


# What imported graphs have where branches were told by tokens: only fetches and what a program adds
# use it. A step has a node for each output in use (see passes.ir).
define_op(
    "Switch(data: T, pred: bool) -> (output_false: T, output_true: T)",
    attrs="T: type, _taken: int = -1",
    shape=lambda op: [op.inputs[0].dims] * 2,
    host=_switch,
)

# -- while --------------------------------------------------------------------------------------


def invariant_positions(body: FuncGraph) -> set[int]:
    """Loop variables that the body hands on unchanged."""
    found = set()
    for i, (source, result) in enumerate(zip(body.all_inputs, body.outputs, strict=True)):
        while result.op.type == "Identity" and not result.op.control_inputs:
            result = result.op.inputs[0]
        if result is source:
            found.add(i)
    return found


def _lower_while(evaluation: Any, node: Any, args: Sequence[Any]) -> list[Any]:
    attrs = node.attrs
    cond, body, saved = attrs["cond"], attrs["body"], attrs["_saved"]
    if not evaluation.tracing:
        compiled = saved and evaluation.compiles_loops
        done = _run_bounded(evaluation, node, args) if compiled else None
        return done or _interpret_while(evaluation, cond, body, saved, args)
    parts = _WhileParts(evaluation, node, args)
    bound = attrs.get("_bound")
    if bound is not None:
        values, collected, unfinished = flow_kernels.repeated_while(
            parts.loop(), parts.start, parts.more, bound
        )
        return [*parts.merged(values), *collected, unfinished]
    count, exact = trip_count(evaluation, cond, body, list(args))
    if exact and count == 0:
        return [*args, *[TensorList(())] * len(saved)]
    if exact and count is not None:
        values, collected = flow_kernels.counted(parts.loop(), parts.start, count)
    else:
        values, collected, _ = flow_kernels.repeated_while(
            parts.loop(), parts.start, parts.more, count
        )
    return [*parts.merged(values), *collected]


class _WhileParts:
    """A loop's functions in terms of the loop variables that change."""

    def __init__(self, evaluation: Any, node: Any, args: Sequence[Any]) -> None:
        self.evaluation = evaluation
        self.attrs = node.attrs
        self.args = args
        fixed = invariant_positions(node.attrs["body"])
        self.moving = [i for i in range(len(args)) if i not in fixed]
        self.start = [args[i] for i in self.moving]

    def merged(self, values: Sequence[Any]) -> list[Any]:
        """All loop variables, given those that change."""
        everything = list(self.args)
        for i, value in zip(self.moving, values, strict=True):
            everything[i] = value
        return everything

    def loop(self) -> flow_kernels.Loop:
        return flow_kernels.Loop(self.evaluation, self._step)

    def _step(self, values: Sequence[Any], _: Any) -> list[Any]:
        outputs = self.evaluation.call(
            self.attrs["body"], self.merged(values), self.attrs["_saved"]
        )
        return [*[outputs[i] for i in self.moving], *outputs[len(self.args) :]]

    def more(self, values: Sequence[Any]) -> Any:
        (go,) = self.evaluation.call(self.attrs["cond"], self.merged(values))
        if go.ndim:
            raise NeedsValue("the condition of a loop is no scalar")
        return go


def _run_bounded(evaluation: Any, node: Any, args: Sequence[Any]) -> list[Any] | None:
    """The loop as a program of its own, if it can be compiled once its bound is guessed."""
    outputs = evaluation.host.run_bounded_loop(node, args)
    if outputs is None:
        return None
    rest = iter(outputs)
    types = node.attrs["T"]
    values = [a if t is dtypes.resource else next(rest) for a, t in zip(args, types, strict=True)]
    return [*values, *rest]


def _interpret_while(
    evaluation: Any, cond: FuncGraph, body: FuncGraph, saved: tuple[str, ...], args: Sequence[Any]
) -> list[Any]:
    values = list(args)
    rows: list[list[Any]] = [[] for _ in saved]
    while _truth(np.asarray(evaluation.call(cond, values)[0])):
        outputs = evaluation.call(body, values, saved)
        values = outputs[: len(values)]
        for kept, value in zip(rows, outputs[len(values) :], strict=True):
            kept.append(value)
    return [*values, *[TensorList(tuple(r)) for r in rows]]


def _while_shapes(op: Operation) -> list[Dims]:
    given = op.attrs["output_shapes"]
    saved: list[Dims] = [()] * len(op.attrs["_saved"])
    if given:
        return [s.as_tuple for s in given] + saved
    return [t.dims for t in op.attrs["body"].all_inputs] + saved


for _name, _effects in (("While", EXTERNAL), ("StatelessWhile", PURE)):
    define_op(
        f"{_name}(input: T) -> (output: T, saved: _Tsaved)",
        attrs="T: list(type), cond: func, body: func, output_shapes: list(shape) = [], "
        f"parallel_iterations: int = 10, {_SAVED}",
        shape=_while_shapes,
        lower=_lower_while,
        traits=LOOP,
        effects=_effects,
    )

# -- scan ---------------------------------------------------------------------------------------


def _sizes(node: Any, xs: Sequence[Any]) -> Any:
    """The common length of all ``xs``; traced if a list has a computed length."""
    found = None
    for x in xs:
        if not isinstance(x, TensorList) and not x.shape:
            raise ValueError(
                f"a sequence of {node.name} is a scalar; elements are taken along the first axis"
            )
        size = x.size if isinstance(x, TensorList) else x.shape[0]
        if not isinstance(size, int):
            return size
        if found is not None and size != found:
            raise ValueError(f"the sequences of {node.name} have {found} and {size} elements")
        found = size
    if found is None:
        raise ValueError(f"{node.name} has no sequence to scan")
    return found


def _split_args(attrs: dict[str, Any], args: Sequence[Any]) -> tuple[list[Any], ...]:
    a, b = len(attrs["Tcarry"]), len(attrs["Tcarry"]) + len(attrs["Txs"])
    return list(args[:a]), list(args[a:b]), list(args[b:])


def _lower_scan(evaluation: Any, node: Any, args: Sequence[Any]) -> list[Any]:
    attrs = node.attrs
    carry, xs, captures = _split_args(attrs, args)
    size = _sizes(node, xs)
    if not evaluation.tracing:
        return _interpret_scan(evaluation, node, carry, xs, captures)
    body, saved = attrs["f"], attrs["_saved"]
    known = {i: x.repeated for i, x in enumerate(xs) if _is_repeated(x)}
    is_empty = isinstance(size, int) and size == 0
    if is_empty and any(isinstance(x, TensorList) and x.unwritten for x in xs):
        # The body cannot be traced: nothing tells what shapes its elements would have.
        return _scanned_nothing(attrs, carry, xs, captures)
    rows = [flow_kernels.stacked_rows(x) for i, x in enumerate(xs) if i not in known]
    if not rows and not isinstance(size, int):
        rows = [jnp.zeros((0,))]

    def step(values: Sequence[Any], elements: Sequence[Any]) -> list[Any]:
        rest = iter(elements)
        parts = [known[i] if i in known else next(rest) for i in range(len(xs))]
        result: list[Any] = evaluation.call(body, [*values, *parts, *captures], saved)
        return result

    loop = flow_kernels.Loop(evaluation, step)
    values: list[Any] = []
    batch = None
    if attrs["vectorized"] and isinstance(size, int) and size and not carry:
        batch = flow_kernels.at_once(loop, rows, size)
    if batch is not None:
        collected = batch
    elif isinstance(size, int):
        values, collected = flow_kernels.scanned(loop, carry, rows, size, attrs["reverse"])
    else:
        values, collected = flow_kernels.scanned_dynamic(loop, carry, rows, size, attrs["reverse"])
    count = len(attrs["y_lists"])
    ys = [
        y if as_list else _tensor_of(y)
        for y, as_list in zip(collected, attrs["y_lists"], strict=False)
    ]
    return [*values, *ys, *collected[count:]]


def _is_repeated(x: Any) -> bool:
    return isinstance(x, TensorList) and x.repeated is not None


def _tensor_of(value: TensorList) -> Any:
    if not value.has_static_size:
        raise NeedsValue("the number of iterations is not known")
    if value.repeated is not None:
        known = np.asarray(value.repeated)
        return np.broadcast_to(known, (value.size, *known.shape)).copy()
    return value.buffer


def _interpret_scan(
    evaluation: Any, node: Any, carry: list[Any], xs: list[Any], captures: list[Any]
) -> list[Any]:
    attrs = node.attrs
    body, saved = attrs["f"], attrs["_saved"]
    sequences: list[Any] = [x.to_items().items if isinstance(x, TensorList) else x for x in xs]
    size = _sizes(node, xs)
    count = len(attrs["y_lists"])
    rows: list[list[Any]] = [[None] * size for _ in range(count + len(saved))]
    for t in reversed(range(size)) if attrs["reverse"] else range(size):
        parts = [np.asarray(s[t]) if isinstance(s, np.ndarray) else s[t] for s in sequences]
        outputs = evaluation.call(body, [*carry, *parts, *captures], saved)
        carry = outputs[: len(carry)]
        for kept, value in zip(rows, outputs[len(carry) :], strict=True):
            kept[t] = value
    if not size:
        return _scanned_nothing(attrs, carry, xs, captures)
    ys = [
        TensorList(tuple(kept)) if as_list else _stack(kept)
        for kept, as_list in zip(rows, attrs["y_lists"], strict=False)
    ]
    return [*carry, *ys, *[TensorList(tuple(kept)) for kept in rows[count:]]]


def _scanned_nothing(
    attrs: dict[str, Any], carry: list[Any], xs: Sequence[Any], captures: list[Any]
) -> list[Any]:
    """The results of a scan without iterations."""
    body = attrs["f"]
    dims = _result_dims(body, carry, xs, captures)
    ys = [
        TensorList(()) if as_list else _no_rows(tensor, dims[tensor])
        for as_list, tensor in zip(attrs["y_lists"], body.outputs[len(carry) :], strict=False)
    ]
    return [*carry, *ys, *[TensorList(()) for _ in attrs["_saved"]]]


def _no_rows(tensor: Tensor, dims: Dims) -> Any:
    return np.zeros((0, *[d or 0 for d in dims or ()]), tensor.dtype.np_dtype)


def _result_dims(
    body: FuncGraph, carry: list[Any], sequences: Sequence[Any], captures: list[Any]
) -> dict[Tensor, Dims]:
    """The shapes of one iteration's results, where there is no iteration to tell them."""
    given = [None if isinstance(v, TensorList) else getattr(v, "shape", None) for v in carry]
    given += [None if isinstance(s, TensorList) else s.shape[1:] for s in sequences]
    given += [None if isinstance(v, TensorList) else getattr(v, "shape", None) for v in captures]
    return dict(zip(body.outputs, output_dims(body, given), strict=True))


def _stack(rows: list[Any]) -> Any:
    shapes = {np.shape(r) for r in rows}
    if len(shapes) > 1:
        raise ValueError(f"the results of the iterations have different shapes: {sorted(shapes)}")
    return np.stack([np.asarray(lists.to_host(r)) for r in rows])


def _scan_shapes(op: Operation) -> list[Dims]:
    """Carries as the body takes them; results with the number of elements in front."""
    attrs = op.attrs
    body = attrs["f"]
    count = len(attrs["Tcarry"])
    size = None
    for tensor in op.inputs[count : count + len(attrs["Txs"])]:
        if tensor.dtype.name != "variant" and tensor.dims:
            size = size if size is not None else tensor.dims[0]
    found: list[Dims] = [t.dims for t in body.inputs[:count]]
    for as_list, tensor in zip(attrs["y_lists"], body.outputs[count:], strict=True):
        found.append(() if as_list else None if tensor.dims is None else (size, *tensor.dims))
    return [*found, *[()] * len(attrs["_saved"])]


for _name, _effects in (("Scan", EXTERNAL), ("StatelessScan", PURE)):
    define_op(
        f"{_name}(carry: Tcarry, xs: Txs, captures: Tcaptures) -> "
        "(final: Tcarry, ys: Tys, saved: _Tsaved)",
        attrs="Tcarry: list(type), Txs: list(type), Tcaptures: list(type), Tys: list(type), "
        f"f: func, y_lists: list(bool), reverse: bool = False, vectorized: bool = False, {_SAVED}",
        shape=_scan_shapes,
        lower=_lower_scan,
        traits=LOOP,
        effects=_effects,
    )

__all__: list[str] = []
