"""Ranges of the input, dealt out to workers that may come, end and die."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from headrace.data import structure as nested
from headrace.data.dataset import Dataset, check_dataset
from headrace.data.iterators import make_initializable_iterator
from headrace.data.participant import Ledger, Participant
from headrace.data.structure import Component, flat_attrs
from headrace.errors import FailedPreconditionError
from headrace.files import globbing
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control import basic
from headrace.ops.core.build import raw
from headrace.ops.data.generators import Registered
from headrace.ops.io.input_dispenser import REQUESTS
from headrace.ops.state.resources import register_resource
from headrace.train.global_step import get_or_create_global_step
from headrace.train.saveable import SaveableObject, SaveSpec
from headrace.train.session_run_hook import (
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

_TICKET = Component(dtypes.int64, [])


class InputDispenser:
    """Deals ranges of the input out to the workers of a job, each to one worker at a time.

    Without failures each element is in one step of one worker in each epoch. What a worker had
    when it was killed or ended, others get again, so that with failures each element is seen at
    least once. What is done is in the checkpoint; what was dealt out at the time of a save comes
    again after a restore. Ours.

    All workers build it with the same arguments. It lives on one server, and is saved and
    initialised with the variables.

    Args:
        ranges: what is dealt out, in this order: strings, numbers, or tuples of them.
        num_epochs: how often; None for no end.
        shuffle_seed: deals each epoch in a random order of its own, from this number.
        device: the task that keeps the state; by default that of the global step.
        name: of the operations, and of the state in checkpoints.

    Raises:
        ValueError: if there are no ranges, or no epochs.
        TypeError: if ranges are of different types.

    >>> import headrace as tf
    >>> dispenser = tf.data.InputDispenser.for_records(10, 4)
    >>> batch = dispenser.get_next(lambda begin, end: tf.data.Dataset.range(begin, end).batch(2))
    >>> seen = tf.Variable(0, dtype=tf.int64)
    >>> train = seen.assign_add(tf.reduce_sum(batch))
    >>> hooks = [dispenser.make_session_run_hook()]
    >>> with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
    ...     while not sess.should_stop():
    ...         value = sess.run(train)
    >>> int(value)  # 0 + 1 + ... + 9
    45
    """

    def __init__(
        self,
        ranges: Sequence[Any],
        num_epochs: int | None = 1,
        shuffle_seed: int | None = None,
        device: Any = None,
        name: str = "input_dispenser",
    ) -> None:
        self._columns = _columns(ranges)
        self._count = len(ranges)
        self._seed = shuffle_seed
        if num_epochs is not None and num_epochs < 1:
            raise ValueError(f"num_epochs must be at least 1, or None for no end: {num_epochs}.")
        self._numbers: dict[str, Any] = {
            "num_ranges": self._count,
            "num_epochs": -1 if num_epochs is None else int(num_epochs),
            "fingerprint": _fingerprint(self._columns, shuffle_seed),
        }
        #: The epoch dealt from last, and the order of its ranges.
        self._order: tuple[int, Any] = -1, None
        self._ledger = Ledger()
        self._part: Participant | None = None
        self._registered: list[Registered] = []
        self._build(device, name)

    @classmethod
    def for_files(cls, files: Any, **options: Any) -> Self:
        """Deals out files, by name: a scalar string for each range.

        Args:
            files: a pattern, or a list of patterns, of names that all workers see; they are sorted.
            options: the other arguments of the class.

        Raises:
            ValueError: if there are no such files.
        """
        found = sorted(globbing.glob(files))
        if not found:
            raise ValueError(f"There are no files {files!r} to deal out.")
        return cls(found, **options)

    @classmethod
    def for_records(cls, num_records: int, range_size: int, **options: Any) -> Self:
        """Deals out ranges of numbers of records: two int64 scalars, the first and the end.

        Args:
            num_records: how many there are; range_size: how many of them make a range; the last
                range may be smaller.
            options: the other arguments of the class.

        Raises:
            ValueError: if one of both is not positive.
        """
        if num_records < 1 or range_size < 1:
            raise ValueError(
                f"num_records and range_size must be positive: {num_records}, {range_size}."
            )
        begins = range(0, num_records, range_size)
        return cls([(b, min(b + range_size, num_records)) for b in begins], **options)

    def _build(self, device: Any, name: str) -> None:
        graph = get_default_graph()
        step = get_or_create_global_step()
        with basic.init_scope(), graph.device(None), graph.name_scope(name) as scope:
            place = (
                graph.device(device)
                if device is not None
                else graph.colocate_with(step, ignore_existing=True)
            )
            with place:
                handle = raw.InputDispenser(
                    container=graph._container, shared_name=scope.rstrip("/"), name="handle"
                )
                self._value = raw.Placeholder(dtype=dtypes.int64, shape=(), name="value")
                self._requests = {
                    kind: raw.InputDispenserRequest(
                        handle, self._value, request=kind, name=kind.lower(), **self._numbers
                    )
                    for kind in REQUESTS
                }
                begin = raw.InputDispenserInitialize(handle, name="initialize", **self._numbers)
                is_ready = raw.InputDispenserIsInitialized(handle)
                mark = raw.InputDispenserMark(handle, name="mark")
                saveable = _DispenserSaveable(handle, self._numbers, scope.rstrip("/"))
        self._initializer: Operation = begin
        register_resource(handle, begin, is_ready)
        graph.add_to_collection(GraphKeys._BEFORE_SAVE, mark)
        graph.add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)

    @property
    def initializer(self) -> Operation:
        """Begins the first epoch; monitored sessions run it with the initialisers of variables."""
        return self._initializer

    # -- elements --------------------------------------------------------------------------------

    def get_next(
        self,
        read: Callable[..., Dataset],
        transform: Callable[[Dataset], Dataset] | None = None,
        prefetch: int = 1,
    ) -> Any:
        """The next element of the ranges that this worker gets, for each step another one.

        At the end of the last epoch comes OutOfRangeError, for all workers: before, a worker that
        finds no range left waits for those of others, which may come back. Where replicas train
        in step (`tf.train.SyncReplicasOptimizer`), it does not: the others would wait for it.

        The iterator begins with the tables of a session. The function ``read`` runs in this
        process, as do generators.

        Args:
            read: ``read(*range)`` makes the dataset of a range, with batches, say. The arguments
                are scalars: strings, int64, or what the numbers are.
            transform: ``transform(dataset)`` makes another one of all ranges together, to shuffle
                or batch them: a dataset of pairs ``(ticket, element)``. The int64 tickets must stay
                beside their elements: one for each, or a vector of those of a batch. It may drop
                elements.
            prefetch: how many elements are made ahead, at least 1.

        Returns:
            an element, of the structure that ``read`` or ``transform`` makes.

        Raises:
            TypeError: if a function makes something else.
            ValueError: if there are no tickets, or when it is called twice.
            FailedPreconditionError: when the graph runs in a session without the hook.
        """
        if self._registered:
            raise ValueError(
                "get_next was called before: its result is another element at each step. Make "
                "several InputDispensers, with other names, for several inputs."
            )
        if prefetch < 1:
            raise ValueError(f"prefetch must be at least 1, not {prefetch}.")
        types = (dtypes.int64, *(_dtype(column) for column in self._columns))

        def of_range(ticket: Tensor, *parts: Tensor) -> Dataset:
            made = read(*parts)
            check_dataset(made)
            return self._stage(made, _Numbered, (_TICKET, made._structure), [ticket])

        def of_round(first: Tensor) -> Dataset:
            ranges = Dataset.from_generator(self._ranges, types, ((),) * len(types), [first])
            found = ranges.flat_map(of_range)
            if transform is not None:
                found = transform(found)
                check_dataset(found)
                _check_tickets(found)
            return self._stage(found, _Passing, found._structure)

        rounds = Dataset.from_generator(self._rounds, dtypes.int64, ())
        ready = rounds.flat_map(of_round).prefetch(prefetch)
        taken = self._stage(ready, _Taken, ready._structure[1])
        return make_initializable_iterator(taken).get_next()

    def _stage(
        self, base: Dataset, stage: Any, structure: Any, args: Sequence[Tensor] = ()
    ) -> Dataset:
        registered = Registered(functools.partial(stage, self._ledger))
        self._registered.append(registered)
        made = raw.PythonStageDataset(
            base._variant_tensor, list(args), token=registered.token, **flat_attrs(structure)
        )
        # It lives as long as the graph.
        made.graph.outermost.__dict__.setdefault("_generators", []).append(registered)
        return Dataset(made, structure)

    def _rounds(self) -> Iterator[int]:
        """The first ticket of each round.

        A round ends when nothing is left but what this worker holds: what the transformation
        has in its buffers must come out, so that it can be done.
        """
        part = self._part
        if part is None:
            raise FailedPreconditionError(
                None,
                None,
                "This session takes no part in the InputDispenser: give the monitored session "
                "hooks=[dispenser.make_session_run_hook()].",
            )
        while (found := part.take(more=False)) is not None:
            self._first = part, *found
            yield found[0]
            self._ledger.flushed(part)

    def _ranges(self, first: Any) -> Iterator[tuple[Any, ...]]:
        """The tickets of a round and their ranges."""
        part, ticket, deal = self._first
        assert ticket == int(first)
        found: tuple[int, int] | None = (ticket, deal)
        while found is not None:
            ticket, deal = found
            index = self._index(deal)
            yield (ticket, *(column[index] for column in self._columns))
            found = part.take(more=True)

    def _index(self, deal: int) -> int:
        """The range that a deal is."""
        epoch, at = divmod(deal, self._count)
        if self._seed is None:
            return at
        if self._order[0] != epoch:
            # RandomState gives the same numbers in each release of NumPy.
            drawn = np.random.RandomState([self._seed % 2**32, epoch % 2**32])
            self._order = epoch, drawn.permutation(self._count)
        return int(self._order[1][at])

    # -- taking part -----------------------------------------------------------------------------

    def make_session_run_hook(self) -> SessionRunHook:
        """A hook by which a worker takes part.

        A range counts as done when steps have taken all its elements and have ended; a step that
        has failed, and that the program goes on after, counts. A worker makes one step at a time.
        """
        return _DispenserHook(self)

    def _join(self, session: Any, coord: Any, waits: bool) -> None:
        if self._part is not None:
            self._part.stop()
        self._part = Participant(self._requests, self._value, self._ledger, session, waits)
        self._part.start(coord)

    def _leave(self) -> None:
        if self._part is not None:
            self._part.leave()


class _DispenserSaveable(SaveableObject):
    """The state of a dispenser: one int64 vector."""

    def __init__(self, handle: Tensor, numbers: dict[str, Any], name: str) -> None:
        self._numbers = numbers
        spec = SaveSpec(raw.InputDispenserState(handle, marked=True), "", f"{name}/state")
        super().__init__(handle, [spec], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        return raw.InputDispenserRestore(self.op, restored_tensors[0], **self._numbers)


class _DispenserHook(SessionRunHook):
    """Makes each new session a participant, and counts what its steps take."""

    def __init__(self, dispenser: InputDispenser) -> None:
        self._dispenser = dispenser
        self._waits = True

    def begin(self) -> None:
        # Who waits for others would keep those waiting that train in step with it.
        operations = get_default_graph().get_operations()
        self._waits = not any(op.type == "ReplicaBarrier" for op in operations)

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._dispenser._join(session, coord, self._waits)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._dispenser._ledger.stepped()

    def end(self, session: Any) -> None:
        self._dispenser._leave()


# -- stages: iterators over flat elements, whose first component is a ticket ------------------


class _Numbered:
    """Puts a ticket before each element of a range, and tells how many there are.

    It reads one element ahead, so that this is known before the last one is seen.
    """

    def __init__(self, ledger: Ledger, elements: Iterator[Any], ticket: Any) -> None:
        self._ledger, self._elements, self._ticket = ledger, elements, ticket
        self._ahead: Any = None
        self._count = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        given = self._ahead
        while True:
            following = next(self._elements, None)
            self._count += following is not None
            self._ahead = following
            if following is None:
                self._ledger.made(int(self._ticket), self._count)
            if given is not None:
                return (self._ticket, *given)
            if following is None:
                raise StopIteration
            given = following


class _Passing:
    """Counts what comes out of the transformation."""

    def __init__(self, ledger: Ledger, elements: Iterator[Any]) -> None:
        self._count, self._elements = ledger.passed, elements

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        element = next(self._elements)
        self._count(np.ravel(element[0]).tolist())
        return element


class _Taken(_Passing):
    """Counts what a step takes, and takes the tickets away."""

    def __init__(self, ledger: Ledger, elements: Iterator[Any]) -> None:
        super().__init__(ledger, elements)
        self._count = ledger.taken

    def __next__(self) -> Any:
        return super().__next__()[1:]


# -- ranges ----------------------------------------------------------------------------------------


def _columns(ranges: Sequence[Any]) -> list[Any]:
    """The ranges as arrays: one for each component, of one element for each range."""
    if not len(ranges):
        raise ValueError("An InputDispenser needs ranges to deal out, but there are none.")
    rows = [r if isinstance(r, tuple) else (r,) for r in ranges]
    if len({len(row) for row in rows}) > 1 or not rows[0]:
        raise TypeError("The ranges of an InputDispenser must be tuples of one length.")
    return [_column(values) for values in zip(*rows, strict=True)]


def _column(values: Sequence[Any]) -> Any:
    if all(isinstance(value, (str, bytes)) for value in values):
        texts = np.empty(len(values), object)
        texts[:] = [value.encode() if isinstance(value, str) else value for value in values]
        return texts
    array = np.array(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise TypeError(
            "The ranges of an InputDispenser must be strings, numbers, or tuples of them, of the "
            f"same types; found {values[0]!r:.80} ... {values[-1]!r:.80}."
        )
    return array


def _dtype(column: Any) -> Any:
    return dtypes.string if column.dtype == object else dtypes.as_dtype(column.dtype)


def _fingerprint(columns: Sequence[Any], seed: int | None) -> int:
    """A number for ranges and their order; at least 0, below 2 ** 63."""
    digest = hashlib.sha256(repr((seed, [column.tolist() for column in columns])).encode())
    return int.from_bytes(digest.digest()[:8], "big") >> 1


def _check_tickets(dataset: Dataset) -> None:
    structure = dataset._structure
    first = structure[0] if isinstance(structure, tuple) and len(structure) == 2 else None
    if not isinstance(first, Component) or first.dtype != dtypes.int64:
        raise ValueError(
            "transform must keep the tickets: it gets and gives a dataset of pairs (ticket, "
            f"element), tickets of int64, but gives {nested.map_leaves(repr, structure)}."
        )


__all__ = ["InputDispenser"]
