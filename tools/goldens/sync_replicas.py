"""SyncReplicasOptimizer in a cluster of this process. Python 3.7: TensorFlow 1.15 runs this.

Schedules leave nothing to chance: either both replicas step at once and an update needs both, or
they step one after the other and an update needs one.
"""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import golden

STEPS = 4
TARGETS = np.random.RandomState(5).normal(size=(2, STEPS, 3)).astype(np.float32)
# No row is in both replicas' batches and twice in one of them: TensorFlow's average then depends on
# which of the equal rows is merged (docs/synchronous-training.md).
IDS = np.array([[[0, 1], [1, 3], [4, 0], [2, 3]], [[1, 5], [1, 2], [3, 3], [2, 4]]], np.int32)


def _addresses(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


class _Replica:
    """A worker's graph, and its session once `open` has been called."""

    def __init__(self, tf, cluster, index, optimizer, is_sparse):
        self._tf, self._index = tf, index
        self.graph = tf.Graph()
        worker = f"/job:worker/task:{index}"
        setter = tf.train.replica_device_setter(worker_device=worker, cluster=cluster)
        with self.graph.as_default(), tf.device(setter):
            self._step = tf.train.get_or_create_global_step()
            self._target = tf.placeholder(tf.float32, [3])
            self._ids = tf.placeholder(tf.int32, [2])
            if is_sparse:
                start = np.linspace(-1, 1, 18).astype(np.float32).reshape(6, 3)
                self.variable = tf.get_variable("table", initializer=start)
                rows = tf.nn.embedding_lookup(self.variable, self._ids)
            else:
                self.variable = tf.get_variable("w", initializer=tf.ones([3]))
                rows = self.variable
            loss = tf.reduce_sum(tf.square(rows - self._target))
            averages = tf.train.ExponentialMovingAverage(0.75)
            opt = optimizer(averages, [self.variable])
            self._train = opt.minimize(loss, global_step=self._step)
            self.average = averages.average(self.variable)  # None where it is not used
            self._hook = opt.make_session_run_hook(index == 0, num_tokens=0)

    def open(self, target):
        with self.graph.as_default():
            self.session = self._tf.train.MonitoredTrainingSession(
                target,
                self._index == 0,
                hooks=[self._hook],
                log_step_count_steps=None,
                stop_grace_period_secs=1,
            )

    def close(self):
        with self.graph.as_default():
            self.session.close()

    def step(self, i):
        """Train on batch i; the token."""
        feeds = {self._target: TARGETS[self._index, i], self._ids: IDS[self._index, i]}
        return self.session.run(self._train, feeds)

    def values(self):
        return self.session.run([self.variable, self._step])


def _trained(tf, optimizer, together, is_sparse=False, average=False):
    """Tokens, variables and global steps after each round of steps of both replicas."""
    ps, *workers = _addresses(3)
    cluster = tf.train.ClusterSpec({"ps": [ps], "worker": workers})
    servers = [tf.train.Server(cluster, job_name="ps", task_index=0)]
    servers += [tf.train.Server(cluster, job_name="worker", task_index=i) for i in range(2)]
    replicas = [_Replica(tf, cluster, i, optimizer, is_sparse) for i in range(2)]
    for i in range(2):
        replicas[i].open(servers[1 + i].target)
    tokens, seen, averages = [], [], []
    with ThreadPoolExecutor(2) as threads:
        for i in range(STEPS):
            if average:
                before = replicas[0].session.run(replicas[0].average)
            if together:
                tokens.append(list(threads.map(_Replica.step, replicas, [i, i])))
                seen.append(replicas[0].values())
            else:
                for replica in replicas:
                    tokens.append([replica.step(i)])
                    seen.append(replica.values())
            if average:  # comes after the tokens
                averages.append(before)
                while np.array_equal(averages[-1], before):
                    averages[-1] = replicas[0].session.run(replicas[0].average)
    for replica in reversed(replicas):
        replica.close()
    for server in servers:
        if hasattr(server, "stop"):
            server.stop()
    results = {
        "tokens": np.array(tokens, np.int64),
        "variables": np.array([variable for variable, _ in seen]),
        "steps": np.array([step for _, step in seen], np.int64),
    }
    if average:
        results["averages"] = np.array(averages)
    return results


@golden(with_session=True)
def sync_dense(tf, session):
    def optimizer(averages, variables):
        return tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(0.1, 0.5), 2)

    return _trained(tf, optimizer, together=True)


@golden(with_session=True)
def sync_sparse(tf, session):
    def optimizer(averages, variables):
        return tf.train.SyncReplicasOptimizer(tf.train.AdagradOptimizer(0.5), 2)

    return _trained(tf, optimizer, together=True, is_sparse=True)


@golden(with_session=True)
def sync_with_a_backup(tf, session):
    """The second replica's gradients are always stale."""

    def optimizer(averages, variables):
        return tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1, 2)

    return _trained(tf, optimizer, together=False)


@golden(with_session=True)
def sync_sparse_with_a_backup(tf, session):
    def optimizer(averages, variables):
        return tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1, 2)

    return _trained(tf, optimizer, together=False, is_sparse=True)


@golden(with_session=True)
def sync_with_moving_averages(tf, session):
    def optimizer(averages, variables):
        return tf.train.SyncReplicasOptimizer(
            tf.train.AdamOptimizer(0.1), 2, 2, averages, variables
        )

    return _trained(tf, optimizer, together=True, average=True)
