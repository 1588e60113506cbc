"""Write ``tests/golden/queue_loops.npz``: old graphs with queues and tables around and in loops.

    PEER_PYTHON tools/make_queue_loop_goldens.py

Runs under TensorFlow 1.15. For each structure the file has its GraphDef (``NAME/graph``), the names
of the tensors and operations of each step (``NAME/steps``, JSON), and what each step gave
(``NAME/STEP/FETCH``; operations give nothing).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "queue_loops.npz"
STRUCTURES: dict = {}  # name -> function that builds a graph and gives its steps
LIMIT_MS = 10_000


def structure(function: Callable[[], Any]) -> Callable[[], Any]:
    STRUCTURES[function.__name__] = function
    return function


def queue(capacity: int = 10, dtype: Any = tf.float32, **options: Any) -> Any:
    options.setdefault("shapes", [[]])
    return tf.FIFOQueue(capacity, [dtype], **options)


def after(ops: Any, make: Callable[[], Any]) -> Any:
    with tf.control_dependencies(ops if isinstance(ops, list) else [ops]):
        return make()


def counted(body: Callable[..., Any], start: Any, count: int = 5, **options: Any) -> Any:
    """``body(i, value)`` gives the next value."""
    step = lambda i, value: (i + 1, body(i, value))  # noqa: E731
    return tf.while_loop(lambda i, _: i < count, step, [0, start], **options)[1]


# -- queues outside of the loop -------------------------------------------------------------------


@structure
def queues_and_loops():
    first, second = queue(1, shapes=None), queue(1, shapes=None)
    fill = first.enqueue(tf.ones([2, 2]))
    grown = counted(
        lambda i, m: tf.concat([m, m], 0),
        first.dequeue(),
        shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)],
    )
    hand_on = second.enqueue(grown)
    taken = second.dequeue()
    both = tf.concat([taken, taken], 1)
    ops = [fill.name, hand_on.name, both.name]
    return [*([o] for o in ops), ops, ops[::-1]]


@structure
def loops_and_queues():
    first, second = queue(1), queue(1)
    fill = first.enqueue(1.0)
    inner = lambda j, x: counted(lambda _, y: y * 2.0, x, 2)  # noqa: E731
    hand_on = second.enqueue(counted(inner, first.dequeue()))
    total = second.dequeue() + 1.0
    return [[fill.name, hand_on.name, total.name]]


@structure
def two_ways_between_queues():
    a, b = queue(1), queue(1)
    start = tf.constant([1.0, 2.0])
    to_b = b.enqueue(a.dequeue() * 3.0 + tf.reduce_sum(start))
    to_a = a.enqueue(tf.reduce_sum(start) * 2.0)
    end = tf.sqrt(b.dequeue() + 1.0) * 2.0
    return [[end.name, to_b.name, to_a.name]] * 2


@structure
def ring_of_queues():
    queues = [queue(1) for _ in range(4)]
    ops = [queues[0].enqueue(tf.square(3.0))]
    for i, target in enumerate(queues[1:]):
        source = queues[i]
        ops.append(target.enqueue(tf.tanh(source.dequeue()) + 1.0))
    end = tf.exp(queues[-1].dequeue()) - 1.0
    return [[end.name, *[o.name for o in reversed(ops)]]] * 2


@structure
def loop_after_enqueue():
    q = queue()
    fill = q.enqueue_many([[1.0, 2.0, 3.0]])
    total = after(fill, lambda: counted(lambda i, x: x + q.dequeue(), 0.0, 3))
    return [[total.name]] * 3


@structure
def enqueue_after_loop():
    q = queue()
    fill = q.enqueue(counted(lambda i, x: x + 2.0, 0.0))
    taken = after(fill, q.dequeue) * 1.0
    return [[taken.name]]


@structure
def loop_waits_for_another():
    q = queue()
    first = counted(lambda i, x: after(q.enqueue(x), lambda: x + 1.0), 0.0, 4)
    second = counted(lambda i, x: x * 2.0 + q.dequeue(), 0.0, 4, parallel_iterations=1)
    return [[second.name, first.name], [first.name, second.name]]


@structure
def loop_waits_for_another_in_small_queue():
    q = queue(1)
    first = counted(lambda i, x: after(q.enqueue(x), lambda: x + 1.0), 0.0, 4)
    second = counted(lambda i, x: x * 2.0 + q.dequeue(), 0.0, 4, parallel_iterations=1)
    return [[second.name, first.name], [first.name, second.name]]


@structure
def loops_answer_each_other():
    ask, answer = queue(1), queue(1)

    def client(i, x):
        sent = ask.enqueue(x)
        return after(sent, answer.dequeue)

    asking = counted(client, 1.0, 4)
    serve = lambda i, x: after(answer.enqueue(ask.dequeue() * 2.0 + 1.0), lambda: x + 1.0)  # noqa: E731
    serving = counted(serve, 0.0, 4)
    return [[asking.name, serving.name], [serving.name, asking.name]]


# -- queues in the body ---------------------------------------------------------------------------


@structure
def enqueue_then_dequeue_in_body():
    q = queue()
    total = counted(lambda i, x: after(q.enqueue(x + 1.0), lambda: x + q.dequeue()), 0.0)
    return [[total.name]] * 3


@structure
def dequeue_before_enqueue_in_body():
    q = queue()

    def body(i, x):
        taken = q.dequeue()
        sent = q.enqueue(x * 2.0)
        return after(sent, lambda: tf.identity(taken + 1.0))

    total = counted(body, 1.0, parallel_iterations=1)
    return [[total.name]] * 3


@structure
def two_queues_crossed_in_body():
    a, b = queue(1), queue(1)

    def body(i, x):
        end = b.dequeue()
        middle = b.enqueue(a.dequeue() + 1.0)
        start = a.enqueue(x * 2.0)
        return after([middle, start], lambda: tf.identity(end))

    total = counted(body, 1.0, parallel_iterations=1)
    return [[total.name]] * 3


@structure
def body_computes_between_queues():
    a, b = queue(1), queue(1)

    def body(i, x):
        end = tf.reduce_sum(tf.fill([3], b.dequeue()))
        middle = b.enqueue(tf.reduce_sum(tf.fill([2], a.dequeue())))
        start = a.enqueue(tf.tanh(x))
        return after([middle, start], lambda: tf.identity(end))

    total = counted(body, 1.0, parallel_iterations=1)
    return [[total.name]] * 3


@structure
def dequeue_of_the_iteration_before():
    q = queue()
    fill = q.enqueue(1.0)

    def body(i, x):
        taken = q.dequeue()
        return after(q.enqueue(taken * 2.0), lambda: tf.identity(taken))

    total = after(fill, lambda: counted(body, 0.0, parallel_iterations=1))
    rest = after(total, q.dequeue) * 1.0
    return [[total.name, rest.name]] * 3


@structure
def enqueue_in_one_branch():
    q = queue()

    def body(i, x):
        sent = tf.cond(
            tf.equal(i % 2, 0),
            lambda: after(q.enqueue(x), lambda: tf.constant(1.0)),
            lambda: tf.constant(0.0),
        )
        return x + sent + 1.0

    total = counted(body, 0.0)
    size = after(total, q.size)
    drained = after([total, size], lambda: q.dequeue_many(3)) * 1.0
    return [[total.name, size.name, drained.name]] * 2


@structure
def dequeue_in_one_branch():
    q = queue()
    fill = q.enqueue_many([[5.0, 6.0]])
    body = lambda i, x: x + tf.cond(i % 2 > 0, q.dequeue, lambda: tf.constant(0.0))  # noqa: E731
    total = after(fill, lambda: counted(body, 0.0))
    return [[total.name]] * 3


@structure
def size_in_condition():
    q = queue()
    fill = q.enqueue_many([[1.0, 2.0, 3.0, 4.0]])

    def drain():
        body = lambda x: x + q.dequeue()  # noqa: E731
        return tf.while_loop(lambda x: q.size() > 0, body, [0.0], parallel_iterations=1)

    total = after(fill, drain)
    return [[total.name]] * 3


@structure
def size_in_body():
    q = queue(dtype=tf.int32)
    body = lambda i, x: after(q.enqueue(after(x, q.size)), lambda: x + 1)  # noqa: E731
    total = counted(body, 0, parallel_iterations=1)
    sizes = after(total, lambda: q.dequeue_many(5)) * 1
    return [[sizes.name]] * 2


@structure
def many_in_body():
    q = queue(shapes=[[]])
    body = lambda i, x: after(q.enqueue_many([x]), lambda: q.dequeue_many(2)) + 1.0  # noqa: E731
    return [[counted(body, tf.constant([1.0, 2.0])).name]] * 3


@structure
def up_to_in_body():
    q = queue(shapes=[[]])
    fill = q.enqueue_many([[1.0, 2.0, 3.0, 4.0, 5.0]])
    close = after(fill, q.close)
    body = lambda i, x: x + tf.reduce_sum(q.dequeue_up_to(2)) * 10.0  # noqa: E731
    return [[after(close, lambda: counted(body, 0.0, 3, parallel_iterations=1)).name]]


@structure
def one_iteration_at_a_time():
    q = queue()
    body = lambda i, x: after(q.enqueue(x), q.dequeue) * 2.0  # noqa: E731
    return [[counted(body, 1.0, parallel_iterations=1).name]] * 3


@structure
def overlapping_iterations():
    q = queue(2)
    fed = counted(
        lambda i, x: after(q.enqueue(tf.cast(i, tf.float32)), lambda: x + 1.0),
        0.0,
        8,
        parallel_iterations=8,
    )
    total = counted(lambda i, x: x + q.dequeue(), 0.0, 8, parallel_iterations=8)
    return [[total.name, fed.name]] * 3


@structure
def independent_queues_in_body():
    a, b = queue(), queue()

    def body(i, x):
        sent = [a.enqueue(x), b.enqueue(x * 10.0)]
        return after(sent, lambda: a.dequeue() + b.dequeue())

    return [[counted(body, 1.0).name]] * 3


@structure
def nested_loops():
    q = queue()
    inner = lambda j, y: after(q.enqueue(y), lambda: q.dequeue() + 1.0)  # noqa: E731
    return [[counted(lambda i, x: counted(inner, x * 2.0, 3), 0.0, 4).name]] * 3


@structure
def inner_loop_fills_outer_drains():
    q = queue(20)

    def body(i, x):
        send = lambda j, y: after(q.enqueue(y + x), lambda: y + 1.0)  # noqa: E731
        return after(counted(send, 0.0, 3), lambda: tf.add_n([q.dequeue() for _ in range(3)]))

    return [[counted(body, 1.0, 3).name]] * 3


@structure
def priority_queue():
    q = tf.PriorityQueue(10, [tf.float32], [[]])

    def body(i, x):
        sent = q.enqueue([tf.cast(5 - i, tf.int64), x])
        return after(sent, lambda: x + 1.0)

    total = counted(body, 0.0)
    taken = after(total, lambda: q.dequeue_many(5))
    return [[taken[0].name, taken[1].name]] * 2


@structure
def padding_queue():
    q = tf.PaddingFIFOQueue(10, [tf.float32], [[None]])
    total = counted(lambda i, x: after(q.enqueue(tf.fill([i + 1], x)), lambda: x + 1.0), 0.0, 3)
    return [[(after(total, lambda: q.dequeue_many(3)) * 1.0).name]] * 2


# -- tables ---------------------------------------------------------------------------------------


def table(shared_name: str | None = None) -> Any:
    pairs = tf.contrib.lookup.KeyValueTensorInitializer(
        tf.constant([0, 1, 2, 3], tf.int64), tf.constant([2, 3, 1, 0], tf.int64)
    )
    return tf.contrib.lookup.HashTable(pairs, -1, shared_name=shared_name)


@structure
def table_in_body():
    found = table()
    last = counted(lambda i, x: found.lookup(x), tf.constant(0, tf.int64), 3)
    return [[tf.tables_initializer().name], [last.name], [last.name]]


@structure
def table_in_condition():
    found = table()
    one = tf.constant(1, tf.int64)
    count = tf.while_loop(
        lambda x, n: found.lookup(x) > 0, lambda x, n: (found.lookup(x), n + 1), [one * 0, 0]
    )[1]
    return [[tf.tables_initializer().name], [count.name], [count.name]]


@structure
def table_beside_queue():
    found, q = table(), queue(dtype=tf.int64)
    body = lambda i, x: after(q.enqueue(found.lookup(x)), q.dequeue)  # noqa: E731
    last = counted(body, tf.constant(0, tf.int64))
    return [[tf.tables_initializer().name], [last.name], [last.name]]


@structure
def growing_table():
    found = tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, -1.0)

    def body(i, x):
        key = tf.cast(i, tf.int64)
        return after(found.insert(key, x), lambda: found.lookup(key) * 2.0)

    last = counted(body, 1.0, parallel_iterations=1)
    size = after(last, found.size)
    return [[last.name, size.name]] * 3


@structure
def table_lookup_in_branch():
    found, q = table(), queue(dtype=tf.int64)

    def body(i, x):
        sent = q.enqueue(x)
        take = lambda: after(sent, q.dequeue)  # noqa: E731
        return tf.cond(x > 0, lambda: found.lookup(take()), lambda: take() + 1)

    last = counted(body, tf.constant(0, tf.int64))
    return [[tf.tables_initializer().name], [last.name], [last.name]]


@structure
def variables_between_queues():
    a, b = queue(1), queue(1)
    v = tf.Variable(1.0, use_resource=False)
    to_b = b.enqueue(a.dequeue() + v)
    to_a = a.enqueue(v * 2.0)
    change = v.assign_add(b.dequeue())
    return [
        [tf.global_variables_initializer().name],
        [change.op.name, to_b.name, to_a.name],
        [v.name],
    ]


@structure
def gradient_beside_queue():
    q = queue(1, shapes=[[2]])
    x = tf.constant([1.0, 2.0])
    y = counted(lambda i, v: v * x, x, 3)
    grad = tf.gradients(y, x)[0]
    send = q.enqueue(grad)
    taken = q.dequeue() + tf.reduce_sum(grad)
    return [[taken.name, send.name]]


def main() -> None:
    stored = {}
    # TensorFlow's own rewrites take some of these graphs apart, which then wait for ever.
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    for name, build in STRUCTURES.items():
        with tf.Graph().as_default() as graph:
            steps = build()
            stored[name + "/graph"] = np.frombuffer(
                graph.as_graph_def().SerializeToString(), np.uint8
            )
        stored[name + "/steps"] = np.array(json.dumps(steps))
        with tf.Session(graph=graph, config=config) as session:
            options = tf.RunOptions(timeout_in_ms=LIMIT_MS)
            for number, fetches in enumerate(steps):
                values = session.run(fetches, options=options)
                for fetch, value in dict(zip(fetches, values)).items():  # noqa: B905
                    if value is not None:
                        stored[f"{name}/{number}/{fetch}"] = value
        print(name, "ok")
    np.savez_compressed(str(OUT), **stored)
    print(len(STRUCTURES), "structures;", OUT.stat().st_size, "bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
