"""Workers and servers are killed while ranges of the input are dealt out: nothing is left out."""

import json
import re
import sys
import threading

import pytest
from task_processes import PATIENCE, Tasks, eventually

import headrace as tf

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
    pytest.mark.timeout(180),
]

RECORDS, SIZE, EPOCHS = 600, 20, 2

_WORKER = f"""
import json, sys, time
sys.stderr = sys.stdout
import headrace as tf
tf.logging.set_verbosity(tf.logging.INFO)
addresses, index, pause = json.loads(sys.argv[1]), int(sys.argv[2]), float(sys.argv[4])
server = tf.train.Server(addresses, job_name="worker", task_index=index)
worker = f"/job:worker/task:{{index}}"
with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=addresses)):
    step = tf.train.get_or_create_global_step()
    seen = tf.get_variable("seen", initializer=tf.zeros([{RECORDS}], tf.int64))
    dispenser = tf.data.InputDispenser.for_records(
        {RECORDS}, {SIZE}, num_epochs={EPOCHS}, shuffle_seed=3
    )
    batch = dispenser.get_next(
        lambda begin, end: tf.data.Dataset.range(begin, end),
        lambda examples: examples.shuffle(30, seed=1).batch(8),
    )
    train = tf.group(tf.scatter_add(seen, batch, tf.ones_like(batch)), step.assign_add(1))
with tf.train.MonitoredTrainingSession(
    server.target,
    index == 0,
    checkpoint_dir=sys.argv[3] or None,
    save_checkpoint_steps=10,
    save_checkpoint_secs=None,
    save_summaries_steps=None,
    save_summaries_secs=None,
    hooks=[dispenser.make_session_run_hook()],
    log_step_count_steps=None,
) as sess:
    while not sess.should_stop():
        print("step", len(sess.run([batch, train])[0]), flush=True)
        time.sleep(pause)
"""


class Servers(Tasks):
    """The parameter servers; the workers of the cluster are `Worker`s."""

    def start(self, *tasks):
        super().start(*(t for t in tasks if t[0] == "ps"))


class Worker:
    """A process that trains; ``steps``: how many examples each of its steps has had."""

    def __init__(self, servers, index, checkpoints="", pause=0.05):
        self.steps, self.logged = [], []
        options = (json.dumps(servers.addresses), str(index), str(checkpoints), str(pause))
        self._process = servers.run((), _WORKER, *options)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            found = re.fullmatch(r"step (\d+)\n", line)
            if found:
                self.steps.append(int(found.group(1)))
            else:
                self.logged.append(line)

    def makes(self, steps):
        """It makes more steps."""
        last = len(self.steps)
        eventually(lambda: len(self.steps) >= last + steps or self._process.poll() is not None)

    def ends(self):
        """Its process ends without an error."""
        self._process.wait(PATIENCE)
        self._reader.join()
        assert self._process.returncode == 0, "".join(self.logged[-30:])

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
    made = []
    yield made
    for one in made:
        one.kill()


def seen(servers):
    """How often each example is in the model: what the variable on the server says."""
    with tf.Graph().as_default(), tf.device("/job:ps/task:1"):
        variable = tf.get_variable("seen", initializer=tf.zeros([RECORDS], tf.int64))
        with tf.Session(servers.target("ps", 1)) as sess:
            return sess.run(variable.read_value())


@pytest.mark.slow
def test_each_example_once_without_failures(servers, workers):
    workers += [Worker(servers, i, pause=0.02) for i in range(3)]
    for one in workers:
        one.ends()
    assert set(seen(servers)) == {EPOCHS}
    assert sum(map(sum, (one.steps for one in workers))) == EPOCHS * RECORDS


def test_what_a_killed_worker_had_others_get(servers, workers):
    workers += [Worker(servers, i) for i in range(2)]
    killed = Worker(servers, 2)
    killed.makes(5)
    killed.kill()
    # A late one gets what is left.
    workers.append(Worker(servers, 2))
    for one in workers:
        one.ends()
    found = seen(servers)
    assert min(found) == EPOCHS
    # The ranges that it had taken from, and no others, came again: those in its buffers.
    assert sum(found) - EPOCHS * RECORDS <= 6 * SIZE


@pytest.mark.slow
def test_the_servers_are_killed_and_go_on_from_the_checkpoint(servers, workers, tmp_path):
    workers += [Worker(servers, i, tmp_path) for i in range(2)]
    eventually(lambda: tf.train.latest_checkpoint(str(tmp_path)))
    workers[0].makes(15)
    for i in range(2):
        servers.kill("ps", i)
    servers.start(("ps", 0), ("ps", 1))
    for one in workers:
        one.ends()
    found = seen(servers)
    assert min(found) >= EPOCHS
    # At most what was in hand when the checkpoint was saved came again.
    assert sum(found) - EPOCHS * RECORDS <= 2 * 6 * SIZE
    path = tf.train.latest_checkpoint(str(tmp_path))
    state = tf.train.load_variable(path, "input_dispenser/state")
    assert state.tolist()[3:] == [EPOCHS * RECORDS // SIZE]  # all is done
