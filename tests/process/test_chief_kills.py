"""The chief is killed, and another worker does what it did: no task is special."""

import json
import os
import re
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

_WORKER = """
import json, sys
sys.stderr = sys.stdout
import headrace as tf
tf.logging.set_verbosity(tf.logging.INFO)
addresses, index = json.loads(sys.argv[1]), int(sys.argv[2])
server = tf.train.Server(addresses, job_name="worker", task_index=index)
worker = f"/job:worker/task:{index}"
with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=addresses)):
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", initializer=tf.zeros([10]))
    train = tf.group(step.assign_add(1), v.assign_add(tf.ones([10])))
    tf.summary.scalar("mean", tf.reduce_mean(v))

class Say(tf.train.SessionRunHook):
    def begin(self):
        print("begin", flush=True)
    def after_create_session(self, session, coord):
        print("chief", flush=True)

with tf.train.MonitoredTrainingSession(
    server.target,
    index == 0,
    checkpoint_dir=sys.argv[3] or None,
    save_checkpoint_steps=20,
    save_checkpoint_secs=None,
    save_summaries_steps=10,
    chief_only_hooks=[Say()],
    hooks=[tf.train.StopAtStepHook(last_step=int(sys.argv[4]))],
    log_step_count_steps=None,
) as sess:
    while not sess.should_stop():
        _, at = sess.run([train, step])
        print(int(at), flush=True)
"""


class Servers(Tasks):
    """Two parameter servers; the workers of the cluster are `Worker`s."""

    def start(self, *tasks):
        super().start(*(t for t in tasks if t[0] == "ps"))


class Worker:
    """A process that trains; ``steps``: those it has made.

    ``says``: what its hook printed, ``logged``: the rest.
    """

    def __init__(self, servers, index, checkpoints, last=10**9):
        self.steps, self.says, self.logged = [], [], []
        options = (json.dumps(servers.addresses), str(index), str(checkpoints), str(last))
        self._process = servers.run((), _WORKER, *options)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            if line.strip().isdigit():
                self.steps.append(int(line))
            else:
                (self.says if line in ("begin\n", "chief\n") else self.logged).append(line.strip())

    def goes_on(self):
        """It makes more steps; how many seconds until then."""
        assert self._process.poll() is None
        last = len(self.steps)
        return eventually(lambda: len(self.steps) > last + 5)

    def ends(self):
        """It has made its last step, and its process ends without an error."""
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


@pytest.fixture
def workers():
    made = {}
    yield made
    for one in made.values():
        one.kill()


def saved(directory):
    """The step of the newest checkpoint."""
    path = tf.train.latest_checkpoint(str(directory))
    return int(path.rpartition("-")[2]) if path else -1


def new_checkpoint(directory):
    """Seconds until there is one that was not there."""
    before = saved(directory)
    return eventually(lambda: saved(directory) > before)


def on_duty(workers):
    """The one worker that says that it has the chief's duties, once there is one."""
    found = []

    def there():
        found[:] = [i for i, one in workers.items() if "chief" in one.says]
        return found

    eventually(there)
    assert len(found) == 1
    return found[0]


def test_another_worker_takes_the_duties_over(servers, workers, tmp_path, record_property):
    for i in range(3):
        workers[i] = Worker(servers, i, tmp_path)
    for one in workers.values():
        one.goes_on()
    assert on_duty(workers) == 0
    assert not any(workers[i].says for i in (1, 2))
    new_checkpoint(tmp_path)

    # The chief dies: another saves, within 5 s, and begins its hooks only now.
    workers.pop(0).kill()
    began = time.monotonic()
    second = on_duty(workers)
    took = time.monotonic() - began
    record_property("kill -9 of the chief: another has its duties", took)
    assert took < 5
    assert workers[second].says == ["begin", "chief"]
    new_checkpoint(tmp_path)

    # The chief comes back as a worker like others: nothing goes back to a checkpoint.
    before = max(workers[second].steps)
    workers[0] = Worker(servers, 0, tmp_path)
    workers[0].goes_on()
    assert workers[0].steps[0] > before
    assert workers[0].says == ["begin"]

    # A server dies while the named chief is only a worker: who has the duties restores what was
    # there, and says what is lost; the step, on the other server, goes on.
    before = max(workers[second].steps)
    servers.kill("ps", 1)
    servers.start(("ps", 1))
    for one in workers.values():
        seen = len(one.steps)
        one.goes_on()
        assert min(one.steps[seen:]) >= before
    assert workers[0].says == ["begin"]
    new_checkpoint(tmp_path)
    lost = [line for line in workers[second].logged if "were lost, and restored from" in line]
    assert len(lost) == 1
    assert "Variables of /job:ps/task:1 were lost" in lost[0]
    assert re.search(r"the updates of \d+ global steps since then are lost there", lost[0])

    # The server of the lease dies, too: one of both has the duties again.
    servers.kill("ps", 0)
    servers.start(("ps", 0))
    for one in workers.values():
        one.goes_on()
    new_checkpoint(tmp_path)


@pytest.mark.slow
def test_a_server_dies_when_there_is_no_chief(servers, workers, tmp_path):
    for i in range(2):
        workers[i] = Worker(servers, i, tmp_path)
    workers[1].goes_on()
    new_checkpoint(tmp_path)
    workers.pop(0).kill()
    servers.kill("ps", 0)
    servers.start(("ps", 0))
    workers[1].goes_on()
    assert "chief" in workers[1].says
    new_checkpoint(tmp_path)


@pytest.mark.slow
def test_training_begins_without_the_chief_from_a_checkpoint(servers, workers, tmp_path):
    alone = Worker(servers, 0, tmp_path, last=50)
    alone.ends()
    last = saved(tmp_path)
    assert last >= 50
    alone.kill()
    servers.kill_all()
    servers.start(("ps", 0), ("ps", 1))
    workers[1] = Worker(servers, 1, tmp_path)
    workers[1].goes_on()
    assert workers[1].steps[0] > last
    assert workers[1].says == ["begin", "chief"]


def test_the_chief_ends_first(servers, workers, tmp_path):
    """What the others learn afterwards is saved, too; old checkpoints go as if one had saved."""
    workers[0] = Worker(servers, 0, tmp_path, last=40)
    workers[1] = Worker(servers, 1, tmp_path, last=400)
    for one in workers.values():
        one.ends()
    assert saved(tmp_path) >= 400
    kept = {name.partition(".")[0] for name in os.listdir(tmp_path) if name.endswith(".index")}
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert len(state.all_model_checkpoint_paths) == 5
    indexes = [name for name in os.listdir(tmp_path) if name.endswith(".index")]
    assert len(indexes) == 5, (kept, indexes)
