"""What strategies say of programs that cannot be right."""

from __future__ import annotations

import pytest

import headrace as tf
from headrace.distribute import MirroredStrategy, OneDeviceStrategy, ReduceOp


@pytest.fixture
def strategy():
    return MirroredStrategy(["/cpu:0", "/cpu:1"])


def sgd():
    return tf.train.GradientDescentOptimizer(0.1)


def replica():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def run(strategy, fn):
    with strategy.scope():
        return strategy.experimental_run_v2(fn)


@pytest.mark.skipif(
    any(d.device_type == "GPU" for d in tf.Session().list_devices()), reason="has GPUs"
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: MirroredStrategy(["/gpu:0", "/gpu:1"]),
        lambda: tf.contrib.distribute.MirroredStrategy(num_gpus=2),
    ],
)
def test_more_replicas_than_accelerators(make):
    message = (
        "MirroredStrategy is asked for 2 replicas on /device:GPU:0, /device:GPU:1, but this "
        "process has CPU devices only: /device:GPU:0 is not there"
    )
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.skipif(
    any(d.device_type == "GPU" for d in tf.Session().list_devices()), reason="has GPUs"
)
def test_more_gpus_of_each_worker_than_there_are():
    with pytest.raises(ValueError, match=r"asked for 2 replicas on GPUs of each worker.* has 0"):
        tf.contrib.distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=2)


def test_more_replicas_than_the_session_has_cpu_devices(strategy):
    number = run(strategy, lambda: tf.constant(1.0) + 1.0)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as error:
        session.run(strategy.experimental_local_results(number))
    assert "/device:CPU:1 but" in str(error.value)
    assert "device_count={'CPU': 2}" in str(error.value)


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ([], "needs at least one device, but `devices` is empty"),
        (["/cpu:0", "/cpu:0"], "No duplicates are allowed in `devices`.* /device:CPU:0 more"),
    ],
)
def test_lists_of_devices(devices, message):
    with pytest.raises(ValueError, match=message):
        MirroredStrategy(devices)


def test_variables_made_before_the_scope(strategy):
    w = tf.get_variable("early", initializer=1.0)
    made = tf.get_default_graph().version
    loss_ops = 1
    message = (
        "The variables early:0 were made outside of the scope of MirroredStrategy, so they have no "
        r"copies in its 2 replicas .* Open `with strategy.scope\(\):` before the model is built"
    )
    with pytest.raises(ValueError, match=message):
        run(strategy, lambda: sgd().minimize(w * w))
    assert tf.get_default_graph().version == made + loss_ops  # nothing half-built
    with pytest.raises(ValueError, match=r"early:0 were made outside"):
        run(strategy, lambda: sgd().apply_gradients([(tf.constant(1.0), w)]))


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda: tf.train.SyncReplicasOptimizer(sgd(), 2),
        lambda: tf.train.AllReduceOptimizer(sgd(), 2),
    ],
)
def test_optimizers_that_cannot_be_split(strategy, wrapped):
    def step():
        w = tf.get_variable("w", initializer=1.0)
        return wrapped().minimize(w * w, tf.train.get_or_create_global_step())

    with pytest.raises(
        ValueError, match=r"Optimizer cannot be split over the replicas of Mirrored"
    ):
        run(strategy, step)


def test_optimizers_across_replicas(strategy):
    with strategy.scope():
        w = tf.get_variable("w", initializer=1.0)
        with pytest.raises(RuntimeError, match=r"is called across the replicas of Mirrored"):
            sgd().minimize(w * w)


def test_nested_scopes(strategy):
    with strategy.scope(), strategy.scope():
        pass
    with strategy.scope(), pytest.raises(RuntimeError, match=r"Must not nest tf.distribute"):
        OneDeviceStrategy("/cpu:0").scope().__enter__()
    with pytest.raises(RuntimeError, match=r"Must not nest .* in replica 0"):
        run(strategy, lambda: strategy.scope().__enter__())
    assert not tf.distribute.has_strategy()


def test_replicas_that_make_different_variables(strategy):
    def step():
        if replica() == 1:
            tf.Variable(1.0, name="only_here")

    with pytest.raises(
        ValueError, match=r"Replica 1 makes the variable 'only_here', which replica"
    ):
        run(strategy, step)


def test_replicas_that_return_different_structures(strategy):
    with pytest.raises(
        ValueError, match=r"replica 0 returns a list of 0 parts and replica 1 a list"
    ):
        run(strategy, lambda: [1.0] * replica())
    with pytest.raises(ValueError, match=r"replica 0 returns None and replica 1 a Tensor"):
        run(strategy, lambda: tf.constant(1.0) if replica() else None)


def test_replicas_that_do_not_meet(strategy):
    def step():
        if replica() == 0:
            tf.distribute.get_replica_context().merge_call(lambda _: None)

    with pytest.raises(
        RuntimeError, match=r"Replica 0 asks for what takes all replicas.* replica 1"
    ):
        run(strategy, step)


def test_unequal_values(strategy):
    values = run(strategy, lambda: tf.zeros([replica() + 1]))
    with strategy.scope(), pytest.raises(ValueError, match=r"replica 0 has float32 \(1,\)"):
        strategy.reduce(ReduceOp.SUM, values)
    with pytest.raises(TypeError, match=r"holds a value for each replica. It cannot be fetched"):
        tf.Session().run(values)
    with pytest.raises(ValueError, match=r"no single value across replicas"):
        tf.identity(values)


def test_an_error_in_one_replica_ends_the_others(strategy):
    def step():
        tf.distribute.get_replica_context().merge_call(lambda _: None)
        if replica():
            raise KeyError("lost")

    with pytest.raises(KeyError, match=r"lost") as error:
        run(strategy, step)
    assert "This is in replica 1 of 2" in error.value.__notes__[0]
    assert tf.constant(1.0).op.name == "Const"  # scopes are as they were


def test_updates_in_replicas_need_an_aggregation(strategy):
    def step():
        return tf.get_variable("w", initializer=1.0).assign(2.0)

    with pytest.raises(ValueError, match=r"You must specify an aggregation method to update the"):
        run(strategy, step)


def test_meeting_inside_a_branch(strategy):
    def step():
        context = tf.distribute.get_replica_context()
        return tf.cond(
            tf.constant(True), lambda: context.merge_call(lambda _: 1.0), lambda: tf.constant(1.0)
        )

    with pytest.raises(RuntimeError, match=r"cannot stand inside tf.cond"):
        run(strategy, step)


def test_batches_that_cannot_be_divided(strategy):
    data = tf.data.Dataset.range(9).batch(3)
    with pytest.raises(ValueError, match=r"batch size 3 .* is not divisible by .* 2: .*batch\(2 "):
        strategy.experimental_distribute_dataset(data)
    rows = strategy.experimental_distribute_dataset(tf.data.Dataset.range(9))
    with pytest.raises(ValueError, match=r"has no rows. Use dataset.batch"):
        rows.make_one_shot_iterator().get_next()


def test_functions_of_all_replicas_in_a_replica(strategy):
    with pytest.raises(RuntimeError, match=r"nest"):
        run(strategy, lambda: strategy.reduce(ReduceOp.SUM, tf.constant(1.0)))
    with pytest.raises(RuntimeError, match=r"is for all replicas together.* replica 0"):
        run(strategy, lambda: strategy.extended.reduce_to(ReduceOp.SUM, tf.constant(1.0), None))


def test_values_of_arguments(strategy):
    with pytest.raises(TypeError, match=r"reduce_op is tf.distribute.ReduceOp.SUM or"):
        strategy.reduce("PRODUCT", tf.constant(1.0))
    with pytest.raises(TypeError, match=r"cross_device_ops is a tf.distribute.CrossDeviceOps"):
        MirroredStrategy(cross_device_ops="nccl")
    with pytest.raises(TypeError, match=r"distributes a tf.data.Dataset"):
        strategy.experimental_distribute_dataset([1, 2])
