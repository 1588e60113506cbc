"""How a loss adds up over examples: as a sum, as a mean, or neither.

Workers compute the loss of their own examples. The average of their gradients is that of the whole
batch if the loss is a mean over it; of a sum it is too small by their number. So the graph of the
loss is read: each tensor is made of rows (one for each example), of totals over them, of their
count, or does not depend on them, and of each of these it is known with which power of the number
of examples it grows: a sum with the first, a mean with none, a row divided by the count with the
power -1. These are rules for the linear algebra of losses, by what operations say of themselves
(`headrace.ops.core.traits`), with a word for all that they do not cover; nothing is guessed from
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Literal, NamedTuple

from headrace.data_parallel.steps import bodies
from headrace.graph import dtypes
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.static import static_value

__all__ = ["Kinds", "LossKinds", "Term", "examine", "normalises"]


class Term(NamedTuple):
    """Something that a tensor is made of.

    Attributes:
        form: ``rows``: values of each example; ``total``: linear in a sum over examples; ``count``:
            depends on the number of examples only; ``fixed``: on nothing of these; ``other``.
        power: with which power of the number of examples it grows; None: with no known one.
    """

    form: Literal["rows", "total", "count", "fixed", "other"]
    power: int | None = 0


#: What a tensor is made of; empty: it does not depend on examples.
Kinds = frozenset[Term]
_NOTHING: Kinds = frozenset()
_ROWS, _SUM, _MEAN = Term("rows"), Term("total", 1), Term("total")
_COUNT, _FIXED, _OTHER = Term("count", 1), Term("fixed"), Term("other", None)


class LossKinds:
    """What a loss is made of.

    Attributes:
        kinds: of the loss.
        mixing: operations that give examples what depends on all of them, as batch normalisation
            does: each worker has its own examples only.
        other: the first operation that is neither linear in sums nor in means.
    """

    def __init__(self) -> None:
        self.kinds: Kinds = _NOTHING
        self.mixing: list[Operation] = []
        self.other: Operation | None = None

    @property
    def is_sum(self) -> bool:
        return self.kinds <= {_SUM, _ROWS} and bool(self.kinds)

    @property
    def is_mean(self) -> bool:
        return self.kinds <= {_MEAN, _FIXED, Term("rows", -1)}


def examine(*losses: Tensor) -> LossKinds:
    """What the sum of some losses is made of, by the operations that lead to them."""
    found = LossKinds()
    known: dict[Tensor, Kinds] = {}
    for op in _before([loss.op for loss in losses]):
        kinds = _kinds(op, [known.get(t, _NOTHING) for t in op.inputs], found)
        for output in op.outputs:
            known[output] = kinds
    found.kinds = _sum([known[loss] for loss in losses]) if len(losses) > 1 else known[losses[0]]
    return found


def _before(last: Sequence[Operation]) -> list[Operation]:
    """All operations that lead to some, in an order in which they can be computed."""
    seen, todo = set(last), list(last)
    while todo:
        for tensor in todo.pop().inputs:
            if tensor.op not in seen:
                seen.add(tensor.op)
                todo.append(tensor.op)
    return sorted(seen, key=lambda op: op._id)


def _kinds(op: Operation, inputs: list[Kinds], found: LossKinds) -> Kinds:
    together = _NOTHING.union(*inputs)
    traits = op.op_def.traits
    if traits.takes_out or not together:
        return _of_source(op)
    if op.op_def.shape_only:
        return frozenset({_COUNT})
    if _is_random(op):
        return frozenset({_ROWS})
    if any(term.form == "rows" for term in together):
        kinds = _of_rows(op, inputs, found)
    else:
        kinds = _by_rule(op, inputs)
    if kinds is None:
        kinds = frozenset({_OTHER})
        if _OTHER not in together:
            found.other = found.other or op
    return kinds


def _of_source(op: Operation) -> Kinds:
    output = op.outputs[0] if op.outputs else None
    dims = None if output is None else output.dims
    if op.op_def.traits.takes_out:
        is_number = dims == () and output is not None and output.dtype is not dtypes.variant
        one = op.op_def.traits.takes_out == "element" or is_number
        return frozenset({_MEAN if one else _ROWS})
    # Numbers that are drawn for each example are rows.
    is_fed = op.type.startswith("Placeholder") and dims and dims[0] is None
    return frozenset({_ROWS}) if is_fed or _is_random(op) else _NOTHING


def _is_random(op: Operation) -> bool:
    effects = getattr(op.op_def, "effects", None)
    return bool(effects is not None and effects.random and op.outputs[0].dims != ())


# -- rows ---------------------------------------------------------------------------------------


def _of_rows(op: Operation, inputs: list[Kinds], found: LossKinds) -> Kinds | None:
    """What comes of some rows, and perhaps of other things; None: what cannot be known."""
    traits = op.op_def.traits
    if traits.reduces and _has_rows(inputs[0]) and _takes_first_axis(op):
        return None if traits.reduces == "other" else _reduced(op, inputs[0])
    kinds = _by_rule(op, inputs)
    if kinds is None or not _has_rows(kinds):
        kinds = _of_any_function(op, inputs)
    if _joins_examples(op, inputs):
        if traits.linear != "each":
            return None
        return frozenset(_total(term, 1) for term in kinds)
    others = [term for terms in inputs for term in terms if term.form in ("total", "other")]
    is_share = traits.divides and all(term == _SUM for term in inputs[1])
    if (others and not is_share) or normalises(op):
        found.mixing.append(op)
    return kinds


def _has_rows(kinds: Kinds) -> bool:
    return any(term.form == "rows" for term in kinds)


def _reduced(op: Operation, rows: Kinds) -> Kinds | None:
    """A sum or mean over examples."""
    traits = op.op_def.traits
    if traits.linear is None and rows != {_ROWS}:  # a sum of squares, say
        return None
    return frozenset(_total(term, 1 if traits.reduces == "sum" else 0) for term in rows)


def _total(term: Term, power: int) -> Term:
    return _OTHER if term.power is None else Term("total", term.power + power)


def _of_any_function(op: Operation, inputs: list[Kinds]) -> Kinds:
    """Rows by which function soever: what depends on each example by itself."""
    values = [kinds for kinds, t in zip(inputs, op.inputs, strict=True) if not t.dtype.is_integer]
    powers = {t.power for kinds in values for t in kinds if t.form in ("rows", "count")}
    return frozenset({Term("rows", 0 if powers <= {0} else None)})


def _joins_examples(op: Operation, inputs: list[Kinds]) -> bool:
    """Whether no axis of the result is that of the examples, as far as shapes tell."""
    traits, dims = op.op_def.traits, op.outputs[0].dims if op.outputs else None
    if dims is None or None in dims or traits.elementwise or traits.is_view:
        return False
    if dims == ():
        return True
    given = [t.dims for kinds, t in zip(inputs, op.inputs, strict=True) if _has_rows(kinds)]
    return traits.elements_of is None and any(d is not None and None in d for d in given)


def normalises(op: Operation) -> bool:
    """Whether an operation is a batch normalisation that takes the moments of what comes."""
    if op.type.startswith("FusedBatchNorm"):
        return bool(op.attrs.get("is_training", True))
    return any(normalises(inner) for body in bodies(op) for inner in body.get_operations())


def _takes_first_axis(op: Operation) -> bool:
    if len(op.inputs) < 2:
        return True
    axes, dims = static_value(op.inputs[1]), op.inputs[0].dims
    if axes is None:
        return True
    rank = len(dims) if dims is not None else 0
    return any(axis in (0, -rank) for axis in axes.reshape(-1).tolist())


# -- linear algebra -----------------------------------------------------------------------------


def _by_rule(op: Operation, inputs: list[Kinds]) -> Kinds | None:
    """What an operation gives that is linear in its inputs; None if it is not."""
    traits = op.op_def.traits
    if traits.divides:
        return _pairs(_quotient, inputs[:2])
    if traits.linear == "each":
        return _pairs(_product, inputs)
    linear = traits.linear
    if linear is None and not traits.elementwise:
        linear = slice(1) if traits.is_view else traits.elements_of
    if linear is not None:
        zeros = [not k and _is_zero(t) for k, t in zip(inputs, op.inputs, strict=True)]
        made = _sum([k for k, zero in zip(inputs[linear], zeros[linear], strict=True) if not zero])
        if made:
            return made
    return _of_counts(op, _NOTHING.union(*inputs))


def _is_zero(tensor: Tensor) -> bool:
    """Whether a term is certain to be 0, which is any number of zeros."""
    value = static_value(tensor)
    return value is not None and value.size > 0 and not value.any()


def _of_counts(op: Operation, counts: Kinds) -> Kinds | None:
    """By other functions: the larger of two counts is one, as is a count rounded down."""
    if any(term.form != "count" for term in counts):
        return None
    dims = op.outputs[0].dims if op.outputs else None
    if dims and dims[0] is None:  # as many of the same, or numbers of examples
        return frozenset({_ROWS})
    keeps = op.op_def.traits.elements_of is not None or op.outputs[0].dtype.is_integer
    return counts if keeps and len(counts) == 1 else frozenset({Term("count", None)})


def _sum(inputs: list[Kinds]) -> Kinds:
    terms = _NOTHING.union(*(kinds or {_FIXED} for kinds in inputs))
    if _has_rows(terms):  # the others go to each row, as they are if they are neither
        return frozenset(Term("rows", 0 if t == _OTHER else t.power) for t in terms)
    return _NOTHING if terms == {_FIXED} else terms


def _pairs(rule: Callable[[Term, Term], Term], inputs: Iterable[Kinds]) -> Kinds | None:
    """What a rule for two terms makes of all terms of all inputs."""

    def both(first: Kinds, second: Kinds) -> Kinds:
        return frozenset(rule(a, b) for a in first or {_FIXED} for b in second or {_FIXED})

    made = reduce(both, inputs)
    return None if _OTHER in made else _NOTHING if made == {_FIXED} else made


def _product(a: Term, b: Term) -> Term:
    if _FIXED in (a, b):
        return b if a == _FIXED else a
    forms = {a.form, b.form}
    if "rows" in forms:
        # What is neither sum nor mean goes to each row as it is.
        return (a if a.form == "rows" else b) if "other" in forms else Term("rows", _power(a, b))
    if forms == {"count"}:
        return Term("count", _power(a, b))
    if "count" in forms and "total" in forms and None not in (a.power, b.power):
        return Term("total", _power(a, b))
    return _OTHER


def _power(a: Term, b: Term) -> int | None:
    return None if a.power is None or b.power is None else a.power + b.power


def _quotient(a: Term, b: Term) -> Term:
    if b == _FIXED:
        return a
    under = Term(b.form, None if b.power is None else -b.power)
    if b.form == "total":  # the ratio of two sums is like a mean
        known = a.form in ("rows", "total") and a.power is not None
        return Term(a.form, _power(a, under)) if known else _OTHER
    return _product(a, under)
