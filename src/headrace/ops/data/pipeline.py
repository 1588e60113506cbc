"""What dataset ops are made of: sources, streams, and the run that they belong to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import CancelledError, InvalidArgumentError, OpError
from headrace.graph import dtypes
from headrace.graph.func_graph import FuncGraph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation
from headrace.ops.core.registry import PURE, Effects, NotDifferentiable, define_op
from headrace.ops.core.traits import Traits

#: One element: an array for each component. Streams with `Stream.items` give others instead.
Element = tuple[Any, ...]
#: What a stream needs to go on where it was: arrays, numbers, texts, lists and dicts of such.
State = dict[str, Any]
Function = Callable[..., Element]
#: Numbers of elements that are no number.
INFINITE, UNKNOWN = -1, -2

#: Functions of these ops take elements.
ELEMENTS = Traits(own_arguments=True)
NO_GRADIENT = NotDifferentiable("datasets hand over values; no gradient flows through them")


class Iteration:
    """One iteration, shared by the streams of a chain.

    Args:
        function: gives what calls a graph function on arrays, see `HostContext.planned`.
    """

    def __init__(
        self, function: Callable[[FuncGraph], Callable[[Sequence[Any]], Sequence[Any]]]
    ) -> None:
        self._function = function
        self._local = threading.local()
        self.is_closed = False
        #: Notified when the run is closed; streams wait with conditions on this lock.
        self.lock = threading.Lock()
        self._conditions: list[threading.Condition] = []
        #: Whether what several threads make may come in another order.
        self.may_reorder = False
        #: Where streams record numbers under tags, if the user wants statistics.
        self.record: Callable[[str, float], None] | None = None

    def function(self, body: FuncGraph, captured: Sequence[Any]) -> Function:
        """Calls ``body`` on the components of elements. Raises OpError where an op of it does."""
        planned = self._function(body)
        more = list(captured)
        return lambda *components: tuple(planned([*components, *more]))

    def condition(self) -> threading.Condition:
        """A condition that is notified when the run ends, too."""
        made = threading.Condition()
        with self.lock:
            self._conditions.append(made)
        return made

    def drop(self, condition: threading.Condition) -> None:
        """Nobody waits there any more."""
        with self.lock:
            self._conditions.remove(condition)

    def close(self) -> None:
        """Whoever waits is cancelled."""
        self.is_closed = True
        with self.lock:
            conditions = list(self._conditions)
        for condition in conditions:
            with condition:
                condition.notify_all()

    def wait_for(self, condition: threading.Condition, ready: Callable[[], bool]) -> None:
        """Wait; the caller holds ``condition``.

        Raises:
            CancelledError: if the run is closed.
            OpError: as the step of the caller ends, if this thread runs one.
        """

        def over() -> bool:
            return self.is_closed or ready()

        step = getattr(self._local, "step", None)
        if step is None:
            condition.wait_for(over)
        else:
            step.wait_for(condition, over)
        if self.is_closed:
            raise CancelledError(None, None, "The iterator has been closed.")

    def pull(self, stream: Stream, step: Any) -> Element:
        """The next element for a step, which may be given up meanwhile. Raises StopIteration."""
        self._local.step = step
        try:
            element: Element = next(stream)
            return element if stream.items is None else stream.items.one(element)
        finally:
            self._local.step = None


def row(arrays: Sequence[Any], index: Any) -> Element:
    """One element of arrays that hold many."""
    return tuple([a[index] if a.ndim > 1 else a[index : index + 1].reshape(()) for a in arrays])


class Items:
    """What stands for an element while nothing looks at it, and how elements are made of it."""

    def one(self, item: Any) -> Element:
        """The element that an item stands for."""
        raise NotImplementedError

    def many(self, items: Sequence[Any]) -> Element:
        """Several, as one element with a first axis more."""
        raise NotImplementedError


class RowItems(Items):
    """Numbers: indices into the first axes of arrays."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self._arrays = arrays

    def one(self, item: int) -> Element:
        return row(self._arrays, item)

    def many(self, items: Sequence[int]) -> Element:
        first, last = items[0], items[-1]
        if last - first == len(items) - 1 and items == list(range(first, last + 1)):
            return tuple([a[first : last + 1] for a in self._arrays])
        at = np.array(items)
        return tuple([a.take(at, 0) for a in self._arrays])


class StringItems(Items):
    """The bytes of elements that are one string."""

    def one(self, item: bytes) -> Element:
        return (as_string(item),)

    def many(self, items: Sequence[bytes]) -> Element:
        result = np.empty(len(items), object)
        result[:] = items
        return (result,)


class Source:
    """The value of a dataset op: what a sequence is, before anybody iterates.

    Attributes:
        op: the operation of the user's graph that made it, for errors; None where none is known.
    """

    op: Any = None
    #: Whether streams only leave out, repeat or order elements of ``_base``, and look at none.
    moves_only = False

    def stream(self, run: Iteration) -> Stream:
        """Begin an iteration."""
        made = self._begin(run)
        if made.op is None:  # a stage that does nothing hands on the stream of the one before
            made.op = self.op
        return made

    def _begin(self, run: Iteration) -> Stream:
        raise NotImplementedError

    def cardinality(self) -> int:
        """How many elements an iteration gives, or `INFINITE` or `UNKNOWN`: nothing is computed."""
        return UNKNOWN


class Stream:
    """An iteration over a source: gives elements until StopIteration.

    A subclass has ``_next``, and ``_state`` and ``_go_on`` if it holds more than its inputs do.

    Attributes:
        items: where set, what is given only stands for elements: what hands it on moves a number,
            or bytes, in place of arrays, and batches are gathered at once.
        inputs: the streams that this one pulls from, in order.
        op: the operation that made the dataset, for errors.
        count: how many elements the stream has begun, where errors tell their index.
    """

    op: Any = None
    count = 0
    items: Items | None = None
    inputs: Sequence[Stream] = ()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        raise NotImplementedError

    def next_many(self, count: int) -> list[Any]:
        """The next ``count`` elements; fewer, or none, at the end."""
        found = []
        try:
            for _ in range(count):
                found.append(next(self))
        except StopIteration:
            pass
        return found

    def some(self, count: int) -> list[Any]:
        """Up to ``count`` next elements, at least one; none at the end.

        As many as come at once: if making one fails, none before it is lost.
        """
        try:
            return [next(self)]
        except StopIteration:
            return []

    def failed(self, error: OpError, index: int | None = None) -> OpError:
        """The error, with this stage and the element's index; by default that begun last."""
        if self.op is not None:
            error.add_stage(self.op, self.count - 1 if index is None else index)
        return error

    def save(self) -> State:
        """What `restore` needs to go on with the same elements."""
        inputs = [i.save() for i in self.inputs]
        return {"own": self.own_state(), "count": self.count, "inputs": inputs}

    def restore(self, state: State) -> None:
        """Go on where another stream of the same source was saved."""
        if len(state["inputs"]) != len(self.inputs):
            message = "The saved state of the iterator is one of another dataset."
            raise InvalidArgumentError(None, None, message)
        for stream, saved in zip(self.inputs, state["inputs"], strict=True):
            stream.restore(saved)
        self.count = state.get("count", 0)
        self.set_own_state(state["own"])

    def own_state(self) -> Any:
        """What this stream holds beside its inputs."""
        return None

    def set_own_state(self, state: Any) -> None:
        """The inverse of `own_state`."""

    def close(self) -> None:
        """End: threads stop, files are closed. May be called twice."""
        for stream in self.inputs:
            stream.close()


class BulkStream(Stream):
    """A stream whose `some` gives several elements in little more time than one."""

    def next_many(self, count: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            more = self.some(count - len(found))
            if not more:
                break
            found += more
        return found


class _Whole(BulkStream):
    """The elements of a stream of items."""

    def __init__(self, stream: Stream, items: Items) -> None:
        self.inputs = (stream,)
        self._stream, self._element = stream, items.one

    def __next__(self) -> Any:
        return self._element(next(self._stream))

    def some(self, count: int) -> list[Any]:
        return [*map(self._element, self._stream.some(count))]


def whole(source: Source, run: Iteration) -> Stream:
    """The stream of a source, with elements of arrays."""
    stream = source.stream(run)
    return stream if stream.items is None else _Whole(stream, stream.items)


#: What some dataset ops declare beside their own attributes.
TYPES = "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"


def define_dataset(
    signature: str,
    make: Callable[..., Source],
    *,
    attrs: str = TYPES,
    effects: Effects = PURE,
    traits: Traits = ELEMENTS,
) -> None:
    """Register a dataset op.

    Args:
        signature: the inputs, as for `define_op`: ``"TakeDataset(input_dataset: variant, ..."``.
        make: ``make(context, *inputs)``: the source.
    """

    def host(context: Any, *inputs: Any) -> Any:
        source = make(context, *inputs)
        source.op = context.node.op
        return source

    define_op(
        f"{signature} -> handle: variant",
        attrs=attrs,
        shape=_scalar,
        host=host,
        effects=effects,
        gradient=NO_GRADIENT,
        traits=traits,
    )


def element_attrs(op: Operation) -> dict[str, Any]:
    """The attributes by which a stage tells of its elements, for those of the op of a dataset.

    Ops that have none read records or lines, or the slices of a sparse tensor.
    """
    attrs = op.attrs
    if "output_shapes" in attrs:
        types = attrs["output_types"] if "output_types" in attrs else attrs["Toutput_types"]
        return {"output_types": list(types), "output_shapes": list(attrs["output_shapes"])}
    if "Tvalues" in attrs:
        rows: list[Any] = [dtypes.int64, attrs["Tvalues"], dtypes.int64]
        return {"output_types": rows, "output_shapes": [TensorShape(None)] * len(rows)}
    return {"output_types": [dtypes.string], "output_shapes": [TensorShape([])]}


def _scalar(op: Operation) -> list[tuple[int, ...]]:
    return [()]


def gathered(stream: Stream, found: Sequence[Any]) -> Element:
    """What a stream has given, as one element with a first axis more.

    Raises:
        InvalidArgumentError: if shapes differ.
    """
    return stack(found) if stream.items is None else stream.items.many(found)


def stack(elements: Sequence[Element]) -> Element:
    """Elements as one with a first axis more.

    Raises:
        InvalidArgumentError: if their shapes differ.
    """
    return tuple([_stacked(column, i) for i, column in enumerate(zip(*elements, strict=True))])


def _stacked(values: Sequence[Any], component: int) -> Any:
    first = values[0]
    shape, dtype = first.shape, first.dtype
    result = np.empty((len(values), *shape), dtype)
    for i, value in enumerate(values):
        if value.shape != shape:
            message = (
                f"Cannot batch tensors with different shapes in component {component}. First "
                f"element had shape {list(shape)} and element {i} had shape {list(value.shape)}. "
                "Dataset.padded_batch pads them to one shape."
            )
            raise InvalidArgumentError(None, None, message)
        result[i] = value[()] if dtype.hasobject and not shape else value
    return result


def scalar(value: Any, name: str, least: int | None = None) -> int:
    """An input that is one integer.

    Raises:
        InvalidArgumentError: if it is not, or below ``least``.
    """
    array = np.asarray(value)
    if array.ndim:
        message = f"{name} must be a scalar, but has shape {list(array.shape)}."
        raise InvalidArgumentError(None, None, message)
    number = int(array)
    if least is not None and number < least:
        bound = "greater than zero" if least == 1 else f"at least {least}"
        raise InvalidArgumentError(None, None, f"{name} must be {bound}, but is {number}.")
    return number


def text(value: Any) -> str:
    """An input that is one string."""
    return bytes(np.asarray(value)[()]).decode()


def texts(value: Any) -> list[str]:
    """An input that is one string, or a vector of them."""
    return [item.decode() for item in np.asarray(value, object).reshape(-1).tolist()]


def as_string(value: bytes) -> Any:
    """A scalar component."""
    array = np.empty((), object)
    array[()] = value
    return array


#: How streams of strings give their elements.
STRINGS = StringItems()

__all__ = ["BulkStream", "Element", "Items", "Iteration", "RowItems", "Source", "State", "Stream"]
