"""Sessions: fetches, feeds, defaults, closing, threads."""

from __future__ import annotations

import collections
import threading

import numpy as np
import pytest

import headrace as tf
from headrace.session import fetches as tf_session
from headrace.settings import flags

Pair = collections.namedtuple("Pair", ["first", "second"])


def test_slide_program_with_session_default():
    with tf.Session():
        x = tf.constant([[5, 6], [7, 8]])
        z = tf.matmul(x, x) + tf.matmul(x, [[1, 0], [0, 1]])
        result = z.eval()
    np.testing.assert_array_equal(result, [[72, 84], [98, 114]])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda a, b: a, 1.0),
        (lambda a, b: [a, b], [1.0, 2.0]),
        (lambda a, b: (a, [b, a]), (1.0, [2.0, 1.0])),
        (lambda a, b: {"x": a, "y": {"z": b}}, {"x": 1.0, "y": {"z": 2.0}}),
        (lambda a, b: Pair(a, (b,)), Pair(1.0, (2.0,))),
        (lambda a, b: [a.op, b], [None, 2.0]),
        (lambda a, b: "a:0", 1.0),
        (lambda a, b: ["a", "b:0"], [None, 2.0]),
        (lambda a, b: [], []),
        (lambda a, b: collections.OrderedDict([("q", b), ("p", a)]), {"q": 2.0, "p": 1.0}),
    ],
)
def test_fetch_structures(make, expected):
    a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
    got = tf.Session().run(make(a, b))
    assert got == expected
    assert type(got) is type(make(a, b)) or not isinstance(expected, (list, tuple, dict))


def test_scalars_are_numpy_scalars_and_arrays_are_the_callers_own():
    v = tf.Variable([1.0, 2.0])
    sess = tf.Session()
    sess.run(v.initializer)
    assert isinstance(sess.run(tf.constant(3)), np.int32)
    for _ in range(3):
        value = sess.run(v)
        value[0] = 99.0
    np.testing.assert_array_equal(sess.run(v), [1.0, 2.0])


def test_a_fed_array_may_change_after_the_step(interpret):
    x = tf.placeholder(tf.float32, [3])
    v = tf.Variable(tf.zeros([3]))
    store = v.assign(x)
    sess = tf.Session()
    sess.run(v.initializer)
    fed = np.array([1, 2, 3], np.float32)
    for _ in range(2):
        sess.run(store.op, {x: fed})
    fed[:] = -1
    np.testing.assert_array_equal(sess.run(v), [1, 2, 3])


def test_any_tensor_can_be_fed():
    a = tf.constant(2.0)
    b = a * 3.0
    c = b + 1.0
    sess = tf.Session()
    assert sess.run(c) == 7.0
    assert sess.run(c, {b: 10.0}) == 11.0
    assert sess.run([b, c], {a: 1.0}) == [3.0, 4.0]
    assert sess.run(b, {b: 5.0}) == 5.0
    assert sess.run(c, {"mul:0": 0.0}) == 1.0


def test_feed_errors():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = x * 2.0
    sess = tf.Session()
    with pytest.raises(ValueError, match=r"Cannot feed value of shape \(3,\) for Tensor 'x:0', wh"):
        sess.run(y, {x: [1, 2, 3]})
    with pytest.raises(TypeError, match=r"The value of a feed cannot be a tf\.Tensor object"):
        sess.run(y, {x: tf.zeros([1, 2])})
    with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
        sess.run(y, {"nothing:0": 1})
    with pytest.raises(ValueError, match="could not convert string to float"):
        sess.run(y, {x: [["a", "b"]]})
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(y)
    assert caught.value.message == (
        "You must feed a value for placeholder tensor 'x' with dtype float32 and shape (?, 2): "
        "sess.run(..., feed_dict={x: value})."
    )
    assert "test_session.py" in str(caught.value)


def test_integer_feeds_must_fit():
    x = tf.placeholder(tf.int32, [])
    with pytest.raises(TypeError, match="not compatible with Tensor type int32"):
        tf.Session().run(x + 1, {x: 2**40})


def test_fetch_errors():
    a = tf.constant(1.0, name="alpha")
    sess = tf.Session()
    with pytest.raises(TypeError, match="Fetch argument None has invalid type NoneType"):
        sess.run(None)
    with pytest.raises(TypeError, match=r"Fetch argument 1\.5 has invalid type float"):
        sess.run(1.5)
    with pytest.raises(ValueError, match="Did you mean 'alpha'"):
        sess.run("alpah:0")
    with tf.Graph().as_default():
        other = tf.constant(2.0)
    with pytest.raises(ValueError, match="is not an element of this graph"):
        sess.run(other)
    assert a.graph is sess.graph


def test_closed_session():
    sess = tf.Session()
    c = tf.constant(1.0)
    sess.close()
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
        sess.run(c)
    with pytest.raises(RuntimeError, match="The Session graph is empty"):
        tf.Session(graph=tf.Graph()).run("x")


def test_interactive_session_is_the_default_until_closed():
    sess = tf.InteractiveSession()
    c = tf.constant(4.0)
    assert c.eval() == 4.0
    assert tf.get_default_session() is sess
    sess.close()
    with pytest.raises(ValueError, match="No default session is registered"):
        c.eval()


def test_eval_refuses_a_session_of_another_graph():
    c = tf.constant(1.0)
    other = tf.Session(graph=tf.Graph())
    with pytest.raises(ValueError, match="the tensor's graph is different from the session's"):
        c.eval(session=other)


def test_make_callable():
    x = tf.placeholder(tf.float32, [])
    y = tf.placeholder(tf.float32, [])
    step = tf.Session().make_callable([x + y, x * y], [x, y])
    assert step(3.0, 4.0) == [7.0, 12.0]
    with pytest.raises(TypeError, match="This step takes 2 values; 1 were given"):
        step(1.0)


def test_partial_run_feeds_and_fetches_in_parts():
    a = tf.placeholder(tf.float32, [])
    b = tf.placeholder(tf.float32, [])
    c = tf.placeholder(tf.float32, [])
    first = a + b
    second = first * c
    sess = tf.Session()
    handle = sess.partial_run_setup([first, second], [a, b, c])
    result = sess.partial_run(handle, first, {a: 1.0, b: 2.0})
    assert result == 3.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="Must feed"):
        sess.partial_run(handle, second)
    assert sess.partial_run(handle, second, {c: result * 10}) == 90.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="already fetched"):
        sess.partial_run(handle, second)
    with pytest.raises(tf.errors.InvalidArgumentError, match="already been fed"):
        sess.partial_run(handle, [], {a: 1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="Must run 'setup' before"):
        sess.partial_run("nonsense", first)


def test_partial_run_runs_each_op_once():
    v = tf.Variable(0.0)
    x = tf.placeholder(tf.float32, [])
    grown = v.assign_add(1.0)
    later = grown + x
    sess = tf.Session()
    sess.run(v.initializer)
    handle = sess.partial_run_setup([grown, later], [x])
    assert sess.partial_run(handle, grown) == 1.0
    assert sess.partial_run(handle, later, {x: 10.0}) == 11.0
    assert sess.run(v) == 1.0


def test_graph_may_grow_between_steps():
    a = tf.constant(1.0)
    sess = tf.Session()
    assert sess.run(a) == 1.0
    b = a + 1.0
    assert sess.run([a, b]) == [1.0, 2.0]
    sess.graph.finalize()
    with pytest.raises(RuntimeError, match="Graph is finalized and cannot be modified"):
        tf.constant(1.0)


def test_sessions_have_state_of_their_own():
    v = tf.Variable(1.0)
    one, two = tf.Session(), tf.Session()
    one.run(v.initializer)
    with pytest.raises(tf.errors.FailedPreconditionError) as caught:
        two.run(v)
    assert "Attempting to use uninitialized value" in caught.value.message


def test_many_threads_share_one_session():
    v = tf.Variable(0, dtype=tf.int64)
    x = tf.placeholder(tf.float32, [4])
    grow, square = v.assign_add(1), x * x
    sess = tf.Session()
    sess.run(v.initializer)
    failures = []

    def work(seed):
        value = np.full(4, seed, np.float32)
        for _ in range(50):
            got, _ = sess.run([square, grow], {x: value})
            if not np.array_equal(got, value * value):
                failures.append(got)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert sess.run(v) == 400


def test_run_metadata_times_each_op_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(flags, "trace_ops", True)
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.tanh(x * 2.0, name="y")
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    metadata = tf.RunMetadata()
    tf.Session().run(y, {x: [1, 2]}, options=options, run_metadata=metadata)
    (device,) = metadata.step_stats.dev_stats
    assert device.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert "y" in {n.node_name for n in device.node_stats}
    from headrace.session.timeline import Timeline

    assert '"name": "Tanh"' in Timeline(metadata.step_stats).generate_chrome_trace_format()


@pytest.mark.parametrize("target", ["", "local"])
def test_targets_of_this_process(target):
    x = tf.constant(3.0)
    with tf.Session(target) as sess:
        assert sess.run(x) == 3.0
    with pytest.raises(ValueError, match=f"target '{target}' is in this process"):
        tf.Session.reset(target)


def test_targets_that_make_no_session():
    with pytest.raises(ValueError, match=r"Session target 'gprc://a:1' names no engine: use ''"):
        tf.Session("gprc://a:1")
    with pytest.raises(ValueError, match="'grpc://somewhere' is not of the form grpc://host:port"):
        tf.Session("grpc://somewhere")
    with pytest.raises(tf.errors.PermissionDeniedError, match="'somewhere' is not loopback"):
        tf.Session("grpc://somewhere:2222")
    with pytest.raises(ValueError, match="each session owns its state"):
        tf.Session.reset("")


def test_default_graphs_are_per_thread():
    mine = tf.get_default_graph()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(tf.get_default_graph()))
    thread.start()
    thread.join()
    assert seen[0] is not mine


def test_a_partial_run_needs_fetches() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="specify at least one target"):
            session.partial_run_setup([], [x])


def test_objects_of_a_registered_type_are_fetched_and_fed():
    class Double:
        def __init__(self, half):
            self.half = half

    tf_session.register_session_run_conversion_functions(
        Double,
        lambda d: ([d.half], lambda values: values[0] * 2),
        lambda d, value: [(d.half, value / 2)],
        lambda d: [d.half],
    )
    with pytest.raises(ValueError, match="has already been registered"):
        tf_session.register_session_run_conversion_functions(Double, lambda d: ([], None))
    double = Double(tf.placeholder_with_default(3.0, []))
    with tf.Session() as sess:
        assert sess.run(double) == 6.0
        assert sess.run({"a": [double, double.half]}) == {"a": [6.0, 3.0]}
        assert sess.run([double.half + 1, double], {double: 10.0}) == [6.0, 10.0]


def test_attributes_that_are_set_as_messages_are_read_as_values():
    op = tf.no_op()
    op._set_attr("_kind", tf.AttrValue(s=b"x"))
    assert op.get_attr("_kind") == b"x"
    with tf.get_default_graph()._attr_scope({"_on": tf.AttrValue(b=True)}):
        assert tf.no_op().get_attr("_on") is True


def test_variables_do_not_share_memory_with_read_only_arrays_that_are_fed():
    """Whoever made such an array may make it writeable again."""
    v = tf.Variable(tf.zeros([4]))
    fed = tf.placeholder(tf.float32, [4])
    assign = v.assign(fed)
    queue = tf.FIFOQueue(2, tf.float32, [[4]])
    put, got = queue.enqueue(fed), queue.dequeue()
    array = np.ones(4, np.float32)
    array.flags.writeable = False
    with tf.Session() as session:
        session.run(v.initializer)
        for _ in range(2):
            session.run([assign.op, put], {fed: array})
            array.flags.writeable = True
            array[:] = 7.0
            assert session.run(v).tolist() == [1.0] * 4
            assert session.run(got).tolist() == [1.0] * 4
            array[:] = 1.0
            array.flags.writeable = False
