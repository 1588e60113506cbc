"""Variables that move to a new server: for how long training pauses.

    python benchmarks/moving.py                     # a third of 1 GB, dense and sparse steps
    python benchmarks/moving.py --megabytes 256 --one-by-one
    python benchmarks/moving.py --join              # the third server joins while steps run

Two servers with half of the model each, a third one that is empty, and a worker that trains; each
server is a process. Variables go to the third server as `plan_moves` says while steps run: those of
one server at once, or one after the other. With ``--join`` the third one is started meanwhile, with
the address of the first, and the servers share the variables out by themselves.

Measured is the longest time between the ends of two steps, beside the same before; target: under
0.5 s.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

import headrace as tf
from headrace.distributed.moving.planner import plan_moves
from headrace.distributed.services import admin
from headrace.test.cluster import free_ports

SERVERS, PIECES, COLUMNS = 3, 30, 256
PS = "/job:ps/replica:0/task:"
WARM_STEPS, QUIET_STEPS = 10, 60


def serve(cluster: str, index: int) -> None:
    """A parameter server, until its standard input ends; with an address alone one that joins."""
    known = json.loads(cluster)
    where = {} if isinstance(known, str) else {"task_index": index}
    server = tf.train.Server(known, job_name="ps", **where)
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()


def start(cluster: Any, index: int) -> subprocess.Popen[bytes]:
    """A process that serves."""
    return subprocess.Popen(
        [sys.executable, __file__, "serve", json.dumps(cluster), str(index)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def model(megabytes: int, kind: str) -> tuple[list[Any], Any]:
    """The variables on the first two servers, and a step: it changes all of each, or some rows."""
    rows = (megabytes << 20) // (PIECES * COLUMNS * 4)
    variables, updates = [], []
    for i in range(PIECES):
        with tf.device(f"/job:ps/task:{i % 2}"):
            v = tf.get_variable(f"v{i}", [rows, COLUMNS], initializer=tf.zeros_initializer())
        variables.append(v)
        if kind == "dense":
            updates.append(tf.assign(v, v + 1.0))
        else:
            with tf.device("/job:worker/task:0"):
                ids = tf.random_uniform([64], 0, rows, tf.int32)
            updates.append(tf.scatter_add(v, ids, tf.ones([64, COLUMNS])))
    with tf.device("/job:ps/task:0"):
        count = tf.get_variable("count", initializer=0)
    return variables, tf.group(*updates, count.assign_add(1))


def pauses(ends: list[float]) -> tuple[float, float]:
    """The longest and the median time between the ends of two steps, in seconds."""
    gaps = [b - a for a, b in itertools.pairwise(ends)]
    return max(gaps), statistics.median(gaps)


def measure(megabytes: int, kind: str, how: str) -> dict[str, Any]:
    """Train, and move a third of the model meanwhile."""
    count = SERVERS - 1 if how == "join" else SERVERS
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count + 1)]
    cluster = {"ps": addresses[:count], "worker": addresses[count:]}
    servers = [start(cluster, i) for i in range(count)]
    for server in servers:
        assert server.stdout is not None
        server.stdout.readline()
    worker = tf.train.Server(cluster, job_name="worker", task_index=0)
    try:
        with tf.Graph().as_default():
            return _measured(cluster["ps"], worker, servers, megabytes, kind, how)
    finally:
        for server in servers:
            server.kill()
            server.wait()
        worker.stop()


def join(contact: str, worker: Any, servers: list[Any]) -> tuple[list[float], int]:
    """Start a server that joins, and wait until it has its share."""
    servers.append(start(contact, 0))
    newcomer = f"{PS}{SERVERS - 1}"
    record = worker.members.record
    while newcomer not in record.tasks or record.is_sharing:
        time.sleep(0.01)
        record = worker.members.record
    found = admin.status(worker.members.addresses.of(newcomer), cluster=False)[0]
    return [], sum(v.bytes for v in found.variables)


def move(ps: list[str], each: int, one_by_one: bool) -> tuple[list[float], int]:
    """Move what the planner says; for how long steps were held, and the bytes."""
    sizes = {f"{PS}{i}": {f"v{k}": each for k in range(i, PIECES, 2)} for i in range(2)}
    tasks = [f"{PS}{i}" for i in range(SERVERS)]
    plan = plan_moves({**sizes, tasks[2]: {}}, tasks)
    groups = [[m] for m in plan]
    if not one_by_one:
        groups = [[m for m in plan if m[1] == t] for t in tasks[:2]]
    done = [
        admin.move(ps[tasks.index(group[0][1])], [name for name, _, _ in group], group[0][2])
        for group in groups
    ]
    return [d.held_seconds for d in done], sum(d.bytes for d in done)


def _measured(
    ps: list[str], worker: Any, servers: list[Any], megabytes: int, kind: str, how: str
) -> dict[str, Any]:
    variables, step = model(megabytes, kind)
    ends: list[float] = []
    moved = threading.Event()
    with tf.Session(worker.target) as session:
        session.run(tf.global_variables_initializer())
        call = session.make_callable([step])
        for _ in range(WARM_STEPS):
            call()

        def train() -> None:
            while not moved.is_set():
                call()
                ends.append(time.perf_counter())

        trainer = threading.Thread(target=train)
        trainer.start()
        while len(ends) < QUIET_STEPS:
            time.sleep(0.01)
        quiet, began = len(ends), time.perf_counter()
        each = int(variables[0].shape.num_elements()) * 4
        if how == "join":
            held, size = join(ps[0], worker, servers)
        else:
            held, size = move(ps, each, how == "one-by-one")
        took = time.perf_counter() - began
        wanted = len(ends) + QUIET_STEPS
        while len(ends) < wanted and trainer.is_alive():
            time.sleep(0.01)
        moved.set()
        trainer.join()
        count = int(session.run("count:0"))
    assert count == len(ends) + WARM_STEPS, (count, len(ends))
    before, step_before = pauses(ends[:quiet])
    during, step_during = pauses(ends[quiet - 1 :])
    return {
        "kind": kind,
        "moved_mb": size / (1 << 20),
        "moves": len(held),
        "seconds": took,
        "longest_hold": max(held, default=float("nan")),
        "longest_gap_before": before,
        "median_gap_before": step_before,
        "longest_gap": during,
        "median_gap": step_during,
    }


def main() -> None:
    """Measure both kinds of steps, and print a line for each."""
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--one-by-one", dest="how", action="store_const", const="one-by-one")
    parser.add_argument("--join", dest="how", action="store_const", const="join")
    parser.add_argument("--kind", choices=["sparse", "dense"])
    options = parser.parse_args()
    for kind in [options.kind] if options.kind else ["sparse", "dense"]:
        found = measure(options.megabytes, kind, options.how or "at once")
        print(
            f"{kind}: {found['moved_mb']:.0f} MB in {found['moves']} moves, "
            f"{found['seconds']:.1f} s; longest gap between steps {found['longest_gap']:.3f} s "
            f"(before: {found['longest_gap_before']:.3f}), median {found['median_gap']:.3f} s "
            f"({found['median_gap_before']:.3f}), steps held at most {found['longest_hold']:.3f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
