"""Servers with copies (`replicas=1`) come and go; they are killed while variables move."""

import random
import sys

import pytest
from task_processes import PATIENCE, eventually
from test_move_kills import PS, variables_at
from test_standby_kills import Servers, Worker

from headrace.distributed.services import admin
from headrace.errors import OpError

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
    pytest.mark.timeout(300),
]

_WORKER = """
import json, sys
sys.stderr = sys.stdout
import headrace as tf
cluster = tf.train.ClusterSpec(json.loads(sys.argv[1]), replicas=1)
server = tf.train.Server(cluster, job_name="worker", task_index=int(sys.argv[2]))
with tf.device("/job:ps/task:0"):
    step = tf.train.get_or_create_global_step()
    counter = tf.get_variable("counter", initializer=0)
with tf.device("/job:ps/task:1"):
    table = tf.get_variable("table", initializer=tf.zeros([20000, 8]))
    dense = tf.get_variable("dense", initializer=tf.zeros([20000, 8]))
    rows = tf.random_uniform([8], 0, 20000, tf.int32)
    train = [step.assign_add(1), counter.assign_add(1), dense.assign_add(tf.ones([20000, 8]))]
    train.append(tf.scatter_add(table, rows, tf.ones([8, 8])))
    look = [counter, tf.reduce_sum(table), step, dense[77, 3]]
options = {"is_chief": True, "log_step_count_steps": None}
with tf.train.MonitoredTrainingSession(server.target, **options) as sess:
    while True:
        sess.run(train)
        print(*map(int, sess.run(look)), flush=True)
"""
_SERVER = """
import sys
import headrace as tf
index = int(sys.argv[2]) if len(sys.argv) > 2 else None
tf.train.Server(sys.argv[1], job_name="ps", task_index=index).join()
"""


@pytest.fixture
def servers():
    made = Servers({"ps": 2, "worker": 1}, replicas=1)
    yield made
    made.kill_all()


@pytest.fixture
def worker(servers):
    made = Worker(servers, 0, _WORKER)
    yield made
    made.end()


def _status(contact):
    try:
        return {t.task: t for t in admin.status(contact)}
    except OpError:
        return {}


def _are_whole(contact, count):
    """Whether there are so many servers, each with a whole copy, and all have their shares."""
    found = {n: t for n, t in _status(contact).items() if n.startswith(PS)}
    return len(found) == count and all(t.copy == "protected" for t in found.values())


def _nothing_is_lost(worker, failures):
    """Every update that the worker was told of is there, and no others but those it repeated."""
    for name, each in (("counter", 0), ("step", 2), ("dense", 3)):
        counts = [seen[each] for seen in worker.seen]
        assert counts == sorted(set(counts)), name
        assert 0 <= counts[-1] - len(counts) <= failures, name
    sums = [seen[1] for seen in worker.seen]
    assert sums == sorted(set(sums))
    assert 64 * len(sums) <= sums[-1] <= 64 * (len(sums) + failures)


def test_a_server_with_a_copy_joins_is_killed_comes_back_and_leaves(servers, worker):
    first = servers.addresses["ps"][0]
    worker.goes_on()
    with servers.run((), _SERVER, first) as newcomer:
        eventually(lambda: _are_whole(first, 3))
        address = _status(first)[f"{PS}2"].address
        eventually(lambda: variables_at(address) & {"table", "dense"})
        worker.goes_on()
        newcomer.kill()
    worker.goes_on()  # its copy is served
    with servers.run((), _SERVER, first) as again:
        eventually(lambda: _are_whole(first, 3))
        worker.goes_on()
        answer = admin.resize(first, {"ps": 2})
        assert list(answer.leaving) == [f"{PS}2"]
        assert again.wait(PATIENCE) == 0
        again.stdout.close()
    newcomer.stdout.close()
    worker.goes_on()
    eventually(lambda: _are_whole(first, 2))
    _nothing_is_lost(worker, failures=8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_servers_are_killed_while_variables_move(servers, worker, seed):
    chance = random.Random(seed)
    contact = servers.addresses["ps"][0]
    worker.goes_on()
    newcomer = servers.run((), _SERVER, contact)
    kills = 0
    for _ in range(6):
        eventually(lambda: _are_whole(contact, 3), 90)
        victim = chance.choice([0, 1, 2])
        source = chance.choice([0, 1, 2])
        to = chance.choice([i for i in (0, 1, 2) if i != source])
        where = {n: t.address for n, t in _status(contact).items()}
        names = variables_at(where[f"{PS}{source}"])
        if not names:
            continue
        moving = servers.run((), _MOVE, where[f"{PS}{source}"], f"{PS}{to}", *sorted(names))
        moving.stdout.readline()
        worker.goes_on(chance.randrange(1, 4))
        if victim == 2:
            newcomer.kill()
            newcomer.wait(PATIENCE)
            newcomer.stdout.close()
        else:
            servers.kill("ps", victim)
        kills += 1
        worker.goes_on()
        moving.wait(PATIENCE)
        moving.stdout.close()
        if victim == 2:
            newcomer = servers.run((), _SERVER, contact, "2")
        else:
            servers.start(("ps", victim))
        worker.goes_on()
    newcomer.kill()
    newcomer.wait(PATIENCE)
    newcomer.stdout.close()
    assert kills >= 2
    worker.goes_on()
    _nothing_is_lost(worker, failures=6 * kills + 10)


#: Ends as it may: the source may be killed.
_MOVE = """
import sys
from headrace.distributed.services import admin
from headrace.errors import OpError
print("begins", flush=True)
try:
    admin.move(sys.argv[1], sys.argv[3:], sys.argv[2], 20.0)
except OpError as error:
    print(error)
"""
