"""Queues as objects: who may put, who may take, and who waits.

Requests that cannot be met at once wait in two lines, one to put and one to take. Only the head of
a line is served, so none is overtaken; each change of the queue serves both heads until neither
gets further. Nothing polls: a request that is met wakes its own thread.
"""

from __future__ import annotations

import enum
import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import CancelledError, InvalidArgumentError, OpError, OutOfRangeError
from headrace.graph.dtypes import DType
from headrace.graph.shapes import compatible_static
from headrace.ops.core.locks import BargingLock
from headrace.ops.core.registry import HostResource
from headrace.ops.random import philox

#: What a queue holds: one value for each component; a scalar component as a NumPy scalar or bytes.
Element = tuple[Any, ...]

_NO_LIMIT = 2**31 - 1
_BLOCKS_AT_A_TIME = 64


class QueueSpec(NamedTuple):
    """What the op that makes a queue says of it; equal for all that share it.

    Attributes:
        shapes: of the components, without the batch dimension; empty where not specified.
        minimum: elements that stay in an open queue (``min_after_dequeue``).
    """

    op_type: str
    types: tuple[DType, ...]
    shapes: tuple[tuple[int | None, ...] | None, ...]
    capacity: int
    minimum: int = 0
    seeds: tuple[int, int] = (0, 0)

    @property
    def kind(self) -> str:
        return self.op_type.removesuffix("V2")


class _Outcome(enum.Enum):
    NOTHING = 0
    PROGRESS = 1
    COMPLETE = 2


class _Request:
    """Something that a step wants of a queue. The queue's lock is held while it is served."""

    __slots__ = ("condition", "done", "error")
    what = ""

    def __init__(self) -> None:
        self.condition: threading.Condition | None = None
        self.done = False
        self.error: OpError | None = None

    def serve(self, queue: Queue) -> _Outcome:
        raise NotImplementedError

    def undo(self, queue: Queue) -> None:
        """The step gave up."""

    def end(self, error: OpError | None = None) -> None:
        """Met, or failed for good: wake who waits."""
        self.done = True
        self.error = error or self.error
        if self.condition is not None:
            self.condition.notify_all()


class _Put(_Request):
    """Puts elements one by one: what is in stays in, whatever becomes of the rest."""

    __slots__ = ("elements", "position")
    what = "Enqueue"

    def __init__(self, elements: Sequence[Element]) -> None:
        super().__init__()
        self.elements = elements
        self.position = 0

    def serve(self, queue: Queue) -> _Outcome:
        start = self.position
        while self.position < len(self.elements):
            if queue.is_closed:
                self.error = CancelledError(None, None, f"{queue.family} '{queue.name}' is closed.")
                return _Outcome.COMPLETE
            if len(queue) >= queue.capacity:
                return _Outcome.NOTHING if self.position == start else _Outcome.PROGRESS
            queue.push(self.elements[self.position])
            self.position += 1
        return _Outcome.COMPLETE


class _Take(_Request):
    """Takes elements as they come until there are ``count``; gives all back if it fails."""

    __slots__ = ("count", "family", "fewer", "taken")
    what = "Dequeue"

    def __init__(self, count: int, fewer: bool, family: str) -> None:
        super().__init__()
        self.count = count
        self.fewer = fewer
        self.family = family
        self.taken: list[Element] = []

    def serve(self, queue: Queue) -> _Outcome:
        size = len(queue)
        wanted = self.count - len(self.taken)
        if queue.is_closed and size < wanted:
            self.undo(queue)
            if not self.fewer or not len(queue):
                self.error = OutOfRangeError(
                    None,
                    None,
                    f"{self.family} '{queue.name}' is closed and has insufficient elements "
                    f"(requested {wanted}, current size {size})",
                )
                return _Outcome.COMPLETE
            wanted = self.count = len(queue)
        there = len(queue) if queue.is_closed else len(queue) - queue.spec.minimum
        if there <= 0:
            return _Outcome.NOTHING
        for _ in range(min(there, wanted)):
            self.taken.append(queue.pop())
        return _Outcome.COMPLETE if there >= wanted else _Outcome.PROGRESS

    def undo(self, queue: Queue) -> None:
        queue.restore(self.taken)
        self.taken = []


class _Close(_Request):
    """Closes the queue, after the puts that came before."""

    __slots__ = ()
    what = "Enqueue"

    def serve(self, queue: Queue) -> _Outcome:
        if queue.is_closed:
            self.error = CancelledError(None, None, f"Queue '{queue.name}' is already closed.")
        queue.is_closed = True
        return _Outcome.COMPLETE


class Queue(HostResource):
    """A bounded queue of tuples that many steps use at once.

    Subclasses say which element leaves next.

    Attributes:
        name: for messages; ``spec``: what it was made with.
        family: its kind in most messages.
    """

    family = "FIFOQueue"

    def __init__(self, spec: QueueSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self.capacity = spec.capacity if spec.capacity >= 0 else _NO_LIMIT
        self.is_closed = False
        self._is_gone = False
        self._lock = BargingLock()
        self._puts: deque[_Request] = deque()
        self._takes: deque[_Request] = deque()

    # The elements. The lock is held.

    def __len__(self) -> int:
        raise NotImplementedError

    def push(self, element: Element) -> None:
        """Add an element."""
        raise NotImplementedError

    def pop(self) -> Element:
        """Remove the next element."""
        raise NotImplementedError

    def restore(self, elements: list[Element]) -> None:
        """Add elements that were taken in this order, as if they had not been."""
        raise NotImplementedError

    # Requests.

    def put(self, elements: Sequence[Element], step: Any) -> None:
        """Add elements in order, waiting for room.

        Args:
            step: the StepContext that may cancel the wait, or None.

        Raises:
            CancelledError: if the queue is or becomes closed, or the step or session ends.
            DeadlineExceededError: if the step has taken too long.
        """
        with self._lock:
            # Mostly nobody waits and there is room: then no request need be made.
            is_free = not (self._puts or self._is_gone or self.is_closed)
            if is_free and len(self) + len(elements) <= self.capacity:
                for element in elements:
                    self.push(element)
                if self._takes:
                    self._serve()
                return
        self._ask(self._puts, _Put(elements), step)

    def take(self, count: int, fewer: bool, family: str, step: Any) -> list[Element]:
        """Remove ``count`` elements, waiting for them.

        Args:
            fewer: be content with at least one, once the queue is closed.
            family: the kind of queue to name in errors.

        Raises:
            OutOfRangeError: if the queue is closed and has not enough; it keeps what it has.
            CancelledError, DeadlineExceededError: as for ``put``.
        """
        with self._lock:
            stays = 0 if self.is_closed else self.spec.minimum
            if not (self._takes or self._is_gone) and len(self) - stays >= count:
                taken = [self.pop() for _ in range(count)]
                if self._puts:
                    self._serve()
                return taken
        request = _Take(count, fewer, family)
        self._ask(self._takes, request, step)
        return request.taken

    def close(self, cancel_pending_enqueues: bool, step: Any) -> None:
        """Let no more elements in; puts that wait are met before, or cancelled.

        Raises:
            CancelledError: if the queue was closed before, and no puts were to be cancelled.
        """
        if not cancel_pending_enqueues:
            self._ask(self._puts, _Close(), step)
            return
        with self._lock:
            self.is_closed = True
            _cancel_all(self._puts)
            self._serve()

    def size(self) -> int:
        """How many elements there are."""
        with self._lock:
            return len(self)

    def abandon(self) -> None:
        """The session has ended: all that wait, or come to wait, are cancelled."""
        with self._lock:
            self._is_gone = True
            _cancel_all(self._puts)
            _cancel_all(self._takes)

    def _ask(self, line: deque[_Request], request: _Request, step: Any) -> None:
        with self._lock:
            if self._is_gone:
                raise _cancelled(request)
            line.append(request)
            self._serve()
            if not request.done:
                self._wait(line, request, step)
        if request.error is not None:
            raise request.error

    def _wait(self, line: deque[_Request], request: _Request, step: Any) -> None:
        condition = request.condition = threading.Condition(self._lock)  # type: ignore[arg-type]
        try:
            if step is None:
                while not request.done:
                    condition.wait()
            else:
                step.wait_for(condition, lambda: request.done)
        except BaseException:
            if request in line:
                line.remove(request)
            request.undo(self)
            self._serve()
            raise

    def _serve(self) -> None:
        changed = True
        while changed:
            changed = self._serve_line(self._puts)
            changed = self._serve_line(self._takes) or changed

    def _serve_line(self, line: deque[_Request]) -> bool:
        """Serve the heads of a line while they complete; whether anything moved."""
        moved = False
        while line:
            outcome = line[0].serve(self)
            if outcome is not _Outcome.COMPLETE:
                return moved or outcome is _Outcome.PROGRESS
            line.popleft().end()
            moved = True
        return moved

    # Values.

    def element(self, components: Sequence[Any], owned: Callable[[Any], Any]) -> Element:
        """One element to put; ``owned`` makes arrays its own.

        Raises:
            InvalidArgumentError: if the shapes do not fit.
        """
        for i, (value, dims) in enumerate(zip(components, self.spec.shapes, strict=False)):
            shape = value.shape if isinstance(value, np.ndarray) else np.shape(value)
            if shape != dims:
                self._check_shape(i, dims, shape, ())
        return tuple([_stored(c, owned) for c in components])

    def elements(self, components: Sequence[Any]) -> list[Element]:
        """The elements of a batch: slices of every component.

        Raises:
            InvalidArgumentError: if the shapes do not fit.
        """
        arrays = [np.asarray(c) for c in components]
        for i, array in enumerate(arrays):
            if array.ndim == 0:
                message = f"Component {i} has no dimension to enqueue the slices of: it is a scalar"
                raise InvalidArgumentError(None, None, message)
        batch = len(arrays[0])
        for i, (array, dims) in enumerate(zip(arrays, self.spec.shapes, strict=False)):
            self._check_shape(i, dims, array.shape, (batch,))
        for i, array in enumerate(arrays):
            if len(array) != batch:
                raise InvalidArgumentError(
                    None,
                    None,
                    "All input tensors must have the same size in the 0th dimension. Component "
                    f"{i} has {len(array)}, and should have {batch}",
                )
        columns = [list(a) if a.ndim == 1 else [np.array(row) for row in a] for a in arrays]
        return list(zip(*columns, strict=True))

    def _check_shape(self, i: int, dims: Any, shape: Any, batch: tuple[int, ...]) -> None:
        expected = None if dims is None else (*batch, *dims)
        if not compatible_static(expected, shape):
            raise InvalidArgumentError(
                None,
                None,
                f"Shape mismatch in tuple component {i}. Expected {dims_text(expected)}, got "
                f"{dims_text(shape)}",
            )

    def single(self, element: Element) -> list[Any]:
        """An element as arrays."""
        return [
            v if isinstance(v, np.ndarray) else _scalar(v, t)
            for v, t in zip(element, self.spec.types, strict=True)
        ]

    def batch(self, elements: Sequence[Element]) -> list[Any]:
        """Elements as one array for each component."""
        columns = zip(*elements, strict=True) if elements else [()] * len(self.spec.types)
        return [
            self._column(list(column), dtype, dims)
            for column, dtype, dims in zip(columns, self.spec.types, self.spec.shapes, strict=True)
        ]

    def _column(self, values: list[Any], dtype: DType, dims: Any) -> Any:
        if not values:
            return np.empty((0, *[d or 0 for d in dims]), dtype.np_dtype)
        if dims == ():
            column = np.empty(len(values), dtype.np_dtype)
            column[:] = values
            return column
        return np.stack(values)


class FIFOQueueResource(Queue):
    """First in, first out."""

    def __init__(self, spec: QueueSpec, name: str) -> None:
        super().__init__(spec, name)
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def push(self, element: Element) -> None:
        self._elements.append(element)

    def pop(self) -> Element:
        return self._elements.popleft()

    def restore(self, elements: list[Element]) -> None:
        self._elements.extendleft(reversed(elements))


class PaddingFIFOQueueResource(FIFOQueueResource):
    """First in, first out; a batch is padded to its largest element in unspecified dimensions."""

    def _column(self, values: list[Any], dtype: DType, dims: Any) -> Any:
        if not values or None not in dims:
            return super()._column(values, dtype, dims)
        largest = tuple(map(max, zip(*[v.shape for v in values], strict=True)))
        fill: Any = b"" if dtype.np_dtype.hasobject else 0
        column = np.full((len(values), *largest), fill, dtype.np_dtype)
        for row, value in zip(column, values, strict=True):
            row[tuple(map(slice, value.shape))] = value
        return column


class RandomShuffleQueueResource(Queue):
    """Any element may be next; which is drawn from a Philox stream, as TensorFlow does."""

    family = "RandomShuffleQueue"

    def __init__(self, spec: QueueSpec, name: str) -> None:
        super().__init__(spec, name)
        if spec.minimum < 0:
            message = f"min_after_dequeue {spec.minimum} must be >= 0"
            raise InvalidArgumentError(None, None, message)
        if spec.minimum >= self.capacity:
            message = f"min_after_dequeue {spec.minimum} must be < capacity {self.capacity}"
            raise InvalidArgumentError(None, None, message)
        self._elements: list[Element] = []
        self._state = philox.initial_state(*spec.seeds)
        self._words: list[int] = []

    def __len__(self) -> int:
        return len(self._elements)

    def push(self, element: Element) -> None:
        self._elements.append(element)

    def pop(self) -> Element:
        elements = self._elements
        index = self._draw() % len(elements)
        chosen, elements[index] = elements[index], elements[-1]
        elements.pop()
        return chosen

    def restore(self, elements: list[Element]) -> None:
        self._elements.extend(reversed(elements))

    def _draw(self) -> int:
        if not self._words:
            numbers = np.arange(_BLOCKS_AT_A_TIME, dtype=np.uint64)
            self._words = philox.blocks_np(self._state, numbers).reshape(-1)[::-1].tolist()
            self._state = philox.advance(self._state, _BLOCKS_AT_A_TIME)
        return self._words.pop()


class PriorityQueueResource(Queue):
    """The element with the smallest first component is next; among equal ones the oldest."""

    family = "PriorityQueue"

    def __init__(self, spec: QueueSpec, name: str) -> None:
        super().__init__(spec, name)
        self._heap: list[tuple[int, int, Element]] = []
        self._count = itertools.count()
        #: Numbers of elements that were taken by a request that is not complete.
        self._before = itertools.count(-1, -1)

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, element: Element) -> None:
        heapq.heappush(self._heap, (int(element[0]), next(self._count), element))

    def pop(self) -> Element:
        return heapq.heappop(self._heap)[2]

    def restore(self, elements: list[Element]) -> None:
        for element in reversed(elements):
            heapq.heappush(self._heap, (int(element[0]), next(self._before), element))


KINDS: dict[str, type[Queue]] = {
    "FIFOQueueV2": FIFOQueueResource,
    "PaddingFIFOQueueV2": PaddingFIFOQueueResource,
    "RandomShuffleQueueV2": RandomShuffleQueueResource,
    "PriorityQueueV2": PriorityQueueResource,
}


def _cancelled(request: _Request) -> CancelledError:
    return CancelledError(None, None, f"{request.what} operation was cancelled")


def _cancel_all(line: deque[_Request]) -> None:
    while line:
        request = line.popleft()
        request.end(_cancelled(request))


def _stored(value: Any, owned: Callable[[Any], Any]) -> Any:
    if isinstance(value, np.ndarray):
        return owned(value) if value.ndim else value[()]
    return value


def _scalar(value: Any, dtype: DType) -> Any:
    array = np.empty((), dtype.np_dtype)
    array[()] = value
    return array


def dims_text(dims: Any) -> str:
    if dims is None:
        return "<unknown>"
    return "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"


def shared_mismatch(queue: Queue, spec: QueueSpec) -> str | None:
    """Why ``spec`` cannot share ``queue``, or None."""
    own, name = queue.spec, queue.name
    if own.op_type != spec.op_type:
        return f"Expected {own.kind}, found {spec.op_type}"
    shared = f"Shared queue '{name}' has"
    if own.capacity != spec.capacity:
        return f"{shared} capacity {own.capacity} but requested capacity was {spec.capacity}"
    if own.types != spec.types:
        return (
            f"{shared} component types {type_names(own.types)} but requested component types "
            f"were {type_names(spec.types)}"
        )
    if own.shapes != spec.shapes:
        ours, theirs = (f"[{','.join(map(dims_text, s.shapes))}]" for s in (own, spec))
        return f"{shared} component shapes {ours} but requested component shapes were {theirs}"
    if own.minimum != spec.minimum:
        return (
            f"{shared} min_after_dequeue {own.minimum} but requested min_after_dequeue was "
            f"{spec.minimum}."
        )
    if own.seeds != spec.seeds:
        return f"{shared} random seeds {own.seeds} but requested seeds are {spec.seeds}."
    return None


_SHORT = {"float32": "float", "float64": "double", "float16": "half"}


def type_names(types: Sequence[DType]) -> str:
    """Types as messages list them."""
    return ", ".join(_SHORT.get(t.name, t.name) for t in types)
