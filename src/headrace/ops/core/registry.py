"""Operation definitions: what an op takes and gives, and every rule about it, in one record."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError, suggest
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core import checks
from headrace.ops.core.traits import PLAIN, Traits

_MISSING = object()


@dataclass(frozen=True)
class NotDifferentiable:
    """States that an op has no gradient, and why."""

    reason: str


@dataclass(frozen=True)
class Effects:
    """What an op does beside computing outputs from inputs. Passes and partitioning ask this.

    Attributes:
        reads: positions of resource inputs whose current value the kernel receives.
        writes: positions of resource inputs whose new value the kernel returns (before outputs).
        random: the kernel takes ``rng``, the op's own Philox state (uint32[6]), and returns the
            advanced state before its outputs.
        checks: the kernel may fail on the data (see ops.checks).
        blocks: a host op that may wait for another op or thread.
        external: the op touches the world outside (prints, calls Python): never folded, merged
            or dropped while something fetches or waits for it.
    """

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    random: bool = False
    blocks: bool = False
    external: bool = False
    checks: bool = False

    @property
    def pure(self) -> bool:
        """Same inputs give the same outputs and nothing else happens."""
        return not (self.reads or self.writes or self.random or self.blocks or self.external)


PURE = Effects()
CHECKS = Effects(checks=True)
RANDOM = Effects(random=True)
EXTERNAL = Effects(external=True)


@dataclass(frozen=True)
class EarlyCheck:
    """All that can fail on the data in a kernel, as a test of some of its inputs by themselves.

    The executor can make it before a program runs. This replaces the check inside the program,
    which may then update variables in place.

    Attributes:
        inputs: positions of the inputs whose values are tested.
        limit: ``limit(attrs, dims of all inputs)``: what the shapes tell the test. It may raise
            TypeError or IndexError, or be None, where the shapes needed are not known.
        test: ``test(limit, attrs, *values)`` raises an OpError if NumPy values do not hold.
        is_range: whether the test is that one input has integers in [0, limit).
    """

    inputs: tuple[int, ...]
    limit: Callable[[dict[str, Any], Sequence[Dims]], Any]
    test: Callable[..., None]
    is_range: bool = False


def index_check(
    position: int,
    bound: Callable[[dict[str, Any], Sequence[Dims]], int | None],
    message: str = "indices{0} = {1} is not in [0, {2})",
) -> EarlyCheck:
    """The check that the integers of one input lie in [0, bound).

    Args:
        message: the error, with ``{0}`` the index, ``{1}`` the value and ``{2}`` the bound.
    """

    def test(limit: int, attrs: dict[str, Any], indices: Any) -> None:
        if indices.size == 0:
            return
        if indices.dtype.kind == "i" and indices.flags.c_contiguous:
            # As numbers without a sign, negative ones are the largest.
            whole = indices.view(f"u{indices.dtype.itemsize}")
            if int(whole.max()) < limit:
                return
        elif indices.min() >= 0 and indices.max() < limit:
            return
        flat = indices.ravel()
        at = int(np.argmax((flat < 0) | (flat >= limit)))
        text = checks.AtIndex(message, indices.shape).format(at, int(flat[at]), limit)
        raise InvalidArgumentError(None, None, text)

    return EarlyCheck((position,), bound, test, is_range=True)


def whole_shape(attrs: dict[str, Any], dims: Sequence[Dims]) -> Dims:
    """The shape of input 0, for checks whose test needs all of it."""
    return None if dims[0] is None or None in dims[0] else dims[0]


def rows_check(position: int, target: str) -> EarlyCheck:
    """The check that each row of one input is an index into input 0, which ``target`` names."""

    def test(shape: Sequence[int], attrs: dict[str, Any], indices: Any) -> None:
        if indices.ndim > 0 and indices.shape[-1] <= len(shape):  # else the kernel tells
            checks.require_rows_in_range(np, indices, shape, target)

    return EarlyCheck((position,), whole_shape, test)


@dataclass(frozen=True)
class ArgDef:
    """One declared input or output; a list when ``number_attr`` or ``type_list_attr`` is set."""

    name: str
    dtype: DType | None = None
    type_attr: str | None = None
    number_attr: str | None = None
    type_list_attr: str | None = None

    @property
    def is_list(self) -> bool:
        return self.number_attr is not None or self.type_list_attr is not None

    def size(self, attrs: dict[str, Any]) -> int:
        """How many tensors a list argument stands for."""
        if self.number_attr is not None:
            return int(attrs[self.number_attr])
        return len(attrs[str(self.type_list_attr)])


@dataclass(frozen=True)
class AttrDef:
    """One declared attribute: its kind (``int``, ``list(type)`` ...), default and limits.

    A ``newer`` one came after the release whose signatures files follow (`graph_def.PRODUCER`):
    files leave it out at its default, and older readers then know every attribute.
    """

    name: str
    kind: str
    default: Any = _MISSING
    allowed: frozenset[Any] | None = None
    minimum: int | None = None
    newer: bool = False

    @property
    def has_default(self) -> bool:
        return self.default is not _MISSING


class HostResource:
    """An object that outlives steps and is no array: a queue. Steps may wait for it."""

    def abandon(self) -> None:
        """Its session or container is gone: cancel all that wait, or come to wait."""
        raise NotImplementedError


def grouped(flat: Sequence[Any], sizes: list[int | None] | None) -> list[Any]:
    """Flat inputs as declared: list inputs as lists; ``sizes`` are those of ``group_sizes``."""
    if sizes is None:
        return list(flat)
    result: list[Any] = []
    position = 0
    for size in sizes:
        if size is None:
            result.append(flat[position])
            position += 1
        else:
            result.append(list(flat[position : position + size]))
            position += size
    return result


GradientRule = Callable[..., Sequence[Any]]
#: Raises ValueError if shapes of inputs do not fit the op.
Requirement = Callable[["Operation"], None]


@dataclass(eq=False)
class OpDef:
    """One operation type. Exactly one of ``kernel``, ``lower`` and ``host`` is set.

    Attributes:
        shape: ``shape(op) -> [dims of each output]``; None leaves shapes unknown.
        requires: what holds of the shapes before that, see ``ops.core.requirements``.
        kernel: pure JAX-traceable function of the inputs; keyword-only parameters receive the
            attributes of the same names. Resource inputs arrive as their current values.
        interpret: the same function on NumPy arrays, for plans that run once and for constants.
        lower: ``lower(context, node, inputs)`` for ops with function bodies.
        host: ``host(context, *inputs)``: runs outside XLA on NumPy values; keyword-only parameters
            receive attributes.
        static: positions of inputs that must be known when the kernel is traced (shapes, axes);
            they arrive as NumPy arrays. A function of the attributes gives flat positions.
        gradient: graph gradient rule (which may return NotImplemented for cases it leaves to the
            kernel's own VJP), NotDifferentiable, or None for the VJP in all cases.
        cost: ``cost(op) -> floating point operations``; None counts one per output element.
        shape_only: outputs depend on the shapes of the inputs, not on their values.
        traits: what other stages ask about the op (see Traits).
        makes_handle: instead of an implementation: the output is a handle of such a resource,
            named by the attributes ``container`` and ``shared_name`` (else by the op).
        provide: ``provide(store, handle, node)``: makes the HostResource behind such a handle, or
            raises InvalidArgumentError if another one is there.
    """

    name: str
    inputs: tuple[ArgDef, ...]
    outputs: tuple[ArgDef, ...]
    attrs: dict[str, AttrDef]
    shape: Callable[[Operation], Sequence[Dims]] | None = None
    kernel: Callable[..., Any] | None = None
    interpret: Callable[..., Any] | None = None
    lower: Callable[..., Any] | None = None
    host: Callable[..., Any] | None = None
    gradient: GradientRule | NotDifferentiable | None = None
    static: tuple[int, ...] | Callable[[dict[str, Any]], tuple[int, ...]] = ()
    effects: Effects = PURE
    cost: Callable[[Operation], float] | None = None
    shape_only: bool = False
    traits: Traits = PLAIN
    #: The kind of resource whose handle this op makes ("variable", "queue" ...).
    makes_handle: str = ""
    provide: Callable[[Any, Any, Any], None] | None = None
    #: All that can fail in a kernel with ``effects.checks``, if this is set.
    early_check: EarlyCheck | None = None
    #: ``checked(attrs)``: positions of the inputs that the checks of the kernel look at.
    checked: Callable[[dict[str, Any]], tuple[int, ...]] | None = None
    requires: Sequence[Requirement] = ()
    #: Names of attributes that each implementation takes as keyword-only parameters.
    kernel_params: tuple[str, ...] = ()
    interpret_params: tuple[str, ...] = ()
    host_params: tuple[str, ...] = ()
    #: Prepared by ops.build on first use.
    builder: Any = field(default=None, repr=False)

    def infer_shapes(self, op: Operation, output_types: Sequence[DType]) -> Sequence[Dims]:
        """Static shapes of all outputs.

        Raises:
            ValueError: if the input shapes do not fit the op.
        """
        for require in self.requires:
            require(op)
        if self.shape is None:
            return [None] * len(output_types)
        return self.shape(op)

    def checked_inputs(self, attrs: dict[str, Any]) -> tuple[int, ...] | None:
        """Positions of the inputs that the checks of the kernel look at; None for all."""
        if self.checked is not None:
            return self.checked(attrs)
        return None if self.early_check is None else self.early_check.inputs

    @property
    def is_stateful(self) -> bool:
        return not self.effects.pure

    def group_sizes(self, attrs: dict[str, Any]) -> list[int | None] | None:
        """Sizes of list inputs (None: a single input), or None when there are no lists."""
        if not any(a.is_list for a in self.inputs):
            return None
        return [a.size(attrs) if a.is_list else None for a in self.inputs]

    def static_inputs(self, attrs: dict[str, Any]) -> tuple[int, ...]:
        """Positions, among all inputs of a node, of those that must be known when it is traced."""
        if callable(self.static):
            return self.static(attrs)
        sizes = self.group_sizes(attrs) if self.static else None
        if sizes is None:
            return self.static
        counts = [1 if size is None else size for size in sizes]
        starts = [0, *itertools.accumulate(counts)]
        return tuple(k for i in self.static for k in range(starts[i], starts[i + 1]))


_OPS: dict[str, OpDef] = {}
_DEFINED_IN: dict[str, str] = {}


def get_op_def(name: str) -> OpDef:
    """The definition of op type ``name``: its inputs, attributes, shape rule and kernel.

    Raises:
        ValueError: if there is no such op type.
    """
    found = _OPS.get(name)
    if found is None:
        raise ValueError(f"Op type not registered: '{name}'.{suggest(name, _OPS)}")
    return found


def find_op_def(name: str) -> OpDef | None:
    """The definition of op type ``name``, or None."""
    return _OPS.get(name)


def all_op_defs() -> dict[str, OpDef]:
    """All definitions by name."""
    return dict(_OPS)


def define_op(
    signature: str,
    *,
    attrs: str = "",
    shape: Callable[[Operation], Sequence[Dims]] | None = None,
    kernel: Callable[..., Any] | None = None,
    interpret: Callable[..., Any] | None = None,
    lower: Callable[..., Any] | None = None,
    host: Callable[..., Any] | None = None,
    gradient: GradientRule | NotDifferentiable | None = None,
    static: tuple[int, ...] | Callable[[dict[str, Any]], tuple[int, ...]] = (),
    effects: Effects = PURE,
    cost: Callable[[Operation], float] | None = None,
    shape_only: bool = False,
    traits: Traits = PLAIN,
    makes_handle: str = "",
    provide: Callable[[Any, Any, Any], None] | None = None,
    early_check: EarlyCheck | None = None,
    checked: Callable[[dict[str, Any]], tuple[int, ...]] | None = None,
    requires: Sequence[Requirement] = (),
) -> OpDef:
    """Register an operation type.

    Args:
        signature: e.g. ``"ConcatV2(values: N * T, axis: Tidx) -> output: T"``. An argument's type
            is a dtype name, a ``type`` attribute, ``N * T`` for a list of equal types, or a
            ``list(type)`` attribute.
        attrs: e.g. ``"T: type, N: int >= 2, Tidx: {int32, int64} = int32"``. Kinds: int, float,
            bool, string, type, shape, tensor, func, and list(kind); a set in braces is a ``type``
            (dtype names) or ``string`` (quoted) limited to its members. ``newer`` before a kind:
            see AttrDef.
        (others): see OpDef.

    Raises:
        ValueError: if the name is taken or not exactly one implementation is given.
    """
    name, inputs, outputs = _parse_signature(signature)
    if name in _OPS:
        raise ValueError(f"Op {name} is defined twice: {_DEFINED_IN[name]} has it already.")
    given = [n for n, f in (("kernel", kernel), ("lower", lower), ("host", host)) if f is not None]
    if len(given) != (0 if makes_handle else 1):
        raise ValueError(f"Op {name} needs exactly one of kernel, lower and host; it has {given}.")
    attr_defs = _parse_attrs(attrs)
    definition = OpDef(
        name=name,
        inputs=tuple(_resolve_arg(a, t, attr_defs, name) for a, t in inputs),
        outputs=tuple(_resolve_arg(a, t, attr_defs, name) for a, t in outputs),
        attrs=attr_defs,
        shape=shape,
        kernel=kernel,
        interpret=interpret,
        lower=lower,
        host=host,
        gradient=gradient,
        static=static,
        effects=effects,
        cost=cost,
        shape_only=shape_only,
        traits=traits,
        makes_handle=makes_handle,
        provide=provide,
        early_check=early_check,
        checked=checked,
        requires=tuple(requires),
        kernel_params=_attr_params(kernel, attr_defs, name),
        interpret_params=_attr_params(interpret, attr_defs, name),
        host_params=_attr_params(host, attr_defs, name),
    )
    _OPS[name] = definition
    # The module that called, for the message about a second definition.
    _DEFINED_IN[name] = sys._getframe(1).f_globals["__name__"]
    return definition


def _attr_params(
    function: Callable[..., Any] | None, attrs: dict[str, AttrDef], name: str
) -> tuple[str, ...]:
    """The keyword-only parameters of an implementation: each must be an attribute (or ``rng``)."""
    if function is None:
        return ()
    names = [n for n, needed in _keyword_only(function) if needed or n in attrs]
    unknown = [n for n in names if n not in attrs and n != "rng"]
    if unknown:
        raise ValueError(f"Op {name}: parameters {unknown} of {function} are no attributes.")
    return tuple(n for n in names if n != "rng")


def _keyword_only(function: Callable[..., Any]) -> list[tuple[str, bool]]:
    """The keyword-only parameters of a function, and whether each has to be given."""
    if isinstance(function, FunctionType) and not function.__dict__:
        # What `inspect` finds too, in a tenth of the time: there are hundreds of ops. (Where a
        # function wraps another or states its signature, that stands in its __dict__.)
        code, defaults = function.__code__, function.__kwdefaults__ or {}
        first = code.co_argcount
        names = code.co_varnames[first : first + code.co_kwonlyargcount]
        return [(n, n not in defaults) for n in names]
    if isinstance(function, functools.partial):
        found, given = _keyword_only(function.func), function.keywords
        if given.keys() <= {n for n, _ in found}:  # otherwise others become keyword-only, too
            return [(n, needed and n not in given) for n, needed in found]
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a NumPy ufunc
        return []
    return [(p.name, p.default is p.empty) for p in parameters if p.kind is p.KEYWORD_ONLY]


# -- the signature language ---------------------------------------------------------------------


def _parse_signature(text: str) -> tuple[str, list[tuple[str, str]], list[tuple[str, str]]]:
    match = re.fullmatch(r"\s*(\w+)\s*\((.*?)\)\s*(?:->\s*(.*?))?\s*", text, re.DOTALL)
    if match is None:
        raise ValueError(f"Malformed op signature: {text!r}")
    name, inputs, outputs = match.groups()
    outputs = (outputs or "").strip().removeprefix("(").removesuffix(")")
    return name, _parse_args(inputs), _parse_args(outputs)


def _parse_args(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in _split(text):
        arg, _, spec = part.partition(":")
        pairs.append((arg.strip(), spec.strip()))
    return pairs


_BRACKETS_AND_QUOTES = frozenset("([{}])'")


def _split(text: str) -> list[str]:
    """Split at commas that are outside brackets and quotes."""
    if not _BRACKETS_AND_QUOTES.intersection(text):
        return [p.strip() for p in text.split(",") if p.strip()]
    parts, depth, current = [], 0, ""
    quoted = False
    for char in text:
        quoted ^= char == "'"
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0 and not quoted:
            parts.append(current)
            current = ""
        else:
            current += char
    return [p.strip() for p in [*parts, current] if p.strip()]


def _resolve_arg(name: str, spec: str, attrs: dict[str, AttrDef], op: str) -> ArgDef:
    number, star, spec = spec.rpartition("*")
    spec, number_attr = spec.strip(), number.strip() or None
    if star and (number_attr not in attrs):
        raise ValueError(
            f"Op {op}: {name} counts by attribute {number_attr!r}, which is not there."
        )
    attr = attrs.get(spec)
    if attr is not None and attr.kind == "list(type)":
        return ArgDef(name, type_list_attr=spec)
    if attr is not None and attr.kind == "type":
        return ArgDef(name, type_attr=spec, number_attr=number_attr)
    return ArgDef(name, dtype=dtypes.as_dtype(spec), number_attr=number_attr)


def _parse_attrs(text: str) -> dict[str, AttrDef]:
    result = {}
    for part in _split(text):
        name, _, rest = part.partition(":")
        name = name.strip()
        spec, default_text = _cut_default(rest)
        spec, _, minimum = spec.partition(">=")
        newer = spec.strip().startswith("newer ")
        kind, allowed = _parse_kind(spec.strip().removeprefix("newer ").strip())
        default = _MISSING if default_text is None else _parse_default(default_text, kind)
        result[name] = AttrDef(
            name, kind, default, allowed, int(minimum) if minimum.strip() else None, newer
        )
    return result


def _cut_default(text: str) -> tuple[str, str | None]:
    match = re.search(r"(?<![<>=!])=(?!=)", text)
    if match is None:
        return text.strip(), None
    return text[: match.start()].strip(), text[match.end() :].strip()


_TYPE_GROUPS = {
    "floating": "float16 bfloat16 float32 float64",
    "real": "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "inexact": "float16 bfloat16 float32 float64 complex64 complex128",
    "numeric": "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
    " complex64 complex128",
    "index": "int32 int64",
}


@functools.cache
def _parse_kind(spec: str) -> tuple[str, frozenset[Any] | None]:
    inner = spec
    is_list = spec.startswith("list(")
    if is_list:
        inner = spec[5:-1].strip()
    if inner in _TYPE_GROUPS:
        kind, allowed = "type", frozenset(map(dtypes.as_dtype, _TYPE_GROUPS[inner].split()))
    elif inner.startswith("{"):
        members = [m.strip() for m in inner[1:-1].split(",")]
        if members[0][0] in "'\"":
            kind, allowed = "string", frozenset(ast.literal_eval(m) for m in members)
        else:
            kind, allowed = "type", frozenset(map(dtypes.as_dtype, members))
    else:
        kind, allowed = inner, None
    return (f"list({kind})" if is_list else kind), allowed


def _parse_default(text: str, kind: str) -> Any:
    if kind == "type":
        return dtypes.as_dtype(text)
    if kind == "list(type)":
        return tuple(dtypes.as_dtype(t) for t in _split(text.strip("[]()")))
    value = ast.literal_eval(text)
    return tuple(value) if isinstance(value, list) else value
