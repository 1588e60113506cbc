"""Control flow in compiled programs: branches, loops and scans as XLA's own.

Bodies are evaluated by the evaluation that traces the program. State that they write (variables,
random streams, the outcome of checks) is carried along; what they only read, and values known while
tracing, stay as they are around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError
from headrace.ops.control import tensor_list_kernels as lists
from headrace.ops.control.tensor_list_kernels import TensorList, Uniformity
from headrace.ops.core.checks import NeedsValue

Call = Callable[[Sequence[Any]], Sequence[Any]]

#: An iteration is taken to last no less.
_LEAST_SECONDS = 1e-8
#: Runs assumed for the body of a loop whose number of iterations is not known.
_ITERATIONS = 32


def is_known(value: Any) -> bool:
    """Whether a value is known while tracing: a NumPy value or a resource handle."""
    return isinstance(value, (np.ndarray, np.generic)) or not isinstance(
        value, (jax.Array, TensorList)
    )


def same(a: Any, b: Any) -> bool:
    """Whether two known values are equal."""
    if isinstance(a, (np.ndarray, np.generic)) and isinstance(b, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return bool(type(a) is type(b) and a == b)


def isolated(
    evaluation: Any, call: Call, args: Sequence[Any], state: dict[Any, Any]
) -> tuple[list[Any], dict[Any, Any]]:
    """Run a body on top of ``state``; returns its outputs and what it wrote."""
    outer = evaluation.state, evaluation.written
    evaluation.state, evaluation.written = {**outer[0], **state}, {}
    try:
        outputs = list(call(args))
        return outputs, {k: evaluation.state[k] for k in evaluation.written}
    finally:
        evaluation.state, evaluation.written = outer


class Probe:
    """What a body gives, found by running it on abstract values.

    Branches and loops inside are only probed in turn, not made: else each level of nesting would
    do twice what the one inside it does.

    Attributes:
        known: for each output its value if that is known while tracing, else None.
        shapes: for each output its shape and type (None where known).
        written: shapes of the state it writes.
        seconds: estimated, of one run.
    """

    def __init__(
        self, evaluation: Any, call: Call, operands: Any, state: dict[Any, Any] | None = None
    ) -> None:
        self.known: list[Any] = []
        keys: list[Any] = []
        before = evaluation.seconds

        def traced(values: Any) -> Any:
            was, evaluation.probing = evaluation.probing, True
            try:
                outputs, written = isolated(evaluation, call, values, state or {})
            finally:
                evaluation.probing = was
            outputs = [lists.to_program(o) for o in outputs]
            self.known = [o if is_known(o) else None for o in outputs]
            keys[:] = list(written)
            return [None if is_known(o) else o for o in outputs], list(written.values())

        self.shapes, written = jax.eval_shape(traced, operands)
        self.written = dict(zip(keys, written, strict=True))
        self.seconds = evaluation.seconds - before
        evaluation.seconds = before


def _shape_key(value: Any) -> Any:
    leaves, tree = jax.tree.flatten(value)
    return tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def _shaped(shape: Any, dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def _struct(value: Any) -> Any:
    return jax.tree.map(lambda v: _shaped(jnp.shape(v), jnp.result_type(v)), value)


def traced(value: Any, dtype: Any = None) -> Any:
    """A value as program operands: arrays of strong type, lists stacked."""
    value = lists.to_program(value)
    if isinstance(value, TensorList):
        if value.repeated is not None and value.has_static_size:
            value = TensorList.stack_of(lists.empty_rows(_struct(value.repeated), value.size))
        return jax.tree.map(jnp.asarray, value)
    return jnp.asarray(value, dtype)


def conform(value: Any, target: Any, what: str) -> Any:
    """``value`` in exactly the form of ``target`` (a pytree of shapes).

    Raises:
        NeedsValue: if the shapes differ.
    """
    if isinstance(target, TensorList):
        return _conform_list(value, target, what)
    if isinstance(value, TensorList):
        raise NeedsValue(f"{what} is a list here and a tensor there")
    if np.shape(value) != target.shape:
        raise NeedsValue(f"the shape of {what} changes from {target.shape} to {np.shape(value)}")
    return jnp.asarray(value, target.dtype)


def _conform_list(value: TensorList, target: TensorList, what: str) -> TensorList:
    value = lists.to_program(value)
    if value.unwritten and target.buffer is not None and value.size in (0, target.size):
        return TensorList(buffer=jax.tree.map(_zeros, target.buffer), size=target.size)
    if value.repeated is not None:
        value = traced(value)
    if _shape_key(value) != _shape_key(target):
        raise NeedsValue(f"the list {what} changes its length or the shape of its elements")
    result: TensorList = jax.tree.map(jnp.asarray, value)
    return result


def _zeros(shape: Any) -> Any:
    return jnp.zeros(shape.shape, shape.dtype)


def _of_form(target: Any) -> Any:
    """Any value of a form (a pytree of shapes), for a probe."""
    return jax.tree.map(_zeros, target)


def carried_state(evaluation: Any, written: dict[Any, Any]) -> dict[Any, Any]:
    """The present values of state that a body writes.

    Raises:
        NeedsValue: if there is none yet, or the body changes its shape.
    """
    state = {}
    for key, shape in written.items():
        value = evaluation.state.get(key)
        if value is None:
            raise NeedsValue(f"{key} has no value yet")
        if jnp.shape(value) != shape.shape:
            raise NeedsValue(f"{key} changes its shape")
        state[key] = jnp.asarray(value)
    return state


def _ignoring_operands(call: Callable[[], Sequence[Any]]) -> Call:
    return lambda _: call()


# -- branches -----------------------------------------------------------------------------------


def branches(
    evaluation: Any,
    node: Any,
    index: Any,
    calls: Sequence[Callable[[], Sequence[Any]]],
    args: Sequence[Any],
) -> list[Any]:
    """Run the branch that traced ``index`` chooses; all give the same outputs.

    A branch may give None for an output that is only used when another branch runs.

    Args:
        node: the operation, and ``args`` what its branches get: the same branches are probed once,
            though a probe of what is around them comes through here before the program does.
    """
    functions = [_ignoring_operands(c) for c in calls]
    key = (node, _forms_key(args), _forms_key([*evaluation.state, *evaluation.state.values()]))
    try:
        probes = evaluation.probes.get(key)
        if probes is None:
            probes = evaluation.probes[key] = [Probe(evaluation, f, ()) for f in functions]
    except InvalidArgumentError as error:  # perhaps in a branch that is not the one to run
        raise NeedsValue(f"a branch cannot be traced: {error.message}") from error
    merged = [_merge(i, probes) for i in range(len(probes[0].known))]
    written = {k: s for p in probes for k, s in p.written.items()}
    state = carried_state(evaluation, written)
    seconds = evaluation.seconds + sum(p.seconds for p in probes)

    def branch(call: Call) -> Callable[[], Any]:
        def run_branch() -> Any:
            outputs, new = isolated(evaluation, call, (), {})
            chosen = [
                jax.tree.map(_zeros, target) if o is None else conform(o, target, f"output {i}")
                for i, (o, (known, target)) in enumerate(zip(outputs, merged, strict=True))
                if target is not None
            ]
            return chosen, [new.get(k, v) for k, v in state.items()]

        return run_branch

    runs = [branch(f) for f in functions]
    if evaluation.probing:
        found = [_of_form(target) for _, target in merged if target is not None]
        changed = [_of_form(_struct(value)) for value in state.values()]
    elif len(runs) == 2:
        found, changed = lax.cond(index == 0, runs[0], runs[1])
    else:
        found, changed = lax.switch(index, runs)
    for key, value in zip(state, changed, strict=True):
        evaluation.write(key, value)
    evaluation.seconds = seconds
    rest = iter(found)
    return [known if target is None else next(rest) for known, target in merged]


def _forms_key(values: Sequence[Any]) -> Any:
    """What a probe depends on: the forms of traced values, and known values themselves."""
    return tuple([_form_key(v) for v in values])


def _form_key(value: Any) -> Any:
    if not is_known(value):
        return _shape_key(value)
    if isinstance(value, (np.ndarray, np.generic)):
        is_text = value.dtype.kind == "O"
        return value.shape, value.dtype, tuple(value.flat) if is_text else value.tobytes()
    return value


def _merge(position: int, probes: list[Probe]) -> tuple[Any, Any]:
    """One output over all branches: a value that all know, or the form that all must take."""
    known = [p.known[position] for p in probes]
    shapes = [p.shapes[position] for p in probes]
    given = [(k, s) for k, s in zip(known, shapes, strict=True) if k is not None or s is not None]
    if not given:
        return None, None
    if all(k is not None and same(k, given[0][0]) for k, _ in given):
        return given[0][0], None
    if any(k is not None and not isinstance(k, (np.ndarray, np.generic)) for k, _ in given):
        raise NeedsValue("branches give different resources")
    forms = [_struct(k) if s is None else s for k, s in given]
    for form in forms:
        if not (isinstance(form, TensorList) and form.unwritten):
            return None, _stacked_form(form)
    return None, forms[0]


def _stacked_form(form: Any) -> Any:
    if isinstance(form, TensorList) and form.repeated is not None:
        return jax.eval_shape(lambda: traced(form))
    return form


# -- loops --------------------------------------------------------------------------------------


class Loop:
    """One iteration of a loop: ``step`` maps carried values (and extra operands) to the next.

    ``step(values, extra) -> [*new_values, *others]``; ``others`` are values to collect.
    """

    def __init__(
        self, evaluation: Any, step: Callable[[Sequence[Any], Any], Sequence[Any]]
    ) -> None:
        self.evaluation = evaluation
        self.step = step
        #: Whether it was told to end, once it has run, if it asks.
        self.stopped: Any = None

    def prepare(self, start: Sequence[Any], extra: Any, more: Callable[[Any], Any] | None) -> None:
        """Find the form of the carried values and the state that is written.

        Raises:
            NeedsValue: if shapes change from one iteration to the next.
        """
        self.start = [traced(v) for v in start]
        for _ in range(4):
            probe = Probe(self.evaluation, lambda a: self.step(a[0], a[1]), (self.start, extra))
            grown = [
                self._grow(v, o, k)
                for v, o, k in zip(self.start, probe.shapes, probe.known, strict=False)
            ]
            if all(a is b for a, b in zip(grown, self.start, strict=True)):
                break
            self.start = grown
        written = dict(probe.written)
        self._before, self._each = self.evaluation.seconds, probe.seconds
        if more is not None:
            test = Probe(self.evaluation, lambda v: [more(v)], self.start)
            written.update(test.written)
            self._each += test.seconds
        self.targets = [_struct(v) for v in self.start]
        self.state = carried_state(self.evaluation, written)
        count = len(self.start)
        self.known_others = probe.known[count:]
        self.other_shapes = probe.shapes[count:]

    @staticmethod
    def _grow(value: Any, shape: Any, known: Any) -> Any:
        """A list that gets its first element in the loop starts as a buffer of zeros."""
        if (
            isinstance(value, TensorList)
            and value.unwritten
            and isinstance(shape, TensorList)
            and shape.buffer is not None
            and value.size == shape.size
        ):
            return TensorList(buffer=jax.tree.map(_zeros, shape.buffer), size=shape.size)
        return value

    def advance(self, values: Any, state: Any, extra: Any) -> tuple[Any, Any, list[Any]]:
        """One iteration: new values, new state, and the collected values that are traced."""
        keyed = dict(zip(self.state, state, strict=True))
        outputs, written = isolated(
            self.evaluation, lambda a: self.step(a[0], a[1]), (values, extra), keyed
        )
        count = len(self.targets)
        new_values = [
            conform(o, t, f"loop variable {i}")
            for i, (o, t) in enumerate(zip(outputs[:count], self.targets, strict=True))
        ]
        new_state = [jnp.asarray(written.get(k, v)) for k, v in keyed.items()]
        others = [
            conform(o, s, "a collected value")
            for o, s in zip(outputs[count:], self.other_shapes, strict=True)
            if s is not None
        ]
        return new_values, new_state, others

    def probed(self, rows: int | None, size: Any, poll: Any) -> tuple[list[Any], list[TensorList]]:
        """What the loop gives, as far as a probe asks: values of the right forms.

        Args:
            rows: how many elements the buffers of collected values have, if there are any.
            size: how many of them the loop fills.
            poll: how it asks whether to go on.
        """
        if poll is not None:
            self.stopped = self.evaluation.state[self.evaluation.stopped_key]
        self.finish([_of_form(_struct(value)) for value in self.state.values()], rows)
        buffers = [lists.empty_rows(s, rows or 0) for s in self.other_shapes if s is not None]
        return [_of_form(t) for t in self.targets], self.collected(buffers, size)

    def poll(self, most: int | None) -> Any:
        """How the loop asks whether to go on; None if it is short, or nobody wants to know.

        Args:
            most: how many iterations there are at most, if that is known.
        """
        polls = self.evaluation.polls
        return None if polls is None else polls.of(max(self._each, _LEAST_SECONDS), most)

    def finish(self, state: Sequence[Any], count: int | None = None) -> None:
        """After the last iteration; ``count``: how many there were, if that is known."""
        self.evaluation.seconds = self._before + self._each * (
            _ITERATIONS if count is None else count
        )
        for key, value in zip(self.state, state, strict=True):
            self.evaluation.write(key, value)
        if self.stopped is not None:
            self.evaluation.write(self.evaluation.stopped_key, self.stopped)

    def collected(self, buffers: Sequence[Any], size: Any) -> list[TensorList]:
        """The collected values of all iterations, as lists."""
        rest = iter(buffers)
        return [
            TensorList.repeat(known, size)
            if shape is None
            else TensorList(buffer=next(rest), size=size)
            for known, shape in zip(self.known_others, self.other_shapes, strict=True)
        ]


def counted(loop: Loop, start: Sequence[Any], count: int) -> tuple[list[Any], list[TensorList]]:
    """A loop of a known number of iterations."""
    return scanned(loop, start, [], count, reverse=False)


def scanned(
    loop: Loop, start: Sequence[Any], xs: list[Any], count: int, reverse: bool
) -> tuple[list[Any], list[TensorList]]:
    """A loop over the rows of ``xs`` (pytrees with a leading axis of ``count``)."""
    sample = jax.tree.map(lambda x: _shaped(x.shape[1:], x.dtype), xs)
    loop.prepare(start, jax.tree.map(_zeros, sample), None)
    poll = loop.poll(count)
    if loop.evaluation.probing:
        return loop.probed(count, count, poll)
    if poll is not None:
        return _rows_in_turn(loop, xs, count, count, reverse, poll)

    def step(carry: Any, x: Any) -> Any:
        values, state, others = loop.advance(carry[0], carry[1], x)
        return (values, state), others

    carry = (loop.start, list(loop.state.values()))
    (values, state), rows = lax.scan(step, carry, xs, length=count, reverse=reverse)
    loop.finish(state, count)
    return values, loop.collected(rows, count)


def _while(
    loop: Loop, go_on: Callable[[Any], Any], step: Callable[[Any], Any], first: Any, poll: Any
) -> Any:
    """A loop over ``(..., state, collected, iterations done)``.

    With ``poll`` the loop pauses after each chunk of iterations to ask how far to go on. When it is
    told to end, so are those around it; their values mean nothing then.
    """
    if poll is None:
        return lax.while_loop(go_on, step, first)
    key = loop.evaluation.stopped_key
    position = list(loop.state).index(key) if key in loop.state else None

    def goes_on(values: Any) -> Any:
        go = go_on(values)
        return go if position is None else go & ~values[-3][position]

    def chunk(turn: Any) -> Any:
        values, end = turn
        values = lax.while_loop(lambda c: goes_on(c) & (c[-1] < end), step, values)
        end = lax.cond(goes_on(values), lambda: poll.ask(values[-1]), lambda: end)
        return values, end

    end = jnp.where(loop.evaluation.state[key], -1, poll.first).astype(jnp.int32)
    values, end = lax.while_loop(
        lambda turn: goes_on(turn[0]) & (turn[1] >= 0), chunk, (first, end)
    )
    loop.stopped = (end < 0) if position is None else (end < 0) | values[-3][position]
    return values


def repeated_while(
    loop: Loop, start: Sequence[Any], more: Callable[[Any], Any], bound: int | None
) -> tuple[list[Any], list[TensorList], Any]:
    """A loop that ends when ``more(values)`` is false, or after ``bound`` iterations.

    Also returns whether it would have gone on.

    Raises:
        NeedsValue: if values are to be collected and there is no bound.
    """
    loop.prepare(start, None, more)
    evaluation = loop.evaluation
    traced_others = [s for s in loop.other_shapes if s is not None]
    if loop.other_shapes and bound is None:
        raise NeedsValue("the number of iterations is not known")
    poll = loop.poll(bound)
    if evaluation.probing:
        return *loop.probed(bound, jnp.int32(0), poll), jnp.bool_(False)
    buffers = [lists.empty_rows(s, bound or 0) for s in traced_others]

    def test(values: Any, state: list[Any]) -> tuple[Any, list[Any]]:
        keyed = dict(zip(loop.state, state, strict=True))
        outputs, written = isolated(evaluation, lambda v: [more(v)], values, keyed)
        go = jnp.asarray(outputs[0], bool).reshape(())
        failed = written.get(evaluation.checks_key, keyed.get(evaluation.checks_key))
        if failed is not None:
            go = go & (failed[0] == 0)  # after a failed check the values mean nothing
        return go, [jnp.asarray(written.get(k, v)) for k, v in keyed.items()]

    def step(carry: Any) -> Any:
        _, values, state, collected, t = carry
        values, state, others = loop.advance(values, state, None)
        collected = [lists.set_row(b, t, o) for b, o in zip(collected, others, strict=True)]
        go, state = test(values, state)
        return go, values, state, collected, t + 1

    go, state = test(loop.start, list(loop.state.values()))
    first: Any = (go, loop.start, state, buffers, jnp.int32(0))
    end = np.iinfo(np.int32).max if bound is None else bound
    go, values, state, collected, t = _while(loop, lambda c: c[0] & (c[4] < end), step, first, poll)
    loop.finish(state, bound)
    return values, loop.collected(collected, t), go


def at_once(loop: Loop, xs: list[Any], count: int) -> list[TensorList] | None:
    """An iteration for each row of ``xs``, all as one batch; nothing is carried.

    None if an iteration writes state (draws random numbers, checks values): that wants an order.
    """
    sample = jax.tree.map(lambda x: _shaped(x.shape[1:], x.dtype), xs)
    loop.prepare([], jax.tree.map(_zeros, sample), None)
    if loop.state or not xs:
        return None
    if loop.evaluation.probing:
        return loop.probed(count, count, None)[1]
    rows = jax.vmap(lambda x: loop.advance([], [], x)[2])(xs)
    loop.finish([], count)
    return loop.collected(rows, count)


def scanned_dynamic(
    loop: Loop, start: Sequence[Any], xs: list[Any], size: Any, reverse: bool
) -> tuple[list[Any], list[TensorList]]:
    """A loop over the first ``size`` (traced) rows of ``xs``."""
    sample = jax.tree.map(lambda x: _shaped(x.shape[1:], x.dtype), xs)
    loop.prepare(start, jax.tree.map(_zeros, sample), None)
    rows = lists.capacity(xs)
    poll = loop.poll(rows)
    if loop.evaluation.probing:
        return loop.probed(rows, size, poll)
    return _rows_in_turn(loop, xs, rows, size, reverse, poll)


def _rows_in_turn(
    loop: Loop, xs: list[Any], rows: int, size: Any, reverse: bool, poll: Any
) -> tuple[list[Any], list[TensorList]]:
    """A loop over the first ``size`` of some rows; ``rows``: how many there are at most."""
    buffers = [lists.empty_rows(s, rows) for s in loop.other_shapes if s is not None]

    def step(carry: Any) -> Any:
        values, state, collected, t = carry
        at = size - 1 - t if reverse else t
        values, state, others = loop.advance(values, state, lists.row(xs, at))
        collected = [lists.set_row(b, at, o) for b, o in zip(collected, others, strict=True)]
        return values, state, collected, t + 1

    first = (loop.start, list(loop.state.values()), buffers, jnp.int32(0))
    values, state, collected, _ = _while(loop, lambda c: c[3] < size, step, first, poll)
    loop.finish(state, rows)
    return values, loop.collected(collected, size)


def stacked_rows(value: Any) -> Any:
    """The rows of an array or list as a pytree with a leading axis.

    Raises:
        NeedsValue: if the elements of a list differ in shape.
    """
    if not isinstance(value, TensorList):
        return jnp.asarray(value)
    try:
        dense = value.stacked()
    except Uniformity:
        raise NeedsValue("elements of a list differ in shape") from None
    return jax.tree.map(jnp.asarray, dense.buffer)
