"""All-reduce of 100 MB of float32 between processes of this host, beside gloo and TensorFlow.

    python benchmarks/all_reduce.py [--processes 2 4] [--kilobytes 4 64 1000 100000] [--peer PYTHON]
    python benchmarks/all_reduce.py --training

Prints the median step of each, in milliseconds, and the bound that memory sets. Of a tensor of D
bytes each of n processes has to add (n-1)/n D to what came from another one (two reads, a write),
and to copy as much of the results (a read, a write): 5 (n-1)/n D over the memory bus, at the rate
at which n processes that copy D at once move their 2 D each.

With --training the steps of a network of 100 MB, whose gradients travel in one bucket, which has to
wait for all of them, or in buckets of 8 MB, which leave while others are computed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from side import free_ports

WARM, STEPS, SMALL_STEPS = 3, 12, 300


def _timed(step: Callable[[], Any], count: int = 1 << 30) -> float:
    """The median of steps that sum ``count`` elements; all processes make as many of them."""
    for _ in range(WARM):
        step()
    times = []
    for _ in range(STEPS if count > 1_000_000 else SMALL_STEPS):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def headrace(index: int, ports: list[int], count: int) -> float:
    """A step that sums a variable over all workers."""
    import headrace as tf

    cluster = tf.train.ClusterSpec({"worker": [f"127.0.0.1:{p}" for p in ports]})
    server = tf.train.Server(cluster, job_name="worker", task_index=index)
    with tf.device(f"/job:worker/task:{index}"):
        value = tf.get_variable("value", [count], initializer=tf.ones_initializer())
        total = tf.collective.all_reduce(value, len(ports), 1, 1)
        # Both wait for all: nobody leaves while others need it.
        end = tf.collective.all_reduce(1, len(ports), 1, 2)
    with tf.Session(server.target) as sess:
        sess.run(value.initializer)
        taken = _timed(lambda: sess.run(total.op), count)
        sess.run(end)
    return taken


def _training(index: int, ports: list[int], bucket_bytes: int) -> float:
    """A step of a network of six layers of 16 MB each."""
    import numpy as np

    import headrace as tf

    cluster = tf.train.ClusterSpec({"worker": [f"127.0.0.1:{p}" for p in ports]})
    server = tf.train.Server(cluster, job_name="worker", task_index=index)
    with tf.device(f"/job:worker/task:{index}"):
        x = layer = tf.placeholder(tf.float32, [64, 2048])
        for number in range(6):
            kernel = tf.get_variable(f"kernel_{number}", [2048, 2048])
            layer = tf.tanh(tf.matmul(layer, kernel))
        optimizer = tf.train.AllReduceOptimizer(
            tf.train.GradientDescentOptimizer(0.01), len(ports), bucket_bytes=bucket_bytes
        )
        train = optimizer.minimize(tf.reduce_mean(layer**2))
        end = tf.collective.all_reduce(1, len(ports), 1, 2)
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        feed = {x: np.random.default_rng(index).normal(size=(64, 2048)).astype(np.float32)}
        taken = _timed(lambda: sess.run(train, feed))
        sess.run(end)
    return taken


def one_bucket(index: int, ports: list[int], count: int) -> float:
    """All gradients of a network travel together."""
    return _training(index, ports, 1 << 30)


def buckets(index: int, ports: list[int], count: int) -> float:
    """They travel in buckets of the usual size."""
    return _training(index, ports, 8 << 20)


def gloo(index: int, ports: list[int], count: int) -> float:
    """The same by JAX's multi-process runtime."""
    import jax
    import numpy as np
    from jax import numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{ports[0]}", len(ports), index)
    mesh = Mesh(np.array(jax.devices()), ("workers",))
    rows = NamedSharding(mesh, PartitionSpec("workers"))
    own = np.ones((1, count), np.float32)
    value = jax.make_array_from_process_local_data(rows, own, (len(ports), count))
    whole = NamedSharding(mesh, PartitionSpec())
    total = jax.jit(lambda x: jnp.sum(x, 0), out_shardings=whole)
    return _timed(lambda: total(value).block_until_ready(), count)


def tensorflow(index: int, ports: list[int], count: int) -> float:
    """The same by TensorFlow's MultiWorkerMirroredStrategy."""
    os.environ["TF_CONFIG"] = json.dumps(
        {
            "cluster": {"worker": [f"127.0.0.1:{p}" for p in ports]},
            "task": {"type": "worker", "index": index},
        }
    )
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    value = tf.ones([count])

    @tf.function
    def step() -> Any:
        def replica() -> Any:
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, value)

        return strategy.run(replica)

    return _timed(lambda: step()[:1].numpy(), count)


def memory(index: int, ports: list[int], count: int) -> float:
    """To copy so much, while the others do the same."""
    import numpy as np

    one, other = np.ones(count, np.float32), np.zeros(count, np.float32)
    return _timed(lambda: [np.copyto(other, one) for _ in range(10)]) / 10


def measure(kind: str, processes: int, count: int, python: str) -> float:
    """The median step of worker 0, in seconds; infinite if TensorFlow's workers failed.

    They do now and then, when one has ended while another still asks it something.
    """
    ports = ",".join(map(str, free_ports(processes)))
    command = [python, __file__, "--worker", kind, "--ports", ports, "--count", str(count)]
    running = [
        subprocess.Popen([*command, "--index", str(i)], stdout=subprocess.PIPE, text=True)
        for i in range(processes)
    ]
    outputs = [process.communicate(timeout=300)[0] for process in running]
    if kind == "tensorflow" and not outputs[0]:
        return float("inf")
    return float(outputs[0].splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--kilobytes", type=int, nargs="*", default=[4, 64, 1000, 100_000])
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--peer", help="the Python that has TensorFlow")
    parser.add_argument("--rounds", type=int, default=2)
    kinds = ["headrace", "gloo", "tensorflow", "memory", "one_bucket", "buckets"]
    parser.add_argument("--worker", choices=kinds)
    parser.add_argument("--ports")
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    options = parser.parse_args()
    if options.worker:
        ports = [int(p) for p in options.ports.split(",")]
        taken = globals()[options.worker](options.index, ports, options.count)
        print(taken, flush=True)
        os._exit(0)  # a coordinator that leaves would end the others with an error
    if options.training:
        for processes in options.processes:
            show_training(processes, options.rounds)
        return
    pythons = {"headrace": sys.executable, "gloo": sys.executable}
    if options.peer:
        pythons["tensorflow"] = options.peer
    for processes in options.processes:
        for kilobytes in options.kilobytes:
            show(processes, kilobytes, options.rounds, pythons)


def show(processes: int, kilobytes: int, rounds: int, pythons: dict[str, str]) -> None:
    """Print one row: the best of several rounds of each kind, which take turns."""
    count = kilobytes * 1000 // 4
    found: dict[str, list[float]] = {kind: [] for kind in pythons}
    copies: list[float] = []
    for _ in range(rounds):
        copies.append(measure("memory", processes, count, sys.executable))
        for kind, python in pythons.items():
            found[kind].append(measure(kind, processes, count, python))
    row = "  ".join(f"{k} {min(v) * 1e3:7.2f} ms" for k, v in found.items())
    bound = min(copies) * 5 * (processes - 1) / (2 * processes)
    ratios = f"{min(found['headrace']) / min(found['gloo']):.2f} of gloo"
    if kilobytes >= 10_000:  # what is less is a matter of messages, not of memory
        ratios += f", {min(found['headrace']) / bound:.2f} of the bound, {bound * 1e3:.1f} ms"
    print(f"{processes} processes, {kilobytes} KB: {row}: {ratios}", flush=True)


def show_training(processes: int, rounds: int) -> None:
    """Print what the steps of a network take with one bucket and with several."""
    found: dict[str, list[float]] = {"one_bucket": [], "buckets": []}
    for _ in range(rounds):
        for kind, times in found.items():
            times.append(measure(kind, processes, 0, sys.executable))
    one, several = min(found["one_bucket"]), min(found["buckets"])
    print(
        f"{processes} processes: one bucket {one * 1e3:.1f} ms, buckets of 8 MB "
        f"{several * 1e3:.1f} ms: {several / one:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
