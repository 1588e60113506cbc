"""What a straggler costs synchronous training, with a backup replica and without.

Six replicas train on one server, in threads of this process. A step takes 40 ms of each, of which
one takes five times as long in the second and third run. Printed: milliseconds between updates.

    python benchmarks/stragglers.py
"""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

import numpy as np

import headrace as tf
from headrace.test.cluster import free_ports

REPLICAS, STEP, UPDATES = 6, 0.04, 40


def replica(spec: Any, index: int, needed: int, seconds: float) -> tuple[Any, Any, Any]:
    """Graph, train op and hook of one replica whose step takes so long."""

    def work() -> np.ndarray[Any, Any]:
        time.sleep(seconds)
        return np.float32(1.0)  # type: ignore[return-value]

    setter = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=spec)
    with tf.Graph().as_default() as graph, tf.device(setter):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", initializer=tf.zeros([1000]))
        factor = tf.py_func(work, [], tf.float32)
        factor.set_shape([])
        sgd = tf.train.GradientDescentOptimizer(0.1)
        opt = tf.train.SyncReplicasOptimizer(sgd, needed, REPLICAS)
        train = opt.minimize(tf.reduce_sum(w) * factor, global_step=step)
        return graph, train, opt.make_session_run_hook(index == 0, 0)


def milliseconds(needed: int, slowest: float) -> float:
    """The median time between updates."""
    ports = iter(free_ports(REPLICAS + 1))
    hosts = {
        "ps": [f"127.0.0.1:{next(ports)}"],
        "worker": [f"127.0.0.1:{next(ports)}" for _ in range(REPLICAS)],
    }
    spec = tf.train.ClusterSpec(hosts)
    servers = [tf.train.Server(spec, "ps", 0)]
    servers += [tf.train.Server(spec, "worker", i) for i in range(REPLICAS)]
    seen: dict[int, float] = {}
    done = threading.Event()

    def train(index: int, made: tuple[Any, Any, Any], session: Any) -> None:
        while not done.is_set():
            token = int(session.run(made[1]))
            seen.setdefault(token, time.monotonic())
            if token >= UPDATES:
                done.set()
        with made[0].as_default():
            session.close()

    threads = []
    for i in range(REPLICAS):
        made = replica(spec, i, needed, slowest if i == REPLICAS - 1 else STEP)
        with made[0].as_default():
            session = tf.train.MonitoredTrainingSession(
                servers[i + 1].target, i == 0, hooks=[made[2]], log_step_count_steps=None
            )
        threads.append(threading.Thread(target=train, args=(i, made, session)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server in servers:
        server.stop()
    times = [seen[t] for t in sorted(seen) if t > 5]
    return 1000 * statistics.median(np.diff(times).tolist())


def main() -> None:
    """Time the three kinds of run."""
    for what, needed, slowest in (
        ("all alike, 6 of 6", REPLICAS, STEP),
        ("a straggler, 6 of 6", REPLICAS, 5 * STEP),
        ("a straggler, 5 of 6", REPLICAS - 1, 5 * STEP),
    ):
        print(f"{what}: {milliseconds(needed, slowest):.1f} ms an update", flush=True)


if __name__ == "__main__":
    main()
