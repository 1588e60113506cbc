"""The two forms of an op, NumPy's and XLA's, held against each other on more than its cases have.

A first run is interpreted and later ones are compiled, so what one form gives the other has to
give: in every type that the op takes, at the ends of the types, and for no elements. ``variants``
makes such inputs out of a case; ``differences`` runs both forms, many variants in one program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.executor.evaluate import as_outputs, prepared
from headrace.harness.op_cases import (
    DOUBLE_RTOL,
    RTOL,
    Array,
    Built,
    OpCase,
    run_compiled,
    run_interpreted,
)
from headrace.ops.core import checks
from headrace.ops.core.registry import ArgDef, grouped

_FLOAT_ENDS = (np.nan, np.inf, -np.inf, 0.0, -0.0)


@dataclass(frozen=True)
class Difference:
    """A variant whose two forms differ.

    Attributes:
        case: the variant; its name says the type, and which values took part.
        text: what each form gave.
        pairs: the outputs of both forms, where both have some.
    """

    case: OpCase
    text: str
    pairs: tuple[tuple[Array, Array], ...] = ()

    @property
    def only_where_infinite(self) -> bool:
        """Whether what is finite in both forms agrees."""
        return bool(self.pairs) and all(
            a.shape == b.shape and a.dtype == b.dtype and _agrees(a, b, self.case, finite=True)
            for a, b in self.pairs
        )

    def __str__(self) -> str:
        return f"{self.case.op} of {self.case.name}, {self.case.attrs}: {self.text}"


def has_two_forms(case: OpCase) -> bool:
    """Whether there is something to compare."""
    op_def = case.op_def
    return op_def.interpret is not None and op_def.kernel is not None and op_def.effects.pure


def _arguments(case: OpCase) -> list[ArgDef]:
    """The declared argument of each flat input."""
    found = []
    for arg, value in zip(case.op_def.inputs, case.inputs, strict=True):
        found += [arg] * (len(value) if isinstance(value, list) else 1)
    return found


def _rebuilt(case: OpCase, flat: Sequence[Array], name: str) -> OpCase:
    """The case with other flat inputs."""
    rest = iter(flat)
    inputs = tuple(
        [next(rest) for _ in v] if isinstance(v, list) else next(rest) for v in case.inputs
    )
    return replace(case, inputs=inputs, name=name, expected=None)


def _type_attr(case: OpCase) -> str | None:
    """The type attribute of the values: that of the first input that has one."""
    attrs = case.op_def.attrs
    for arg in case.op_def.inputs:
        if arg.type_attr is not None and arg.type_attr not in case.attrs:
            return arg.type_attr if attrs[arg.type_attr].kind == "type" else None
    return None


def variants(case: OpCase) -> Iterator[OpCase]:
    """The case in every type that the op takes, also with ends of the type and without elements."""
    attr = _type_attr(case)
    if attr is None:
        yield replace(case, expected=None)
        return
    arguments, flat = _arguments(case), case.flat_inputs()
    chosen = [i for i, arg in enumerate(arguments) if arg.type_attr == attr]
    if not all(flat[i].dtype.kind in "biufcV" for i in chosen):
        yield replace(case, expected=None)
        return
    allowed = case.op_def.attrs[attr].allowed or ()
    for dtype in sorted(allowed, key=lambda d: str(d.name)):
        kind = np.dtype(dtype.np_dtype)
        if kind.kind == "O":
            continue
        changed = list(flat)
        for i in chosen:
            changed[i] = _converted(flat[i], kind)
        yield _rebuilt(case, changed, _named(str(dtype.name), case, ""))
        yield from _at_ends(case, changed, chosen, str(dtype.name))


def _converted(array: Array, kind: np.dtype[Any]) -> Array:
    if array.dtype.kind == "c" and kind.kind != "c":
        array = array.real
    if kind.kind == "u":
        array = np.abs(array.astype(np.float64))
    with np.errstate(all="ignore"):
        return array.astype(kind)


def _at_ends(
    case: OpCase, flat: Sequence[Array], values: Sequence[int], name: str
) -> Iterator[OpCase]:
    """The case with numbers at the ends of their types among its values, and with no elements."""
    try:
        static = set(Built(case, flat).constant)
    except (TypeError, ValueError):
        return
    chosen = [i for i in values if i not in static and flat[i].size]
    if not chosen:
        return
    for shift, what in enumerate(("ends", "other ends", "largest")):
        changed = list(flat)
        for i in chosen:
            changed[i] = _with_ends(flat[i], 2 * i + shift, what == "largest")
        yield _rebuilt(case, changed, _named(name, case, what))
    empty = list(flat)
    for i in chosen:
        empty[i] = flat[i][:0] if flat[i].ndim else flat[i]
    yield _rebuilt(case, empty, _named(name, case, "no elements"))


def _named(dtype: str, case: OpCase, what: str) -> str:
    return ", ".join(part for part in (dtype, case.name, what) if part)


def _with_ends(array: Array, shift: int, largest: bool) -> Array:
    ends: Sequence[Any] = _FLOAT_ENDS
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        ends = (info.max, info.min, 0, info.max - 1)
    elif largest:
        limit = jax.numpy.finfo(array.dtype).max  # type: ignore[no-untyped-call]
        ends = (limit, limit / 2)
    changed = array.copy().reshape(-1)
    for k, at in enumerate(range(shift % 3, changed.size, 3)):
        changed[at] = ends[(k + shift) % len(ends)]
    return changed.reshape(array.shape)


# -- many variants, one program -----------------------------------------------------------------


@dataclass
class _Alike:
    """Variants that differ in the values of their dynamic inputs alone: one traced call.

    Attributes:
        messages: of the kernel's checks; ``failure``: why the kernel could not be traced.
    """

    cases: list[OpCase] = field(default_factory=list)
    built: list[Built] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    failure: str = ""

    def dynamic(self, turn: int) -> dict[int, Array]:
        """The inputs of one of the variants, in turn."""
        built = self.built[turn % len(self.built)]
        return {i: a for i, a in enumerate(built.arrays) if i not in built.constant}

    def trace(self, dynamic: dict[int, Any]) -> Any:
        """The outputs and what the checks found; nothing where the kernel refuses the variant."""
        first = self.built[0]
        p = prepared(first.node)
        assert p.kernel is not None
        codes: list[Any] = []
        self.messages = []

        def sink(ok: Any, message: str, data: tuple[Any, ...]) -> None:
            self.messages.append(message)
            codes.append((ok, data))

        args = [dynamic.get(i, a) for i, a in enumerate(first.arrays)]
        try:
            with checks.collecting(sink):
                return list(as_outputs(p.kernel(*grouped(args, p.groups)), p.outputs)), codes
        except Exception as error:
            self.failure = _failure(error)
            return [], []

    def outcome(self, traced: Any) -> list[Array] | str:
        """What a run of the program gave for the variant."""
        if self.failure:
            return self.failure
        outputs, codes = traced
        for message, (ok, data) in zip(self.messages, codes, strict=True):
            if not ok:
                text = message.format(*map(int, data))
                return _failure(InvalidArgumentError(None, None, text))
        return [np.asarray(o) for o in outputs]


def _failure(error: Exception) -> str:
    text = str(error)
    return f"fails: {type(error).__name__}: {text.splitlines()[0] if text else ''}"


def _outcome(run: Callable[[], list[Array]]) -> list[Array] | str:
    try:
        with np.errstate(all="ignore"):
            return run()
    except Exception as error:
        return _failure(error)


def _sorted_out(cases: Sequence[OpCase]) -> list[_Alike]:
    """The variants that can be built, by what is known when the program is compiled."""
    found: dict[Any, _Alike] = {}
    for case in cases:
        try:
            built = Built(case, case.flat_inputs())
        except (TypeError, ValueError):
            continue
        shapes = tuple((a.shape, a.dtype.name) for a in built.arrays)
        known = tuple((i, built.arrays[i].tobytes()) for i in built.constant)
        alike = found.setdefault((case.op, repr(case.attrs), shapes, known), _Alike())
        alike.cases.append(case)
        alike.built.append(built)
    return list(found.values())


def differences(cases: Sequence[OpCase]) -> list[Difference]:
    """The variants whose forms differ; where both fail they agree."""
    alike = _sorted_out(cases)
    if not alike:
        return []
    program = jax.jit(lambda inputs: [a.trace(d) for a, d in zip(alike, inputs, strict=True)])
    found = []
    for turn in range(max(len(a.cases) for a in alike)):
        try:
            with jax.enable_x64(True):
                results = program([a.dynamic(turn) for a in alike])
        except Exception:
            results = None  # One of them, and nobody knows which: each gets a program of its own.
        for i, a in enumerate(alike):
            if turn >= len(a.cases):
                continue
            built, case = a.built[turn], a.cases[turn]
            if results is None:
                later = _outcome(lambda b=built: run_compiled(b.node, b.arrays, b.constant))  # type: ignore[misc]
            else:
                later = a.outcome(results[i])
            first = _outcome(lambda b=built: run_interpreted(b.node, b.arrays))  # type: ignore[misc]
            difference = _compared(first, later, case)
            if difference is not None:
                found.append(difference)
    return found


def _compared(
    first: list[Array] | str, later: list[Array] | str, case: OpCase
) -> Difference | None:
    if isinstance(first, str) and isinstance(later, str):
        return None
    if isinstance(first, str) or isinstance(later, str):
        return Difference(case, f"interpreted {first}, compiled {later}")
    pairs = tuple(zip(first, later, strict=True))
    for a, b in pairs:
        if a.shape != b.shape or a.dtype != b.dtype or not _agrees(a, b, case):
            return Difference(case, f"interpreted {a!r}, compiled {b!r}", pairs)
    return None


def _agrees(a: Array, b: Array, case: OpCase, finite: bool = False) -> bool:
    """Whether values of one shape and type are equal up to the precision of the type.

    Args:
        finite: look only at what is finite on both sides.
    """
    if a.dtype.kind in "biuOSU":
        return bool(np.array_equal(a, b))
    rtol = max(4 * RTOL.get(a.dtype.name, DOUBLE_RTOL), case.rtol or 0)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    if finite:
        both = np.isfinite(x) & np.isfinite(y)
        x, y = x[both], y[both]
    with np.errstate(all="ignore"):
        return bool(np.allclose(x, y, rtol, rtol, equal_nan=True))
