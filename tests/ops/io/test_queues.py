"""Queues in one thread: elements, shapes, names, closing, sharing; messages are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def unknown(value: Any, dtype: Any = tf.float32) -> Any:
    """A tensor of unknown shape."""
    return tf.placeholder_with_default(tf.constant(value, dtype), None)


# -- elements -----------------------------------------------------------------------------------


def test_first_in_first_out(session: Any) -> None:
    q = tf.FIFOQueue(10, tf.float32)
    session.run(q.enqueue(1.0))
    session.run(q.enqueue_many([[2.0, 3.0]]))
    assert [session.run(q.dequeue()) for _ in range(3)] == [1, 2, 3]


def test_several_components_and_strings(session: Any) -> None:
    q = tf.FIFOQueue(10, [tf.int32, tf.string, tf.float32], [(), (), (2,)])
    session.run(q.enqueue([7, "seven", [0.5, 1.5]]))
    session.run(q.enqueue_many([[8, 9], ["eight", "nine"], [[1, 2], [3, 4]]]))
    number, text, pair = session.run(q.dequeue())
    assert (number, text, pair.tolist()) == (7, b"seven", [0.5, 1.5])
    numbers, texts, pairs = session.run(q.dequeue_many(2))
    assert numbers.tolist() == [8, 9]
    assert numbers.dtype == np.int32
    assert texts.tolist() == [b"eight", b"nine"]
    np.testing.assert_array_equal(pairs, np.array([[1, 2], [3, 4]], np.float32))


@pytest.mark.parametrize(
    "dtype",
    [tf.float16, tf.bfloat16, tf.float64, tf.int64, tf.uint8, tf.bool, tf.complex64],
    ids=str,
)
def test_types(session: Any, dtype: Any) -> None:
    q = tf.FIFOQueue(10, [dtype, dtype], [(), (3,)])
    session.run(q.enqueue([tf.cast(1, dtype), tf.cast([0, 1, 1], dtype)]))
    session.run(q.enqueue([tf.cast(0, dtype), tf.cast([1, 1, 0], dtype)]))
    scalars, rows = session.run(q.dequeue_many(2))
    assert scalars.dtype == rows.dtype == dtype.as_numpy_dtype
    assert scalars.astype(np.complex64).tolist() == [1, 0]
    assert rows.astype(np.complex64).tolist() == [[0, 1, 1], [1, 1, 0]]


def test_elements_without_shapes_may_differ(session: Any) -> None:
    q = tf.FIFOQueue(10, tf.int32)
    for value in ([1, 2], 3, [[4]]):
        session.run(q.enqueue(tf.constant(value)))
    assert q.dequeue().shape.ndims is None
    assert [session.run(q.dequeue()).tolist() for _ in range(3)] == [[1, 2], 3, [[4]]]


def test_names_make_dictionaries(session: Any) -> None:
    q = tf.FIFOQueue(5, [tf.int32, tf.float32], [(), ()], names=["i", "f"])
    session.run(q.enqueue({"f": 0.5, "i": 1}))
    session.run(q.enqueue_many({"f": [1.5], "i": [2]}))
    assert session.run(q.dequeue()) == {"i": 1, "f": 0.5}
    assert session.run(q.dequeue_many(1)["f"]) == [1.5]
    with pytest.raises(ValueError, match="You must enqueue a dictionary in a Queue with names"):
        q.enqueue([1, 2.0])
    with pytest.raises(ValueError, match="Keys in dictionary to enqueue do not match names"):
        q.enqueue({"i": 1})
    with pytest.raises(ValueError, match="Queue must have names to enqueue a dictionary"):
        tf.FIFOQueue(5, tf.int32).enqueue({"i": 1})


def test_fed_arrays_are_copied(session: Any) -> None:
    q = tf.FIFOQueue(5, tf.float32, [(2,)])
    x = tf.placeholder(tf.float32, [None, 2])
    fed = np.array([[1, 2], [3, 4]], np.float32)
    session.run([q.enqueue(x[0])], {x: fed})
    row = tf.placeholder(tf.float32, [2])
    session.run(q.enqueue(row), {row: fed[0]})
    session.run(q.enqueue_many(x), {x: fed})
    fed[:] = -1
    assert session.run(q.dequeue_many(4)).tolist() == [[1, 2], [1, 2], [1, 2], [3, 4]]


def test_values_from_and_to_programs(session: Any, interpret: str) -> None:
    """Compiled and interpreted regions before and after the queue."""
    q = tf.FIFOQueue(5, tf.float32, [(2,)])
    x = tf.placeholder(tf.float32, [2])
    put, got = q.enqueue(x * 2), tf.reduce_sum(q.dequeue() + 1)
    for i in range(3):
        session.run(put, {x: [i, 1]})
        assert session.run(got) == 2 * i + 4


def test_many_of_none(session: Any) -> None:
    q = tf.FIFOQueue(4, [tf.int32, tf.float32], [(), (2,)])
    p = tf.PaddingFIFOQueue(4, tf.float32, [(2, None)])
    session.run(q.enqueue_many([np.zeros(0, np.int32), np.zeros((0, 2), np.float32)]))
    assert [a.shape for a in session.run(q.dequeue_many(0))] == [(0,), (0, 2)]
    session.run(q.close())
    assert [a.shape for a in session.run(q.dequeue_up_to(0))] == [(0,), (0, 2)]
    assert session.run(p.dequeue_many(0)).shape == (0, 2, 0)


def test_static_shapes_and_names_of_ops(session: Any) -> None:
    q = tf.FIFOQueue(4, [tf.float32, tf.int32], [(), (2,)])
    with tf.name_scope("sc"):
        p = tf.PriorityQueue(4, tf.float32, [()])
    found = [t.name for t in (*q.dequeue(), *q.dequeue_many(3), *q.dequeue_up_to(3))]
    assert found == [
        f"fifo_queue_{kind}:{i}"
        for kind in ("Dequeue", "DequeueMany", "DequeueUpTo")
        for i in (0, 1)
    ]
    assert [t.shape.as_list() for t in q.dequeue()] == [[], [2]]
    assert [t.shape.as_list() for t in q.dequeue_many(3)] == [[3], [3, 2]]
    assert [t.shape.as_list() for t in q.dequeue_up_to(3)] == [[None], [None, 2]]
    assert [t.shape.as_list() for t in p.dequeue_many(3)] == [[3], [3]]
    assert q.enqueue([1.0, [2, 3]]).name == "fifo_queue_enqueue"
    assert q.enqueue_many([[1.0], [[2, 3]]]).name == "fifo_queue_EnqueueMany"
    assert q.close().name == "fifo_queue_Close"
    assert q.size().name == "fifo_queue_Size:0"
    assert q.is_closed().name == "fifo_queue_Is_Closed:0"
    assert (p.name, p.queue_ref.name) == ("sc/priority_queue", "sc/priority_queue:0")
    put = p.enqueue((1, 2.0))
    assert [t.name for t in put.inputs] == [
        "sc/priority_queue:0",
        "priority_queue_enqueue/component_0:0",
        "priority_queue_enqueue/component_1:0",
    ]
    assert (p.dtypes, p.shapes) == ([tf.int64, tf.float32], [tf.TensorShape([])] * 2)


def test_namespaces() -> None:
    for name in ("QueueBase", "FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue"):
        assert getattr(tf.queue, name) is getattr(tf, name)
    assert tf.queue.PriorityQueue is tf.PriorityQueue


# -- other orders -------------------------------------------------------------------------------


def test_shuffles_as_tensorflow_does(session: Any) -> None:
    """The orders are those of TensorFlow 2.21 for the same seeds."""
    q = tf.RandomShuffleQueue(40, 0, tf.int32, [()], seed=5)
    session.run(q.enqueue_many([list(range(20))]))
    got = session.run(q.dequeue_many(10)).tolist()
    got += [int(session.run(q.dequeue())) for _ in range(5)]
    assert got == [11, 19, 6, 5, 8, 4, 1, 9, 15, 13, 12, 17, 14, 18, 10]
    tf.set_random_seed(7)
    q = tf.RandomShuffleQueue(40, 0, tf.int32, [()], shared_name="x")
    session.run(q.enqueue_many([list(range(20))]))
    want = [6, 13, 17, 8, 2, 0, 4, 3, 11, 16, 18, 14, 15, 9, 5, 19, 1, 10, 12, 7]
    assert session.run(q.dequeue_many(20)).tolist() == want


def test_shuffling_keeps_some_until_closed(session: Any) -> None:
    q = tf.RandomShuffleQueue(40, 3, tf.int32, [()], seed=5)
    session.run(q.enqueue_many([list(range(12))]))
    got = session.run(q.dequeue_many(5)).tolist()
    session.run(q.close())
    got += session.run(q.dequeue_up_to(100)).tolist()
    assert got == [7, 2, 4, 8, 0, 6, 1, 10, 11, 3, 5, 9]


def test_shuffling_long_streams(session: Any) -> None:
    q = tf.RandomShuffleQueue(2000, 0, tf.int32, [()])
    session.run(q.enqueue_many([np.arange(1000, dtype=np.int32)]))
    got = session.run(q.dequeue_many(1000)).tolist()
    assert sorted(got) == list(range(1000))
    assert got != list(range(1000))


def test_padding(session: Any) -> None:
    q = tf.PaddingFIFOQueue(10, [tf.int32, tf.string], [(2, None), (None,)])
    put_number, put_text = tf.placeholder(tf.int32, [2, None]), tf.placeholder(tf.string, [None])
    put = q.enqueue([put_number, put_text])
    session.run(put, {put_number: [[1], [2]], put_text: ["a", "b"]})
    session.run(put, {put_number: [[3, 4, 5], [6, 7, 8]], put_text: []})
    session.run(put, {put_number: [[9, 9], [9, 9]], put_text: ["c"]})
    numbers, texts = session.run(q.dequeue_many(2))
    assert numbers.tolist() == [[[1, 0, 0], [2, 0, 0]], [[3, 4, 5], [6, 7, 8]]]
    assert texts.tolist() == [[b"a", b"b"], [b"", b""]]
    number, text = session.run(q.dequeue())
    assert number.shape == (2, 2)
    assert text.tolist() == [b"c"]
    assert [t.shape.as_list() for t in q.dequeue_many(2)] == [[2, 2, None], [2, None]]


def test_priorities(session: Any) -> None:
    q = tf.PriorityQueue(10, tf.string, [()])
    session.run(q.enqueue_many([[5, -1, 5, 3], ["e", "a", "f", "c"]]))
    assert session.run(q.dequeue()) == [-1, b"a"]
    session.run(q.enqueue((4, "d")))
    rest = session.run(q.dequeue_many(4))
    assert rest[0].tolist() == [3, 4, 5, 5]
    assert rest[0].dtype == np.int64
    assert rest[1].tolist() == [b"c", b"d", b"e", b"f"]


def test_chosen_from_a_list(session: Any) -> None:
    a = tf.FIFOQueue(4, tf.float32, [(2,)], name="a")
    b = tf.FIFOQueue(4, tf.float32, [(2,)], name="b")
    index = tf.placeholder(tf.int32, [])
    q = tf.QueueBase.from_list(index, [a, b])
    put, got = q.enqueue(([1.0, 2.0],)), q.dequeue_many(1)
    session.run(put, {index: 1})
    assert session.run([a.size(), b.size()]) == [0, 1]
    assert session.run(got, {index: 1}).tolist() == [[1, 2]]
    assert q.dequeue().shape.as_list() == [2]
    with pytest.raises(TypeError, match="A list of queues expected"):
        tf.QueueBase.from_list(0, [])
    with pytest.raises(TypeError, match="do not have matching component dtypes"):
        tf.QueueBase.from_list(0, [a, tf.FIFOQueue(4, tf.int32)])


# -- graphs -------------------------------------------------------------------------------------


def test_in_branches_and_loops(session: Any) -> None:
    q = tf.FIFOQueue(10, tf.int32, [()])
    flag = tf.placeholder(tf.bool, [])

    def put() -> Any:
        with tf.control_dependencies([q.enqueue(1)]):
            return tf.constant(True)

    maybe = tf.cond(flag, put, lambda: tf.constant(False))
    assert session.run(maybe, {flag: False}) == np.False_
    assert session.run(q.size()) == 0
    assert session.run(maybe, {flag: True}) == np.True_
    assert session.run(q.size()) == 1

    def body(i: Any) -> Any:
        with tf.control_dependencies([q.enqueue(10 * i)]):
            return i + 1

    assert session.run(tf.while_loop(lambda i: i < 4, body, [tf.constant(1)])) == 4
    assert session.run(q.dequeue_many(4)).tolist() == [1, 10, 20, 30]


def test_graph_files(session: Any) -> None:
    q = tf.PriorityQueue(10, tf.float32, [(2,)], name="q")
    q.enqueue((1, [1.0, 2.0]), name="put")
    q.dequeue_many(1, name="got")
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default() as graph, tf.Session() as other:
        tf.import_graph_def(graph_def, name="")
        assert graph.as_graph_def() == graph_def
        assert graph.get_tensor_by_name("got:1").shape.as_list() == [1, 2]
        other.run("put")
        assert other.run("got:1").tolist() == [[1, 2]]


def test_graph_files_with_the_first_queue_ops(session: Any) -> None:
    q = tf.RandomShuffleQueue(10, 0, tf.float32, [(2,)], name="q")
    q.enqueue_many(tf.constant([[1.0, 2.0]]), name="put")
    q.dequeue_up_to(1, name="got")
    q.size(name="size")
    graph_def = tf.get_default_graph().as_graph_def()
    for node in graph_def.node:
        node.op = node.op.removesuffix("V2")
    with tf.Graph().as_default(), tf.Session() as other:
        tf.import_graph_def(graph_def, name="")
        other.run("put")
        assert other.run("size:0") == 1
        assert other.run("got:0").tolist() == [[1, 2]]


def test_each_fetch_runs_once_and_nothing_is_merged(session: Any) -> None:
    q = tf.FIFOQueue(10, tf.int32, [()])
    session.run(q.enqueue_many([[1, 2, 3, 4]]))
    first, second = q.dequeue(), q.dequeue()
    assert sorted(session.run([first, first, second])) in ([1, 1, 2], [1, 2, 2])
    before = q.size()
    with tf.control_dependencies([before]):
        took = q.dequeue()
    with tf.control_dependencies([took]):
        after = q.size()
    assert session.run([before, took, after]) == [2, 3, 1]


def test_no_gradient(session: Any) -> None:
    x = tf.constant(1.0)
    q = tf.FIFOQueue(10, tf.float32, [()])
    with tf.control_dependencies([q.enqueue(x)]):
        y = q.dequeue() * x
    assert session.run(tf.gradients(y, x)) == [1]


def test_partial_runs_and_traces(session: Any) -> None:
    q = tf.FIFOQueue(10, tf.int32, [()])
    x = tf.placeholder(tf.int32, [])
    put, got = q.enqueue(x), q.dequeue() + 1
    handle = session.partial_run_setup([put, got], [x])
    session.partial_run(handle, put, {x: 4})
    assert session.partial_run(handle, got) == 5
    options = tf.RunOptions(trace_level=3)
    session.run(put, {x: 6}, options=options, run_metadata=tf.RunMetadata())
    assert session.run(got, options=options) == 7


# -- closing ------------------------------------------------------------------------------------

KINDS = {
    "FIFOQueue": lambda: tf.FIFOQueue(4, tf.int64, [()], name="q"),
    "PaddingFIFOQueue": lambda: tf.PaddingFIFOQueue(4, tf.int64, [()], name="q"),
    "RandomShuffleQueue": lambda: tf.RandomShuffleQueue(4, 1, tf.int64, [()], name="q"),
    "PriorityQueue": lambda: tf.PriorityQueue(4, tf.int64, [()], name="q"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_closed(session: Any, kind: str) -> None:
    q = KINDS[kind]()
    # A padding queue calls itself so in batches only.
    family = "FIFOQueue" if kind == "PaddingFIFOQueue" else kind
    element = [1] * len(q.dtypes)
    session.run(q.enqueue(element))
    assert session.run(q.is_closed()) == np.False_
    session.run(q.close())
    assert session.run(q.is_closed()) == np.True_
    with pytest.raises(tf.errors.CancelledError, match=rf"^{family} '_\d+_q' is closed\.\n"):
        session.run(q.enqueue(element))
    ending = r"is closed and has insufficient elements \(requested {}, current size {}\)\n"
    for _ in range(2):
        with pytest.raises(
            tf.errors.OutOfRangeError, match=rf"^{kind} '_\d+_q' {ending.format(3, 1)}"
        ) as caught:
            session.run(q.dequeue_many(3))
    assert caught.value.op.type == "QueueDequeueManyV2"
    assert np.all(np.asarray(session.run(q.dequeue_up_to(3))) == [1])
    with pytest.raises(
        tf.errors.OutOfRangeError, match=rf"^{family} '_\d+_q' {ending.format(1, 0)}"
    ):
        session.run(q.dequeue())
    with pytest.raises(tf.errors.CancelledError, match=r"^Queue '_\d+_q' is already closed\.\n"):
        session.run(q.close())
    session.run(q.close(cancel_pending_enqueues=True))


# -- bad input ----------------------------------------------------------------------------------


def _of(kind: Any, *args: Any) -> Any:
    return lambda: kind(*args, name="q")


@pytest.mark.parametrize(
    ("make", "use", "message"),
    [
        (
            _of(tf.FIFOQueue, 4, tf.float32, [(3, 2)]),
            lambda q: q.enqueue(unknown([[1, 2]])),
            "Shape mismatch in tuple component 0. Expected [3,2], got [1,2]",
        ),
        (
            _of(tf.FIFOQueue, 4, tf.float32, [(3, 2)]),
            lambda q: q.enqueue_many(unknown([[1, 2]])),
            "Shape mismatch in tuple component 0. Expected [1,3,2], got [1,2]",
        ),
        (
            _of(tf.PaddingFIFOQueue, 4, tf.float32, [(3, None)]),
            lambda q: q.enqueue(unknown([[1, 2]])),
            "Shape mismatch in tuple component 0. Expected [3,?], got [1,2]",
        ),
        (
            _of(tf.PaddingFIFOQueue, 4, tf.float32, [(3, None)]),
            lambda q: q.enqueue_many(unknown([[1, 2]])),
            "Shape mismatch in tuple component 0. Expected [1,3,?], got [1,2]",
        ),
        (
            _of(tf.FIFOQueue, 4, [tf.float32, tf.float32]),
            lambda q: q.enqueue_many([unknown([1, 2]), unknown([1, 2, 3])]),
            "All input tensors must have the same size in the 0th dimension. Component 1 has 3, and"
            " should have 2",
        ),
        (
            _of(tf.FIFOQueue, 4, tf.float32),
            lambda q: q.enqueue_many(unknown(1)),
            "Component 0 has no dimension to enqueue the slices of: it is a scalar",
        ),
        (
            _of(tf.PriorityQueue, 4, tf.float32, [()]),
            lambda q: q.enqueue([unknown([1], tf.int64), 1.0]),
            "Shape mismatch in tuple component 0. Expected [], got [1]",
        ),
        (
            _of(tf.FIFOQueue, 4, tf.float32, [()]),
            lambda q: q.dequeue_many(unknown(-1, tf.int32)),
            "DequeueManyOp requested -1 < 0 elements",
        ),
        (
            _of(tf.FIFOQueue, 4, tf.float32, [()]),
            lambda q: q.dequeue_up_to(unknown(-1, tf.int32)),
            "DequeueUpToOp requested -1 < 0 elements",
        ),
        (
            _of(tf.FIFOQueue, 4, tf.float32),
            lambda q: q.dequeue_many(1),
            "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified "
            "shapes.",
        ),
        (
            _of(tf.RandomShuffleQueue, 4, 0, tf.float32),
            lambda q: q.dequeue_up_to(1),
            "RandomShuffleQueue's DequeueMany and DequeueUpTo require the components to have "
            "specified shapes.",
        ),
        (
            _of(tf.FIFOQueue, 4, [tf.float32, tf.int32]),
            lambda q: tf.raw_ops.QueueEnqueueV2(q.queue_ref, [1.0]),
            "Signature mismatch, have: resource, float-> expected: resource, float, int32->",
        ),
        (
            _of(tf.FIFOQueue, 4, tf.float32),
            lambda q: tf.raw_ops.QueueDequeueV2(q.queue_ref, component_types=[tf.int32]),
            "Signature mismatch, have: resource->int32 expected: resource->float",
        ),
        (
            _of(tf.RandomShuffleQueue, 4, 5, tf.float32),
            lambda q: q.size(),
            "min_after_dequeue 5 must be < capacity 4",
        ),
        (
            _of(tf.RandomShuffleQueue, 4, -1, tf.float32),
            lambda q: q.size(),
            "min_after_dequeue -1 must be >= 0",
        ),
    ],
)
def test_refused_as_it_runs(session: Any, make: Any, use: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(use(make()))
    assert caught.value.message == message
    assert caught.value.op is not None


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: tf.FIFOQueue(4, tf.float32, [(3, None)]), ValueError, "must be fully defined"),
        (lambda: tf.PaddingFIFOQueue(4, tf.float32, [None, 3]), ValueError, None),
        (
            lambda: tf.PaddingFIFOQueue(4, tf.float32, [tf.TensorShape(None)]),
            ValueError,
            "All shapes must have a defined rank",
        ),
        (
            lambda: tf.PaddingFIFOQueue(4, [tf.float32, tf.int32], [()]),
            ValueError,
            "but received 2 dtypes and 1 shapes",
        ),
        (
            lambda: tf.FIFOQueue(4, [tf.float32, tf.int32], [()]),
            ValueError,
            "Queue shapes must have the same length as dtypes",
        ),
        (
            lambda: tf.FIFOQueue(4, tf.float32, names=["a", "b"]),
            ValueError,
            "Queue names must have the same length as dtypes",
        ),
        (lambda: tf.FIFOQueue(4, tf.float32, 3), TypeError, "shapes must be a TensorShape or"),
        (
            lambda: tf.FIFOQueue(4, tf.float32, [(3, 2)]).enqueue(([1.0, 2.0],)),
            ValueError,
            r"Shapes \(2,\) and \(3, 2\) are incompatible",
        ),
        (
            lambda: tf.FIFOQueue(4, [tf.float32] * 2).enqueue_many([[1.0, 2.0], [1.0]]),
            ValueError,
            "Dimensions 2 and 1 are not compatible",
        ),
        (
            lambda: tf.FIFOQueue(4, tf.float32).enqueue(tf.constant(1)),
            ValueError,
            "conversion requested dtype float32",
        ),
        (
            lambda: tf.FIFOQueue(4, [tf.float32, tf.int32]).enqueue([1.0]),
            ValueError,
            "has 2 components, but 1 values",
        ),
        (
            lambda: tf.FIFOQueue(4, tf.float32, [()]).dequeue_many(-1),
            ValueError,
            "Input 'n' must be >= 0, but is -1",
        ),
        (
            lambda: tf.raw_ops.QueueDequeueV2(
                tf.FIFOQueue(4, tf.float32).queue_ref, component_types=[tf.float32], timeout_ms=5
            ),
            ValueError,
            "Timeout not supported yet",
        ),
    ],
)
def test_refused_as_it_is_built(build: Any, error: Any, message: str | None) -> None:
    if message is None:
        assert build().shapes[0].as_list() == [None, 3]  # one shape, not two
        return
    with tf.Graph().as_default(), pytest.raises(error, match=message):
        build()


def test_names_are_a_list_and_padding_needs_shapes():
    queue = tf.FIFOQueue(3, (tf.int32, tf.float32), names=("i", "j"))
    assert queue.names == ["i", "j"]
    with pytest.raises(ValueError, match="a list of shapes must be provided"):
        tf.PaddingFIFOQueue(3, tf.float32, None)
