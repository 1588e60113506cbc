"""When to interpret a region on NumPy, and when to compile it.

Measured on one x86 core: compiling takes about 25 ms, 1.2 ms for each op and 12 ms for each kernel
that remains after fusion; interpreting takes about 3 us for each op and its arithmetic. A region
that runs once is not worth compiling, one that runs twice mostly is. The rule depends on the graph
alone, never on a clock, so that runs repeat to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headrace.executor.side_by_side import is_constant, plan_of
from headrace.graph import dtypes
from headrace.graph.func_graph import FuncGraph
from headrace.graph.recursion import FREE_LEVELS
from headrace.graph.shapes import num_elements_static
from headrace.graph.tensor import Dims
from headrace.passes.ir import FEED, Edge, Node, function_step
from headrace.placement.cost import node_cost, state_bytes
from headrace.settings import flags

#: So many runs before compiling mean: never.
NEVER = 1 << 60

_COMPILE_BASE = 25e-3
_COMPILE_PER_OP = 1.2e-3
_COMPILE_PER_KERNEL = 12e-3
#: To compile one op by itself.
_COMPILE_ALONE = 0.08
#: Nodes are interpreted although some must be compiled alone, if these are no more of it all.
_SMALL_PART = 0.1
_INTERPRET_PER_OP = 3e-6
#: To hand on a value, or what a variable has.
_HAND_ON = 0.5e-6
#: Ops that NumPy has no function of its own for take it so many times as long.
_SEVERAL_CALLS = 3.0
_SECONDS_PER_OPERATION = 1e-9
#: To begin and end one of the results of a reduction.
_SECONDS_PER_SUM = 2e-8
#: The operations of a product of matrices of floating point numbers take such a share of that.
_SHARE_OF_PRODUCT = 1 / 20
#: To call a program, to wait for what it computes, and to look at that as NumPy does. JAX alone
#: takes 23 us of one core for that, and more where other threads want it.
CALL = 45e-6
#: The same where arrays come from the network and go there: they enter and leave JAX, and somebody
#: waits for the thread that computes.
CALL_FROM_HOST = 60e-6
#: Bytes of an element of a variable.
_BYTES = 4
#: What NumPy takes to read or write an element of an array, and of one that a core's cache holds.
_SECONDS_PER_ELEMENT, _SECONDS_IN_CACHE, _IN_CACHE = 0.3e-9, 0.1e-9, 1 << 16
#: A program that compiles within this time is compiled when it runs for the second time; another
#: thread compiles those that take longer, and they are interpreted meanwhile.
_PATIENCE = 3.0
#: Interpreting is to take such a share of that, and happens so many times at most: estimates may
#: be off, and who measures leaves out but a few steps.
_SHARE_MEANWHILE, _MOST_MEANWHILE = 1 / 3, 4
#: What takes longer to compile may take longer to interpret than `interpret_limit`, in proportion.
_USUAL_COMPILING = 0.2
#: XLA's time grows with the third power of how deep branches lie in each other: it takes 1 s for 40
#: levels and 18 s for 150.
_MANY_LEVELS = 32
#: Runs assumed for the body of a loop; it has the sizes of sequences that change at each step.
_ITERATIONS = 32
#: A kernel that is compiled alone takes such a share of what NumPy is assumed to take.
_COMPILED_SHARE = 1 / 20
#: What interpreting costs around loops that are programs, and what is lost by these, as shares of
#: the estimate for interpreting.
_AROUND_LOOPS, _LOOPS_APART = 4.0, 1 / 8
#: More operations for each element that a region makes are not filling but computing.
_FILLING_OPERATIONS = 8


class Runs(NamedTuple):
    """How many times to interpret nodes before they are compiled.

    Attributes:
        alone: where steps wait for the compiler.
        meanwhile: while another thread compiles, which begins when they run for the second time; 0
            where none should.
    """

    alone: int
    meanwhile: int = 0


#: Nothing is interpreted: the first run waits for the compiler.
AT_ONCE = Runs(0)


def runs_before_compiling(
    nodes: Sequence[Node], outputs: Sequence[Edge], call: float = CALL
) -> Runs:
    """How many times to interpret these nodes before they are compiled.

    Args:
        call: seconds that calling a compiled program takes.
    """
    if all(n.op_def.traits.hands_on == "value" for n in nodes):
        return Runs(NEVER)  # a program would only copy the variables
    if flags.interpret == "never":
        return AT_ONCE
    alone = _compiled_alone(nodes)
    if flags.interpret == "always" or all(map(_only_stores, nodes)):
        return Runs(NEVER)
    # Some op can neither be interpreted nor compiled alone.
    if alone is None:
        return AT_ONCE
    # What it takes to interpret once, against what it takes to compile.
    parts = list(_with_bodies(nodes, outputs))
    together = sum(seconds_to_compile(part, ends) for part, ends, _ in parts)
    if alone * _COMPILE_ALONE > _SMALL_PART * together:
        return AT_ONCE
    work = sum(times * _work(part) for part, _, times in parts)
    is_much = work > flags.interpret_limit and not _only_fills(nodes, outputs, work)
    # A run on NumPy is over before a program would be called.
    if not is_much and costs_less(nodes, call):
        return Runs(NEVER)
    depth, meanwhile = _depth(nodes), 0
    # Deeper ones need a higher limit of Python's stack, which only the thread of a step has.
    if together > _PATIENCE and depth <= FREE_LEVELS:
        meanwhile = _runs_meanwhile(parts, work, together)
    if is_much:
        return Runs(0, meanwhile)
    # XLA takes so long for such nests that interpreting comes first, until it has cost as much.
    if depth > _MANY_LEVELS:
        around = sum(t * _seconds_to_interpret(p, 0) for p, _, t in parts)
        return Runs(math.ceil(together / around))
    compiling = seconds_to_compile(nodes, outputs)
    if compiling <= _PATIENCE or len(parts) > 1:
        return Runs(1, meanwhile)
    return Runs(math.ceil(compiling / _seconds_to_interpret(nodes, work)), meanwhile)


def _runs_meanwhile(
    parts: Sequence[tuple[Sequence[Node], Sequence[Edge], int]], work: float, compiling: float
) -> int:
    """How many times to interpret a program while it is compiled; 0 if that costs too much."""
    if work > flags.interpret_limit * compiling / _USUAL_COMPILING:
        return 0
    interpreting = sum(t * _seconds_to_interpret(p, _work(p)) for p, _, t in parts)
    return min(math.ceil(_SHARE_MEANWHILE * compiling / interpreting), _MOST_MEANWHILE)


def _only_stores(node: Node) -> bool:
    """Whether this is of what restoring consists of: a program would only copy the values."""
    return not node.op_def.traits.computes and not node.op_def.effects.reads


def _only_fills(nodes: Sequence[Node], outputs: Sequence[Edge], work: float) -> bool:
    """Whether this is what initialisers do: it reads no variable, and does little to each element.

    To draw and scale numbers takes NumPy less time than XLA needs to compile the program, however
    many they are; and initialisers run once.
    """
    if any(node.op_def.effects.reads for node in nodes):
        return False
    made = list(outputs)
    for node in nodes:
        if node.op_def.effects.writes:
            made += node.inputs
    elements = sum(num_elements_static(node.dims[i]) or 0 for node, i in made)
    return work <= _FILLING_OPERATIONS * elements


def runs_to_pay(nodes: Sequence[Node], outputs: Sequence[Edge], scale: float = 1.0) -> int:
    """How many times to interpret these nodes until that has cost as much as compiling would.

    For what may not run often: one of many programs, or one for sizes among many.

    Args:
        scale: how many times larger the inputs are than the graph lets one think.
    """
    if flags.interpret == "never":
        return 0
    compiling = interpreting = 0.0
    for part, ends, times in _with_bodies(nodes, outputs):
        compiling += seconds_to_compile(part, ends)
        work = scale * sum(map(_cost_as_run, part)) + _copied(part)
        interpreting += times * _seconds_to_interpret(part, work)
    return 0 if interpreting > compiling else math.ceil(compiling / interpreting)


def _operations(node: Node) -> float:
    """Operations of a node, in elementwise ones that NumPy does in the time."""
    return node_cost(node) * (_SHARE_OF_PRODUCT if _is_blas(node) else 1.0)


def _cost_as_run(node: Node) -> float:
    """The same where what NumPy lacks is compiled alone."""
    alone = node.op_def.interpret is None and node.op_def.kernel is not None
    return _operations(node) * (_COMPILED_SHARE if alone else 1.0)


def runs_to_pay_beside_loops(
    nodes: Sequence[Node], outputs: Sequence[Edge], scale: float = 1.0
) -> int:
    """The same where the loops among the nodes are programs already (`executor.list_loops`).

    Measured of a recurrent network: such a loop takes 1.4 times as long as in a program of all,
    about an eighth of what interpreting it is taken for; and nodes around it that work on little
    take four times as long as the estimate of their arithmetic.
    """
    compiling = slower = 0.0
    for part, ends, times in _with_bodies(nodes, outputs):
        compiling += seconds_to_compile(part, ends)
        work = scale * sum(map(node_cost, part)) + _copied(part)
        share = _AROUND_LOOPS if part is nodes else _LOOPS_APART
        slower += share * times * _seconds_to_interpret(part, work)
    return math.ceil(compiling / slower)


def most_evaluations(nodes: Sequence[Node], outputs: Sequence[Edge]) -> int:
    """So many nodes of function bodies take about as long to interpret as all does to compile."""
    parts = _with_bodies(nodes, outputs)
    compiling = sum(seconds_to_compile(part, ends) for part, ends, _ in parts)
    return math.ceil(compiling / _INTERPRET_PER_OP)


def _compiled_alone(nodes: Iterable[Node]) -> int | None:
    """How many nodes, those of function bodies too, have no NumPy form and become programs of
    their own where the others are interpreted; None if one of them cannot."""
    count = 0
    for node in nodes:
        d = node.op_def
        if d.interpret is not None or d.makes_handle or d is FEED:
            continue
        bodies = list(_bodies(node))
        if not bodies and (d.kernel is None or d.lower is not None or not d.effects.pure):
            return None
        inner = [_compiled_alone(function_step(body).nodes) for body in bodies] or [1]
        if None in inner:
            return None
        count += sum(n for n in inner if n is not None)
    return count


def _bodies(node: Node) -> Iterator[FuncGraph]:
    if node.op_def.lower is not None:
        for value in node.attrs.values():
            for body in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(body, FuncGraph):
                    yield body


def _depth(nodes: Sequence[Node]) -> int:
    """How many levels of functions lie below these nodes."""
    bodies = [function_step(body).nodes for node in nodes for body in _bodies(node)]
    return 1 + max(map(_depth, bodies)) if bodies else 0


def _with_bodies(
    nodes: Sequence[Node], outputs: Sequence[Edge], times: int = 1
) -> Iterator[tuple[Sequence[Node], Sequence[Edge], int]]:
    """The nodes, and those of each function body among them: outputs, and how often it runs."""
    yield nodes, outputs, times
    for node in nodes:
        turns = _ITERATIONS if node.op_def.traits.repeats else 1
        for body in _bodies(node):
            step = function_step(body)
            yield from _with_bodies(step.nodes, step.fetches, times * turns)


def seconds_to_compile(nodes: Sequence[Node], outputs: Sequence[Edge]) -> float:
    plan = plan_of(nodes, is_constant, copies=False)
    if plan is not None:  # equal nodes side by side become one kernel
        nodes = list(plan.firsts())
    kernels = _kernels(nodes, outputs)
    return _COMPILE_BASE + _COMPILE_PER_OP * len(nodes) + _COMPILE_PER_KERNEL * kernels


def _work(nodes: Sequence[Node]) -> float:
    return sum(map(_operations, nodes)) + _copied(nodes)


def _copied(nodes: Sequence[Node]) -> float:
    """Elements of the variables that NumPy copies, to change a part of them."""
    total = 0.0
    for node in nodes:
        effects = node.op_def.effects
        if effects.checks:
            for position in effects.writes:
                maker = node.inputs[position][0]
                total += state_bytes(maker) / _BYTES
    return total


def _seconds_to_interpret(nodes: Sequence[Node], work: float) -> float:
    plan = plan_of(nodes, is_constant, copies=True)
    calls = len(nodes) if plan is None else plan.calls
    return _INTERPRET_PER_OP * calls + _SECONDS_PER_OPERATION * work


def _kernels(nodes: Sequence[Node], outputs: Sequence[Edge]) -> int:
    """About how many kernels XLA makes: elementwise ops with one user join that user's."""
    users: dict[Node, int] = {}
    for node in nodes:
        for source, _ in node.inputs:
            users[source] = users.get(source, 0) + 1
    kept = {n for n, _ in outputs}
    return sum(1 for n in nodes if n in kept or users.get(n, 0) > 1 or not _is_elementwise(n))


def costs_less(nodes: Sequence[Node], seconds: float) -> bool:
    """Whether interpreting is certain to take less time: all sizes are known, and small."""
    total = 0.0
    for node in nodes:
        if node.op_def.interpret is None and not node.op_def.makes_handle:
            return False  # who knows how often its bodies run
        cost = _seconds_on_numpy(node)
        if cost is None:
            return False
        total += cost
        if total >= seconds:
            return False
    return True


def _seconds_on_numpy(node: Node) -> float | None:
    """What one node takes; None if not all sizes are known."""
    if node.op_def.makes_handle or node.op_def.traits.hands_on == "value":
        return _HAND_ON
    if node.op_def.effects.random:
        return None  # to draw but a few numbers takes NumPy longer than calling a program
    calls = _numpy_calls(node)
    total = _INTERPRET_PER_OP
    if node.op_def.traits.reduces:
        total += _SECONDS_PER_SUM * (num_elements_static(node.dims[0]) or 0)
    if node.op_def.cost is not None:
        total += _SECONDS_PER_OPERATION * _operations(node)
    for dims in (*node.dims, *_input_dims(node)):
        size = num_elements_static(dims)
        if size is None:
            return None
        in_cache = calls and size <= _IN_CACHE
        total += size * (_SECONDS_IN_CACHE if in_cache else _SECONDS_PER_ELEMENT)
    return total * (calls or _SEVERAL_CALLS)


def _numpy_calls(node: Node) -> int:
    """How many calls NumPy takes for a node; 0 if nobody has counted: perhaps a dozen."""
    traits = node.op_def.traits
    is_one = (
        traits.elementwise
        or traits.reduces
        or traits.light
        or traits.fast_on_numpy
        or traits.hands_on
        or not traits.computes
        or _is_blas(node)
    )
    return 1 if is_one else traits.numpy_calls


def _is_blas(node: Node) -> bool:
    """Whether NumPy's library multiplies the matrices of a node."""
    return node.op_def.traits.product and node.dtypes[0] in (dtypes.float32, dtypes.float64)


def costs_less_as_run(
    nodes: Sequence[Node], values: Mapping[Node, Sequence[Any]], is_between: bool
) -> bool:
    """Whether interpreting has taken less time than a program would.

    For nodes whose sizes only the values tell, and which touch no state: what a queue runner, or a
    map of a dataset, does to one record, and what feature columns do to a batch of ids. The sizes
    are those of a program, so the rule still depends on the graph alone.

    Args:
        is_between: whether all comes from host ops.
    """
    if all(map(_is_fast_on_numpy, nodes)):
        return True
    total = 0.0
    for node in nodes:
        if node.op_def.interpret is None:
            return False
        total += _INTERPRET_PER_OP
        if node.op_def.cost is not None:
            work = node_cost(node)
            if work and any(dims is None or None in dims for dims in node.dims):
                return False
            total += _SECONDS_PER_OPERATION * work
        for value in (*values[node], *[values[source][i] for source, i in node.inputs]):
            total += _SECONDS_PER_ELEMENT * int(getattr(value, "size", 0))
    return total < (CALL_FROM_HOST if is_between else CALL)


def _is_fast_on_numpy(node: Node) -> bool:
    traits = node.op_def.traits
    return traits.fast_on_numpy or (traits.is_view and node.op_def.interpret is not None)


def _input_dims(node: Node) -> list[Dims]:
    """The shapes of the inputs; for a handle that of its variable if that is copied to change."""
    found: list[Dims] = []
    for position, (source, index) in enumerate(node.inputs):
        if source.dtypes[index] is not dtypes.resource:
            found.append(source.dims[index])
        elif position in node.op_def.effects.writes:
            declared = source.attrs.get("shape") if source.op_def.makes_handle else None
            found.append(None if declared is None else declared.as_tuple)
    return found


def _is_elementwise(node: Node) -> bool:
    """Whether XLA puts this into the kernel of its user.

    An input has the shape of the output, and little is done to each element: a product with a
    square matrix has that shape, too.
    """
    d = node.op_def
    if d.traits.elementwise:
        return bool(node.inputs)
    if not node.dims or (d.cost is not None and node_cost(node) > 0):
        return False
    return any(source.dims[i] == node.dims[0] for source, i in node.inputs)


__all__ = [
    "AT_ONCE",
    "NEVER",
    "Runs",
    "costs_less",
    "costs_less_as_run",
    "most_evaluations",
    "runs_before_compiling",
    "runs_to_pay",
    "runs_to_pay_beside_loops",
    "seconds_to_compile",
]
