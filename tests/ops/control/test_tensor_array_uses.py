"""Elements of TensorArrays that are written twice, or read after they were cleared.

Which programs fail is what TensorFlow 1.15 does.
"""

import numpy as np
import pytest

import headrace as tf
from headrace.passes.ir import build_step
from headrace.settings import flags

WRITTEN = "Could not write to TensorArray index {} because it has already been written to"
CLEARED = "Could not read index {} twice because it was cleared after a previous read"
ROWS = [1.0, 2.0, 3.0, 4.0]


def new(size=4, **options):
    return tf.TensorArray(tf.float32, size=size, tensor_array_name="foo", **options)


def index(dims=()):
    return tf.placeholder(tf.int32, dims)


def repeat(body, start, count=4):
    """``body(i, value)`` gives the next value."""
    return tf.while_loop(lambda i, _: i < count, lambda i, v: (i + 1, body(i, v)), [0, start])[1]


def after(value, make):
    with tf.control_dependencies([value]):
        return make()


# Each gives what to fetch, feeds that are right, feeds that are wrong, and the error.


def two_writes():
    a, b = index(), index()
    ta = new(element_shape=[]).write(a, 1.0).write(b, 2.0)
    return ta.stack(), {a: 1, b: 2}, {a: 1, b: 1}, WRITTEN.format(1)


def two_writes_of_one_array():
    a, b = index(), index()
    ta = new(element_shape=[], clear_after_read=False)
    first, second = ta.write(a, 1.0).stack(), ta.write(b, 2.0).stack()
    return [first, second], {a: 1, b: 2}, {a: 3, b: 3}, WRITTEN.format(3)


def divided_counter():
    by = index()
    ta = repeat(lambda i, t: t.write(i // by, 1.0), new(element_shape=[]))
    return ta.stack(), {by: 1}, {by: 2}, WRITTEN.format(0)


def read_in_loop():
    by = index()
    ta = new().unstack(ROWS)
    return repeat(lambda i, x: x + ta.read(i // by), 0.0), {by: 1}, {by: 3}, CLEARED.format(0)


def read_in_loop_and_outside():
    a = index()
    ta = new().unstack(ROWS)
    total = repeat(lambda i, x: x + ta.read(i), 0.0, 2)
    return after(total, lambda: ta.read(a)), {a: 2}, {a: 1}, CLEARED.format(1)


def stacked_after_loop():
    count = index()
    ta = new().unstack(ROWS)
    total = repeat(lambda i, x: x + ta.read(i), 0.0, count)
    return after(total, ta.stack), {count: 0}, {count: 1}, CLEARED.format(0)


def written_after_unstack():
    a, x = index(), tf.placeholder(tf.float32, [None])
    ta = new(0, dynamic_size=True).unstack(x).write(a, 1.0)
    return ta.stack(), {a: 2, x: [1, 2]}, {a: 1, x: [1, 2]}, WRITTEN.format(1)


def scattered_twice():
    a = index([None])
    ta = new(element_shape=[]).scatter(a, [1.0, 2.0])
    return ta.stack(), {a: [1, 2]}, {a: [2, 2]}, WRITTEN.format(2)


def gathered_twice():
    a = index([None])
    return new().unstack(ROWS).gather(a), {a: [1, 2]}, {a: [1, 1]}, CLEARED.format(1)


def gathered_after_read():
    a = index([None])
    ta = new().unstack(ROWS)
    return after(ta.read(1), lambda: ta.gather(a)), {a: [0, 2]}, {a: [0, 1]}, CLEARED.format(1)


def split_then_written():
    a = index()
    ta = new(0, dynamic_size=True).split([1.0, 2.0, 3.0], [1, 1, 1])
    return ta.write(a, [3.0]).stack(), {a: 3}, {a: 1}, WRITTEN.format(1)


def nested():
    width = index()
    inner = lambda i, t: repeat(lambda j, u: u.write(i * width + j, 1.0), t, 2)  # noqa: E731
    return (
        repeat(inner, new(element_shape=[]), 2).stack(),
        {width: 2},
        {width: 1},
        WRITTEN.format(1),
    )


def outer_index_in_inner_loop():
    count = index()
    ta = new().unstack(ROWS)
    inner = lambda i, x: repeat(lambda _, y: y + ta.read(i), x, count)  # noqa: E731
    return repeat(inner, 0.0), {count: 1}, {count: 2}, CLEARED.format(0)


def in_a_branch():
    often = index()
    ta = new().unstack(ROWS)

    def body(i, x):
        return x + tf.cond(i < often, lambda: ta.read(0), lambda: 0.0)

    return repeat(body, 0.0), {often: 1}, {often: 2}, CLEARED.format(0)


def in_both_branches():
    start = index()
    ta = new(6).unstack([*ROWS, 5.0, 6.0])

    def body(i, x):
        return x + tf.cond(i < 2, lambda: ta.read(i), lambda: ta.read(i + start))

    return repeat(body, 0.0), {start: 1}, {start: -1}, CLEARED.format(1)


def loop_in_a_branch():
    go = tf.placeholder(tf.bool, [])
    ta = new(element_shape=[]).write(2, 1.0)
    run = lambda: repeat(lambda i, t: t.write(i, 1.0), ta)  # noqa: E731
    return tf.cond(go, run, lambda: ta).stack(), {go: False}, {go: True}, WRITTEN.format(2)


def array_of_one_iteration():
    step = index()

    def body(i, x):
        ta = new(element_shape=[]).write(i % 2, x).write(i % 2 + step, 2.0 * x)
        return tf.reduce_sum(ta.stack())

    return repeat(body, 1.0), {step: 1}, {step: 0}, WRITTEN.format(0)


def array_that_grows():
    by = index()
    ta = repeat(lambda i, t: t.write(i // by, 1.0), new(0, dynamic_size=True, element_shape=[]))
    return ta.stack(), {by: 1}, {by: 2}, WRITTEN.format(0)


def gradient_too():
    by, x = index(), tf.constant(ROWS)
    ta = new().unstack(x)
    total = repeat(lambda i, s: s + ta.read(i // by) ** 2, 0.0)
    return tf.gradients(total, x)[0], {by: 1}, {by: 2}, CLEARED.format(0)


PROGRAMS = [f for f in list(globals().values()) if getattr(f, "__module__", "") == __name__]
PROGRAMS = [f for f in PROGRAMS if f.__name__ not in ("new", "index", "repeat", "after")]


@pytest.mark.parametrize("mode", ["auto", "always", pytest.param("never", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_an_element_that_is_used_twice_when_the_step_runs(program, mode, monkeypatch):
    monkeypatch.setattr(flags, "interpret", mode)
    fetch, right, wrong, message = program()
    with tf.Session() as session:
        first = session.run(fetch, right)
        for _ in range(3 if mode == "never" else 2):
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(fetch, wrong)
            assert f"TensorArray foo: {message}" in caught.value.message
            assert caught.value.op.type.startswith("TensorList")
            assert __file__ in str(caught.value)
            np.testing.assert_array_equal(session.run(fetch, right), first)


def test_tenth_run():
    fetch, right, wrong, message = divided_counter()
    with tf.Session() as session:
        for _ in range(10):
            session.run(fetch, right)
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(fetch, wrong)


def test_variables_stay_when_an_element_is_used_twice():
    by, v = index(), tf.Variable(1.0)
    ta = repeat(lambda i, t: t.write(i // by, v), new(element_shape=[]))
    change = v.assign_add(tf.reduce_sum(ta.stack()))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(change, {by: 1}) == 5.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="already been written"):
            session.run(change, {by: 2})
        assert session.run(v) == 5.0


def test_a_graph_is_written_after_its_positions_were_checked():
    fetch, right, _, _ = nested()
    (width,) = right
    with tf.Session() as session:
        first = session.run(fetch, right)
    own = tf.get_default_graph().as_graph_def()
    portable = tf.train.export_meta_graph().graph_def
    assert 'op: "TensorArrayLog"' not in str(portable)
    for graph_def in (own, portable):
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(graph_def, name="")
        with tf.Session(graph=graph) as session:
            again = session.run(fetch.name, {width.name: 2})
            np.testing.assert_array_equal(again, first)


def test_what_is_kept_may_be_read_twice_and_gradients_add_up():
    a, b, x = index(), index(), tf.constant(ROWS)
    ta = new(clear_after_read=False).unstack(x)
    total = repeat(lambda i, s: s + ta.read(i // 2) ** 2, 0.0)
    grad = new().grad("g").write(a, 1.0).write(b, 2.0)
    with tf.Session() as session:
        assert session.run(tf.gradients(total, x)[0]).tolist() == [4, 8, 0, 0]
        assert session.run(grad.read(1), {a: 1, b: 1}) == 3.0


def _checks(fetches):
    step = build_step(list(fetches), [], [])
    return [n for n in step.nodes if n.type == "TensorArrayUses"]


def by_counter(position):
    ta = new(9).unstack(tf.zeros([9]))
    out = repeat(lambda i, t: t.write(position(i), ta.read(position(i))), new(9))
    return [out.stack()]


def from_unknown(last):
    return by_counter(lambda i: last - 2 * i)


def rnn():
    cell = tf.nn.rnn_cell.LSTMCell(3)
    x = tf.zeros([2, 5, 4])
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(cell, cell, x, [3, 5], dtype=tf.float32)
    return [*outputs, *tf.gradients(outputs, x)]


def decoder():
    seq2seq = tf.contrib.seq2seq
    helper = seq2seq.TrainingHelper(tf.zeros([2, 5, 4]), [3, 5])
    cell = tf.nn.rnn_cell.GRUCell(3)
    made = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
    return [seq2seq.dynamic_decode(made)[0].rnn_output]


def apart():
    ta = new(9).unstack(tf.zeros([9]))
    first = ta.read(0)
    even = lambda i: ta.read(2 * i + 2) + ta.read(2 * i + 1)  # noqa: E731
    return [first, repeat(lambda i, x: x + even(i), 0.0, 4)]


@pytest.mark.parametrize(
    "build",
    [
        lambda: by_counter(lambda i: i),
        lambda: by_counter(lambda i: 8 - i),
        lambda: from_unknown(tf.placeholder_with_default(8, [])),
        rnn,
        decoder,
        apart,
    ],
    ids=["counter", "backwards", "unknown start", "rnn", "decoder", "apart"],
)
def test_counters_of_loops_cost_nothing(build):
    assert not _checks(build())
