"""Copies of parameter servers: what they cost the steps, and how soon a killed server is served.

    python benchmarks/standby.py                     # 100 MB dense, 512 MB of tables, 1 GB killed
    python benchmarks/standby.py --megabytes 256     # of the model whose servers are killed
    python benchmarks/standby.py --without-copies    # killed, started again at once, restored

Two servers and one worker, each server a process. The steps of a cluster with `replicas=1` and of
one without take turns; target: at most 1.6 of the step without. Then each server is killed by
SIGKILL while the worker trains in a `MonitoredTrainingSession`, and started again; target: the
next step ends within 2 s, and no update that a step reported as done is lost.

Without copies the killed server is started again at once, and restores what it had from the last
checkpoint; target: the next step ends within 8 s. The other server loses nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import headrace as tf
from headrace.distributed.services.admin import status
from headrace.test.cluster import free_ports

SERVERS, COLUMNS, ROWS = 2, 256, 500
WARM_STEPS, PATIENCE = 5, 120.0


def serve(cluster: str, replicas: int, index: int) -> None:
    """A parameter server, until its standard input ends."""
    spec = tf.train.ClusterSpec(json.loads(cluster), replicas=replicas)
    server = tf.train.Server(spec, job_name="ps", task_index=index)
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()


class Cluster:
    """Servers, each a process, and a worker in this one."""

    def __init__(self, replicas: int) -> None:
        addresses = [f"127.0.0.1:{port}" for port in free_ports(SERVERS + 1)]
        self.addresses = {"ps": addresses[:SERVERS], "worker": addresses[SERVERS:]}
        self.replicas = replicas
        self.servers = [self._begin(i) for i in range(SERVERS)]
        spec = tf.train.ClusterSpec(self.addresses, replicas=replicas)
        self.worker = tf.train.Server(spec, job_name="worker", task_index=0)

    def _begin(self, index: int) -> subprocess.Popen[str]:
        args = ("serve", json.dumps(self.addresses), str(self.replicas), str(index))
        return subprocess.Popen(
            [sys.executable, __file__, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill(self, index: int) -> None:
        """kill -9."""
        self.servers[index].kill()
        self.servers[index].wait()

    def start_again(self, index: int) -> None:
        """A process for a server that was killed."""
        self.servers[index] = self._begin(index)

    def wait_for_copies(self) -> None:
        """Wait until both servers have a whole copy, and serve themselves."""
        limit = time.monotonic() + PATIENCE
        while not self._is_whole():
            if time.monotonic() > limit:
                raise TimeoutError(f"no whole copies within {PATIENCE:.0f} s")
            time.sleep(0.1)

    def _is_whole(self) -> bool:
        try:
            tasks = [t for t in status(self.addresses["worker"][0]) if "job:ps" in t.task]
        except tf.errors.OpError:
            return False
        homes = {t.address for t in tasks if t.copy == "protected"}
        return homes == set(self.addresses["ps"])

    def close(self) -> None:
        """End all processes."""
        for server in self.servers:
            server.kill()
            server.communicate()


def dense(megabytes: int) -> Any:
    """A step whose gradients are as large as the model."""
    losses = []
    for i in range(SERVERS):
        with tf.device(f"/job:ps/task:{i}"):
            rows = (megabytes << 20) // (4 * COLUMNS * SERVERS)
            table = tf.get_variable(f"w{i}", [rows, COLUMNS], initializer=tf.ones_initializer())
        losses.append(tf.reduce_sum(tf.square(table)))
    return tf.train.GradientDescentOptimizer(1e-3).minimize(tf.add_n(losses))


def sparse(megabytes: int, knows_size: bool) -> Any:
    """A step that trains some rows of each table."""
    ids = tf.random_uniform(
        [ROWS], maxval=(megabytes << 20) // (4 * COLUMNS * SERVERS), dtype=tf.int32
    )
    if not knows_size:
        ids = tf.placeholder_with_default(ids, [None])
    losses = []
    for i in range(SERVERS):
        with tf.device(f"/job:ps/task:{i}"):
            rows = (megabytes << 20) // (4 * COLUMNS * SERVERS)
            table = tf.get_variable(f"t{i}", [rows, COLUMNS], initializer=tf.ones_initializer())
        losses.append(tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids))))
    return tf.train.GradientDescentOptimizer(1e-3).minimize(tf.add_n(losses))


def compare(name: str, build: Callable[[], Any], steps: int, repeat: int) -> None:
    """Print the time of a step without and with copies."""
    clusters = [Cluster(0), Cluster(1)]
    try:
        runs = []
        for cluster in clusters:
            with tf.Graph().as_default(), tf.device("/job:worker/task:0"):
                train = build()
                session = tf.Session(cluster.worker.target)
                session.run(tf.global_variables_initializer())
            runs.append((session, train))
        clusters[1].wait_for_copies()
        for session, train in runs:
            _seconds(session, train, WARM_STEPS)
        taken = [[_seconds(*run, steps) for run in runs] for _ in range(repeat)]
        without, with_copies = (statistics.median(column) for column in zip(*taken, strict=True))
        ratio = statistics.median(b / a for a, b in taken)
        print(
            f"{name}: {1e3 * with_copies:.1f} ms a step with copies, {1e3 * without:.1f} ms "
            f"without: {ratio:.2f} (target 1.6)",
            flush=True,
        )
        for session, _ in runs:
            session.close()
    finally:
        for cluster in clusters:
            cluster.close()


def _seconds(session: Any, train: Any, steps: int) -> float:
    begin = time.perf_counter()
    for _ in range(steps):
        session.run(train)
    return (time.perf_counter() - begin) / steps


class Worker(threading.Thread):
    """Trains without end.

    Attributes:
        ends: when each step that was reported as done had begun and ended.
        seen: the counters of the servers after each of them.
    """

    def __init__(self, cluster: Cluster, megabytes: int, checkpoint_dir: str | None = None) -> None:
        super().__init__(daemon=True)
        self._cluster, self._megabytes = cluster, megabytes
        self._checkpoint_dir = checkpoint_dir
        self.ends: list[tuple[float, float]] = []
        self.seen: list[list[int]] = []
        self.stops = threading.Event()

    def run(self) -> None:
        with tf.Graph().as_default(), tf.device("/job:worker/task:0"):
            with tf.device("/job:ps/task:0"):
                tf.train.get_or_create_global_step()
            train, counts = sparse(self._megabytes, True), []
            for i in range(SERVERS):
                with tf.device(f"/job:ps/task:{i}"):
                    counter = tf.get_variable(f"counter{i}", initializer=0)
                counts.append(counter.assign_add(1))
            options = {
                "is_chief": True,
                "log_step_count_steps": None,
                "save_summaries_steps": None,
                "checkpoint_dir": self._checkpoint_dir,
                "save_checkpoint_secs": 1e9,  # the first one, of the initial values
            }
            target = self._cluster.worker.target
            with tf.train.MonitoredTrainingSession(target, **options) as session:
                while not self.stops.is_set():
                    begin = time.perf_counter()
                    _, found = session.run([train, counts])
                    self.ends.append((begin, time.perf_counter()))
                    self.seen.append(list(map(int, found)))


def kill_servers(megabytes: int, repeat: int) -> None:
    """Print how long it takes from a kill to the end of the next step."""
    cluster = Cluster(1)
    worker = Worker(cluster, megabytes)
    pauses, returns = [], []
    try:
        worker.start()
        for i in range(repeat):
            _wait_for_steps(worker, len(worker.ends) + 50)
            cluster.wait_for_copies()
            killed = time.perf_counter()
            cluster.kill(i % SERVERS)
            pauses.append(_next_step(worker, killed) - killed)
            again = time.perf_counter()
            cluster.start_again(i % SERVERS)
            cluster.wait_for_copies()
            _wait_for_steps(worker, len(worker.ends) + 50)
            times = [end for _, end in worker.ends if end > again]
            returns.append(max(b - a for a, b in itertools.pairwise(times)))
        worker.stops.set()
        worker.join(PATIENCE)
    finally:
        cluster.close()
    lost = sum(min(b) <= min(a) for a, b in itertools.pairwise(worker.seen))
    print(
        f"kill -9 of a server, {megabytes} MB: next step after {statistics.median(pauses):.2f} s, "
        f"longest {max(pauses):.2f} (target 2); longest pause while it returns "
        f"{max(returns):.2f} s; updates lost in {lost} of {len(worker.seen)} steps (target 0)",
        flush=True,
    )


def restore_servers(megabytes: int, repeat: int) -> None:
    """Print how long it takes from a kill to the end of the next step, without copies."""
    cluster = Cluster(0)
    pauses, others_lost = [], 0
    with tempfile.TemporaryDirectory() as directory:
        worker = Worker(cluster, megabytes, directory)
        try:
            worker.start()
            for i in range(repeat):
                _wait_for_steps(worker, len(worker.ends) + 50)
                before = worker.seen[-1]
                killed = time.perf_counter()
                cluster.kill(i % SERVERS)
                cluster.start_again(i % SERVERS)
                pauses.append(_next_step(worker, killed) - killed)
                after = worker.seen[-1]
                others_lost += sum(
                    after[j] <= before[j] for j in range(SERVERS) if j != i % SERVERS
                )
            worker.stops.set()
            worker.join(PATIENCE)
        finally:
            cluster.close()
    print(
        f"kill -9 of a server without a copy, {megabytes} MB, started again at once: next step "
        f"after {statistics.median(pauses):.2f} s, longest {max(pauses):.2f} (target 8); the other "
        f"server lost updates {others_lost} times (target 0)",
        flush=True,
    )


def _wait_for_steps(worker: Worker, count: int) -> None:
    limit = time.monotonic() + PATIENCE
    while len(worker.ends) < count:
        if time.monotonic() > limit:
            raise TimeoutError(f"not {count} steps within {PATIENCE:.0f} s")
        time.sleep(0.01)


def _next_step(worker: Worker, since: float) -> float:
    """The end of the first step that has begun since."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        found = [end for begin, end in worker.ends[-1:] if begin > since]
        if found:
            return found[0]
        time.sleep(0.002)
    raise TimeoutError(f"no step within {PATIENCE:.0f} s")


def main() -> None:
    """All figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1024, help="of the model that is killed")
    parser.add_argument("--dense", type=int, default=100, help="megabytes of the dense model")
    parser.add_argument("--sparse", type=int, default=512, help="megabytes of the sparse one")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--without-copies", action="store_true", help="only kills without copies")
    args = parser.parse_args()
    if args.without_copies:
        restore_servers(args.megabytes, 4)
        return
    compare(f"dense, {args.dense} MB", lambda: dense(args.dense), 3, args.repeat)
    for knows in (True, False):
        kind = "known" if knows else "unknown"
        name = f"sparse, {ROWS} rows of each server, {kind} size"
        compare(name, lambda knows=knows: sparse(args.sparse, knows), 50, args.repeat)
    kill_servers(args.megabytes, 4)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
