"""Synchronous replicas as processes that are killed in the middle of training, and come back."""

import json
import sys
import threading
import time

import pytest
from task_processes import PATIENCE, Tasks, eventually

import headrace as tf

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
    pytest.mark.timeout(180),
]

_REPLICA = """
import json, sys
import headrace as tf
addresses, index = json.loads(sys.argv[1]), int(sys.argv[2])
server = tf.train.Server(addresses, job_name="worker", task_index=index)
worker = f"/job:worker/task:{index}"
with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=addresses)):
    step = tf.train.get_or_create_global_step()
    variables = [tf.get_variable(f"w{i}", initializer=tf.zeros([100])) for i in range(4)]
    loss = tf.add_n([tf.reduce_sum(v) for v in variables])
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 3)
    train = opt.minimize(loss, global_step=step)
hook = opt.make_session_run_hook(index == 0, 0)
with tf.train.MonitoredTrainingSession(
    server.target,
    index == 0,
    checkpoint_dir=sys.argv[3] or None,
    save_checkpoint_steps=5,
    save_checkpoint_secs=None,
    hooks=[hook, tf.train.StopAtStepHook(last_step=int(sys.argv[4]))],
    log_step_count_steps=None,
) as sess:
    while not sess.should_stop():
        print(int(sess.run(train)), flush=True)
"""


class Servers(Tasks):
    """Two parameter servers; the workers of the cluster are `Replica`s."""

    def start(self, *tasks):
        super().start(*(t for t in tasks if t[0] == "ps"))


class Replica:
    """A process that trains; ``tokens``: all that it has got."""

    def __init__(self, servers, index, checkpoints="", last=10**9):
        self.tokens = []
        options = (json.dumps(servers.addresses), str(index), str(checkpoints), str(last))
        self._process = servers.run((), _REPLICA, *options)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self.tokens.append(int(line))

    def goes_on(self):
        """It makes more steps; how many seconds until then."""
        assert self._process.poll() is None
        last = self.tokens[-1] if self.tokens else -1
        return eventually(lambda: self.tokens and self.tokens[-1] > last + 5)

    def ends(self):
        """It has made its last step."""
        self._process.wait(PATIENCE)
        assert self._process.returncode == 0

    def kill(self):
        """kill -9."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()


@pytest.fixture
def servers():
    made = Servers({"ps": 2, "worker": 3})
    yield made
    made.kill_all()


def test_replicas_are_killed_and_come_back(servers, record_property):
    replicas = [Replica(servers, i) for i in range(3)]
    try:
        for one in replicas:
            one.goes_on()
        began = time.monotonic()
        replicas[2].kill()
        for one in replicas[:2]:
            one.goes_on()
        record_property("kill -9 of a replica", time.monotonic() - began)
        began = time.monotonic()
        replicas[0].kill()
        replicas[1].goes_on()
        record_property("kill -9 of the chief", time.monotonic() - began)
        replicas[2] = Replica(servers, 2)
        for one in replicas[1:]:
            one.goes_on()
        # A chief that comes back without a checkpoint begins again: so do all.
        replicas[0] = Replica(servers, 0)
        eventually(lambda: replicas[0].tokens)
        for one in replicas:
            one.goes_on()
    finally:
        for one in replicas:
            one.kill()


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1])
def test_a_server_is_killed_and_comes_back(servers, which, tmp_path, record_property):
    """Server 0 has the global step and the barrier, each of them two of the variables."""
    last = 150
    replicas = [Replica(servers, i, tmp_path, last) for i in range(3)]
    try:
        for one in replicas:
            one.goes_on()
        began = time.monotonic()
        servers.kill("ps", which)
        servers.start(("ps", which))
        for one in replicas:
            one.goes_on()
        record_property(f"kill -9 of server {which}", time.monotonic() - began)
        for one in replicas:
            one.ends()
        # Each update takes 1 from each element, so all of them tell how many there were. A
        # checkpoint that was written during an update may have half of it.
        with tf.Session(servers.target("ps", 0)) as session:
            for i in range(4):
                with tf.device(f"/job:ps/task:{(i + 1) % 2}"):
                    found = session.run(tf.get_variable(f"w{i}", initializer=tf.zeros([100])))
                assert found.tolist() == [found[0]] * 100
                assert abs(found[0] + last) <= 2
    finally:
        for one in replicas:
            one.kill()
