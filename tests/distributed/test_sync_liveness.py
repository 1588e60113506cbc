"""Synchronous replicas that end early, come late, fail or disagree: nobody waits for ever."""

import numpy as np
import pytest
from server_clusters import eventually
from sync_training import Replica

import headrace as tf
from headrace.errors import InvalidArgumentError

RATE = 0.5


def model(gradient=1.0):
    """The loss is ``gradient * w``: each update moves ``w`` by RATE times the average."""
    step = tf.train.get_or_create_global_step()
    factor = tf.placeholder_with_default(np.float32(gradient), [])
    w = tf.get_variable("w", initializer=0.0)
    b = tf.get_variable("b", initializer=0.0)
    return (w + b) * factor, step, lambda i: {}


def optimizer(needed, total=None):
    return lambda: tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(RATE), needed, total
    )


def replica(servers, index, needed, total=None, gradient=1.0, num_tokens=0):
    return Replica(servers, index, lambda: model(gradient), optimizer(needed, total), num_tokens)


def values(servers):
    """Step and variables as they are on the server."""
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=servers.spec)):
            _, step, _ = model()
            wanted = [step, *tf.trainable_variables()]
        with tf.Session(servers.target("ps")) as sess:
            return [v.item() for v in sess.run(wanted)]


@pytest.mark.parametrize("batches", [(2, 4, 6), (6, 2, 4), (1, 5, 5)], ids=str)
def test_replicas_that_end_after_different_numbers_of_batches(cluster, batches):
    """The first is the chief: when it has ended another one applies the gradients."""
    servers = cluster(ps=2, worker=3)
    replicas = [replica(servers, i, 3) for i in range(3)]
    for one in replicas:
        one.open()
    for one, count in zip(replicas, batches, strict=True):
        one.go(range(count), then_close=True)
    for one in replicas:
        one.ends()
    for one, count in zip(replicas, batches, strict=True):
        assert len(one.tokens) == count
        assert one.tokens == sorted(one.tokens)
    step, w, b = values(servers)
    # Each gradient is 1, so is each average: each update has moved both alike.
    assert (w, b) == (-RATE * step, -RATE * step)
    assert min(batches) <= step <= max(batches)


def test_a_replica_that_comes_late_is_counted(cluster):
    servers = cluster(ps=1, worker=2)
    chief, other = replica(servers, 0, 2), replica(servers, 1, 2)
    chief.open()
    other.open()
    other.go(range(1), then_close=True)
    chief.go(range(3))
    for one in (chief, other):
        one.ends()
    assert chief.tokens == [1, 2, 3]
    assert chief.tokens == [1, 2, 3]
    # The other one has ended, and the chief went on alone. One who comes now is counted again.
    late = replica(servers, 1, 2, gradient=3.0).open()
    late.go(range(4), then_close=True)
    chief.go(endless(late))
    for one in (late, chief):
        one.ends()
    assert len(late.tokens) == 4
    step, w, _ = values(servers)
    assert w < -RATE * step  # some averages had his gradients
    chief.close()


def endless(other):
    """Batches as long as another replica trains."""
    i = 0
    while other.is_training():
        yield i
        i += 1


def test_announced_replicas_are_waited_for(cluster):
    """The first update takes a gradient of each, however long the last one takes to come."""
    servers = cluster(ps=1, worker=2)
    chief = replica(servers, 0, 2).open()
    chief.go(range(1))
    eventually(lambda: servers["ps", 0].task.worker.running())
    other = replica(servers, 1, 2, gradient=5.0).open()
    assert chief.tokens == []
    other.go(range(1), then_close=True)
    for one in (chief, other):
        one.ends()
    assert values(servers)[:2] == [1, -RATE * 3.0]
    chief.close()


def test_backups_are_not_waited_for_and_their_late_gradients_are_dropped(cluster):
    servers = cluster(ps=1, worker=2)
    chief = replica(servers, 0, 1, 2).open()
    backup = replica(servers, 1, 1, 2, gradient=100.0).open()
    for updates in (1, 2, 2):
        chief.go(range(1))
        chief.ends()
        # The token may be one of the update before.
        eventually(lambda: values(servers)[0] == updates)  # noqa: B023
    # Two tokens came with each update: the second one of step 1 gave a gradient that was stale.
    assert chief.tokens == [1, 1, 2]
    assert values(servers)[:2] == [2, -RATE * 2]
    # The local step of the backup is 0.
    backup.go(range(1))
    backup.ends()
    assert backup.tokens == [2]
    assert values(servers)[:2] == [2, -RATE * 2]
    backup.go(range(1))
    backup.ends()
    assert backup.tokens == [2, 3]
    assert values(servers)[:2] == [3, -RATE * 102]
    backup.close()
    chief.close()


def test_more_gradients_than_replicas(cluster):
    servers = cluster(ps=1, worker=2)
    replicas = [replica(servers, i, 4, 2, num_tokens=2).open() for i in range(2)]
    for one in replicas:
        one.go(range(4), then_close=True)
    for one in replicas:
        one.ends()
    step, w, _ = values(servers)
    assert w == -RATE * step
    assert step >= 2


def test_sessions_of_one_server_are_replicas_too(cluster):
    servers = cluster(worker=1)
    replicas = [Replica(servers, 0, lambda g=g: model(g), optimizer(2)) for g in (1.0, 3.0)]
    replicas[1].is_chief = False
    replicas[1].hook = replicas[1].optimizer.make_session_run_hook(False)
    for one in replicas:
        one.open()
    for one in replicas:
        one.go(range(3))
    for one in replicas:
        one.ends()
        assert one.tokens == [1, 2, 3]
    assert replicas[0].session.run(replicas[0].variables) == [-RATE * 6.0] * 2
    for one in replicas:
        one.close()


def test_an_update_that_fails_ends_all_replicas(cluster):
    servers = cluster(ps=1, worker=2)

    class Checked(tf.train.GradientDescentOptimizer):
        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            checked = [(tf.check_numerics(g, "bad average"), v) for g, v in grads_and_vars]
            return super().apply_gradients(checked, global_step, name)

    def make():
        return tf.train.SyncReplicasOptimizer(Checked(RATE), 2)

    replicas = [
        Replica(servers, i, lambda g=g: model(g), make).open()
        for i, g in enumerate((1.0, float("nan")))
    ]
    for one in replicas:
        one.go(range(1000))
    for one in replicas:
        one._thread.join(60)
        assert isinstance(one.error, InvalidArgumentError), one.error
        assert "bad average" in str(one.error)
    assert values(servers)[1] == 0.0
    for one in replicas:
        with pytest.raises(InvalidArgumentError, match="bad average"):
            one.close()


def test_more_replicas_than_the_cluster_has(cluster):
    servers = cluster(ps=1, worker=2)
    with pytest.raises(
        ValueError, match=r"total_num_replicas=3, but the cluster has 2 tasks .*/ta"
    ):
        replica(servers, 0, 2, 3).open()


def test_replicas_that_disagree(cluster):
    servers = cluster(ps=1, worker=2)
    chief = replica(servers, 0, 2).open()
    with pytest.raises(
        InvalidArgumentError, match=r"'replicas_to_aggregate': 1.*worker/task:0.* 2"
    ):
        replica(servers, 1, 1, 2).open()
    chief.close()


@pytest.mark.parametrize(
    ("numbers", "error", "text"),
    [
        ((0,), ValueError, "replicas_to_aggregate must be positive, not 0"),
        ((2, -1), ValueError, "total_num_replicas must be positive, not -1"),
        ((1.5,), TypeError, r"replicas_to_aggregate must be a whole number, not 1\.5"),
    ],
)
def test_numbers_of_replicas(numbers, error, text):
    with pytest.raises(error, match=text):
        tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), *numbers)


def test_calls_in_the_wrong_order():
    with pytest.raises(TypeError, match=r"opt must be a tf.train.Optimizer, not 3"):
        tf.train.SyncReplicasOptimizer(3, 1)
    opt = optimizer(4, 2)()
    for call in (opt.get_chief_queue_runner, opt.get_init_tokens_op):
        with pytest.raises(ValueError, match=r"called after apply_gradients\(\)"):
            call()
    with pytest.raises(ValueError, match="Must supply at least one variable"):
        opt.apply_gradients([])
    loss, step, _ = model()
    with pytest.raises(ValueError, match="Global step is required"):
        opt.minimize(loss)
    with pytest.raises(ValueError, match="should be called before using the hook"):
        opt.make_session_run_hook(True).begin()
    opt.minimize(loss, global_step=step)
    with pytest.raises(ValueError, match=r"first step: 1 \(given\) vs 2 \(needed\)"):
        opt.get_init_tokens_op(1)
