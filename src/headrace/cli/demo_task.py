"""One process of the cluster that `headrace demo` trains on: a parameter server, worker or chief.

Between-graph replication: the chief and each worker build the same graph, whose variables stand
on the parameter servers. Workers compute gradients and apply them without waiting for each other;
the chief initialises the variables, tests them from time to time, and saves them.

The process is started with the cluster and its own task in the variable TF_CONFIG, and ends when
its standard input does, so that it never outlives the process that started it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headrace as tf
from headrace.cli.demo_models import DigitModel, digit_models, model_scope
from headrace.distributed.cluster.tf_config import TaskConfig, read_tf_config
from headrace.examples.digits import load_digits

CURVE_POINTS = 50
POLL_SECONDS = 0.05
REPORT_SECONDS = 0.05


@dataclass(frozen=True)
class Job:
    """What the cluster is to do; each of its processes knows it.

    Attributes:
        steps: updates of each model's variables by all workers together; None takes as many as
            the model needs.
        seed: of the split into training and test images, of the shuffling and of the weights.
        output_dir: where the chief saves.
    """

    steps: int | None
    seed: int
    output_dir: str


@dataclass(frozen=True)
class Replica:
    """A model's graph as the chief and the workers build it.

    Attributes:
        model: the model, its variables on the parameter servers.
        workers: for each worker a variable, float32 [4], by which it tells the chief how far it
            is: its steps, the loss of its last batch, its steps per second, and 1.0 at the end.
        values: placeholder, float32 [4], what a worker tells.
        tell: for each worker, the operation that tells it.
        count: int64 scalar, the global step after an update by this replica.
        not_ready: the names of the variables that the chief has not initialised yet.
    """

    model: DigitModel
    workers: list[tf.Variable]
    values: tf.Tensor
    tell: list[tf.Operation]
    count: tf.Tensor
    not_ready: tf.Tensor


class DemoTask:
    """This process as a task of the cluster.

    Args:
        config: what TF_CONFIG holds.
        job: what there is to do.
    """

    def __init__(self, config: TaskConfig, job: Job) -> None:
        self.cluster, self.kind, self.index = config
        self.job = job
        self.server = tf.train.Server(self.cluster, job_name=self.kind, task_index=self.index)

    def do_share(self) -> None:
        """Do this task's share, then serve the others until the cluster is shut down."""
        tell = {"chief": self._lead, "worker": self._work}.get(self.kind)
        if tell is not None:
            # Each worker meets the images in an order of its own.
            order = self.job.seed + (self.index + 1 if self.kind == "worker" else 0)
            digits = load_digits(self.job.seed, order)
            for build in digit_models(self.job.seed):
                tell(self._replicate(build), digits)
        if self.kind == "chief":
            report(event="done")
        self.server.join()

    def _replicate(self, build: Any) -> Replica:
        device = tf.train.replica_device_setter(
            cluster=self.cluster, worker_device=f"/job:{self.kind}/task:{self.index}"
        )
        model = build(device)
        with model_scope(model.graph, model.name, device):
            workers = [
                tf.get_variable(
                    f"worker{i}", [4], initializer=tf.zeros_initializer(), trainable=False
                )
                for i in range(self.cluster.num_tasks("worker"))
            ]
            values = tf.placeholder(tf.float32, [4], name="progress")
            with tf.control_dependencies([model.train]):
                count = tf.identity(model.global_step.read_value())
            return Replica(
                model=model,
                workers=workers,
                values=values,
                tell=[worker.assign(values).op for worker in workers],
                count=count,
                not_ready=tf.report_uninitialized_variables(),
            )

    def _work(self, replica: Replica, digits: Any) -> None:
        """Train until all workers together have done the steps."""
        model = replica.model
        steps = self.job.steps or model.steps
        with tf.Session(self.server.target, graph=model.graph) as session:
            while session.run(replica.not_ready).size:
                time.sleep(POLL_SECONDS)
            count, mine, loss = 0, 0, 0.0
            first = told = time.perf_counter()
            while count < steps:
                loss, count = session.run(
                    [model.loss, replica.count], model.next_feed(digits.train)
                )
                mine += 1
                now = time.perf_counter()
                # The first step compiles; the rate is that of the others.
                first = now if mine == 1 else first
                if mine == 1 or count >= steps or now - told > REPORT_SECONDS:
                    told = now
                    rate = (mine - 1) / (now - first) if mine > 1 else 0.0
                    values = [mine, loss, rate, count >= steps]
                    session.run(replica.tell[self.index], {replica.values: values})

    def _lead(self, replica: Replica, digits: Any) -> None:
        """Initialise, watch and test until the workers have finished, then save."""
        model = replica.model
        steps = self.job.steps or model.steps
        with model_scope(model.graph, model.name, None):
            start = tf.variables_initializer(replica.workers)
        report(event="model", model=model.name, steps=steps, placement=placement(model))
        feed = model.test_feed(digits)
        with tf.Session(self.server.target, graph=model.graph) as session:
            session.run(model.init)
            # Compiles the test before the clock runs; the workers wait for their own variables.
            session.run(model.accuracy, feed)
            session.run(start)
            watch = _Watch(model.name, max(1, steps // CURVE_POINTS))
            while not watch.finished:
                count, workers = session.run([model.global_step, replica.workers])
                if watch.look(int(count), workers):
                    watch.tell(float(session.run(model.accuracy, feed)))
                time.sleep(POLL_SECONDS)
            accuracy, count = session.run([model.accuracy, model.global_step], feed)
            watch.tell(float(accuracy))
            path = str(Path(self.job.output_dir) / f"cluster-{model.name}")
            saved = model.saver.save(session, path, global_step=int(count))
        report(event="saved", model=model.name, checkpoint=saved, rate=watch.rate,
               seconds=watch.seconds)  # fmt: skip
        tf.Session.reset(self.server.target, [model.name])


class _Watch:
    """What the chief sees of the workers of a model, and when it tells."""

    def __init__(self, name: str, every: int) -> None:
        self.finished = False
        self.seconds = 0.0
        self.rate = 0.0
        self._name = name
        self._every = every
        self._began = time.perf_counter()
        self._compiled: tuple[float, int] | None = None
        self._next = 1
        self._count = 0
        self._workers: list[Any] = []

    def look(self, count: int, workers: list[Any]) -> bool:
        """Note how far the workers are; tells whether it is time for a test."""
        now = time.perf_counter()
        self._count, self._workers = count, workers
        self.seconds = now - self._began
        self.finished = all(worker[3] for worker in workers)
        if self._compiled is None:
            self.rate = count / self.seconds
            if all(worker[0] for worker in workers):
                self._compiled = now, count
        elif count > self._compiled[1]:
            self.rate = (count - self._compiled[1]) / (now - self._compiled[0])
        due = count >= self._next and not self.finished
        if due:
            self._next = count + self._every
        return due

    def tell(self, accuracy: float) -> None:
        """Report to the process that started the cluster."""
        workers = [
            {"steps": int(steps), "loss": float(loss), "rate": float(rate)}
            for steps, loss, rate, _ in self._workers
        ]
        report(
            event="progress",
            model=self._name,
            step=self._count,
            rate=self.rate,
            accuracy=accuracy,
            workers=workers,
        )


def placement(model: DigitModel) -> dict[str, list[str]]:
    """The names of the trained variables on each parameter server."""
    places: dict[str, list[str]] = {}
    for variable in model.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES):
        places.setdefault(variable.device, []).append(variable.op.name)
    return places


def report(**fields: Any) -> None:
    """Write one line of JSON for the process that started this one."""
    print(json.dumps(fields), flush=True)


def end_with_parent() -> None:
    """End this process, whatever it does, as soon as its standard input is closed."""

    def watch() -> None:
        # Not by way of sys.stdin: a thread that waits in there disturbs the interpreter's end.
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="watch of stdin", daemon=True).start()


def main() -> None:
    """Run the task that TF_CONFIG names; the job is the argument, as JSON."""
    end_with_parent()
    DemoTask(read_tf_config(), Job(**json.loads(sys.argv[1]))).do_share()


if __name__ == "__main__":
    main()
