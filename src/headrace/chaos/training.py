"""The program that is trained under faults: a small model of handwritten digits, and counters.

Each worker has a counter on each server, to which its steps add one; each server has one of all
workers. They are variables like others, in checkpoints as the model is.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import headrace as tf
from headrace.chaos.accounts import ALL
from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.examples.digits import load_digits
from headrace.examples.tutorials.mnist.input_data import Datasets

BATCH_SIZE = 50
RATE = 0.2
_PAUSE = 0.05


@dataclass(frozen=True)
class Digits:
    """A model of the digits.

    Attributes:
        images: placeholder, float32 [batch, 64]; labels: float32 [batch, 10], one-hot.
        loss: float32 scalar, mean cross-entropy.
        accuracy: float32 scalar, share of the batch that is classified right.
    """

    images: tf.Tensor
    labels: tf.Tensor
    loss: tf.Tensor
    accuracy: tf.Tensor

    def next_feed(self, data: Datasets, batch: int = BATCH_SIZE) -> dict[tf.Tensor, Any]:
        """The next batch to learn from."""
        images, labels = data.train.next_batch(batch)
        return {self.images: images, self.labels: labels}

    def test_feed(self, data: Datasets) -> dict[tf.Tensor, Any]:
        """All test images."""
        return {self.images: data.test.images, self.labels: data.test.labels}


def digits_model() -> Digits:
    """One matrix, one bias and a softmax, in the default graph."""
    images = tf.placeholder(tf.float32, [None, 64], name="images")
    labels = tf.placeholder(tf.float32, [None, 10], name="labels")
    weights = tf.get_variable("weights", [64, 10], initializer=tf.zeros_initializer())
    biases = tf.get_variable("biases", [10], initializer=tf.zeros_initializer())
    logits = tf.matmul(images, weights) + biases
    losses = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    right = tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1))
    return Digits(
        images, labels, tf.reduce_mean(losses), tf.reduce_mean(tf.cast(right, tf.float32))
    )


def undisturbed_accuracy(steps: int, batch: int, seed: int) -> float:
    """That of one process after so many steps, of batches of so many images."""
    data = load_digits(seed)
    with tf.Graph().as_default(), tf.Session() as session:
        model = digits_model()
        train = tf.train.GradientDescentOptimizer(RATE).minimize(model.loss)
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(train, model.next_feed(data, batch))
        return float(session.run(model.accuracy, model.test_feed(data)))


class Counters:
    """The counters on the servers, in the default graph.

    Args:
        cluster: which servers and workers there are.
        is_saved: whether they are global variables, which are initialised and saved with the model.

    Attributes:
        own: those of each worker on each server, ``own[server][worker]``.
        total: of all workers, on each server.
    """

    def __init__(self, cluster: ClusterSpec, is_saved: bool = True) -> None:
        collection = tf.GraphKeys.GLOBAL_VARIABLES if is_saved else "counters"
        self.own, self.total = [], []
        for server in range(cluster.num_tasks("ps")):
            with tf.device(f"/job:ps/task:{server}"):
                self.own.append(
                    [
                        _counter(f"steps_{server}_{worker}", collection)
                        for worker in range(cluster.num_tasks("worker"))
                    ]
                )
                self.total.append(_counter(f"steps_{server}", collection))


def _counter(name: str, collection: str) -> tf.Variable:
    """An int64 scalar that begins at 0."""
    return tf.get_variable(
        name,
        [],
        tf.int64,
        initializer=tf.zeros_initializer(),
        trainable=False,
        collections=[collection],
    )


def saved_counters(path: str) -> dict[str, int]:
    """What a checkpoint has of the counters, by ``server/worker``."""
    reader = tf.train.load_checkpoint(path)
    found = {}
    for name in reader.get_variable_to_shape_map():
        parts = name.split("_")
        if parts[0] == "steps":
            key = "/".join(parts[1:]) if len(parts) == 3 else f"{parts[1]}/{ALL}"
            found[key] = int(reader.get_tensor(name))
    return found


def say(**fields: Any) -> None:
    """Write one line of JSON for the process that started this one."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


class NotingSaver(tf.train.Saver):
    """Tells what it saves and restores."""

    def save(self, sess: Any, save_path: Any, *args: Any, **kwargs: Any) -> Any:
        began = time.monotonic()
        path = super().save(sess, save_path, *args, **kwargs)
        counters = saved_counters(path or "")
        say(event="saved", began=began, at=time.monotonic(), path=path, counters=counters)
        return path

    def restore(self, sess: Any, save_path: Any) -> None:
        self._note(save_path, [], lambda: tf.train.Saver.restore(self, sess, save_path))

    def restore_tasks(self, sess: Any, save_path: str, tasks: Any) -> None:
        names = sorted(tasks)
        self._note(
            save_path, names, lambda: tf.train.Saver.restore_tasks(self, sess, save_path, tasks)
        )

    def _note(self, path: str, tasks: list[str], restore: Any) -> None:
        servers = [int(task.rpartition(":")[2]) for task in tasks if "/job:ps/" in task]
        counters = saved_counters(path)
        began = time.monotonic()
        say(event="restoring", at=began, path=path, servers=servers, counters=counters)
        restore()
        say(event="restored", began=began, at=time.monotonic(), path=path)


class Notes(tf.train.SessionRunHook):
    """Tells of each attempt, and of what the counters were when it was acknowledged.

    Args:
        fetches: what each step reads.
    """

    def __init__(self, fetches: dict[str, Any]) -> None:
        self._fetches = fetches

    def before_run(self, run_context: Any) -> Any:
        say(event="begin", at=time.monotonic())
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        found = {key: _plain(value) for key, value in run_values.results.items()}
        say(event="done", at=time.monotonic(), **found)


class CountersThere(tf.train.SessionRunHook):
    """Waits, when a session has begun, until somebody has initialised the counters."""

    def __init__(self, counters: Counters) -> None:
        self._missing = tf.report_uninitialized_variables(
            [*counters.total, *(v for row in counters.own for v in row)]
        )

    def after_create_session(self, session: Any, coord: Any) -> None:
        while session.run(self._missing).size:
            time.sleep(_PAUSE)


def start_counters(cluster: ClusterSpec, server: int, address: str) -> None:
    """Let the counters of a server begin at 0, of those that nobody saves."""
    with tf.Graph().as_default():
        init = tf.variables_initializer(_counters_of(cluster, server))
        with tf.Session(f"grpc://{address}") as session:
            session.run(init)


def lacks_counters(cluster: ClusterSpec, server: int, address: str) -> bool:
    """Whether the counters of a server have no values."""
    with tf.Graph().as_default():
        missing = tf.report_uninitialized_variables(_counters_of(cluster, server))
        with tf.Session(f"grpc://{address}") as session:
            return bool(session.run(missing).size)


def _counters_of(cluster: ClusterSpec, server: int) -> list[Any]:
    counters = Counters(cluster, is_saved=False)
    return [counters.total[server], *counters.own[server]]


def _plain(value: Any) -> Any:
    return [int(v) for v in value] if isinstance(value, list) else int(value)


@dataclass(frozen=True)
class Training:
    """What a worker is to do.

    Attributes:
        mode: of training.
        directory: for checkpoints.
        seed: of the batches.
        save_seconds: between two checkpoints.
        pause: seconds between two steps of a worker, so that the machine is not busy all the time.
    """

    mode: str
    directory: str
    seed: int
    save_seconds: float
    pause: float


def train(
    server: Any, cluster: ClusterSpec, index: int, work: Training, stop: threading.Event
) -> None:
    """Train as worker ``index`` until ``stop`` is set."""
    data = load_digits(work.seed, work.seed + 1 + index)
    here = f"/job:worker/task:{index}"
    is_copied = work.mode == "all-reduce"
    place = (
        here if is_copied else tf.train.replica_device_setter(cluster=cluster, worker_device=here)
    )
    with tf.device(place):
        step = tf.train.get_or_create_global_step()
        model = digits_model()
        optimizer: Any = tf.train.GradientDescentOptimizer(RATE)
        if work.mode == "synchronous":
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, cluster.num_tasks("worker"))
        elif is_copied:
            optimizer = tf.train.AllReduceOptimizer(optimizer, cluster.num_tasks("worker"))
        learn = optimizer.minimize(model.loss, global_step=step)
    counters = Counters(cluster, is_saved=not is_copied)
    own = [row[index] for row in counters.own]
    added = [v.assign_add(1) for v in own]
    counted = [v.assign_add(1, read_value=False) for v in counters.total]
    hooks: list[Any] = [Notes({"step": step, "own": added, "total": counters.total})]
    if work.mode == "synchronous":
        hooks.append(optimizer.make_session_run_hook(index == 0, num_tokens=0))
    elif is_copied:
        hooks += [optimizer.make_session_run_hook(index == 0), CountersThere(counters)]
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_copied or index == 0,  # who has all variables gives them their values
        checkpoint_dir=work.directory if index == 0 or not is_copied else None,
        scaffold=tf.train.Scaffold(saver=NotingSaver(sharded=True, defer_build=True)),
        hooks=hooks,
        save_checkpoint_secs=work.save_seconds,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
    ) as session:
        while not stop.wait(work.pause) and not session.should_stop():
            session.run([learn, *counted], model.next_feed(data))
