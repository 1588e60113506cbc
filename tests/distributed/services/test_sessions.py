"""Sessions on clusters of real servers: what a client sees."""

import contextlib
import subprocess
import sys
import textwrap
import threading
import time

import ml_dtypes
import numpy as np
import pytest
from server_clusters import eventually

import headrace as tf
from headrace.distributed.services import client

PS0, PS1, WORKER0, WORKER1 = (
    f"/job:{job}/replica:0/task:{i}" for job in ("ps", "worker") for i in (0, 1)
)


# -- one client, many tasks ---------------------------------------------------------------------


def test_in_graph_replication(cluster, either):
    c = cluster(ps=1, worker=2)
    with tf.device("/job:ps/task:0"):
        w = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32, [4, 2])
    parts = []
    for i, part in enumerate(tf.split(x, 2)):
        with tf.device(f"/job:worker/task:{i}"):
            parts.append(tf.reduce_sum(part * w))
    with tf.device("/job:ps/task:0"):
        total = tf.add_n(parts)
        train = w.assign_add([1.0, 1.0])
    with tf.Session(c.target()) as session:
        session.run(tf.global_variables_initializer())
        value = np.arange(8, dtype=np.float32).reshape(4, 2)
        for step in range(3):
            expected = (value * (np.array([1, 2]) + step)).sum()
            assert session.run(total, {x: value}) == expected
            session.run(train)


def test_devices_of_all_tasks(cluster, either):
    config = tf.ConfigProto(device_count={"CPU": 2})
    c = cluster(config=config, ps=1, worker=2)
    with tf.Session(c.target()) as session:
        names = [d.name for d in session.list_devices()]
    assert names == [f"{task}/device:CPU:{i}" for task in (PS0, WORKER0, WORKER1) for i in (0, 1)]


def test_device_filters(cluster, either):
    c = cluster(start=False, ps=1, worker=2)
    c.start("ps")
    c.start("worker")
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
    with tf.device("/job:ps"):
        near = tf.Variable(1.0)
    with tf.device("/job:worker/task:1"):
        far = near + 1.0
    with tf.Session(c.target(), config=config) as session:
        assert {d.name.rpartition("/")[0] for d in session.list_devices()} == {PS0, WORKER0}
        session.run(near.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(far)
    assert caught.value.op.name.startswith("add")
    assert "/job:worker/task:1" in caught.value.message
    assert f"{PS0}/device:CPU:0" in caught.value.message


def test_constants_and_fed_fetches_need_no_task(cluster, either):
    c = cluster(worker=1)
    x = tf.placeholder(tf.float32, [2])
    with tf.Session(c.target()) as session:
        assert session.run(tf.constant(3)) == 3
        np.testing.assert_array_equal(session.run(x, {x: [1, 2]}), [1, 2])
        assert session.run(tf.no_op()) is None
        assert session.run([]) == []


VALUES = [
    np.array(value, dtype)
    for dtype in (
        [
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "float64",
        ]
    )
    for value in ([[1, 2], [3, 120]], np.zeros((0, 3)), 7)
] + [
    np.array([[True, False]]),
    np.array([1 + 2j, -3j], np.complex64),
    np.array(1j, np.complex128),
    np.array([1.5, -2.0], ml_dtypes.bfloat16),
    np.array([b"", b"a\x00b", "ü".encode(), b"x" * 3000], object),
    np.zeros((0, 2), object),
    np.array(b"alone", object),
]


def test_every_type_through_another_task(cluster, either):
    c = cluster(ps=1, worker=1)
    feeds, fetches = {}, []
    for value in VALUES:
        dtype = tf.string if value.dtype == object else value.dtype
        x = tf.placeholder(dtype, value.shape)
        feeds[x] = value
        with tf.device("/job:ps/task:0"):
            there = tf.identity(x)
        with tf.device("/job:worker/task:0"):
            fetches.append(tf.identity(there))
    with tf.Session(c.target()) as session:
        for value, got in zip(VALUES, session.run(fetches, feeds), strict=True):
            np.testing.assert_array_equal(got, value[()])
            if value.dtype != object:
                assert got.dtype == value.dtype


def test_large_values_and_values_of_the_callers_own(cluster, either):
    c = cluster(ps=1, worker=1)
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.zeros([1 << 20]))
        there = x + 1.0
    with tf.Session(c.target()) as session:
        session.run(v.initializer)
        got = session.run(v)
        got += 5.0
        assert session.run(v)[0] == 0.0
        value = np.arange(1 << 21, dtype=np.float32)
        np.testing.assert_array_equal(session.run(there, {x: value}), value + 1)


def test_structures_sparse_values_and_callables(cluster, either):
    c = cluster(ps=1, worker=1)
    x = tf.placeholder(tf.float32, [2, 2])
    with tf.device("/job:ps/task:0"):
        slices = tf.IndexedSlices(x * 2.0, tf.constant([4, 1]), tf.constant([9, 2]))
    with tf.Session(c.target()) as session:
        one = np.ones((2, 2), np.float32)
        got = session.run({"a": [slices, x], "b": ()}, {x: one})
        np.testing.assert_array_equal(got["a"][0].values, one * 2)
        np.testing.assert_array_equal(got["a"][0].indices, [4, 1])
        assert got["b"] == ()
        call = session.make_callable(slices.values, [x])
        np.testing.assert_array_equal(call(one * 3), one * 6)


def test_an_interactive_session(cluster, either):
    c = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(4.0)
    session = tf.InteractiveSession(c.target())
    v.initializer.run()
    assert (v + 1.0).eval() == 5.0
    session.close()


# -- graphs that change -------------------------------------------------------------------------


def test_a_graph_that_grows_between_steps(cluster, either):
    c = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0)
    with tf.Session(c.target()) as session:
        session.run(v.initializer)
        y = v
        for i in range(5):
            with tf.device("/job:worker/task:0" if i % 2 else "/job:ps/task:0"):
                y = y * 2.0
            assert session.run(y) == 2.0 ** (i + 1)
        late = tf.Variable(tf.constant(7.0) + y)
        session.run(late.initializer)
        assert session.run(late) == 39.0


def test_a_rewired_graph(cluster, either):
    c = cluster(ps=1, worker=1)
    one, two = tf.constant(1.0), tf.constant(2.0)
    with tf.device("/job:ps/task:0"):
        y = tf.identity(one)
    z = tf.while_loop(lambda i: i < 3.0, lambda i: i + y, [0.0])
    with tf.Session(c.target()) as session:
        assert session.run([y, z]) == [1.0, 3.0]
        y.op._update_input(0, two)
        assert session.run([y, z]) == [2.0, 4.0]


def test_functions_in_graphs_that_grow(cluster, either):
    c = cluster(ps=1, worker=1)
    x = tf.placeholder(tf.float32, [])
    first = tf.cond(x > 0.0, lambda: x + 1.0, lambda: x - 1.0)
    with tf.Session(c.target()) as session:
        assert session.run(first, {x: 1.0}) == 2.0
        second = tf.cond(x > 0.0, lambda: first * 2.0, lambda: first * 3.0)
        assert session.run(second, {x: -1.0}) == -6.0
        assert session.run(tf.gradients(second, x)[0], {x: -1.0}) == 3.0


# -- a client for each worker -------------------------------------------------------------------


def counter(container=""):
    graph = tf.Graph()
    with graph.as_default(), graph.container(container), tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=0.0, use_resource=True)
        return graph, v.initializer, v.assign_add(1.0)


def test_between_graph_replication_shares_variables_by_name(cluster, either):
    c = cluster(ps=1, worker=2)
    graphs = [counter() for _ in range(2)]
    with contextlib.ExitStack() as stack:
        sessions = [
            stack.enter_context(tf.Session(c.target("worker", i), graph=graphs[i][0]))
            for i in (0, 1)
        ]
        sessions[0].run(graphs[0][1])
        seen = [sessions[i % 2].run(graphs[i % 2][2]) for i in range(6)]
    assert seen == [1, 2, 3, 4, 5, 6]
    graph, _, add = counter()
    with tf.Session(c.target(), graph=graph) as session:
        assert session.run(add) == 7.0


def test_containers_and_reset(cluster, either):
    c = cluster(ps=1, worker=1)
    counters = {name: counter(name) for name in ("", "mine")}
    for graph, init, add in counters.values():
        with tf.Session(c.target(), graph=graph) as session:
            session.run(init)
            session.run(add)
    graph, _, add = counters["mine"]
    tf.Session.reset(c.target(), ["mine"])
    with tf.Session(c.target(), graph=graph) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
            session.run(add)
        session.run(counters["mine"][1])
    graph, _, add = counters[""]
    with tf.Session(c.target(), graph=graph) as session:
        assert session.run(add) == 2.0
        tf.Session.reset(c.target())
        with pytest.raises(tf.errors.OpError):
            session.run(add)
    with (
        tf.Session(c.target(), graph=graph) as session,
        pytest.raises(tf.errors.FailedPreconditionError),
    ):
        session.run(add)
    graph, _, add = counters["mine"]
    with tf.Session(c.target(), graph=graph) as session:
        assert session.run(add) == 1.0


def test_isolated_sessions(cluster, either):
    c = cluster(ps=1, worker=1)
    config = tf.ConfigProto(isolate_session_state=True)
    graph, init, add = counter()
    with (
        tf.Session(c.target(), graph=graph) as shared,
        tf.Session(c.target(), graph=graph, config=config) as one,
        tf.Session(c.target(), graph=graph, config=config) as other,
    ):
        for session in (shared, one, other):
            session.run(init)
        assert [one.run(add), one.run(add), other.run(add), shared.run(add)] == [1, 2, 1, 1]


def test_many_clients_at_once(cluster, either):
    c = cluster(ps=1, worker=2)
    graph, init, add = counter()
    with tf.Session(c.target(), graph=graph) as session:
        session.run(init)
    failed = []

    def work(number):
        try:
            mine, _, add = counter()
            with tf.Session(c.target("worker", number % 2), graph=mine) as session:
                for _ in range(20):
                    session.run(add)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    with tf.Session(c.target(), graph=graph) as session:
        assert session.run(add) == 121.0


def test_threads_that_share_a_session(cluster, either):
    c = cluster(ps=1, worker=1)
    x = tf.placeholder(tf.float32, [])
    with tf.device("/job:ps/task:0"):
        y = x * 2.0
    wrong = []
    with tf.Session(c.target()) as session:

        def work(number):
            wrong.extend(
                n for n in range(20) if session.run(y, {x: number + n}) != 2 * (number + n)
            )

        threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_random_streams_belong_to_each_session(cluster, either):
    c = cluster(ps=1, worker=1)
    tf.set_random_seed(3)
    with tf.device("/job:ps/task:0"):
        x = tf.random_uniform([3])
    drawn = []
    for _ in range(2):
        with tf.Session(c.target()) as session:
            drawn.append([session.run(x), session.run(x)])
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0][0] != drawn[0][1]).any()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        np.testing.assert_array_equal(session.run(x), drawn[0][0])


# -- clients that go ----------------------------------------------------------------------------


def test_close_frees_plans_everywhere_and_keeps_variables(cluster, either):
    c = cluster(ps=1, worker=1)
    graph, init, add = counter()
    session = tf.Session(c.target(), graph=graph)
    session.run(init)
    session.run(add)
    assert c["ps", 0].task.worker.plans == 2
    assert len(c["worker", 0].task.master.sessions()) == 1
    session.close()
    assert eventually(lambda: c["ps", 0].task.worker.plans == 0)
    assert c["worker", 0].task.master.sessions() == []
    assert [k.name for k, _ in c["ps", 0].task.store.items()] == ["v"]
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(add)


def stays_away(master):
    """A minute without the clients: until then they find their sessions."""
    now = time.monotonic()
    for away in (0.0, 59.0, 61.0):
        assert master.sessions()
        master.tick(now + away)


def test_a_client_that_dies_frees_what_it_held(cluster, remote):
    c = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, tf.int32, shared_name="q")
        got = queue.dequeue()
    session = tf.Session(c.target())
    waiting = threading.Thread(
        target=pytest.raises, args=(tf.errors.OpError, session.run, got), daemon=True
    )
    waiting.start()
    assert eventually(c["ps", 0].task.worker.running)
    engine = session._engine
    for link in engine._peers.all():
        link.close()  # as the system does when a process dies
    assert eventually(lambda: not c["ps", 0].task.worker.running())
    stays_away(c["worker", 0].task.master)
    assert eventually(lambda: not c.leftovers()), c.leftovers()
    session.close()
    waiting.join(20)
    assert not waiting.is_alive()


@pytest.mark.process
def test_a_client_process_that_is_killed(cluster):
    c = cluster(ps=1, worker=1)
    program = f"""
        import os, signal, threading, headrace as tf
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=2.0, use_resource=True)
            got = tf.FIFOQueue(1, tf.int32, shared_name="q").dequeue()
        session = tf.Session("{c.target()}")
        session.run(v.initializer)
        threading.Thread(target=session.run, args=(got,), daemon=True).start()
        input()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert eventually(c["ps", 0].task.worker.running, 30)
        assert len(c["worker", 0].task.master.sessions()) == 1
        process.stdin.write(b"\n")
        process.stdin.close()
    assert eventually(lambda: not c["ps", 0].task.worker.running())
    stays_away(c["worker", 0].task.master)
    assert eventually(lambda: not c.leftovers()), c.leftovers()
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=0.0, use_resource=True)
    with tf.Session(c.target()) as session:
        assert session.run(v) == 2.0


def test_a_master_that_dies_leaves_nothing_at_workers(cluster):
    c = cluster(ps=1, worker=2)
    graph, init, add = counter()
    session = tf.Session(c.target("worker", 1), graph=graph)
    session.run(init)
    assert c["ps", 0].task.worker.plans == 1
    c["worker", 1].stop()
    assert eventually(lambda: c["ps", 0].task.worker.plans == 0)
    with pytest.raises(tf.errors.OpError):
        session.run(add)
    session.close()


# -- errors -------------------------------------------------------------------------------------


def test_errors_name_op_device_task_and_line(cluster, either):
    c = cluster(ps=1, worker=1)
    x = tf.placeholder(tf.int32, [None])
    with tf.device("/job:ps/task:0"):
        table = tf.Variable([1.0, 2.0], name="table")
        row = tf.gather(table, x, name="row")
    with tf.Session(c.target()) as session:
        session.run(table.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(row, {x: [7]})
        assert session.run(row, {x: [1]}) == [2.0]
    error = caught.value
    assert error.op.name.startswith("row")
    text = str(error)
    assert f"{PS0}/device:CPU:0" in text
    assert "test_sessions.py" in text
    assert "row = tf.gather(table, x" in text


def test_an_uninitialized_variable_on_another_task(cluster, either):
    c = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("weights", [2], use_resource=True)
    with (
        tf.Session(c.target()) as session,
        pytest.raises(tf.errors.FailedPreconditionError, match="weights") as caught,
    ):
        session.run(v)
    assert PS0 in str(caught.value)


# -- state --------------------------------------------------------------------------------------


def test_save_and_restore(cluster, either, tmp_path):
    c = cluster(ps=2, worker=1)
    with tf.device(tf.train.replica_device_setter(cluster=c.spec)):
        a = tf.get_variable("a", initializer=[1.0, 2.0], use_resource=True)
        b = tf.get_variable("b", initializer=3, use_resource=True)
        saver = tf.train.Saver()
        change = [a.assign([0.0, 0.0]), b.assign(0)]
    with tf.Session(c.target()) as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"), global_step=4)
        session.run(change)
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(a), [1, 2])
        assert session.run(b) == 3
    assert {k.name for k, _ in c["ps", 0].task.store.items()} == {"a"}
    assert {k.name for k, _ in c["ps", 1].task.store.items()} == {"b"}


def test_sharded_save(cluster, either, tmp_path):
    c = cluster(ps=2, worker=1)
    with tf.device(tf.train.replica_device_setter(cluster=c.spec)):
        a = tf.get_variable("a", initializer=[1.0, 2.0], use_resource=True)
        b = tf.get_variable("b", initializer=3, use_resource=True)
        saver = tf.train.Saver(sharded=True)
    with tf.Session(c.target()) as session:
        session.run(tf.global_variables_initializer())
        for saves in (1, 2, 3):
            path = saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
            files = {p.name for p in tmp_path.iterdir()} - {"checkpoint", "model.index"}
            count = 3 - saves % 2  # each server has written a file, beside those that were there
            assert files == {f"model.data-{i:05d}-of-{count:05d}" for i in range(count)}
        session.run([a.assign([0.0, 0.0]), b.assign(0)])
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(a), [1, 2])
        assert session.run(b) == 3


def test_partial_runs_are_refused_clearly(cluster, either):
    c = cluster(worker=1)
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    with (
        tf.Session(c.target()) as session,
        pytest.raises(tf.errors.UnimplementedError, match="partial_run is for sessions of one"),
    ):
        session.partial_run_setup([y], [x])


def test_which_engine_a_target_gets(cluster):
    c = cluster(worker=1)
    with tf.Session(c.target()) as session:
        assert isinstance(session._engine, client.OwnMasterEngine)
