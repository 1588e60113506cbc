"""Variables in replicas: copies, aggregation, metrics, statistics, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.distribute import MirroredStrategy, ReduceOp

SUM, MEAN = tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN
FIRST = tf.VariableAggregation.ONLY_FIRST_REPLICA
ON_READ = tf.VariableSynchronization.ON_READ


@pytest.fixture
def strategy():
    return MirroredStrategy(["/cpu:0", "/cpu:1"])


@pytest.fixture
def session(strategy):
    with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as made:
        yield made


def number():
    return float(tf.distribute.get_replica_context().replica_id_in_sync_group)


@pytest.mark.parametrize(("aggregation", "value"), [(SUM, 3.0), (MEAN, 1.5), (FIRST, 1.0)])
def test_updates_in_replicas_come_together(strategy, session, aggregation, value):
    def step():
        v = tf.get_variable("v", initializer=0.0, aggregation=aggregation)
        return v.assign_add(number() + 1.0)

    with strategy.scope():
        seen = strategy.experimental_run_v2(step)
    session.run(tf.global_variables_initializer())
    assert session.run(strategy.experimental_local_results(seen)) == (value, value)


def test_what_an_update_across_replicas_gives(strategy, session):
    with strategy.scope():
        v = tf.get_variable("v", initializer=[1.0, 2.0, 3.0])
        doubled = v.assign(2.0 * v)
        with tf.control_dependencies([doubled]):
            scattered = tf.scatter_add(v, [0, 2], [10.0, 20.0])
    session.run(v.initializer)
    assert session.run(scattered).tolist() == [12.0, 4.0, 26.0]
    for copy in v.values:
        assert session.run(copy.value()).tolist() == [12.0, 4.0, 26.0]
    v.load([0.0, 0.0, 1.0], session)
    assert session.run([c.value() for c in v.values])[1].tolist() == [0.0, 0.0, 1.0]


def test_random_starts_are_those_of_the_first_copy(strategy, session):
    with strategy.scope():
        v = tf.get_variable("v", [100])
    session.run(tf.global_variables_initializer())
    first, second = session.run([c.value() for c in v.values])
    np.testing.assert_array_equal(first, second)
    assert first.std() > 0
    assert [x.op.name for x in tf.global_variables()] == ["v"]
    assert [c.device for c in v.values] == ["/device:CPU:0", "/device:CPU:1"]


def test_variables_by_class_and_default_names_are_shared(strategy):
    def step():
        made = tf.Variable(1.0), tf.layers.Dense(2), tf.layers.Dense(2)
        x = tf.ones([1, 3])
        return made[2](made[1](x)) + made[0]

    with strategy.scope():
        strategy.experimental_run_v2(step)
        strategy.experimental_run_v2(lambda: tf.layers.dense(tf.ones([1, 3]), 1))
    names = [v.op.name for v in tf.trainable_variables()]
    assert names == [
        "Variable",
        "dense/kernel",
        "dense/bias",
        "dense_1/kernel",
        "dense_1/bias",
        "dense_2/kernel",
        "dense_2/bias",
    ]


@pytest.mark.parametrize(("aggregation", "together"), [(SUM, 5.0), (MEAN, 2.5), (FIRST, 2.0)])
def test_variables_that_meet_when_read(strategy, session, aggregation, together, tmp_path):
    def step():
        v = tf.get_variable("v", initializer=0.0, synchronization=ON_READ, aggregation=aggregation)
        assert not v.trainable
        return v.assign(number() + 2.0)

    with strategy.scope():
        updates = strategy.experimental_run_v2(step)
        (v,) = tf.global_variables()
        value = v.read_value()
        saver = tf.train.Saver()
    session.run(tf.global_variables_initializer())
    assert session.run(strategy.experimental_local_results(updates)) == (2.0, 3.0)
    assert session.run([v, value]) == [together, together]
    path = saver.save(session, str(tmp_path / "model"))
    assert tf.train.load_variable(path, "v") == together
    session.run(v.initializer)
    assert session.run(v) == 0.0
    saver.restore(session, path)
    assert session.run(v) == together


def test_a_checkpoint_is_that_of_one_device(strategy, session, tmp_path):
    def step():
        w = tf.get_variable("w", initializer=[1.0, 2.0])
        return tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w * w))

    with strategy.scope():
        train = strategy.experimental_run_v2(step)
        saver = tf.train.Saver()
    session.run(tf.global_variables_initializer())
    session.run(strategy.group(train))
    path = saver.save(session, str(tmp_path / "model"))
    values = {name: tf.train.load_variable(path, name) for name, _ in tf.train.list_variables(path)}
    assert sorted(values) == ["beta1_power", "beta2_power", "w", "w/Adam", "w/Adam_1"]
    session.run(tf.global_variables_initializer())
    saver.restore(session, path)
    (w,) = tf.trainable_variables()
    for copy in w.values:
        np.testing.assert_array_equal(session.run(copy.value()), values["w"])
    with tf.Graph().as_default(), tf.Session() as alone:
        step()
        tf.train.Saver().restore(alone, path)
        np.testing.assert_array_equal(alone.run("w:0"), values["w"])


def test_metrics_count_what_all_replicas_see(strategy, session):
    labels, predictions = np.arange(8) % 2, np.array([0, 1, 1, 1, 0, 0, 1, 1])
    data = tf.data.Dataset.from_tensor_slices((labels, predictions)).batch(8)

    def step(a, b):
        both = tf.metrics.accuracy(a, b), tf.metrics.root_mean_squared_error(a, b)
        return [m[0] for m in both], [m[1] for m in both]

    with strategy.scope():
        batches = strategy.make_dataset_iterator(data)
        values, updates = strategy.experimental_run_v2(step, batches.get_next())
        update = strategy.group(updates)
        results = [strategy.experimental_local_results(v) for v in values]
    session.run([batches.initializer, tf.local_variables_initializer()])
    session.run(update)
    right = np.mean(labels == predictions)
    found = session.run(results)
    np.testing.assert_allclose(found[0], [right, right])
    np.testing.assert_allclose(found[1], [np.sqrt(1 - right)] * 2, rtol=1e-6)


def test_losses_in_collections_belong_to_their_replica(strategy, session):
    def step():
        tf.get_variable("w", initializer=3.0, regularizer=lambda w: 0.5 * w)
        tf.losses.absolute_difference([0.0], [number()])
        return tf.losses.get_total_loss(add_regularization_losses=False)

    with strategy.scope():
        totals = strategy.experimental_run_v2(step)
    session.run(tf.global_variables_initializer())
    assert session.run(strategy.experimental_local_results(totals)) == (0.0, 1.0)
    assert len(tf.get_collection(tf.GraphKeys.LOSSES)) == 2


def test_all_reduce_and_its_gradient(strategy, session):
    def step():
        x = tf.constant([1.0, 2.0]) * (number() + 1.0)
        total = tf.distribute.get_replica_context().all_reduce(ReduceOp.SUM, x)
        (grad,) = tf.gradients(total * (number() + 1.0), x)
        mean = tf.distribute.get_replica_context().all_reduce(ReduceOp.MEAN, {"x": x})
        return total, grad, mean["x"]

    with strategy.scope():
        total, grad, mean = strategy.experimental_run_v2(step)
    locals_of = strategy.experimental_local_results
    assert [t.tolist() for t in session.run(locals_of(total))] == [[3.0, 6.0]] * 2
    assert [t.tolist() for t in session.run(locals_of(grad))] == [[3.0, 3.0]] * 2
    assert [t.tolist() for t in session.run(locals_of(mean))] == [[1.5, 3.0]] * 2


def test_reductions_over_an_axis(strategy, session):
    data = tf.data.Dataset.range(1, 6).map(tf.to_float).batch(4)
    with strategy.scope():
        batches = strategy.make_dataset_iterator(data)
        rows = batches.get_next()
        total = strategy.reduce(ReduceOp.SUM, rows, axis=0)
        mean = strategy.reduce(ReduceOp.MEAN, rows, axis=0)
        count = strategy.reduce(ReduceOp.SUM, tf.constant(1.0))
    session.run(batches.initializer)
    assert session.run([total, mean, count]) == [10.0, 2.5, 2.0]
    assert session.run([total, mean]) == [5.0, 5.0]  # a row for one replica, none for the other


def test_creators_of_variables():
    made = []

    def creator(next_creator, **kwargs):
        made.append(kwargs["name"])
        return next_creator(**{**kwargs, "trainable": False})

    with tf.variable_creator_scope(creator):
        tf.get_variable("a", [2])
        tf.Variable(1.0, name="b")
    tf.Variable(1.0, name="c")
    assert made == ["a", "b"]
    assert [v.op.name for v in tf.trainable_variables()] == ["c"]
    with tf.Graph().as_default():
        assert not tf.trainable_variables()


def test_a_strategy_that_is_set(strategy):
    tf.distribute.experimental_set_strategy(strategy)
    try:
        assert tf.distribute.get_strategy() is strategy
        assert tf.distribute.in_cross_replica_context()
        assert tf.distribute.get_replica_context() is None
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()
    assert tf.distribute.get_replica_context().num_replicas_in_sync == 1


def test_sparse_batches(strategy, session):
    sparse = tf.SparseTensor([[0, 1], [2, 0], [3, 3]], [1.0, 2.0, 3.0], [4, 4])
    data = tf.data.Dataset.from_tensors(sparse).map(lambda s: {"s": s})
    with strategy.scope():
        batches = strategy.make_dataset_iterator(data)
        parts = batches.get_next()["s"]
        dense = [tf.sparse.to_dense(p) for p in strategy.experimental_local_results(parts)]
    session.run(batches.initializer)
    first, second = session.run(dense)
    assert first.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
    assert second.tolist() == [[2, 0, 0, 0], [0, 0, 0, 3]]


def test_steps_behind_each_other(strategy, session):
    with strategy.scope():
        batches = strategy.make_input_fn_iterator(lambda _: tf.data.Dataset.range(1, 9))
        v = tf.get_variable("v", initializer=tf.constant(0, tf.int64), aggregation=SUM)

        def step(context, x):
            strategy.experimental_run_v2(v.assign_add, args=(x,))
            context.set_last_step_output("x", x, ReduceOp.SUM)

        context = strategy.extended.experimental_run_steps_on_iterator(step, batches, 3)
    session.run([batches.initializer, v.initializer])
    assert session.run([context.run_op, context.last_step_outputs["x"]])[1] == 11
    assert session.run(v) == 21


def test_regularisers_hold_in_all_replicas(strategy, session):
    def step():
        w = tf.get_variable("w", initializer=3.0, regularizer=lambda w: 0.5 * w * w)
        tf.get_variable("w", initializer=3.0, regularizer=lambda w: 0.5 * w * w)
        return tf.gradients(tf.losses.get_regularization_loss(), w)[0]

    with strategy.scope(), tf.variable_scope("", reuse=tf.AUTO_REUSE):
        grads = strategy.experimental_run_v2(step)
    session.run(tf.global_variables_initializer())
    assert session.run(strategy.experimental_local_results(grads)) == (3.0, 3.0)


def test_the_first_replica_writes_summaries(strategy, session):
    with strategy.scope():
        written = strategy.experimental_run_v2(lambda: tf.summary.scalar("loss", number()))
    first, second = session.run(strategy.experimental_local_results(written))
    assert second == b""
    assert tf.Summary.FromString(first).value[0].tag == "loss"
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 1


def test_moving_averages_are_those_of_the_mean(strategy, session):
    def step():
        ema = tf.train.ExponentialMovingAverage(0.5)
        value = tf.identity(number() + 1.0)
        update = ema.apply([tf.get_variable("w", initializer=4.0)])
        with tf.control_dependencies([update]):
            return tf.identity(value)

    with strategy.scope():
        updates = strategy.experimental_run_v2(step)
    session.run(tf.global_variables_initializer())
    session.run(tf.trainable_variables()[0].assign(8.0))
    session.run(strategy.experimental_local_results(updates))
    assert session.run("w/ExponentialMovingAverage:0") == 6.0


def test_tables_of_embeddings_are_shared(strategy, session):
    with strategy.scope():
        table = tf.EmbeddingTable(2, initializer=tf.ones_initializer(), name="table")
        keys = strategy.make_dataset_iterator(tf.data.Dataset.from_tensors([7, 9, 7, 5]))

        def step(own):
            loss = tf.reduce_sum(tf.nn.embedding_lookup(table, tf.to_int64(own)))
            return tf.train.GradientDescentOptimizer(0.25).minimize(loss)

        train = strategy.group(strategy.experimental_run_v2(step, args=(keys.get_next(),)))
    found = tf.nn.embedding_lookup(table, tf.constant([5, 7, 9], tf.int64))
    session.run(keys.initializer)
    session.run(train)
    assert session.run(found)[:, 0].tolist() == [0.75, 0.5, 0.75]
