"""How a loss adds up over examples: as a sum, as a mean, or neither.

Workers compute the loss of their own examples. The average of their gradients is that of the whole
batch if the loss is a mean over it; of a sum it is too small by their number. So the graph of the
loss is read: each tensor is made of rows (one for each example), of sums or means over them, of
their count, or does not depend on them. These are rules for the linear algebra of losses, with a
word for all that they do not cover; nothing is guessed from numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headrace.data_parallel.steps import bodies
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.static import static_value

__all__ = ["Kinds", "LossKinds", "examine"]

ROWS, SUM, MEAN, COUNT, OTHER = "rows", "sum", "mean", "count", "other"
#: What a tensor is made of; empty: it does not depend on examples. "fixed" stands in sums for a
#: term that does not.
Kinds = frozenset[str]
FIXED = "fixed"
_NOTHING: Kinds = frozenset()

_SOURCES = ("IteratorGetNext", "IteratorGetNextSync", "QueueDequeueManyV2", "QueueDequeueUpToV2")
_ELEMENTS = ("QueueDequeueV2", "ReaderReadV2")
_SIZES = ("Shape", "ShapeN", "Size")
#: Linear in input 0; other inputs say how. So is what only hands on or chooses elements of it.
_FIRST = ("Neg", "Cast", "Sum", "Mean")
#: They give input 0 as it is, after a look at it.
_LOOKS = ("CheckNumerics", "EnsureShape", "Print")
_SUMS = ("Add", "AddV2", "AddN", "Sub")
_PRODUCTS = ("Mul",)
_QUOTIENTS = ("RealDiv", "Div", "DivNoNan", "TruncateDiv")
_CHOICES = ("Select", "SelectV2", "Where")


class LossKinds:
    """What a loss is made of.

    Attributes:
        kinds: of the loss.
        sums: the operations that sum over examples.
        mixing: operations that give examples what depends on all of them, as batch normalisation
            does: each worker has its own examples only.
        other: the first operation that is neither linear in sums nor in means.
    """

    def __init__(self) -> None:
        self.kinds: Kinds = _NOTHING
        self.sums: list[Operation] = []
        self.mixing: list[Operation] = []
        self.other: Operation | None = None

    @property
    def is_sum(self) -> bool:
        return self.kinds <= {SUM, ROWS} and bool(self.kinds)

    @property
    def is_mean(self) -> bool:
        return self.kinds <= {MEAN, FIXED}


def examine(loss: Tensor) -> LossKinds:
    """What a loss is made of, by the operations that lead to it."""
    found = LossKinds()
    known: dict[Tensor, Kinds] = {}
    for op in _before(loss.op):
        kinds = _kinds(op, [known.get(t, _NOTHING) for t in op.inputs], found)
        for output in op.outputs:
            known[output] = kinds
    found.kinds = known[loss]
    return found


def _before(last: Operation) -> list[Operation]:
    """All operations that lead to one, in an order in which they can be computed."""
    seen, todo = {last}, [last]
    while todo:
        for tensor in todo.pop().inputs:
            if tensor.op not in seen:
                seen.add(tensor.op)
                todo.append(tensor.op)
    return sorted(seen, key=lambda op: op._id)


def _kinds(op: Operation, inputs: list[Kinds], found: LossKinds) -> Kinds:
    if not op.inputs or op.type in _SOURCES or op.type in _ELEMENTS:
        return _of_source(op)
    together = frozenset[str]().union(*inputs)
    if not together:
        # Numbers that are drawn for each example are rows.
        return frozenset({ROWS}) if _is_random(op) else _NOTHING
    if op.type in _SIZES:
        return frozenset({COUNT})
    if ROWS in together:
        return _of_rows(op, inputs, together, found)
    kinds = _by_rule(op, inputs)
    if kinds is None:
        kinds = frozenset({COUNT}) if together <= {COUNT} else None
    if kinds is None:
        if OTHER not in together and found.other is None:
            found.other = op
        return frozenset({OTHER})
    return kinds


def _of_source(op: Operation) -> Kinds:
    dims = op.outputs[0].dims if op.outputs else None
    if op.type in _ELEMENTS:
        return frozenset({MEAN})
    if op.type in _SOURCES:
        return frozenset({MEAN if dims == () else ROWS})
    is_fed = op.type in ("Placeholder", "PlaceholderV2")
    return frozenset({ROWS}) if is_fed and dims and dims[0] is None else _NOTHING


def _is_random(op: Operation) -> bool:
    effects = getattr(op.op_def, "effects", None)
    return bool(effects is not None and effects.random and op.outputs[0].dims != ())


def _of_rows(op: Operation, inputs: list[Kinds], together: Kinds, found: LossKinds) -> Kinds:
    if "keep_dims" in op.attrs and ROWS in inputs[0] and _takes_first_axis(op):
        if op.type == "Sum":
            found.sums.append(op)
            return frozenset({SUM})
        if op.type == "Mean":
            return frozenset({MEAN})
        found.other = found.other or op
        return frozenset({OTHER})
    is_mixed = together & {SUM, MEAN, OTHER} and op.outputs[0].dims != ()
    if is_mixed or _normalises(op):
        found.mixing.append(op)
    return frozenset({ROWS})


def _normalises(op: Operation) -> bool:
    """Whether an operation is a batch normalisation that takes the moments of what comes."""
    if op.type.startswith("FusedBatchNorm"):
        return bool(op.attrs.get("is_training", True))
    return any(_normalises(inner) for body in bodies(op) for inner in body.get_operations())


def _takes_first_axis(op: Operation) -> bool:
    if len(op.inputs) < 2:
        return True
    axes, dims = static_value(op.inputs[1]), op.inputs[0].dims
    if axes is None:
        return True
    rank = len(dims) if dims is not None else 0
    return any(axis in (0, -rank) for axis in axes.reshape(-1).tolist())


def _by_rule(op: Operation, inputs: list[Kinds]) -> Kinds | None:
    """What is known of an op that gives no rows from its inputs; None if nothing is."""
    rule = _RULES.get(op.type)
    if rule is not None:
        return rule(inputs)
    traits = op.op_def.traits
    if traits.is_view or traits.elements_of == slice(1):
        return _first(inputs)
    return _sum(inputs[traits.elements_of]) if traits.elements_of is not None else None


def _first(inputs: list[Kinds]) -> Kinds | None:
    return inputs[0] or None


def _sum(inputs: list[Kinds]) -> Kinds | None:
    if any(COUNT in kinds for kinds in inputs):
        return None
    return frozenset[str]().union(*(kinds or {FIXED} for kinds in inputs))


def _product(inputs: list[Kinds]) -> Kinds | None:
    varying = [kinds for kinds in inputs if kinds]
    return varying[0] if len(varying) == 1 else None


def _quotient(inputs: list[Kinds]) -> Kinds | None:
    above, below = inputs
    if not below:
        return above
    if above == {SUM} and below in ({COUNT}, {SUM}):
        return frozenset({MEAN})
    return None


def _choice(inputs: list[Kinds]) -> Kinds | None:
    return frozenset[str]().union(*inputs[1:]) or None


_RULES: dict[str, Callable[[list[Kinds]], Kinds | None]] = {}


def _use(names: Iterable[str], rule: Callable[[list[Kinds]], Kinds | None]) -> None:
    _RULES.update(dict.fromkeys(names, rule))


_use((*_FIRST, *_LOOKS), _first)
_use((*_SUMS, "BiasAdd"), _sum)
_use(_PRODUCTS, _product)
_use(_QUOTIENTS, _quotient)
_use(_CHOICES, _choice)
