"""All-reduce between processes: one joins, one is killed and comes back, one is asked to leave."""

import json
import os
import subprocess
import sys
import threading

import pytest
from task_processes import PATIENCE, eventually

from headrace.distributed.services import admin
from headrace.test.cluster import free_ports

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
    pytest.mark.timeout(240),
]

#: Prints its steps, and how many take part in each.
_WORKER = """
import json, sys
sys.stderr = sys.stdout
import headrace as tf
if sys.argv[1].startswith("{"):
    cluster, index = tf.train.ClusterSpec(json.loads(sys.argv[1])), int(sys.argv[2])
    server = tf.train.Server(cluster, job_name="worker", task_index=index)
else:
    server = tf.train.Server(sys.argv[1], job_name="worker")
    index = server.server_def.task_index
with tf.device(f"/job:worker/task:{index}"):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=tf.zeros([1000]))
    loss = tf.reduce_sum(tf.square(w - 1.0))
    optimizer = tf.train.AllReduceOptimizer(tf.train.MomentumOptimizer(0.001, 0.5), 2)
    train = optimizer.minimize(loss, global_step=step)
    with tf.control_dependencies([train]):
        look = [step.read_value(), w.read_value()]
    here = tf.collective.all_reduce(tf.ones([]), 2, 1, 77, "Add", "Id")
hooks = [optimizer.make_session_run_hook(index == 0)]
with tf.train.MonitoredTrainingSession(
    server.target, is_chief=True, hooks=hooks, log_step_count_steps=None
) as sess:
    while not sess.should_stop():
        count, (done, value) = sess.run([here, look])
        # In one piece: the log goes to the same pipe from another thread.
        print(f"step {done} {int(count)} {float(value[7]).hex()}\\n", end="", flush=True)
print("left\\n", end="", flush=True)
"""


class Member:
    """A process that trains; ``seen``: its steps, and how many took part."""

    def __init__(self, *args):
        self.seen, self.lines = [], []
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, *args],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self.process.stdout as output:
            for line in output:
                words = line.split()
                if words[:1] == ["step"] and line.endswith("\n"):
                    self.seen.append((int(words[1]), int(words[2]), words[3]))
                else:
                    self.lines.append(line)

    def sees(self, count, steps=5):
        """Wait until it has made some steps in which so many took part."""
        begun = len(self.seen)
        try:
            eventually(lambda: sum(n == count for _, n, _ in self.seen[begun:]) >= steps)
        except AssertionError:
            raise AssertionError("".join(self.lines[-30:]) + str(self.seen[-3:])) from None


@pytest.fixture
def members():
    made = []

    def start(*args):
        made.append(Member(*args))
        return made[-1]

    yield start
    for one in made:
        one.process.kill()
        one.process.wait(PATIENCE)


def test_a_group_grows_and_shrinks(members):
    addresses = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
    spec = json.dumps(addresses)
    first, second = (members(spec, str(i)) for i in (0, 1))
    first.sees(2)
    third = members(addresses["worker"][0])
    for member in (first, second, third):
        member.sees(3)
    # Killed and started again it goes on with the others.
    second.process.kill()
    first.sees(2)
    again = members(spec, "1")
    again.sees(3)
    answer = admin.resize(addresses["worker"][0], {"worker": 2})
    assert list(answer.leaving) == ["/job:worker/replica:0/task:2"]
    assert third.process.wait(PATIENCE) == 0
    first.sees(2)
    again.sees(2)
    eventually(lambda: "left\n" in third.lines)
    values = {}
    for member in (first, second, third, again):
        steps = [done for done, _, _ in member.seen]
        assert steps == sorted(set(steps))  # none is lost that was reported, or made twice
        for done, _, value in member.seen:
            assert values.setdefault(done, value) == value
    # Nobody's training failed.
    assert not [line for m in (first, third, again) for line in m.lines if "Traceback" in line]
