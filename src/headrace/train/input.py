"""Producers of input: queues of names, numbers and slices, filled by queue runners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.checking_api import Assert
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.io.queues_api import FIFOQueue, QueueBase
from headrace.ops.math.cumulative import range as range_of
from headrace.ops.random.api import random_shuffle
from headrace.ops.state.variables import Variable
from headrace.train.queue_runner import QueueRunner, add_queue_runner

__all__ = [
    "input_producer",
    "limit_epochs",
    "match_filenames_once",
    "range_input_producer",
    "slice_input_producer",
    "string_input_producer",
]

_NOTHING_TO_PRODUCE = "string_input_producer requires a non-null input tensor"


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """A local variable that is initialised to the sorted names of the files that match.

    Args:
        pattern: a pattern, or a vector of them; string.

    Raises:
        ValueError: if ``pattern`` has a rank above 1.
    """
    with get_default_graph().name_scope(name or "matching_filenames") as scope:
        files = raw.MatchingFiles(pattern)
        return Variable(
            files,
            trainable=False,
            validate_shape=False,
            name=scope,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Tensor:
    """``tensor``, which can be computed ``num_epochs`` times.

    It counts in a local variable ``epochs``, to be initialised with
    ``tf.local_variables_initializer()``.

    Args:
        tensor: any type and shape, which the result has.

    Returns:
        The tensor; as it runs it raises OutOfRangeError when the count is reached. Without a
        limit ``tensor`` itself.

    Raises:
        ValueError: if ``num_epochs`` is not positive.
    """
    if num_epochs is None:
        result: Tensor = tensor
        return result
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    graph = get_default_graph()
    with graph.name_scope(name or "limit_epochs") as scope:
        zero = constant(0, dtype=dtypes.int64)
        epochs = Variable(
            zero, name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES]
        )
        counter = epochs.count_up_to(num_epochs)
        with graph.control_dependencies([counter]):
            return raw.Identity(tensor, name=scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> QueueBase:
    """A queue of the rows of a tensor, with a queue runner that fills it again and again.

    Args:
        input_tensor: the rows, along dimension 0.
        element_shape: the shape of a row, where that of the tensor does not tell it.
        num_epochs: how often each row comes, before the queue closes; None for no limit. See
            `limit_epochs` for the variable that counts.
        shuffle: whether to shuffle the rows anew each time; ``seed`` makes that repeatable.
        capacity, shared_name: of the queue.
        summary_name: of a summary of how full the queue is; none if not given.
        cancel_op: of the queue runner.

    Raises:
        ValueError: if the shape of a row is not known.
    """
    with get_default_graph().name_scope(name or "input_producer"):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        shape = rows.shape[1:].merge_with(TensorShape(element_shape))
        if not shape.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be "
                "specified"
            )
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(
            capacity=capacity,
            dtypes=[rows.dtype.base_dtype],
            shapes=[shape],
            shared_name=shared_name,
            name=name or "fifo_queue",
        )
        enqueue = queue.enqueue_many([rows])
        add_queue_runner(QueueRunner(queue, [enqueue], cancel_op=cancel_op))
        if summary_name is not None:
            summarize_fraction(summary_name, queue.size(), capacity)
        return queue


def summarize_fraction(name: str, size: Tensor, of: int) -> None:
    """A summary of ``size / of``: how full a queue is."""
    if of == 0:
        raise ValueError("capacity must not be 0: the queue could hold no element.")
    from headrace.summary import scalar  # loaded on first use, as all of tf.summary

    scalar(name, raw.Cast(size, DstT=dtypes.float32) * (1.0 / of))


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> QueueBase:
    """A queue of strings, for instance names of files, filled by a queue runner.

    Args:
        string_tensor: a vector of strings.
        (others): as for `input_producer`.

    Raises:
        ValueError: if ``string_tensor`` is an empty list. A tensor that turns out to be empty
            raises InvalidArgumentError as the graph runs.
    """
    if not isinstance(string_tensor, (Tensor, Variable)) and not len(string_tensor):
        raise ValueError(_NOTHING_TO_PRODUCE)
    graph = get_default_graph()
    with graph.name_scope(name or "input_producer") as scope:
        strings = convert_to_tensor(string_tensor, dtypes.string)
        some = raw.Greater(raw.Size(strings), 0)
        with graph.control_dependencies([Assert(some, [_NOTHING_TO_PRODUCE])]):
            strings = raw.Identity(strings)
        return input_producer(
            strings,
            element_shape=[],
            num_epochs=num_epochs,
            shuffle=shuffle,
            seed=seed,
            capacity=capacity,
            shared_name=shared_name,
            summary_name=f"fraction_of_{capacity}_full",
            name=scope,
            cancel_op=cancel_op,
        )


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """A queue of the integers below ``limit`` (an int32 scalar), filled by a queue runner.

    Other arguments are those of `input_producer`.

    Raises:
        ValueError: if ``limit`` is no scalar, ``num_epochs`` not above 0, or ``capacity`` 0.
    """
    with get_default_graph().name_scope(name or "input_producer") as scope:
        return input_producer(
            range_of(limit),
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            f"fraction_of_{capacity}_full",
            scope,
        )


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """One slice of each tensor, along dimension 0 and all at the same place.

    Which comes next is told by a queue of numbers, filled by a queue runner.

    Args:
        tensor_list: tensors ``[n, ...]`` of one ``n``.
        (others): as for `input_producer`.

    Returns:
        Tensors of the same types, with the shape of a slice.

    Raises:
        ValueError: if there are no tensors, one is a scalar, or their sizes are known and differ.
    """
    with get_default_graph().name_scope(name or "input_producer"):
        tensors = [convert_to_tensor(t) for t in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        if any(t.dims == () for t in tensors):
            raise ValueError(
                "slice_input_producer() takes slices along dimension 0, and a scalar has none: "
                f"{[str(t.shape) for t in tensors]}"
            )
        sizes = {t.dims[0] for t in tensors if t.dims} - {None}
        if len(sizes) > 1:
            raise ValueError(
                "The tensors of slice_input_producer() have different sizes in dimension 0: "
                f"{[str(t.shape) for t in tensors]}"
            )
        count = raw.Shape(tensors[0])[0]
        queue = range_input_producer(
            count,
            num_epochs=num_epochs,
            shuffle=shuffle,
            seed=seed,
            capacity=capacity,
            shared_name=shared_name,
        )
        index = queue.dequeue()
        return [raw.GatherV2(t, index, 0) for t in tensors]
