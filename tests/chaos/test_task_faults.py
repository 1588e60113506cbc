"""Faults of a process itself, by a clock that the test moves."""

from pathlib import Path
from types import SimpleNamespace

import headrace as tf
from headrace.chaos.task_faults import Delays, SkewedClock, SlowDisk


def test_a_slow_disk(tmp_path: Path):
    now, waits = [0.0], []
    disk = SlowDisk(lambda: now[0], waits.append)
    path = tmp_path / "x"
    path.write_text("1")
    assert waits == []
    disk.begin(5, 0.2)
    path.write_text("2")
    path.rename(tmp_path / "y")
    assert waits == [0.2] * 2
    now[0] = 5.0
    (tmp_path / "y").unlink()
    assert waits == [0.2] * 2


def test_a_wall_clock_is_wrong_for_a_while():
    now = [0.0]
    functions = SimpleNamespace(time=lambda: 1000.0 + now[0], time_ns=lambda: 10**12)
    wall = SkewedClock(lambda: now[0], functions)
    assert functions.time() == 1000.0
    wall.begin(5, -600.0)
    assert (functions.time(), functions.time_ns()) == (400.0, 400 * 10**9)
    now[0] = 5.0
    assert (functions.time(), functions.time_ns()) == (1005.0, 10**12)


def test_delays_end_by_themselves():
    now = [0.0]
    delays = Delays(lambda: now[0])
    assert delays.decide("a", "b", b"") is None
    delays.begin(2.0, 0.1)
    rule = delays.decide("a", "b", b"")
    assert (rule.action, rule.seconds) == ("delay", 0.1)
    now[0] = 2.0
    assert delays.decide("a", "b", b"") is None
    assert delays.seen == []


def test_a_server_with_delayed_connections():
    from headrace.chaos.task_faults import DelayedServer
    from headrace.test.cluster import free_ports

    cluster = tf.train.ClusterSpec({"worker": [f"127.0.0.1:{p}" for p in free_ports(2)]})
    delays = [Delays(), Delays()]
    servers = [DelayedServer(cluster, "worker", i, delays[i]) for i in range(2)]
    try:
        with tf.device("/job:worker/task:1"):
            v = tf.get_variable("v", initializer=1.0)
        with tf.Session(servers[0].target) as session:
            session.run(v.initializer)
            delays[0].begin(30.0, 0.05)
            assert session.run(v.assign_add(1.0)) == 2.0
            (link,) = servers[0].task.peers.all()
            link.fail("cut on purpose")
            try:
                value = session.run(v)
            except tf.errors.UnavailableError:
                value = session.run(v)
            assert value == 2.0
    finally:
        for server in servers:
            server.stop()
