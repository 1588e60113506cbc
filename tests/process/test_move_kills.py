"""Variables move between server processes while worker processes train; servers are killed."""

import signal
import sys
import threading

import pytest
from task_processes import eventually
from test_standby_kills import Servers, Worker

from headrace.distributed.services import admin
from headrace.errors import OpError, UnavailableError

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
    pytest.mark.timeout(240),
]

#: Ends with the first exception, which a move must not cause.
_WORKER = """
import json, sys
sys.stderr = sys.stdout
import headrace as tf
cluster = tf.train.ClusterSpec(json.loads(sys.argv[1]))
index = int(sys.argv[2])
server = tf.train.Server(cluster, job_name="worker", task_index=index)
with tf.device("/job:ps/task:0"):
    counters = [tf.get_variable(f"counter{i}", initializer=0) for i in (0, 1)]
    total = tf.get_variable("total", initializer=0)
    dense = tf.get_variable("dense", initializer=tf.ones([256, 1024]))
with tf.device(f"/job:worker/task:{index}"):
    loss = tf.reduce_mean(tf.square(dense - 3.0))
train = tf.train.MomentumOptimizer(0.1, 0.5).minimize(loss)
step = [counters[index].assign_add(1), total.assign_add(1, use_locking=True), train]
ready = tf.report_uninitialized_variables()
with tf.Session(server.target) as sess:
    if index == 0:
        sess.run(tf.global_variables_initializer())
    while sess.run(ready).size:
        pass
    for done in range(1, 1 << 30):
        sess.run(step)
        print(done, *map(int, sess.run([counters[index], total])), flush=True)
"""
PS = "/job:ps/replica:0/task:"


@pytest.fixture
def servers():
    made = Servers({"ps": 3, "worker": 2})
    yield made
    made.kill_all()


@pytest.fixture
def workers(servers):
    made = [Worker(servers, index, _WORKER) for index in (0, 1)]
    yield made
    for worker in made:
        worker.end()


def counts_are_right(workers):
    """Each step that a worker was told of has counted once."""
    for worker in workers:
        assert not worker.logged, "".join(worker.logged[-30:])
        assert worker.seen == [(n, n, total) for n, (_, _, total) in enumerate(worker.seen, 1)]


def go_on(workers):
    for worker in workers:
        worker.goes_on()


def variables_at(address):
    (found,) = admin.status(address, cluster=False)
    return {v.name for v in found.variables if v.kind == "variable"}


def test_variables_move_there_and_back_and_a_killed_target_changes_nothing(servers, workers):
    first, _, third = servers.addresses["ps"]
    go_on(workers)
    moved = admin.move(first, ["dense", "counter0", "total"], f"{PS}2")
    assert set(moved.moved) >= {"dense", "dense/Momentum", "counter0", "total"}
    go_on(workers)
    assert variables_at(third) == set(moved.moved)
    assert variables_at(first) == {"counter1"}
    admin.move(third, ["counter0", "total", "dense"], f"{PS}0")
    go_on(workers)
    assert variables_at(third) == set()
    # The target dies in the middle.
    servers.signal("ps", 2, signal.SIGSTOP)
    errors = []

    def move():
        try:
            admin.move(first, ["counter0", "dense"], f"{PS}2", 20.0)
        except OpError as error:
            errors.append(error)

    moving = threading.Thread(target=move)
    moving.start()
    go_on(workers)
    servers.kill("ps", 2)
    moving.join()
    assert isinstance(errors[0], UnavailableError)
    go_on(workers)
    # Started again, it takes them.
    servers.start(("ps", 2))
    eventually(lambda: _moves(first, ["counter0", "dense"], f"{PS}2"))
    go_on(workers)
    counts_are_right(workers)
    own = [len(worker.seen) for worker in workers]
    last = max(worker.seen[-1][2] for worker in workers)
    assert last <= sum(own) + 2 <= last + 4


def _moves(address, names, to):
    try:
        return bool(admin.move(address, names, to).moved)
    except UnavailableError:  # the task has just been started
        return False


_SERVER = """
import sys
import headrace as tf
tf.train.Server(sys.argv[1], job_name="ps").join()
"""


@pytest.mark.slow
def test_servers_join_and_leave_and_end_by_themselves(servers, workers):
    first, _, third = servers.addresses["ps"]
    go_on(workers)
    newcomer = servers.run((), _SERVER, first)
    eventually(lambda: _address_of(first, f"{PS}3"))
    address = _address_of(first, f"{PS}3")
    eventually(lambda: "dense" not in variables_at(first))  # as another one's share
    others = [*servers.addresses["ps"][1:], address]
    holder = next(a for a in others if "dense" in variables_at(a))
    if holder != address:
        admin.move(holder, ["dense"], f"{PS}3")
    go_on(workers)
    assert "dense" in variables_at(address)
    # Who has come last goes first; then those of the first description.
    admin.resize(first, {"ps": 1})
    with newcomer:
        assert newcomer.wait(60) == 0
    go_on(workers)
    eventually(lambda: _has_ended(third))
    go_on(workers)
    assert variables_at(first) >= {"dense", "dense/Momentum", "total", "counter0", "counter1"}
    counts_are_right(workers)


#: The same steps as a worker's, of a process that is no task: by the master of worker 0.
_CLIENT = (
    _WORKER.replace('server = tf.train.Server(cluster, job_name="worker", task_index=index)\n', "")
    .replace("server.target", "f\"grpc://{cluster.task_address('worker', 0)}\"")
    .replace("/job:worker/task:{index}", "/job:worker/task:0")
)

#: Replicas that train in step; each counts its steps.
_REPLICA = """
import json, sys
sys.stderr = sys.stdout
import headrace as tf
cluster = tf.train.ClusterSpec(json.loads(sys.argv[1]))
index = int(sys.argv[2])
server = tf.train.Server(cluster, job_name="worker", task_index=index)
with tf.device("/job:ps/task:0"):
    step = tf.train.get_or_create_global_step()
    counters = [tf.get_variable(f"counter{i}", initializer=0) for i in (0, 1)]
    total = tf.get_variable("total", initializer=0)
    dense = tf.get_variable("dense", initializer=tf.ones([256, 1024]))
loss = tf.reduce_mean(tf.square(dense - 3.0))
opt = tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(0.1, 0.5), 2)
train = [opt.minimize(loss, step), counters[index].assign_add(1)]
train.append(total.assign_add(1, use_locking=True))
hook = opt.make_session_run_hook(index == 0, num_tokens=0)
with tf.train.MonitoredTrainingSession(server.target, index == 0, hooks=[hook]) as sess:
    for done in range(1, 1 << 30):
        sess.run(train)
        print(done, *map(int, sess.run([counters[index], total])), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [_CLIENT, _REPLICA], ids=["client", "replicas"])
def test_variables_move_under_clients_and_under_replicas_in_step(servers, program):
    first = servers.addresses["ps"][0]
    other = _WORKER if program is _CLIENT else program
    workers = [Worker(servers, 0, other), Worker(servers, 1, program)]
    try:
        go_on(workers)
        at = 0
        for to in (2, 1, 0):
            names = ["dense", "counter0", "counter1", "total"]
            moved = admin.move(servers.addresses["ps"][at], names, f"{PS}{to}", 60.0).moved
            assert {"dense", "dense/Momentum", "total"} <= set(moved)
            at = to
            go_on(workers)
        assert variables_at(first) >= {"dense", "dense/Momentum", "counter0", "total"}
        for worker in workers:
            worker.kill()
        for worker in workers:
            assert [n for _, n, _ in worker.seen] == [n for n, _, _ in worker.seen]
    finally:
        for worker in workers:
            worker.end()


def _address_of(contact, task):
    return next((t.address for t in admin.status(contact) if t.task == task), None)


def _has_ended(address):
    try:
        return not admin.status(address, cluster=False)
    except UnavailableError:
        return True
