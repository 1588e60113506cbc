"""The work of `distributed.py`: one program text for both sides, and the table's rows.

A program is built in the process of a worker, in the default graph of `tf`
(`tensorflow.compat.v1` or `headrace`), and run through a session on that worker's own server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed_task import Program, Task
from feature_workloads import features_step
from language_workloads import language_step
from sync_workloads import sync_step

MEGABYTE = 2**20
WIDTH = 1024  # floats in a row of the dense and the sparse variables
SPARSE_ROWS = 32
FACTOR = 2.0**-12
BATCH = 100
GRADIENT_MEGABYTES = 4


def null_step(task: Task, kind: str, megabytes: int = 0, precision: str = "") -> Program:
    """Read all parameters, scale them on the worker, add them back where they live."""
    tf = task.tf
    with tf.device(task.worker):
        factor = tf.placeholder(tf.float32, [])
    rows = megabytes * MEGABYTE // (4 * WIDTH * task.servers)
    updates, probes, picks = [], [], []
    for i in range(task.servers):
        home = f"/job:ps/task:{i}"
        with tf.device(home):
            v = tf.get_variable(
                f"v{i}",
                shape=[] if kind == "scalar" else [rows, WIDTH],
                initializer=tf.ones_initializer(),
                use_resource=True,
            )
            probes.append(v.read_value() if kind == "scalar" else tf.gather(v, [0]))
        if kind == "sparse":
            with tf.device(task.worker):
                picks.append(tf.placeholder(tf.int32, [SPARSE_ROWS]))
        with task.wire(precision):
            with tf.device(home):
                read = tf.gather(v, picks[i]) if picks else tf.identity(v.read_value())
            with tf.device(task.worker):
                scaled = read * factor
            with tf.device(home):
                if picks:
                    updates.append(tf.scatter_add(v, picks[i], scaled).op)
                else:
                    updates.append(v.assign_add(scaled, read_value=False))
    with tf.device(task.worker):
        step = tf.group(*updates)
    session = task.session()
    rng = np.random.RandomState(task.index)

    def run() -> None:
        chosen = {pick: rng.randint(rows, size=SPARSE_ROWS) for pick in picks}
        session.run(step, feed_dict={factor: FACTOR, **chosen})

    def check() -> None:
        before = session.run(probes)
        first = {pick: np.arange(SPARSE_ROWS) for pick in picks}
        session.run(step, feed_dict={factor: FACTOR, **first})
        for old, new in zip(before, session.run(probes), strict=True):
            # Float32 keeps the small difference to 1 part in 2,000; two coarse transfers less.
            np.testing.assert_allclose((new - old) / old, FACTOR, rtol=0.05 if precision else 5e-3)

    return Program(run, check)


def softmax_step(task: Task) -> Program:
    """A worker's step of asynchronous MNIST-softmax training, parameters on the servers."""
    tf = task.tf
    rng = np.random.RandomState(task.index)
    images = rng.random_sample((BATCH, 784)).astype(np.float32)
    labels = np.eye(10, dtype=np.float32)[rng.randint(10, size=BATCH)]
    with tf.device(tf.train.replica_device_setter(worker_device=task.worker, cluster=task.cluster)):
        x, y_ = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
        w, b = tf.Variable(tf.zeros([784, 10])), tf.Variable(tf.zeros([10]))
        y = tf.nn.softmax(tf.matmul(x, w) + b)
        loss = -tf.reduce_sum(y_ * tf.log(y))
        train = tf.train.GradientDescentOptimizer(1e-4).minimize(loss)
    session = task.session()
    feed = {x: images, y_: labels}

    def check() -> None:
        untrained = BATCH * np.log(10)
        value = float(session.run(loss, feed_dict=feed))
        if not value < untrained:
            raise AssertionError(f"the loss is {value}, not below {untrained}: nothing was learned")

    return Program(lambda: session.run(train, feed_dict=feed), check)


def push_step(task: Task) -> Program:
    """Push one dense gradient, made on the worker, into a variable on the server."""
    tf = task.tf
    size = GRADIENT_MEGABYTES * MEGABYTE // 4
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable(
            "v", shape=[size], initializer=tf.zeros_initializer(), use_resource=True
        )
        probe = tf.gather(v, [0, size - 1])
    with tf.device(task.worker):
        factor = tf.placeholder(tf.float32, [])
        gradient = tf.fill([size], factor)
    with tf.device("/job:ps/task:0"):
        step = v.assign_add(gradient, read_value=False)
    session = task.session()

    def check() -> None:
        value = session.run(probe)
        if not (value[0] > 0 and value[0] == value[1]):
            raise AssertionError(f"the ends of the variable are {value}: pushes were lost or torn")

    return Program(lambda: session.run(step, feed_dict={factor: 1.0}), check)


BUILDERS: dict[str, Callable[..., Program]] = {
    "null": null_step,
    "softmax": softmax_step,
    "push": push_step,
    "language": language_step,
    "features": features_step,
    "sync": sync_step,
}


@dataclass(frozen=True)
class Workload:
    """A row of the table.

    `measure` is what is compared: "seconds" of a step or the "bytes" of a server (Headrace over
    TensorFlow at most `target`), or the "rate" of steps over all workers (at least `target`).
    """

    name: str
    title: str
    target: float | None
    build: str
    arguments: dict[str, Any] = field(default_factory=dict)
    servers: int = 1
    workers: int = 1
    measure: str = "seconds"
    alone: bool = False  # a fresh cluster every time, and none of the other side beside it
    namespaces: bool = False  # the workers in another network namespace than the servers
    environment: dict[str, str] = field(default_factory=dict)  # of Headrace's processes
    core_each: bool = False  # each worker may use one core, the next one
    lockstep: bool = False  # workers wait for each other in every step: all make equally many


_STREAM = {"HEADRACE_SHARED_MEMORY": "0"}
_DENSE = {"kind": "dense", "megabytes": 100}


def _null(name: str, title: str, target: float | None, servers: int, **more: Any) -> Workload:
    return Workload(name, title, target, "null", servers=servers, **more)


def _compressed(precision: str) -> tuple[Workload, Workload]:
    arguments = _DENSE | {"precision": precision}
    return (
        _null(precision, f"dense 100 MB sent as {precision}", None, 2, arguments=arguments),
        _null(
            f"stream_{precision}",
            f"the same, byte stream, {precision}",
            None,
            2,
            arguments=arguments,
            environment=_STREAM,
        ),
    )


def _table(gigabytes: int) -> Workload:
    arguments = {"kind": "sparse", "megabytes": 1024 * gigabytes}
    title = f"32 random rows a server of a {gigabytes} GB table, 2 servers"
    return _null(f"sparse_{gigabytes}gb", title, 0.4, 2, arguments=arguments, alone=True)


def _asynchronous(workers: int) -> Workload:
    title = f"asynchronous MNIST-softmax, workers: {workers}"
    return Workload(f"async_{workers}", title, 2.0, "softmax", workers=workers, measure="rate")


def _language(servers: int, sampled: bool) -> Workload:
    kind = "sampled" if sampled else "full"
    title = f"language model, {kind} softmax, servers: {servers}"
    return Workload(
        f"language_{kind}_{servers}",
        title,
        1.5,
        "language",
        arguments={"sampled": sampled},
        servers=servers,
        measure="rate",
        alone=True,
    )


def weak_scaling(workers: int) -> Workload:
    """A row of `weak_scaling.py`."""
    title = f"language model, asynchronous, workers with a core each: {workers}"
    return Workload(
        f"weak_{workers}",
        title,
        None,
        "language",
        arguments={"sampled": True},
        workers=workers,
        measure="rate",
        core_each=True,
    )


WORKLOADS = (
    _null("scalar_1", "scalar, 1 server", 0.4, 1, arguments={"kind": "scalar"}),
    _null("scalar_4", "scalar, 4 servers", 0.4, 4, arguments={"kind": "scalar"}),
    _null("dense_100mb", "dense 100 MB, 2 servers", 0.4, 2, arguments=_DENSE),
    _null(
        "dense_1gb",
        "dense 1 GB, 2 servers",
        0.4,
        2,
        arguments={"kind": "dense", "megabytes": 1024},
        alone=True,
    ),
    _table(1),
    _table(4),
    _null(
        "stream_100mb",
        "dense 100 MB, no shared memory",
        0.9,
        2,
        arguments=_DENSE,
        environment=_STREAM,
    ),
    _null(
        "namespaces",
        "dense 100 MB between network namespaces",
        0.9,
        2,
        arguments=_DENSE,
        namespaces=True,
        environment={"HEADRACE_INSECURE": "1"},
    ),
    _asynchronous(1),
    _asynchronous(2),
    _asynchronous(4),
    *_compressed("bfloat16"),
    *_compressed("float16"),
    *_compressed("int8"),
    *(_language(servers, sampled) for sampled in (False, True) for servers in (1, 2, 4)),
    Workload(
        "features",
        "100 features of a table of 10^7 rows, steps of 512 examples, 2 servers, 2 workers",
        3.0,
        "features",
        servers=2,
        workers=2,
        measure="rate",
        alone=True,
    ),
    Workload(
        "sync_dense",
        "synchronous replicas, dense 100 MB, 2 servers, 4 workers",
        0.5,
        "sync",
        servers=2,
        workers=4,
        alone=True,
        lockstep=True,
    ),
    Workload(
        "memory",
        "peak memory of a server, 16 workers push 4 MB",
        None,
        "push",
        workers=16,
        measure="bytes",
        alone=True,
    ),
)
