"""Elements of TensorArrays that are used twice, found while the step runs.

Most uses need no check: one operation whose position is the counter of its loop uses each element
once (`_Form`), and so do operations whose positions can be told apart. For the rest the step gets a
check of its own, of the positions that were used. Those inside loops and branches come out as lists
(see `ops.control.flow.save`), plus one: what a branch that was not taken leaves in a list is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np
from jax import numpy as jnp

from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import Graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control import tensor_array_uses as uses
from headrace.ops.control.flow import calls_of, first_argument, save, saved_name
from headrace.ops.control.tensor_list_kernels import TensorList
from headrace.ops.core import checks
from headrace.ops.core.array_util import scalar_shape
from headrace.ops.core.build import constant, raw
from headrace.ops.core.checks import NeedsValue
from headrace.ops.core.registry import CHECKS, define_op
from headrace.ops.core.static import static_value
from headrace.ops.core.traits import Traits

#: An operation with function bodies, and which of them.
Step = tuple[Operation, int]
#: Finds the operations of a body that run.
Live = Callable[[FuncGraph, tuple[str, ...]], Iterable[Operation]]

#: How the positions of a use are given: as they are, as the number of the first ones, and as lists.
AT, COUNT, LOG = 0, 1, 2

_LOOPS = ("While", "StatelessWhile")
_BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")
_DEEPEST = 32


@dataclass(frozen=True)
class ArraySource:
    """The positions of one use, as a tensor of the array's own graph."""

    tensor: Tensor
    kind: int


@dataclass(frozen=True)
class Wanted:
    """A check that a step has to make: ``own`` positions differ, and are none of the others."""

    op: Operation
    array: str
    writes: bool
    own: ArraySource
    others: tuple[ArraySource, ...]


@dataclass(frozen=True)
class _Entry:
    """One use of an array, with the bodies around it, outermost first."""

    op: Operation
    use: uses.Use
    path: tuple[Step, ...]

    @property
    def position(self) -> Tensor | None:
        """The tensor of positions; None if they are known, or are all."""
        keys = self.use.keys
        if self.use.input is None or keys is None or not any(isinstance(k, Tensor) for k in keys):
            return None
        return self.op.inputs[self.use.input]


def wanted_checks(graph: Graph, ops: Iterable[Operation], live: Live) -> list[Wanted]:
    """The checks that one run of ``ops`` needs, for the arrays that begin in ``graph``.

    Operations with bodies may get more outputs.
    """
    if not uses.is_home(graph):
        return []
    groups: dict[Any, list[_Entry]] = {}
    for entry in sorted(_entries(ops, (), live), key=_moment):
        if entry.use.array.home() is graph:
            groups.setdefault((entry.use.array, entry.use.writes), []).append(entry)
    found = []
    for entries in groups.values():
        forms = [_form(e) for e in entries]
        for j, entry in enumerate(entries):
            others = [i for i in range(j) if not _disjoint(entries[i], forms[i], entry, forms[j])]
            if others or not _once(entry, forms[j]):
                own, *rest = [_source(entries[i]) for i in (j, *others)]
                use = entry.use
                found.append(Wanted(entry.op, use.array.name, use.writes, own, tuple(rest)))
    return found


def _moment(entry: _Entry) -> int:
    return (entry.path[0][0] if entry.path else entry.op)._id


def _entries(ops: Iterable[Operation], path: tuple[Step, ...], live: Live) -> Iterable[_Entry]:
    for op in ops:
        use = uses.use_of(op)
        if use is not None:
            yield _Entry(op, use, path)
        if op.type in _LOOPS or op.type in _BRANCHES or "_saved" in op.attrs:
            for branch, (body, saved) in enumerate(calls_of(op.attrs)):
                # What the condition of a loop uses it does not hand out.
                if op.type not in _LOOPS or branch == 1:
                    yield from _entries(live(body, saved), (*path, (op, branch)), live)


# -- what needs no check -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Form:
    """A position that is ``scale * counter + offset``, of the counter of a loop.

    Attributes:
        counter: the loop variable, a tensor of the body.
        offset: None if it is not known; it is the same in all iterations.
        step: what each iteration adds to the counter.
        start: the counter's first value, where it is known.
    """

    counter: Tensor
    scale: int
    offset: int | None
    step: int = 0
    start: int | None = None

    @property
    def least(self) -> float:
        """No position is below."""
        if self.start is None or self.offset is None or self.scale * self.step < 0:
            return -np.inf
        return self.scale * self.start + self.offset

    @property
    def greatest(self) -> float:
        """No position is above."""
        if self.start is None or self.offset is None or self.scale * self.step > 0:
            return np.inf
        return self.scale * self.start + self.offset


def _once(entry: _Entry, form: _Form | None) -> bool:
    """Whether a use cannot come to the same element again."""
    if all(op.type in _BRANCHES for op, _ in entry.path):
        position = entry.position
        return position is None or position.dims == ()
    return form is not None


def _form(entry: _Entry) -> _Form | None:
    """The position in terms of the counter of the only loop around it."""
    loops = [(op, branch) for op, branch in entry.path if op.type not in _BRANCHES]
    position = entry.position
    if len(loops) != 1 or loops[0][0].type not in _LOOPS or position is None:
        return None
    if position.dims != ():
        return None
    loop, _ = loops[0]
    body = loop.attrs["body"]
    inside = entry.path[entry.path.index(loops[0]) + 1 :]
    found = _linear(_from_branches(position, inside), body)
    if found is None or not found.scale:
        return None
    number = body.all_inputs.index(found.counter)
    after = _linear(body.outputs[number], body)
    if after is None or after.counter is not found.counter or after.scale != 1 or not after.offset:
        return None
    start = static_value(loop.inputs[number])
    first = None if start is None else int(start)
    return _Form(found.counter, found.scale, found.offset, after.offset, first)


def _from_branches(tensor: Tensor, inside: Sequence[Step]) -> Tensor:
    """A tensor of the innermost branch as the tensor around the branches that it stands for."""
    for op, branch in reversed(inside):
        body = calls_of(op.attrs)[branch][0]
        if tensor not in body.all_inputs:
            return tensor
        tensor = op.inputs[first_argument(op.attrs) + body.all_inputs.index(tensor)]
    return tensor


def _linear(tensor: Tensor, body: FuncGraph, depth: int = 0) -> _Form | None:
    """A scalar of a body in terms of one of its inputs."""
    if tensor.graph is not body or depth > _DEEPEST:
        return None
    if tensor in body.all_inputs:
        return _Form(tensor, 1, 0)
    op = tensor.op
    if op.type in ("Identity", "Neg"):
        inner = _linear(op.inputs[0], body, depth + 1)
        return inner if op.type == "Identity" else _scaled(inner, -1)
    if op.type not in ("Add", "AddV2", "Sub", "Mul"):
        return None
    for moving, fixed in ((0, 1), (1, 0)):
        if not _is_fixed(op.inputs[fixed], body):
            continue
        inner = _linear(op.inputs[moving], body, depth + 1)
        value = static_value(op.inputs[fixed])
        known = None if value is None or np.size(value) != 1 else int(np.ravel(value)[0])
        if op.type == "Mul":
            return None if known is None else _scaled(inner, known)
        if inner is None:
            return None
        if op.type == "Sub" and moving == 1:
            return _shifted(_Form(inner.counter, -inner.scale, _times(inner.offset, -1)), known)
        return _shifted(inner, _times(known, -1) if op.type == "Sub" else known)
    return None


def _times(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor


def _scaled(form: _Form | None, factor: int) -> _Form | None:
    return form and _Form(form.counter, form.scale * factor, _times(form.offset, factor))


def _shifted(form: _Form, by: int | None) -> _Form:
    offset = None if by is None or form.offset is None else form.offset + by
    return _Form(form.counter, form.scale, offset)


def _is_fixed(tensor: Tensor, body: FuncGraph, depth: int = 0) -> bool:
    """Whether a tensor of a loop's body is the same in each iteration."""
    if tensor in body.all_inputs:
        return body.outputs[body.all_inputs.index(tensor)] is tensor
    op = tensor.op
    if depth > _DEEPEST or not op.op_def.effects.pure or op.op_def.lower is not None:
        return False
    return all(_is_fixed(t, body, depth + 1) for t in op.inputs)


def _disjoint(a: _Entry, form_a: _Form | None, b: _Entry, form_b: _Form | None) -> bool:
    """Whether two uses certainly concern different elements."""
    known_a, known_b = _known(a), _known(b)
    if known_a is not None and known_b is not None:
        return not known_a & known_b
    if form_a is not None and form_b is not None and form_a.counter is form_b.counter:
        return _are_apart(form_a, form_b, _exclude(a.path, b.path))
    for known, form in ((known_a, form_b), (known_b, form_a)):
        if known is not None and form is not None:
            return all(not form.least <= k <= form.greatest for k in known)
    alone = all(op.type in _BRANCHES for op, _ in (*a.path, *b.path))
    return alone and _exclude(a.path, b.path)


def _are_apart(a: _Form, b: _Form, exclude: bool) -> bool:
    """Whether positions that go by one counter never meet."""
    if a.scale != b.scale:
        return False
    if a.offset is None or b.offset is None:
        return False
    apart = a.offset - b.offset
    return exclude if apart == 0 else bool(apart % (a.scale * a.step))


def _known(entry: _Entry) -> frozenset[int] | None:
    keys = entry.use.keys
    return None if keys is None or entry.position is not None else keys


def _exclude(a: tuple[Step, ...], b: tuple[Step, ...]) -> bool:
    """Whether two uses are in different branches of one operation."""
    for (op, branch), (other, other_branch) in zip(a, b, strict=False):
        if op is not other:
            return False
        if branch != other_branch:
            return True
    return False


# -- the positions ---------------------------------------------------------------------------------

_LOGGED: WeakKeyDictionary[Operation, Tensor] = WeakKeyDictionary()


def _source(entry: _Entry) -> ArraySource:
    """The positions of a use, handed out by the operations around it."""
    op, use = entry.op, entry.use
    if not entry.path:
        if use.input is None:
            return ArraySource(op.outputs[0] if use.writes else op.inputs[0], COUNT)
        return ArraySource(op.inputs[use.input], AT)
    tensor = _LOGGED.get(op)
    if tensor is None:
        with op.graph._lock, op.graph.as_default(), op.graph.control_dependencies(None):
            tensor = _LOGGED[op] = _logged(op, use)
    for around, branch in reversed(entry.path):
        name = tensor.name
        if around.type in _BRANCHES or ("f" in around.attrs and "y_lists" not in around.attrs):
            name = saved_name(branch, name)
        (tensor,) = save(around, [name])
    return ArraySource(tensor, LOG)


def _logged(op: Operation, use: uses.Use) -> Tensor:
    """The positions of an operation in a body, to be handed out."""
    if use.input is not None:
        return raw.TensorArrayLog(op.inputs[use.input])
    zero, one = constant(np.int32(0)), constant(np.int32(1))
    length = raw.TensorListLength(op.outputs[0] if use.writes else op.inputs[0])
    return raw.TensorArrayLog(raw.Range(zero, length, one))


# A list of one, so that no pass takes it for a constant: that would have no zeros.
define_op(
    "TensorArrayLog(positions: int32) -> log: variant",
    shape=scalar_shape,
    kernel=lambda positions: TensorList.stack_of(jnp.asarray(positions)[None] + 1),
    interpret=lambda positions: TensorList((np.asarray(positions) + 1,)),
    gradient=lambda op, grad: [None],
)


def _positions(value: Any, kind: int) -> Any:
    """The positions as one vector; below zero where there is none."""
    if kind == COUNT:
        if not value.has_static_size:
            raise NeedsValue("the length of an array is computed")
        return np.arange(value.size, dtype=np.int32)
    return value.reshape(-1) if kind == AT else _flat(value)


def _flat(value: Any) -> Any:
    """The elements of a list (of lists) of positions plus one, as positions."""
    if not isinstance(value, TensorList):
        return value.reshape(-1) - 1
    if value.items is not None:
        parts = [_flat(i) for i in value.items if i is not None]
        known = all(isinstance(p, np.ndarray) for p in parts)
        xp = np if known else jnp
        return xp.concatenate(parts) if parts else np.zeros(0, np.int32)
    leaves = jax.tree.leaves(value)
    if len(leaves) != 1 or not value.has_static_size:
        raise NeedsValue("the number of positions is computed")
    return leaves[0][: value.size].reshape(-1) - 1


def _check(values: list[Any], *, kinds: Any, array: str, writes: bool) -> tuple[()]:
    own, *others = [_positions(v, k) for v, k in zip(values, kinds, strict=True)]
    if own.size == 0:
        return ()
    everything = [*others, own]
    xp: Any = np if all(isinstance(p, (np.ndarray, np.generic)) for p in everything) else jnp
    joined = xp.concatenate(everything)
    order = xp.argsort(joined, stable=True)
    ranked = joined[order]
    again = xp.concatenate([xp.zeros(1, bool), (ranked[1:] == ranked[:-1]) & (ranked[1:] >= 0)])
    # Of equal positions the later one is wrong, and ours come last.
    wrong = again & (order >= joined.size - own.size)
    name = array.replace("{", "{{").replace("}", "}}")
    text = uses.message(name, writes, "{0}")
    checks.require(~xp.any(wrong), text, ranked[xp.argmax(wrong)])
    return ()


define_op(
    "TensorArrayUses(positions: T) -> ()",
    attrs="T: list(type), kinds: list(int), array: string, writes: bool",
    shape=lambda op: [],
    kernel=_check,
    interpret=_check,
    effects=CHECKS,
    traits=Traits(only_here="a step gets it when it is planned"),
)

__all__: list[str] = []
