"""Programs as people wrote them in 2018 and 2019, with strategies."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import headrace as tf

RNG = np.random.RandomState(0)
IMAGES = RNG.rand(48, 64).astype(np.float32)
LABELS = (IMAGES[:, :32].sum(1) > IMAGES[:, 32:].sum(1)).astype(np.int64)
needs_keras = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="needs Keras")
CPUS = ["/device:CPU:0", "/device:CPU:1"]


# After tensorflow/models/official/mnist with --num_gpus=2.


def create_model():
    return [
        tf.layers.Flatten(),
        tf.layers.Dense(16, activation=tf.nn.relu),
        tf.layers.Dropout(0.4),
        tf.layers.Dense(2),
    ]


def mnist_model_fn(features, labels, mode, params):
    def call(x, training):
        for layer in create_model():
            x = layer(x, training=training) if isinstance(layer, tf.layers.Dropout) else layer(x)
        return x

    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.train.AdamOptimizer(learning_rate=params["rate"])
        logits = call(features, training=True)
        loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
        accuracy = tf.metrics.accuracy(labels=labels, predictions=tf.argmax(logits, axis=1))
        tf.identity(params["rate"], "learning_rate")
        tf.identity(loss, "cross_entropy")
        tf.identity(accuracy[1], name="train_accuracy")
        tf.summary.scalar("train_accuracy", accuracy[1])
        return tf.estimator.EstimatorSpec(
            mode=tf.estimator.ModeKeys.TRAIN,
            loss=loss,
            train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        )
    logits = call(features, training=False)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    return tf.estimator.EstimatorSpec(
        mode=tf.estimator.ModeKeys.EVAL,
        loss=loss,
        eval_metric_ops={
            "accuracy": tf.metrics.accuracy(labels=labels, predictions=tf.argmax(logits, 1)),
        },
    )


@pytest.mark.slow
def test_the_mnist_estimator(tmp_path):
    """After tensorflow/models/official/mnist with --num_gpus=2."""

    session_config = tf.ConfigProto(allow_soft_placement=True)
    strategy = tf.contrib.distribute.MirroredStrategy(devices=CPUS)
    run_config = tf.estimator.RunConfig(
        tf_random_seed=1, train_distribute=strategy, session_config=session_config
    )
    classifier = tf.estimator.Estimator(
        model_fn=mnist_model_fn, model_dir=str(tmp_path), config=run_config, params={"rate": 1e-2}
    )

    def train_input_fn():
        ds = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS))
        ds = ds.cache().shuffle(buffer_size=48, seed=1).batch(12)
        return ds.repeat(12)

    def eval_input_fn():
        return tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).batch(12)

    hooks = [tf.train.LoggingTensorHook(["learning_rate", "cross_entropy"], every_n_iter=10)]
    classifier.train(input_fn=train_input_fn, hooks=hooks)
    results = classifier.evaluate(input_fn=eval_input_fn)
    assert results["global_step"] == 24  # 48 batches, two at a time
    assert results["accuracy"] > 0.8
    tf.summary.FileWriterCache.clear()


def test_a_custom_loop_with_run_v2():
    """After the guide of 1.14: "Using tf.distribute.Strategy with custom training loops"."""
    strategy = tf.distribute.MirroredStrategy(CPUS)
    global_batch_size = 12
    with strategy.scope():
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(1000).batch(global_batch_size)
        dist_dataset = strategy.experimental_distribute_dataset(dataset)

        def train_step(dist_inputs):
            def step_fn(inputs):
                features, labels = inputs
                logits = tf.layers.dense(features, 1, kernel_initializer=tf.zeros_initializer())
                cross_entropy = tf.square(logits - labels)
                loss = tf.reduce_sum(cross_entropy) * (1.0 / global_batch_size)
                train_op = optimizer.minimize(loss)
                with tf.control_dependencies([train_op]):
                    return tf.identity(loss)

            per_replica_losses = strategy.experimental_run_v2(step_fn, args=(dist_inputs,))
            return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)

        input_iterator = dist_dataset.make_initializable_iterator()
        iterator_init = input_iterator.initialize()
        loss = train_step(input_iterator.get_next())
        with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as sess:
            sess.run([iterator_init])
            sess.run(tf.global_variables_initializer())
            losses = [float(sess.run(loss)) for _ in range(4)]
    np.testing.assert_allclose(losses, [1.0, 0.36, 0.1296, 0.046656], rtol=1e-5)


def test_call_for_each_tower_of_1_12():
    distribution = tf.contrib.distribute.MirroredStrategy(CPUS)
    with distribution.scope():
        numbers = distribution.distribute_dataset(lambda: tf.data.Dataset.range(8).batch(2))
        iterator = numbers.make_initializable_iterator()

        def tower(x):
            v = tf.get_variable("v", initializer=0.0, aggregation=tf.VariableAggregation.SUM)
            return v.assign_add(tf.reduce_sum(tf.to_float(x)))

        updates = distribution.call_for_each_tower(tower, iterator.get_next())
        value = tf.group(distribution.unwrap(updates))
        v = tf.get_variable("w", initializer=1.0)
        doubled = distribution.update(v, lambda copy: copy.assign(2.0 * copy))
    assert distribution.num_towers == 2
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run([iterator.initializer, tf.global_variables_initializer()])
        sess.run([value, doubled])
        (made,) = [x for x in tf.global_variables() if x.op.name == "v"]
        assert sess.run([c.value() for c in made.values]) == [6.0, 6.0]
        assert sess.run([c.value() for c in v.values]) == [2.0, 2.0]


@needs_keras
@pytest.mark.slow
def test_keras_fit_in_a_scope():
    strategy = tf.distribute.MirroredStrategy(CPUS)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
        model.compile(loss="mse", optimizer="sgd")
    dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(100).batch(10)
    history = model.fit(dataset, epochs=2, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    model.compile(loss="mse", optimizer="sgd", distribute=strategy)
    with pytest.raises(ValueError, match=r"takes a strategy of tf.distribute: 3"):
        model.compile(loss="mse", optimizer="sgd", distribute=3)


@needs_keras
@pytest.mark.slow
def test_a_keras_model_in_replicas():
    strategy = tf.distribute.MirroredStrategy(CPUS)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="zeros")])
        data = tf.data.Dataset.from_tensor_slices((IMAGES[:, :4], IMAGES[:, :1])).batch(48)
        batches = strategy.make_dataset_iterator(data.repeat())

        def step(x, y):
            loss = tf.reduce_sum(tf.square(model(x) - y)) / 48.0
            return tf.train.GradientDescentOptimizer(0.2).minimize(loss), loss

        train, losses = strategy.experimental_run_v2(step, args=batches.get_next())
        loss = strategy.reduce(tf.distribute.ReduceOp.SUM, losses)
    with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as sess:
        sess.run([batches.initializer, tf.global_variables_initializer()])
        seen = []
        for _ in range(20):
            seen.append(sess.run(loss))
            sess.run(strategy.unwrap(train))
        (kernel,) = [v for v in tf.trainable_variables() if v.op.name.endswith("kernel")]
        kernels = sess.run([c.value() for c in kernel.values])
    assert seen[-1] < 0.5 * seen[0]
    np.testing.assert_array_equal(*kernels)


@needs_keras
@pytest.mark.slow
def test_a_keras_model_as_an_estimator(tmp_path):
    """Its losses in two replicas are those of one device with batches of twice the size."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile(loss="mse", optimizer="sgd")

    def kernel(name, batch, **settings):
        def input_fn():
            data = tf.data.Dataset.from_tensor_slices((IMAGES[:, :4], IMAGES[:, :1]))
            return data.batch(batch).repeat()

        config = tf.estimator.RunConfig(**settings)
        estimator = tf.keras.estimator.model_to_estimator(
            model, model_dir=str(tmp_path / name), config=config
        )
        estimator.train(input_fn, steps=4)
        tf.summary.FileWriterCache.clear()
        return estimator.get_variable_value("dense/kernel")

    strategy = tf.distribute.MirroredStrategy(CPUS)
    np.testing.assert_allclose(
        kernel("two", 12, train_distribute=strategy), kernel("one", 24), rtol=1e-4, atol=1e-6
    )
