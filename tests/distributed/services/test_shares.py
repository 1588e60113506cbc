"""Servers that join take their share of the variables, those that leave give theirs away."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from click.testing import CliRunner
from server_clusters import eventually

import headrace as tf
from headrace.cli import main
from headrace.distributed.services import admin, moves, shares
from headrace.distributed.services.server import Server

ROWS = 256


def keys_at(server):
    return {key.name for key, _ in server.task.store.items() if key.kind == "variable"}


def sizes_at(*servers):
    return [sum(s.task.moves.sizes().values()) for s in servers]


@pytest.fixture
def joined() -> Iterator[Callable[..., Server]]:
    """Joins a server to a cluster; stops what has joined."""
    made = []

    def join(contact: Server) -> Server:
        made.append(Server(contact.address, job_name="ps"))
        return made[-1]

    yield join
    for server in made:
        server.stop()


@contextlib.contextmanager
def training(servers, count=12):
    """Steps go on in a thread; gives the session, the variables, and how many steps have run."""
    with tf.Graph().as_default():
        setter = tf.train.replica_device_setter(cluster=servers.spec)
        with tf.device(setter):
            variables = [
                tf.get_variable(f"v{i}", [ROWS, 64], initializer=tf.zeros_initializer())
                for i in range(count)
            ]
            steps = tf.get_variable("steps", [], tf.int64, tf.zeros_initializer())
        with tf.device("/job:worker/task:0"):
            loss = tf.add_n([tf.reduce_mean(tf.square(v - 1.0)) for v in variables])
        trained = tf.train.MomentumOptimizer(0.1, 0.5).minimize(loss)
        step = tf.group(trained, steps.assign_add(1))
        done, errors, stop = [0], [], threading.Event()
        with tf.Session(servers.target("worker")) as session:
            session.run(tf.global_variables_initializer())

            def train():
                try:
                    while not stop.is_set():
                        session.run(step)
                        done[0] += 1
                except BaseException as error:
                    errors.append(error)

            thread = threading.Thread(target=train)
            thread.start()
            try:
                yield session, variables, done
            finally:
                stop.set()
                thread.join()
            assert not errors, errors
            assert session.run(steps) == done[0]
            assert np.isfinite(session.run(variables[0])).all()


def goes_on(done):
    before = done[0]
    assert eventually(lambda: done[0] > before + 3)


def has_ended_sharing(server):
    return eventually(lambda: server.members.epoch and not server.members.record.is_sharing, 60)


def test_servers_come_and_go_while_a_worker_trains(cluster, joined):
    servers = cluster(ps=2, worker=1)
    first, second = servers["ps", 0], servers["ps", 1]
    with training(servers) as (_, _, done):
        goes_on(done)
        third = joined(first)
        assert has_ended_sharing(first)
        goes_on(done)
        sizes = sizes_at(first, second, third)
        assert min(sizes) > 0.7 * sum(sizes) / 3, sizes
        # Slots are where their variables are.
        for name in keys_at(third) - {"steps"}:
            assert {name.split("/")[0], f"{name.split('/')[0]}/Momentum"} <= keys_at(third)
        # Those that have come first may go first.
        answer = admin.resize(first.address, {"ps": 1})
        assert answer.leaving == ["/job:ps/replica:0/task:1", "/job:ps/replica:0/task:2"]
        assert eventually(lambda: second.wait(0) and third.wait(0), 60)
        goes_on(done)
        assert len(keys_at(first)) == 25
        known = set(first.members.addresses)
        assert known == {"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"}
    # A program of the first description finds everything.
    with training(servers) as (_, _, done):
        goes_on(done)


def test_a_program_finds_what_was_on_a_server_that_has_left_and_that_comes_back(cluster):
    servers = cluster(ps=2, worker=1)
    with tf.device("/job:ps/task:1"):
        v = tf.get_variable("v", initializer=2.0, use_resource=True)
        late = tf.get_variable("late", initializer=3.0, use_resource=True)
        plain = tf.constant(1.0) + 2.0
    with tf.Session(servers.target("worker")) as session:
        session.run(v.initializer)
    admin.resize(servers["ps", 0].address, {"ps": 1})
    assert eventually(lambda: servers["ps", 1].wait(0), 60)
    with tf.Session(servers.target("worker")) as session:
        assert session.run([v, plain]) == [2.0, 3.0]
        session.run(late.initializer)
        again = servers.start("ps", 1)
        again.members.read_from(servers["ps", 0].address)
        admin.resize(servers["ps", 0].address, {"ps": 2})
        assert eventually(lambda: keys_at(again), 60)
        assert has_ended_sharing(again)
        assert session.run([v, late, plain]) == [2.0, 3.0, 3.0]
    assert len(keys_at(again)) == 1


def test_a_dead_server_is_left_out_and_another_one_stands_for_it(cluster):
    servers = cluster(ps=2, worker=1)
    with tf.device("/job:ps/task:1"):
        v = tf.get_variable("v", initializer=2.0, use_resource=True)
    servers["ps", 1].stop()
    answer = admin.resize(servers["ps", 0].address, {"ps": 1})
    assert not answer.leaving
    with tf.Session(servers.target("worker")) as session:
        session.run(v.initializer)
    assert keys_at(servers["ps", 0]) == {"v"}


def test_what_a_server_gave_to_one_that_has_died_begins_anew_there(cluster, joined):
    """Whoever gave a variable away refuses steps with it, unless it stands for who has it now."""
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=2.0, use_resource=True)
    with tf.Session(servers.target("worker")) as session:
        session.run(v.initializer)
        newcomer = joined(servers["ps", 0])
        admin.move(servers["ps", 0].address, ["v"], newcomer.members.me[0])
        assert session.run(v) == 2.0
    newcomer.stop()  # takes the variable along
    assert not admin.resize(servers["ps", 0].address, {"ps": 1}).leaving
    with tf.Session(servers.target("worker")) as session:
        session.run(v.initializer)
        assert session.run(v) == 2.0
    assert keys_at(servers["ps", 0]) == {"v"}


def test_a_server_that_dies_before_it_has_given_all_away_is_left_out(cluster, caplog):
    servers = cluster(ps=2, worker=1)
    with tf.device("/job:ps/task:1"):
        v = tf.get_variable("v", initializer=2.0, use_resource=True)
        queue = tf.FIFOQueue(3, tf.float32, shared_name="q")  # keeps it there
        added = queue.enqueue(1.0)
    with tf.Session(servers.target("worker")) as session:
        session.run([v.initializer, added])
    assert admin.resize(servers["ps", 0].address, {"ps": 1}).leaving
    assert eventually(lambda: "v" in keys_at(servers["ps", 0]) or "q" in caplog.text, 20)
    servers["ps", 1]._leave = lambda: None  # one that is killed tells nobody
    servers["ps", 1].stop()
    assert eventually(lambda: "/job:ps/replica:0/task:1" not in servers["ps", 0].members.addresses)
    assert "was to leave, and has ended" in caplog.text
    with tf.Session(servers.target("worker")) as session:
        session.run(v.initializer)
        assert session.run(v) == 2.0


def test_what_cannot_move_keeps_its_server(cluster, caplog):
    caplog.set_level("INFO")
    servers = cluster(ps=2, worker=1)
    with tf.device("/job:ps/task:1"):
        queue = tf.FIFOQueue(3, tf.float32, shared_name="q")
        added = queue.enqueue(1.0)
    with tf.Session(servers.target("worker")) as session:
        session.run(added)
        admin.resize(servers["ps", 0].address, {"ps": 1})
        assert eventually(lambda: "still has queue q" in caplog.text)
        assert session.run(queue.size()) == 1
        admin.resize(servers["ps", 0].address, {"ps": 2})
        assert has_ended_sharing(servers["ps", 1])
        assert session.run(queue.dequeue()) == 1.0


def test_what_steps_keep_is_passed_over_for_the_others(cluster, monkeypatch):
    """A step waits with one variable: those that follow go meanwhile, and that one later."""
    monkeypatch.setattr(shares, "_MOVE_SECONDS", 0.2)
    monkeypatch.setattr(shares, "_PASSED_SECONDS", 0.5)
    monkeypatch.setattr(moves, "_HOLD_SECONDS", 0.05)
    servers = cluster(ps=2, worker=1)
    with tf.device("/job:ps/task:1"):
        variables = [
            tf.get_variable(f"v{i}", [4], initializer=tf.ones_initializer()) for i in "abc"
        ]
    with tf.device("/job:worker/task:0"):
        queue = tf.FIFOQueue(1, tf.float32, shared_name="q", shapes=[[]])
        waits = tf.assign_add(variables[0], tf.fill([4], queue.dequeue())).op
        goes = queue.enqueue(1.0)
    with tf.Session(servers.target("worker")) as session:
        session.run(tf.global_variables_initializer())
        thread = threading.Thread(target=session.run, args=(waits,))
        thread.start()
        assert eventually(servers["ps", 1].task.worker.running)
        admin.resize(servers["ps", 0].address, {"ps": 1})
        assert eventually(lambda: keys_at(servers["ps", 0]) == {"vb", "vc"})
        assert eventually(lambda: keys_at(servers["ps", 1]) == {"va"})
        session.run(goes)
        thread.join()
        assert eventually(lambda: keys_at(servers["ps", 0]) == {"va", "vb", "vc"})
        assert eventually(lambda: not servers["ps", 0].members.record.is_sharing, 60)


def test_a_growing_table_leaves_a_server_that_retires(cluster):
    servers = cluster(ps=2, worker=1)
    with tf.device("/job:ps/task:1"):
        table = tf.EmbeddingTable(4, tf.zeros_initializer(), name="rows")
        exported = table.export()
    with tf.device("/job:worker/task:0"):
        rows = tf.nn.embedding_lookup(table, tf.constant([3, 5], tf.int64))
    train = tf.train.GradientDescentOptimizer(1.0).minimize(-tf.reduce_sum(rows))
    with tf.Session(servers.target("worker")) as session:
        session.run(train)
        admin.resize(servers["ps", 0].address, {"ps": 1})
        assert eventually(lambda: servers["ps", 1].wait(0), 60)
        session.run(train)
        keys, values = session.run(exported)
    assert dict(zip(keys.tolist(), values[:, 0].tolist(), strict=True)) == {3: 2.0, 5: 2.0}


def test_the_next_server_goes_on_when_the_first_is_not_there(cluster, joined):
    servers = cluster(ps=2, worker=1)
    kept = []
    for i in range(8):
        with tf.device(f"/job:ps/task:{i % 2}"):
            kept.append(tf.get_variable(f"v{i}", [64], initializer=tf.ones_initializer()))
    with tf.Session(servers.target("worker")) as session:
        for v in kept:
            session.run(v.initializer)
        third = joined(servers["ps", 1])
        assert has_ended_sharing(third)
        assert keys_at(third)
        servers["ps", 0].stop()
        here = keys_at(third) | keys_at(servers["ps", 1])
        admin.resize(servers["ps", 1].address, {"ps": 2})
        assert eventually(lambda: third.wait(0), 60)
        assert keys_at(servers["ps", 1]) == here
        assert session.run(kept[3])[0] == 1.0


def test_traffic_counts_as_much_as_bytes(cluster, joined):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        busy = tf.get_variable("busy", [5000], initializer=tf.ones_initializer())
        idle = tf.get_variable("idle", [10000], initializer=tf.ones_initializer())
        other = tf.get_variable("other", [10000], initializer=tf.ones_initializer())
    with tf.device("/job:worker/task:0"):
        loss = tf.reduce_sum(busy * 2.0)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session(servers.target("worker")) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(train)
        traffic = servers["ps", 0].task.worker.traffic()
        assert set(traffic) == {"busy"}
        second = joined(servers["ps", 0])
        assert has_ended_sharing(second)
        assert session.run([idle, other])[0][0] == 1.0
    # By bytes alone the two larger ones would be apart.
    assert {frozenset(keys_at(servers["ps", 0])), frozenset(keys_at(second))} == {
        frozenset({"busy"}),
        frozenset({"idle", "other"}),
    }


def are_protected(*servers):
    return all(s.standbys and s.standbys.copy_stage == "protected" for s in servers)


def test_servers_with_copies_come_and_go_while_a_worker_trains(cluster, joined):
    servers = cluster(ps=2, worker=1, replicas=1)
    first, second = servers["ps", 0], servers["ps", 1]
    with training(servers) as (_, _, done):
        goes_on(done)
        third = joined(first)
        assert has_ended_sharing(first)
        goes_on(done)
        sizes = sizes_at(first, second, third)
        assert min(sizes) > 0.7 * sum(sizes) / 3, sizes
        stages = [s.standbys.copy_stage for s in (first, second, third)]
        assert eventually(lambda: are_protected(first, second, third)), stages
        # What it has got is in its copy, and in no other one any more.
        role = first.standbys._roles[third.task.me.task]
        assert {h.name for h in role.values._values if h.kind == "variable"} == keys_at(third)
        kept = second.standbys._roles[first.task.me.task].values._values
        assert eventually(lambda: {h.name for h in kept if h.kind == "variable"} == keys_at(first))
        with pytest.raises(tf.errors.UnimplementedError, match=r"was started with 2 .*1 are less"):
            admin.resize(first.address, {"ps": 1})
        answer = admin.resize(first.address, {"ps": 2})
        assert answer.leaving == ["/job:ps/replica:0/task:2"]
        assert eventually(lambda: third.wait(0), 60)
        goes_on(done)
        assert len(keys_at(first) | keys_at(second)) == 25
        assert not first.standbys.hosted


def test_tables_stay_at_servers_with_copies(cluster):
    servers = cluster(ps=2, worker=1, replicas=1)
    with tf.device("/job:ps/task:1"):
        table = tf.EmbeddingTable(4, tf.zeros_initializer(), name="rows")
    rows = tf.nn.embedding_lookup(table, tf.constant([3, 5], tf.int64))
    train = tf.train.GradientDescentOptimizer(1.0).minimize(-tf.reduce_sum(rows))
    with tf.Session(servers.target("worker")) as session:
        session.run(train)
        address = servers["ps", 1].address
        with pytest.raises(tf.errors.UnimplementedError, match="keep table of embeddings rows"):
            admin.move(address, ["table of embeddings rows"], "/job:ps/replica:0/task:0")


def test_resize_says_how_many_servers_to_start(cluster):
    servers = cluster(ps=1, worker=1)
    address = servers["ps", 0].address
    result = CliRunner().invoke(main, ["resize", "--ps", "3", address])
    assert "start 2 more of ps: tf.train.Server(" in result.output, result.output
    result = CliRunner().invoke(main, ["resize", "--ps", "0", address])
    assert "needs at least one task of the job 'ps'" in result.output


def test_what_another_one_stands_for_is_restored_beside_what_that_has(cluster, tmp_path):
    servers = cluster(ps=2, worker=1)
    with tf.Graph().as_default() as graph:
        for index, name in enumerate(("stays", "lost")):
            with tf.device(f"/job:ps/task:{index}"):
                tf.get_variable(name, [3], initializer=tf.ones_initializer())
        variables = tf.global_variables()
        learn = [v.assign_add(tf.ones([3])) for v in variables]
        saver = tf.train.Saver(sharded=True)
        manager = manager_of(graph)
        with tf.Session(servers.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            saver.save(session, f"{tmp_path}/model")
            session.run(learn)
        servers["ps", 1].stop()
        admin.resize(servers["ps", 0].address, {"ps": 1})
        session = manager.restore_lost(servers.target("worker"), saver, str(tmp_path))
        assert session is not None
        with session:
            assert [v[0] for v in session.run(variables)] == [2, 1]


def manager_of(graph):
    """Looks after the sessions of a graph that is complete."""
    return tf.train.SessionManager(
        local_init_op=tf.no_op(),
        graph=graph,
        ready_op=tf.report_uninitialized_variables(),
        ready_for_local_init_op=tf.report_uninitialized_variables(tf.global_variables()),
    )


def test_a_server_that_is_lost_with_variables_of_others_costs_only_these(cluster, joined, tmp_path):
    """Where variables are counts, not what their devices say: others keep what they learned."""
    servers = cluster(ps=2, worker=1)
    with tf.Graph().as_default() as graph:
        names = {"a": 0, "stays": 0, "b": 1, "rests": 1}
        variables = {}
        for name, index in names.items():
            with tf.device(f"/job:ps/task:{index}"):
                variables[name] = tf.get_variable(name, [3], initializer=tf.ones_initializer())
        with tf.device("/job:ps/task:1"):
            table = tf.EmbeddingTable(2, initializer=tf.zeros_initializer(), name="t")
        learn = [v.assign_add(tf.ones([3])) for v in variables.values()]
        learn.append(table.assign([7], tf.ones([1, 2]) * variables["a"][0]))
        rows = table.lookup([7])
        saver = tf.train.Saver(sharded=True)
        manager = manager_of(graph)
        newcomer = joined(servers["ps", 0])
        with tf.Session(servers.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            session.run(learn)
            for index, moving in enumerate((["a"], ["b", "table of embeddings t"])):
                admin.move(servers["ps", index].address, moving, newcomer.members.me[0])
            assert {"a", "b"} <= keys_at(newcomer)
            saver.save(session, f"{tmp_path}/model")
            saved = session.run([variables, rows])
            session.run(learn)
        newcomer.task.store.clear()  # as one that was started again
        session = manager.restore_lost(servers.target("worker"), saver, str(tmp_path))
        assert session is not None
        with session:
            values, row = session.run([variables, rows])
    assert {name: v[0] for name, v in values.items()} == {"a": 2, "b": 2, "stays": 3, "rests": 3}
    assert saved[0]["a"][0] == 2
    np.testing.assert_array_equal(row, saved[1])
