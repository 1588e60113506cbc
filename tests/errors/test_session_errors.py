"""What a session refuses: fetches, feeds, devices, other graphs, state that is not there."""

import numpy as np
import pytest

import headrace as tf


@pytest.fixture
def session():
    tf.constant(1.0, name="abcd")
    with tf.Session() as session:
        yield session


@pytest.mark.parametrize(
    ("fetch", "kind", "message"),
    [
        (None, TypeError, "Fetch argument None has invalid type NoneType."),
        (
            3,
            TypeError,
            "Fetch argument 3 has invalid type int, must be a string or Tensor. "
            "(Can not convert a int into a Tensor or Operation.)",
        ),
        (
            "abce:0",
            ValueError,
            "Fetch argument 'abce:0' cannot be interpreted as a Tensor. (The name 'abce:0' refers "
            "to a Tensor which does not exist. The operation, 'abce', does not exist in the "
            "graph. Did you mean 'abcd'?)",
        ),
        (
            "abcd:4",
            ValueError,
            "Fetch argument 'abcd:4' cannot be interpreted as a Tensor. (The name 'abcd:4' refers "
            "to a Tensor which does not exist. The operation, 'abcd', exists but only has 1 "
            "outputs.)",
        ),
    ],
)
def test_fetches(session, fetch, kind, message):
    with pytest.raises(kind) as caught:
        session.run(fetch)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("dtype", "shape", "value", "kind", "message"),
    [
        (
            tf.float32,
            [2],
            [1, 2, 3],
            ValueError,
            "Cannot feed value of shape (3,) for Tensor 'p:0', which has shape '(2,)'",
        ),
        (
            tf.float32,
            [2],
            ["a", "b"],
            ValueError,
            "Cannot convert the value fed to 'p:0' (float32, shape (2,)): could not convert "
            "string to float: 'a'",
        ),
        (
            tf.int32,
            [],
            2**40,
            TypeError,
            "Type of feed value 1099511627776 with type <class 'int'> is not compatible with "
            "Tensor type int32. Try explicitly setting the type of the feed tensor to a larger "
            "type (e.g. int64).",
        ),
        (
            tf.float32,
            [],
            None,
            TypeError,
            "None was fed to 'p:0' (float32, shape ()): feed a value, or leave the tensor out.",
        ),
    ],
)
def test_feeds(session, dtype, shape, value, kind, message):
    p = tf.placeholder(dtype, shape, name="p")
    with pytest.raises(kind) as caught:
        session.run(tf.identity(p), {p: value})
    assert str(caught.value) == message


def test_feed_of_a_tensor(session):
    p = tf.placeholder(tf.float32, [])
    with pytest.raises(TypeError, match=r"^The value of a feed cannot be a tf\.Tensor object"):
        session.run(p, {p: tf.constant(1.0)})


def test_feeds_come_in_a_dictionary_of_tensors(session):
    p = tf.placeholder(tf.float32, [])
    with pytest.raises(TypeError, match=r"^feed_dict must be a dictionary from tensors to values"):
        session.run(p, [(p, 1.0)])
    for other in (p, np.zeros(2), 0):  # of which some have no truth
        with pytest.raises(TypeError, match=r"^feed_dict must be a dictionary.*, but got "):
            session.run(p, other)
    assert session.run(tf.constant(1), []) == 1
    with pytest.raises(
        TypeError, match=r"^Cannot interpret feed_dict key as Tensor: The name 'q:0'"
    ):
        session.run(p, {"q:0": 1.0})
    with pytest.raises(TypeError, match="Can not convert a Operation into a Tensor"):
        session.run(p, {p.op: 1.0})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nope:0", "The operation, 'nope', does not exist in the graph."),
        ("inputs:0", "does not exist in the graph. Did you mean 'input'?"),
        ("nope", "There is no operation 'nope' either."),
        ("inputs", "There is no operation 'inputs' either. Did you mean 'input'?"),
        ("input", 'Use "input:0".'),
        ("input:7", "'input', exists but only has 1 outputs."),
    ],
)
def test_feeds_of_names_that_do_not_exist(session, name, text):
    x = tf.placeholder(tf.float32, [], name="input")
    with pytest.raises(TypeError) as caught:
        session.run(x, {name: 1.0})
    assert str(caught.value).startswith("Cannot interpret feed_dict key as Tensor: The name")
    assert str(caught.value).endswith(f"{text} The graph's placeholders are input:0.")


def test_feeds_by_name_in_a_graph_without_placeholders(session):
    with pytest.raises(TypeError, match=r"The graph has no placeholders\.$"):
        session.run(tf.constant(1.0), {"nope:0": 1.0})


def test_feeds_by_name_in_a_graph_of_many_placeholders(session):
    x = [tf.placeholder(tf.float32, [], name="x") for _ in range(12)]
    with pytest.raises(TypeError, match=r"placeholders are x:0, x_1:0, .*, x_9:0 and 2 more\.$"):
        session.run(x[0], {"nope:0": 1.0})


def test_other_graphs(session):
    with tf.Graph().as_default():
        foreign = tf.constant(1.0, name="foreign")
    with pytest.raises(ValueError, match=r"foreign:0.* is not an element of this graph"):
        session.run(foreign)
    with pytest.raises(TypeError, match="is not an element of this graph"):
        session.run("abcd:0", {foreign: 1.0})
    with pytest.raises(
        ValueError, match=r"^Tensor foreign:0 \(made at .*\.py:\d+\) is from another"
    ):
        tf.constant(1.0) + foreign
    with (
        pytest.raises(ValueError, match=r"^Control dependency 'foreign' \(made at .*\) belongs to"),
        tf.control_dependencies([foreign]),
    ):
        pass
    with pytest.raises(ValueError, match="the tensor's graph is different from the session's"):
        foreign.eval(session=session)


def test_tensors_of_loop_bodies_stay_there(session):
    inside = []

    def body(i):
        inside.append(i + 1)
        return inside[0]

    tf.while_loop(lambda i: i < 3, body, [0])
    reason = r"belongs to the body of a loop, branch or function and has no value outside it"
    with pytest.raises(ValueError, match=reason):
        inside[0] + 1
    with pytest.raises(ValueError, match=reason):
        session.run(inside[0])


@pytest.mark.parametrize("use", ["read", "add", "scatter"])
def test_uninitialized(session, interpret, use):
    v = tf.Variable([1.0, 2.0], name="weights")
    step = {
        "read": lambda: v + 1.0,
        "add": lambda: v.assign_add([1.0, 1.0]),
        "scatter": lambda: tf.scatter_add(v, [0], [1.0]),
    }[use]()
    with pytest.raises(tf.errors.FailedPreconditionError) as caught:
        session.run(step)
    assert caught.value.message == (
        "Attempting to use uninitialized value weights. Run its initializer first, e.g. "
        "`sess.run(tf.global_variables_initializer())`, or restore it with tf.train.Saver."
    )
    assert f'Made by: File "{__file__}", line ' in str(caught.value)


@pytest.mark.parametrize("device", ["/device:GPU:7", "/device:CPU:7", "/job:worker/task:3"])
def test_devices_that_are_not_there(session, device):
    with tf.device(device):
        x = tf.constant([1.0, 2.0], name="x")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(x)
    assert caught.value.message.startswith(
        "Cannot assign a device for operation 'x': Operation was explicitly assigned to "
        f"{device} but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0"
    )
    assert caught.value.message.endswith("tf.ConfigProto(allow_soft_placement=True).")
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as soft:
        np.testing.assert_array_equal(soft.run(x), [1.0, 2.0])


def test_sessions_that_cannot_run():
    with pytest.raises(RuntimeError, match=r"^The Session graph is empty"):
        tf.Session().run("x")
    one = tf.constant(1)
    with pytest.raises(ValueError, match=r"^Cannot evaluate tensor using `eval\(\)`: No default"):
        one.eval()
    session = tf.Session()
    session.close()
    with pytest.raises(RuntimeError, match=r"^Attempted to use a closed Session"):
        session.run(one)
    with pytest.raises(TypeError, match=r"^graph must be a tf\.Graph, but got <class 'str'>"):
        tf.Session(graph="a")
    with pytest.raises(
        TypeError, match=r"^config must be a tf\.ConfigProto, but got <class 'int'>"
    ):
        tf.Session(config=3)
    with pytest.raises(ValueError, match=r"^Session target 'localhost:2' names no engine"):
        tf.Session("localhost:2")


def test_graphs_that_cannot_change_or_run(session):
    a = tf.constant(1.0) + 1.0
    b = a + 1.0
    a.op._update_input(0, b)
    with pytest.raises(ValueError, match=r"^The graph has a cycle through operation 'add"):
        session.run(b)
    tf.get_default_graph().finalize()
    with pytest.raises(RuntimeError) as caught:
        tf.constant(1, name="late")
    assert str(caught.value) == (
        "Graph is finalized and cannot be modified: it refuses operation 'late'."
    )


def test_reset_inside_a_graph():
    with (
        tf.Graph().as_default(),
        pytest.raises(AssertionError, match=r"Do not use tf\.reset_default"),
    ):
        tf.reset_default_graph()


def test_python_functions_show_their_exception(session, interpret):
    def lookup(x):
        return {}["nokey"]

    called = tf.py_func(lookup, [tf.constant(1.0)], tf.float32)
    with pytest.raises(tf.errors.UnknownError) as caught:
        session.run(called)
    text = str(caught.value)
    assert text.startswith("KeyError: 'nokey'\n")
    assert f'File "{__file__}"' in text
    assert 'return {}["nokey"]' in text
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.op is called.op
