"""JAX functions in graphs: `tf.from_jax`."""

from __future__ import annotations

import collections

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import headrace as tf

Pair = collections.namedtuple("Pair", "low high")


def _layer(x, w):
    return jnp.tanh(x @ w)


def _values(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def _two_ways(x, w):
    """A layer and its gradients, by JAX and by our operations."""
    found, expected = tf.from_jax(_layer)(x, w), tf.tanh(x @ w)
    return (
        [found, *tf.gradients(tf.reduce_sum(found**2), [x, w])],
        [expected, *tf.gradients(tf.reduce_sum(expected**2), [x, w])],
    )


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_values_and_gradients_of_unknown_sizes(rows):
    x, w = tf.placeholder(tf.float32, [None, 3]), tf.constant(_values(3, 2))
    found, expected = _two_ways(x, w)
    assert found[0].shape.as_list() == [None, 2]
    with tf.Session() as session:
        for _ in range(10):  # interpreted first, compiled later
            results = session.run([found, expected], {x: _values(rows, 3)})
            for got, wanted in zip(*results, strict=True):
                assert got.shape == wanted.shape
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_the_first_run_equals_the_tenth():
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.from_jax(lambda x: jax.nn.softmax(x * 3.0))(x)
    with tf.Session() as session:
        runs = [session.run(y, {x: _values(4, 3)}) for _ in range(10)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run, runs[0])


@pytest.mark.parametrize(
    "dtype", [np.int32, np.int64, np.uint8, np.float16, np.float64, ml_dtypes.bfloat16, np.bool_]
)
def test_types_stay_as_they_are(dtype):
    x = tf.constant(np.array([1, 0, 1]).astype(dtype))
    y = tf.from_jax(lambda x: (x[::-1], x.sum(dtype=x.dtype)))(x)
    assert [t.dtype.as_numpy_dtype for t in y] == [dtype, dtype]
    with tf.Session() as session:
        turned, total = session.run(y)
    np.testing.assert_array_equal(turned, np.array([1, 0, 1]).astype(dtype))
    assert total == np.array([1, 0, 1]).astype(dtype).sum(dtype=dtype)


def test_complex_gradients_are_those_of_our_operations():
    x = tf.constant(np.array([1 + 2j, -0.5j], np.complex64))
    slopes = [
        tf.gradients(tf.real(tf.reduce_sum(y)), x)[0]
        for y in (tf.from_jax(lambda x: x * x * (2 + 1j))(x), x * x * tf.constant(2 + 1j, x.dtype))
    ]
    with tf.Session() as session:
        np.testing.assert_allclose(*session.run(slopes), rtol=1e-6)


def test_structures_go_in_and_come_out():
    def function(batch, scale, *, axis, mode=None):
        assert mode == "sum"
        total = batch["a"].sum(axis) * scale
        return {"pair": Pair(total, [total + batch["b"]]), "none": None}

    batch = {"a": tf.ones([2, 3]), "b": tf.Variable([1.0, 2.0])}
    result = tf.from_jax(function)(batch, 2.0, axis=1, mode="sum")
    assert isinstance(result["pair"], Pair)
    assert result["none"] is None
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        low, (high,) = session.run(result["pair"])
    assert (low.tolist(), high.tolist()) == ([6.0, 6.0], [7.0, 8.0])


def test_gradients_of_integers_are_none():
    x, i = tf.constant([1.0, 2.0]), tf.constant([1, 0])
    y = tf.from_jax(lambda x, i: (x[i], i + 1))(x, i)
    slope_x, slope_i = tf.gradients(y[0], [x, i])
    assert slope_i is None
    assert tf.Session().run(slope_x).tolist() == [1.0, 1.0]


def test_gradients_of_gradients():
    x = tf.placeholder(tf.float32, [None])
    y = tf.from_jax(lambda x: jnp.sin(x) * x)(x)
    (first,) = tf.gradients(y, x)
    (second,) = tf.gradients(first, x)
    (third,) = tf.gradients(second, x)
    at = np.array([0.5, -1.0], np.float32)
    with tf.Session() as session:
        found = session.run([second, third], {x: at})
    np.testing.assert_allclose(found[0], 2 * np.cos(at) - at * np.sin(at), rtol=1e-5)
    np.testing.assert_allclose(found[1], -3 * np.sin(at) - at * np.cos(at), rtol=1e-5)


def test_in_loops_and_branches():
    x, w = tf.placeholder(tf.float32, [None, 2]), tf.constant(_values(2, 2))
    function = tf.from_jax(_layer)

    def loop(step):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, step(y)), [0, x])[1]

    def branch(y):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: function(y, w), lambda: y)

    found, expected = loop(lambda y: function(y, w)), loop(lambda y: tf.tanh(y @ w))
    chosen = branch(x)
    slopes = [tf.gradients(y, [x, w]) for y in (found, expected)]
    with tf.Session() as session:
        for _ in range(3):
            got = session.run([found, *slopes[0]], {x: np.ones((3, 2))})
            wanted = session.run([expected, *slopes[1]], {x: np.ones((3, 2))})
            for a, b in zip(got, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5)
        np.testing.assert_allclose(
            session.run(chosen, {x: np.ones((1, 2))}),
            np.tanh(np.ones((1, 2)) @ _values(2, 2)),
            rtol=1e-5,
        )
        assert session.run(chosen, {x: -np.ones((1, 2))}).tolist() == [[-1.0, -1.0]]


def test_graph_files_hold_the_function_and_its_gradient():
    x, w = tf.placeholder(tf.float32, [None, 3], "x"), tf.constant(_values(3, 2), name="w")
    tf.from_jax(_layer, name="layer")(x, w)
    graph_def = tf.GraphDef.FromString(tf.get_default_graph().as_graph_def().SerializeToString())
    with tf.Graph().as_default():
        x, w, y = tf.import_graph_def(graph_def, return_elements=["x:0", "w:0", "layer:0"])
        assert y.shape.as_list() == [None, 2]
        slopes, expected = tf.gradients(y, [x, w]), tf.gradients(tf.tanh(x @ w), [x, w])
        with tf.Session() as session:
            for got, wanted in zip(
                *session.run([slopes, expected], {x: _values(4, 3)}), strict=True
            ):
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
        with pytest.raises(LookupError, match="gradients of the first order only"):
            tf.gradients(tf.gradients(y, x), x)


def test_on_two_tasks():
    _, servers = tf.test.create_local_cluster(1, 2)
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", initializer=_values(3, 2))
        x = tf.placeholder(tf.float32, [None, 3])
    with tf.device("/job:ps/task:1"):
        found, expected = _two_ways(x, w)
    with tf.Session(servers[0].target) as session:
        session.run(tf.global_variables_initializer())
        for got, wanted in zip(*session.run([found, expected], {x: _values(4, 3)}), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def _noise(x, key):
    return x + jax.random.normal(key, x.shape)


def test_random_functions_get_a_key_in_each_run():
    def draw():
        with tf.Graph().as_default():
            tf.set_random_seed(7)
            x = tf.zeros([3])
            noise = tf.from_jax(_noise, key_argument="key")
            with tf.Session() as session:
                return [session.run([noise(x), noise(x)]) for _ in range(3)]

    runs = np.array(draw())
    assert len(np.unique(runs)) == runs.size
    np.testing.assert_array_equal(runs, draw())


def test_a_key_may_be_given():
    key = jax.random.key_data(jax.random.key(3))
    y = tf.from_jax(_noise, key_argument="key")(tf.zeros([2]), key=np.asarray(key))
    expected = jax.random.normal(jax.random.key(3), (2,))
    np.testing.assert_allclose(tf.Session().run(y), expected, rtol=1e-6)


def test_unknown_first_sizes_are_one_size_where_a_function_needs_it():
    x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 2])
    total = tf.from_jax(lambda x, y: x + y)(x, y)
    assert total.shape.as_list() == [None, 2]
    with tf.Session() as session:
        values = {x: np.ones((3, 2)), y: np.ones((3, 2))}
        assert session.run(total, values).tolist() == [[2.0, 2.0]] * 3
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="JaxCall cannot take inputs of these shapes"
        ):
            session.run(total, {x: np.ones((3, 2)), y: np.ones((4, 2))})


def test_sizes_can_be_said_to_be_equal():
    x, y = tf.placeholder(tf.float32, [2, None]), tf.placeholder(tf.float32, [None, 2])
    with pytest.raises(TypeError):
        tf.from_jax(lambda x, y: x @ y)(x, y)
    product = tf.from_jax(lambda x, y: x @ y, polymorphic_shapes=["2, n", "n, 2"])(x, y)
    with tf.Session() as session:
        found = session.run(product, {x: np.ones((2, 4)), y: np.ones((4, 2))})
    assert found.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_shapes_that_do_not_fit_are_refused():
    x = tf.placeholder(tf.float32)
    with pytest.raises(ValueError, match=r"Placeholder:0 has no known rank.*set_shape"):
        tf.from_jax(jnp.sin)(x)
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.from_jax(lambda x: x @ jnp.ones((3, 2)), polymorphic_shapes=["n, 3"])
    with pytest.raises(ValueError, match=r"symbolic shape .n, 3."):
        y(x)


def test_errors_of_the_function_name_its_arguments_and_the_line():
    def product(a, b):
        return a @ b

    with pytest.raises(TypeError) as caught:
        tf.from_jax(product)(tf.ones([2, 3]), tf.ones([2, 3]))
    note = caught.value.__notes__[-1]
    assert note.startswith("tf.from_jax: product was traced on (float32(2, 3), float32(2, 3))")
    assert f"{__file__}:" in note


def test_what_is_no_function_or_no_number_is_refused():
    with pytest.raises(TypeError, match="takes a function on JAX arrays, not 3"):
        tf.from_jax(3)
    with pytest.raises(TypeError, match=r"<lambda> has no parameter 'key' .*\['x'\]"):
        tf.from_jax(lambda x: x, key_argument="key")
    with pytest.raises(TypeError, match=r"takes numbers; Const:0 has type string"):
        tf.from_jax(lambda x: x)(tf.constant("a"))
    with pytest.raises(TypeError, match="takes dense tensors"):
        tf.from_jax(lambda x: x)(tf.SparseTensor([[0]], [1.0], [2]))


def test_a_graph_file_with_another_program_is_refused():
    with pytest.raises(ValueError, match=r"no program of jax\.export"):
        tf.raw_ops.JaxCall([tf.ones([2])], Tout=[tf.float32], program=b"\xff\xfe")
    program = tf.from_jax(jnp.sin)(tf.ones([2])).op.attrs["program"]
    with pytest.raises(ValueError, match=r"takes inputs of types \['float32'\].*'int32'"):
        tf.raw_ops.JaxCall([tf.constant([1])], Tout=[tf.float32], program=program)
    with pytest.raises(ValueError, match=r"has shape \[2\]; it was given \[3\]"):
        tf.raw_ops.JaxCall([tf.ones([3])], Tout=[tf.float32], program=program)


def test_gradients_have_the_sizes_of_inputs_that_only_their_shapes_tell():
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None])
    total = tf.from_jax(lambda a, b: jnp.sum(a) + 0 * jnp.sum(b))(x, y)
    grads = tf.gradients(total, [x, y])
    with tf.Session() as session:
        for n in (2, 0):
            found = session.run(grads, {x: np.ones((n, 3)), y: np.ones(n + 1)})
            np.testing.assert_array_equal(found[0], np.ones((n, 3)))
            np.testing.assert_array_equal(found[1], np.zeros(n + 1))
