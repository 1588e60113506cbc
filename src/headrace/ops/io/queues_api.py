"""The queue classes of ``tf`` and ``tf.queue``."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.random_seed import seed_to_draw
from headrace.graph.shapes import Dimension, TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public


@public("QueueBase", "io.QueueBase", "queue.QueueBase")
class QueueBase:
    """A queue of tuples of tensors, kept between steps; any number of steps may use it at once.

    An element is a tuple of as many tensors as the queue has component types. ``dequeue`` waits
    for an element, ``enqueue`` for room, until the queue is closed, the step is cancelled or its
    ``timeout_in_ms`` has passed.

    Args:
        dtypes: the types of the components.
        shapes: their shapes, or None when they are not specified.
        names: their names, or None; elements with names are dictionaries.
        queue_ref: the handle of the queue.

    Raises:
        ValueError: if ``shapes`` or ``names`` are not as many as ``dtypes``.

    >>> q = tf.FIFOQueue(10, tf.int32, shapes=[[]])
    >>> with tf.Session() as sess:
    ...     sess.run(q.enqueue_many([[1, 2, 3]]))
    ...     sess.run(q.dequeue_many(2)).tolist(), int(sess.run(q.size()))
    ([1, 2], 1)
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Tensor) -> None:
        self._dtypes = list(dtypes)
        if shapes is None:
            self._shapes = [TensorShape(None) for _ in self._dtypes]
        else:
            self._shapes = [TensorShape(s) for s in shapes]
            if len(self._shapes) != len(self._dtypes):
                raise ValueError("Queue shapes must have the same length as dtypes")
        if names is not None and len(names) != len(self._dtypes):
            raise ValueError("Queue names must have the same length as dtypes")
        self._names = None if names is None else list(names)
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.split("/")[-1]

    @staticmethod
    def from_list(index: Any, queues: list[QueueBase]) -> QueueBase:
        """The queue ``queues[index]``, where ``index`` (an integer scalar) is known as steps run.

        Raises:
            TypeError: if ``queues`` is no list of queues, or their types or names differ.
        """
        if not (
            queues and isinstance(queues, list) and all(isinstance(q, QueueBase) for q in queues)
        ):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if any(q.dtypes != first.dtypes for q in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(q.names != first.names for q in queues):
            raise TypeError("Queues do not have matching component names.")
        shapes = [_common(s) for s in zip(*[q.shapes for q in queues], strict=True)]
        handles = raw.Pack([q.queue_ref for q in queues])
        return QueueBase(first.dtypes, shapes, first.names, raw.GatherV2(handles, index, 0))

    @property
    def queue_ref(self) -> Tensor:
        """The handle of the queue."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name of the op that makes the queue."""
        return self._queue_ref.op.name

    @property
    def dtypes(self) -> list[DType]:
        """The types of the components."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The shapes of the components."""
        return self._shapes

    @property
    def names(self) -> Any:
        """The names of the components, or None."""
        return self._names

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """An op that adds one element, and waits while the queue is full.

        Args:
            vals: a tensor, a list or tuple of tensors, or a dictionary in a queue with names.

        Returns:
            The op. As it runs it raises CancelledError if the queue is or becomes closed, and
            InvalidArgumentError if a shape does not fit.

        Raises:
            ValueError: if types, shapes or names do not fit.
        """
        with get_default_graph().name_scope(name or f"{self._name}_enqueue") as scope:
            tensors = self._tensors(vals)
            for tensor, shape in zip(tensors, self._shapes, strict=True):
                tensor.shape.assert_is_compatible_with(shape)
            return raw.QueueEnqueueV2(self._queue_ref, tensors, name=scope)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """An op that adds the slices of ``vals`` along dimension 0, one element after another.

        It waits whenever the queue is full; other steps may add elements in between.

        Args:
            vals: as for ``enqueue``, all of one size in dimension 0.

        Returns:
            The op; it raises as that of ``enqueue`` does.

        Raises:
            ValueError: if types, shapes or names do not fit.
        """
        with get_default_graph().name_scope(name or f"{self._name}_EnqueueMany") as scope:
            tensors = self._tensors(vals)
            batch = Dimension(None)
            for tensor, shape in zip(tensors, self._shapes, strict=True):
                whole = tensor.shape.with_rank_at_least(1)
                batch = batch.merge_with(whole[0])
                whole[1:].assert_is_compatible_with(shape)
            return raw.QueueEnqueueManyV2(self._queue_ref, tensors, name=scope)

    def _tensors(self, vals: Any) -> list[Tensor]:
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names, key=str) != sorted(vals, key=str):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue.  Dictionary: "
                    f"{sorted(vals, key=str)}, Queue: {sorted(self._names, key=str)}"
                )
            vals = [vals[n] for n in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        elif not isinstance(vals, (list, tuple)):
            vals = [vals]
        if len(vals) != len(self._dtypes):
            raise ValueError(
                f"Queue '{self.name}' has {len(self._dtypes)} components, but {len(vals)} values "
                "were given to enqueue."
            )
        return [
            convert_to_tensor(v, t, name=f"component_{i}")
            for i, (v, t) in enumerate(zip(vals, self._dtypes, strict=True))
        ]

    def dequeue(self, name: str | None = None) -> Any:
        """One element, for which it waits while the queue is empty.

        Returns:
            A tensor, a list of tensors when there are several components, or a dictionary in a
            queue with names. As it runs it raises OutOfRangeError if the queue is closed and empty,
            and CancelledError if the session is closed.
        """
        outputs = raw.QueueDequeueV2(
            self._queue_ref, component_types=self._dtypes, name=name or f"{self._name}_Dequeue"
        )
        return self._element(outputs, ())

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """``n`` elements, stacked along a new dimension 0; waits until there are so many.

        The shapes of the components must be specified.

        Returns:
            As ``dequeue``. It raises OutOfRangeError if the queue is closed and has fewer elements,
            which then stay.
        """
        outputs = raw.QueueDequeueManyV2(
            self._queue_ref,
            n,
            component_types=self._dtypes,
            name=name or f"{self._name}_DequeueMany",
        )
        return self._element(outputs, (None,))

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Like ``dequeue_many``, but a closed queue gives what it has, if that is at least one."""
        outputs = raw.QueueDequeueUpToV2(
            self._queue_ref,
            n,
            component_types=self._dtypes,
            name=name or f"{self._name}_DequeueUpTo",
        )
        return self._element(outputs, (None,))

    def _element(self, outputs: list[Tensor], batch: tuple[None, ...]) -> Any:
        for tensor, shape in zip(outputs, self._shapes, strict=True):
            tensor.set_shape(TensorShape(batch).concatenate(shape))
        if self._names:
            return dict(zip(self._names, outputs, strict=True))
        return outputs[0] if len(outputs) == 1 else outputs

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An op that lets no more elements in; those inside can still be taken.

        Args:
            cancel_pending_enqueues: whether steps that wait for room fail with CancelledError;
                else the queue closes once they have got in.
        """
        return raw.QueueCloseV2(
            self._queue_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_Close",
        )

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed: a bool scalar."""
        return raw.QueueIsClosedV2(self._queue_ref, name=name or f"{self._name}_Is_Closed")

    def size(self, name: str | None = None) -> Tensor:
        """How many elements the queue has: an int32 scalar."""
        return raw.QueueSizeV2(self._queue_ref, name=name or f"{self._name}_Size")


@public("FIFOQueue", "queue.FIFOQueue")
class FIFOQueue(QueueBase):
    """A queue that gives elements in the order in which they came.

    Args:
        capacity: how many elements fit; -1 for no limit.
        dtypes: a type, or a list of the types of the components.
        shapes: a shape, or a list of one for each component; None leaves them unspecified, which
            ``dequeue_many`` and ``dequeue_up_to`` do not allow.
        names: names of the components, or None.
        shared_name: queues of one shared name are one queue, in all sessions of a server.

    Raises:
        ValueError: if a shape is not fully defined.

    >>> import headrace as tf
    >>> q = tf.FIFOQueue(3, tf.float32)
    >>> put, got = q.enqueue(1.5), q.dequeue()
    >>> sess = tf.Session()
    >>> sess.run(put)
    >>> float(sess.run(got))
    1.5
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        types = _types(dtypes)
        given = _shapes(shapes)
        queue_ref = raw.FIFOQueueV2(
            component_types=types,
            shapes=given or (),
            capacity=capacity,
            container=get_default_graph()._container,
            shared_name=shared_name,
            name=name,
        )
        super().__init__(types, given, names, queue_ref)


@public("RandomShuffleQueue", "io.RandomShuffleQueue", "queue.RandomShuffleQueue")
class RandomShuffleQueue(QueueBase):
    """A queue that gives its elements in random order.

    Args:
        capacity, dtypes, shapes, names, shared_name: as for FIFOQueue.
        min_after_dequeue: how many elements stay while the queue is open, to be shuffled with those
            to come.
        seed: with ``tf.set_random_seed``, makes the order repeatable: it is TensorFlow's.

    >>> q = tf.RandomShuffleQueue(10, min_after_dequeue=0, dtypes=tf.int32, shapes=[[]], seed=1)
    >>> with tf.Session() as sess:
    ...     sess.run(q.enqueue_many([[1, 2, 3, 4]]))
    ...     sorted(sess.run(q.dequeue_many(4)).tolist())
    [1, 2, 3, 4]
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Sequence[str] | None = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        types = _types(dtypes)
        given = _shapes(shapes)
        seed1, seed2 = seed_to_draw(get_default_graph(), seed)
        if seed1 is not None and seed is None and shared_name is not None:
            # Every graph that shares the queue must state the same seeds.
            digest = hashlib.md5(f"{seed1}{shared_name}".encode(), usedforsecurity=False)
            seed2 = int(digest.hexdigest()[:8], 16) & 0x7FFFFFFF
        queue_ref = raw.RandomShuffleQueueV2(
            component_types=types,
            shapes=given or (),
            capacity=capacity,
            min_after_dequeue=min_after_dequeue,
            seed=seed1 or 0,
            seed2=seed2 or 0,
            container=get_default_graph()._container,
            shared_name=shared_name,
            name=name,
        )
        super().__init__(types, given, names, queue_ref)


@public("PaddingFIFOQueue", "io.PaddingFIFOQueue", "queue.PaddingFIFOQueue")
class PaddingFIFOQueue(QueueBase):
    """A FIFOQueue of components whose sizes may differ.

    ``dequeue_many`` and ``dequeue_up_to`` pad with zeros (empty strings) at the end, in dimensions
    whose size the shapes leave open, to the largest of the batch.

    Args:
        capacity, dtypes, names, shared_name: as for FIFOQueue.
        shapes: one for each component; sizes may be None.

    Raises:
        ValueError: if a rank is not known, or there are not as many shapes as types.

    >>> q = tf.PaddingFIFOQueue(10, tf.int32, shapes=[[None]])
    >>> with tf.Session() as sess:
    ...     sess.run(q.enqueue([[1]]))
    ...     sess.run(q.enqueue([[2, 3]]))
    ...     sess.run(q.dequeue_many(2)).tolist()
    [[1, 0], [2, 3]]
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        types = _types(dtypes)
        if shapes is None:
            raise ValueError("When providing partial shapes, a list of shapes must be provided.")
        given = _shapes(shapes, partial=True) or []
        if len(types) != len(given):
            raise ValueError(
                "Shapes must be provided for all components, but received "
                f"{len(types)} dtypes and {len(given)} shapes."
            )
        queue_ref = raw.PaddingFIFOQueueV2(
            component_types=types,
            shapes=given,
            capacity=capacity,
            container=get_default_graph()._container,
            shared_name=shared_name,
            name=name,
        )
        super().__init__(types, given, names, queue_ref)


@public("PriorityQueue", "io.PriorityQueue", "queue.PriorityQueue")
class PriorityQueue(QueueBase):
    """A queue that gives the element with the smallest priority first.

    The priority is a further component before the others, an int64 scalar. Among elements of equal
    priority the oldest comes first.

    Args:
        capacity, shapes, names, shared_name: as for FIFOQueue; ``names`` has one for the priority.
        types: a type, or a list of the types of the components after the priority.

    >>> q = tf.PriorityQueue(10, types=[tf.string], shapes=[[]])
    >>> with tf.Session() as sess:
    ...     sess.run(q.enqueue_many([[7, 3], ["later", "soon"]]))
    ...     priority, value = sess.run(q.dequeue())
    >>> int(priority), value
    (3, b'soon')
    """

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        values = _types(types)
        given = _shapes(shapes)
        queue_ref = raw.PriorityQueueV2(
            component_types=values,
            shapes=given or (),
            capacity=capacity,
            container=get_default_graph()._container,
            shared_name=shared_name,
            name=name,
        )
        whole = [TensorShape([]), *given] if given else given
        super().__init__([dtypes.int64, *values], whole, names, queue_ref)


def _types(given: Any) -> list[DType]:
    many = given if isinstance(given, (list, tuple)) else [given]
    return [dtypes.as_dtype(t).base_dtype for t in many]


def _shapes(given: Any, partial: bool = False) -> list[TensorShape] | None:
    """One shape or a list of them, as a list; ``partial`` allows sizes that are not known."""
    if given is None:
        return None
    if isinstance(given, TensorShape):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise TypeError("shapes must be a TensorShape or a list or tuple of TensorShapes.")
    if all(size is None or isinstance(size, int) for size in given):
        given = [given]
    shapes = [TensorShape(s) for s in given]
    if not partial and not all(s.is_fully_defined() for s in shapes):
        raise ValueError(f"All shapes must be fully defined: {shapes}")
    if any(s.as_tuple is None for s in shapes):
        raise ValueError(f"All shapes must have a defined rank: {shapes}")
    return shapes


def _common(shapes: Sequence[TensorShape]) -> TensorShape:
    """What several shapes have in common."""
    dims = [s.as_tuple for s in shapes]
    if any(d is None or len(d) != len(dims[0] or ()) for d in dims):
        return TensorShape(None)
    return TensorShape([s[0] if len(set(s)) == 1 else None for s in zip(*dims, strict=True)])
