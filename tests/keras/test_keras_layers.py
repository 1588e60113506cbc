"""Layers of Keras called on tensors of a graph."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

layers = tf.keras.layers


def _images(count=4, seed=0):
    return np.random.RandomState(seed).rand(count, 8, 8, 1).astype(np.float32)


def _names(variables):
    return [v.op.name for v in variables]


def _global_names():
    return _names(tf.global_variables())


def test_a_layer_is_the_one_of_keras_and_its_variables_are_those_of_the_graph():
    import keras

    assert layers.Dense is keras.layers.Dense
    x = tf.placeholder(tf.float32, [None, 3])
    layer = layers.Dense(2, activation=tf.nn.relu)
    y = layer(x)
    assert y.shape.as_list() == [None, 2]
    assert _names(tf.trainable_variables()) == ["dense/kernel", "dense/bias"]
    assert layer.trainable_variables == tf.trainable_variables()
    assert layer.weights == tf.global_variables()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = np.float32([[1, 2, 3], [-1, 0, 1]])
        for _ in range(3):
            found, kernel = session.run([y, layer.kernel], {x: values})
            np.testing.assert_allclose(found, np.maximum(values @ kernel, 0), rtol=1e-5)
        assert session.run(y, {x: np.zeros((0, 3))}).shape == (0, 2)


def test_a_second_call_shares_the_weights():
    layer = layers.Dense(2, use_bias=False)
    a, b = layer(tf.ones([1, 3])), layer(tf.ones([1, 3]))
    assert _global_names() == ["dense/kernel"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(*session.run([a, b]))


def test_each_graph_numbers_names_from_the_start():
    for _ in range(2):
        with tf.Graph().as_default():
            x = tf.ones([1, 3])
            hidden = layers.Dense(3)(x)
            layers.Dense(2)(hidden)
            assert _global_names() == [
                "dense/kernel",
                "dense/bias",
                "dense_1/kernel",
                "dense_1/bias",
            ]


def test_names_that_a_scope_has_get_a_number():
    x = tf.ones([1, 3])
    tf.layers.dense(x, 2)
    layers.Dense(2)(x)
    with tf.variable_scope("tower"):
        layers.Dense(2, name="dense")(x)
    assert _global_names()[2:] == [
        "dense_1/kernel",
        "dense_1/bias",
        "tower/dense/kernel",
        "tower/dense/bias",
    ]


def test_scopes_share_partition_and_place_variables():
    x = tf.ones([1, 4])
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        a = layers.Dense(2, name="shared", use_bias=False)(x)
        b = layers.Dense(2, name="shared", use_bias=False)(x)
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        layers.Dense(2, name="parts", use_bias=False)(x)
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        layers.Dense(2, name="placed")(x)
    assert _global_names()[:3] == [
        "s/shared/kernel",
        "p/parts/kernel/part_0",
        "p/parts/kernel/part_1",
    ]
    assert [v.device for v in tf.global_variables()[3:]] == ["/job:ps/task:0", "/job:ps/task:1"]
    with tf.Session() as session:
        session.run(tf.variables_initializer(tf.global_variables()[:3]))
        np.testing.assert_array_equal(*session.run([a, b]))


def test_initial_values_follow_the_seed_of_the_graph_and_the_initialiser():
    def draw(seed):
        with tf.Graph().as_default():
            tf.set_random_seed(seed)
            first = layers.Dense(300, use_bias=False)
            ours = layers.Dense(2, kernel_initializer=tf.constant_initializer(3.0))
            first(tf.ones([1, 200])), ours(tf.ones([1, 2]))
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                return session.run([first.kernel, ours.kernel])

    one, again, other = draw(1), draw(1), draw(2)
    np.testing.assert_array_equal(one[0], again[0])
    assert not np.array_equal(one[0], other[0])
    limit = np.sqrt(6 / 500)
    assert np.abs(one[0]).max() <= limit
    assert abs(one[0].std() - limit / np.sqrt(3)) < 0.001
    assert one[1].tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_batch_normalization_updates_its_moments_by_operations():
    x = tf.placeholder(tf.float32, [None, 2])
    layer = layers.BatchNormalization(momentum=0.5)
    y = layer(x, training=True)
    assert _global_names() == [
        f"batch_normalization/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance")
    ]
    assert _names(tf.trainable_variables()) == _global_names()[:2]
    assert len(layer.updates) == 2
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == layer.updates
    values = np.float32([[1, 2], [3, 6]])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        normal = session.run(y, {x: values})
        np.testing.assert_allclose(normal, [[-1, -1], [1, 1]], atol=2e-3)
        session.run(layer.updates, {x: values})
        assert session.run(layer.moving_mean).tolist() == [1.0, 2.0]


def test_without_training_nothing_is_updated():
    layer = layers.BatchNormalization()
    layer(tf.ones([2, 2]), training=False)
    assert layer.updates == []


@pytest.mark.parametrize("way", ["tensor", "learning_phase"])
def test_training_may_be_a_tensor_or_the_learning_phase(way):
    x = tf.ones([100, 10])
    flag = tf.placeholder_with_default(False, []) if way == "tensor" else None
    y = layers.Dropout(0.5)(x, training=flag)
    normal = layers.BatchNormalization()
    normal(x, training=flag)
    flag = tf.keras.backend.learning_phase() if flag is None else flag
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(y).min() == 1.0
        session.run(normal.updates)
        assert session.run(normal.moving_mean)[0] == 0.0
        drawn = [session.run(y, {flag: True}) for _ in range(2)]
        assert set(np.unique(drawn)) == {0.0, 2.0}
        assert not np.array_equal(*drawn)
        session.run(normal.updates, {flag: True})
        np.testing.assert_allclose(session.run(normal.moving_mean)[0], 0.01, rtol=1e-5)


def test_the_learning_phase_may_be_set():
    tf.keras.backend.set_learning_phase(1)
    y = layers.Dropout(0.5)(tf.ones([100]))
    assert tf.Session().run(y).min() == 0.0
    with pytest.raises(ValueError, match=r"0 \(inference\) or 1 \(training\), not 2"):
        tf.keras.backend.set_learning_phase(2)


def test_dropout_follows_the_seed_of_the_graph():
    def draw():
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            y = layers.Dropout(0.5)(tf.ones([50]), training=True)
            with tf.Session() as session:
                return [session.run(y).tolist() for _ in range(2)]

    assert draw() == draw()


def test_losses_of_regularisers_and_activities():
    layer = layers.Dense(
        2,
        kernel_regularizer=tf.keras.regularizers.L2(0.5),
        bias_regularizer=tf.contrib.layers.l1_regularizer(2.0),
        activity_regularizer=tf.keras.regularizers.L1(1.0),
        kernel_initializer="ones",
        bias_initializer="ones",
    )
    layer(tf.ones([1, 3]))
    assert len(layer.losses) == 3
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == layer.losses
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(layer.losses) == [3.0, 4.0, 8.0]


def test_constraints_are_those_of_the_variables():
    layer = layers.Dense(1, kernel_constraint="non_neg", use_bias=False, kernel_initializer="ones")
    y = layer(tf.ones([1, 2]))
    train = tf.train.GradientDescentOptimizer(5.0).minimize(tf.reduce_sum(y))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(layer.kernel).tolist() == [[0.0], [0.0]]


def test_masks_go_from_layer_to_layer():
    ids = tf.placeholder(tf.int32, [None, 4])
    embedded = layers.Embedding(5, 3, mask_zero=True)(ids)
    last = layers.LSTM(2)(embedded)
    assert _global_names() == [
        "embedding/embeddings",
        "lstm/kernel",
        "lstm/recurrent_kernel",
        "lstm/bias",
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        short = session.run(last, {ids: [[1, 2, 0, 0]]})
        same = session.run(last, {ids: [[0, 0, 1, 2]]})
        other = session.run(last, {ids: [[1, 2, 3, 4]]})
    np.testing.assert_allclose(short, same, rtol=1e-6)
    assert not np.allclose(short, other)


def test_several_inputs_have_one_batch():
    a, b = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 3])
    y = layers.Concatenate()([a, b])
    assert y.shape.as_list() == [None, 5]
    found = tf.Session().run(y, {a: np.ones((2, 2)), b: np.zeros((2, 3))})
    assert found.tolist() == [[1, 1, 0, 0, 0]] * 2


class Scale(tf.keras.layers.Layer):
    """A layer as programs of 1.x write it, with our operations."""

    def build(self, input_shape):
        self.scale = self.add_weight(
            name="scale", shape=(int(input_shape[-1]),), initializer="ones"
        )
        super().build(input_shape)

    def call(self, x):
        return tf.nn.relu(tf.multiply(x, self.scale)) + tf.constant(1.0)


class Mlp(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(3)
        self.scale = Scale()

    def call(self, x):
        return self.scale(tf.nn.relu(self.hidden(x)))


def test_layers_and_models_of_programs_call_our_operations():
    x = tf.placeholder(tf.float32, [None, 2])
    model = Mlp()
    y = layers.Lambda(lambda t: tf.reduce_sum(t, 1))(model(x))
    assert _names(model.weights) == ["mlp/dense/kernel", "mlp/dense/bias", "mlp/scale/scale"]
    slopes = tf.gradients(y, model.trainable_weights)
    assert None not in slopes
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, kernel = session.run([y, model.hidden.kernel], {x: np.ones((2, 2))})
    np.testing.assert_allclose(found, np.maximum(np.ones((2, 2)) @ kernel, 0).sum(1) + 3, rtol=1e-5)


def test_sequential_and_functional_models_on_tensors():
    x = tf.placeholder(tf.float32, [None, 4])
    sequential = tf.keras.Sequential(
        [layers.Dense(3, activation="relu", input_shape=(4,)), layers.Dense(2)]
    )
    inputs = tf.keras.Input((4,))
    hidden = layers.Dense(3, name="hidden")(inputs)
    functional = tf.keras.Model(inputs, [hidden, layers.Dense(1, name="top")(hidden)])
    y, (h, top) = sequential(x), functional(x)
    assert _names(sequential.weights) == [
        *("dense/kernel", "dense/bias"),
        *("dense_1/kernel", "dense_1/bias"),
    ]
    assert _names(functional.weights)[::2] == ["hidden/kernel", "top/kernel"]
    values = np.random.RandomState(0).rand(3, 4).astype(np.float32)
    expected = [np.asarray(v) for v in (sequential(values), *functional(values))]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for found, wanted in zip(session.run([y, h, top], {x: values}), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_layers_survive_a_graph_file():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.identity(layers.Dense(2)(x), name="y")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        frozen = tf.graph_util.convert_variables_to_constants(
            session, session.graph.as_graph_def(), ["y"]
        )
        expected = session.run(y, {x: np.ones((2, 3))})
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(tf.GraphDef.FromString(frozen.SerializeToString()), name="")
        np.testing.assert_array_equal(session.run("y:0", {"x:0": np.ones((2, 3))}), expected)


def test_on_two_tasks():
    _, servers = tf.test.create_local_cluster(1, 2)
    x = tf.placeholder(tf.float32, [None, 3])
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker")):
        layer = layers.Dense(2)
        loss = tf.reduce_mean(tf.square(layer(x) - 1.0))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session(servers[0].target) as session:
        session.run(tf.global_variables_initializer())
        values = [session.run([loss, train], {x: np.ones((4, 3))})[0] for _ in range(5)]
    assert values == sorted(values, reverse=True)


def test_plain_keras_goes_on_working():
    layer = layers.Dense(2, kernel_initializer="ones")
    assert np.asarray(layer(np.ones((1, 3)))).tolist() == [[3.0, 3.0]]
    assert tf.global_variables() == []
    assert [v.path for v in layer.weights] == ["dense/kernel", "dense/bias"]


class Keeps(tf.keras.layers.Layer):
    def call(self, x):
        self.last = x * 2
        return x


def test_state_that_a_graph_cannot_carry_is_refused():
    with pytest.raises(
        ValueError, match=r"keeps a value of its call in the attribute 'last'.*add_weight"
    ):
        Keeps()(tf.ones([2]))


def test_wrong_inputs_are_named():
    with pytest.raises(ValueError, match="needs the rank of its input, but Placeholder:0"):
        layers.Dense(2)(tf.placeholder(tf.float32))
    with pytest.raises(ValueError, match="incompatible with the layer"):
        layers.Conv2D(2, 3)(tf.ones([2, 3]))
    layer = layers.Dense(2, name="built")
    layer.build((None, 3))
    with pytest.raises(ValueError, match="'built/kernel' has no variable in this graph"):
        tf.convert_to_tensor(layer.kernel)
    with pytest.raises(AttributeError, match=r"Did you mean 'Dense'"):
        layers.Dens  # noqa: B018
