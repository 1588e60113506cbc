"""One mode of training under faults."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

import headrace as tf
from headrace.chaos.accounts import ALL, Attempt
from headrace.chaos.findings import Findings, find
from headrace.chaos.records import LifeRecord
from headrace.chaos.runner import follow
from headrace.chaos.schedule import KINDS, Cluster, make_schedule
from headrace.chaos.task_pool import END_SECONDS, Life, TaskPool
from headrace.chaos.training import (
    BATCH_SIZE,
    Counters,
    Training,
    digits_model,
    lacks_counters,
    start_counters,
    undisturbed_accuracy,
)
from headrace.distributed.services import admin
from headrace.errors import OpError
from headrace.examples.digits import load_digits

__all__ = ["MODES", "Chaos", "Trial"]

MODES = ("asynchronous", "synchronous", "all-reduce")
#: More undisturbed steps than these change nothing any more.
_ENOUGH_STEPS = 4000
_FIRST_STEP_SECONDS = 60.0
#: After the end of a server, so long it may take until all servers have a copy again.
_COPIED_SECONDS = 10.0


@dataclass(frozen=True)
class Chaos:
    """What `headrace chaos` is to do.

    Attributes:
        seconds: of faults, in each mode.
        seed: of the faults, the batches and the test images.
        modes: of training, see `MODES`.
        output_dir: where logs, checkpoints and reports go.
        cluster: how many tasks.
        kinds: of faults.
        every: seconds between two faults, on average.
        pause: of a worker between two steps, seconds.
        save_seconds: between two checkpoints.
        spares: processes that have imported all they need, ready to become a task.
        replicas: copies of the variables of each server; with one no update may be lost.
    """

    seconds: float
    seed: int
    output_dir: Path
    modes: Sequence[str] = MODES
    cluster: Cluster = field(default_factory=lambda: Cluster(2, 4))
    kinds: Sequence[str] = tuple(KINDS)
    every: float = 4.0
    pause: float = 0.01
    save_seconds: float = 2.0
    spares: int = 0
    replicas: int = 0


class Trial:
    """One mode under faults."""

    def __init__(self, chaos: Chaos, mode: str, directory: Path) -> None:
        self._chaos, self._mode, self._directory = chaos, mode, directory
        self._records: dict[Life, LifeRecord] = {}
        self._lock = threading.Lock()
        self._steps_seen = threading.Event()
        checkpoints = str((directory / f"checkpoints-{time.time_ns()}").resolve())
        work = Training(mode, checkpoints, chaos.seed, chaos.save_seconds, chaos.pause)
        #: Whether each worker has the model, and servers the counters only.
        self._is_group = mode == "all-reduce"
        self._work = work
        self._begun: set[str] = set()
        self._violations: list[str] = []
        self._pool = TaskPool(
            chaos.cluster, asdict(work), directory, self._hear, chaos.spares, chaos.replicas
        )

    def findings(self) -> Findings:
        """Train, and find."""
        chaos = self._chaos
        schedule = make_schedule(chaos.seed, chaos.seconds, chaos.cluster, chaos.kinds, chaos.every)
        found = Findings(self._mode, chaos.seed, chaos.seconds)
        try:
            for task in chaos.cluster.tasks[: chaos.cluster.servers]:
                self.start(task)
            for task in chaos.cluster.tasks[chaos.cluster.servers :]:
                self._start(task)
            if not self._steps_seen.wait(_FIRST_STEP_SECONDS):
                raise click.ClickException(
                    f"no step in {_FIRST_STEP_SECONDS:.0f} s: see the logs in {self._directory}"
                )
            began = time.monotonic()
            follow(schedule, chaos.seconds, self)
            ended = time.monotonic()
            self._stop_workers(found)
            found.violations += self._violations
            final, found.accuracy = self._read()
        finally:
            self._pool.close()
        find(found, chaos.cluster, self._lives(), schedule, final, began, ended)
        found.undisturbed = self._undisturbed(found.steps)
        return found

    def _undisturbed(self, steps: int) -> float:
        """The accuracy of one process that makes as many updates of as many images."""
        together = 1 if self._mode == "asynchronous" else self._chaos.cluster.workers
        updates = min(steps // together, _ENOUGH_STEPS)
        return undisturbed_accuracy(updates, BATCH_SIZE * together, self._chaos.seed)

    # -- what the schedule does ---------------------------------------------------------------

    def start(self, task: str) -> None:
        """Start a process for a task."""
        life = self._start(task)
        if task.startswith("worker/"):
            return
        if self._is_group:
            threading.Thread(target=self._start_counters, args=(life,), daemon=True).start()

    def _start(self, task: str) -> Life:
        life = self._pool.start(task)
        assert life.began is not None
        with self._lock:
            self._records[life] = LifeRecord(task, life.began)
        return life

    def _start_counters(self, life: Life) -> None:
        """Initialise the counters of a server, in a thread; that is a restoration of zeros.

        A server with a copy gets them back from it, unless that was lost too.
        """
        if not life.is_ready.wait(_FIRST_STEP_SECONDS):
            return
        server = int(life.task.partition("/")[2])
        cluster, address = self._pool.cluster, self._pool.addresses["ps"][server]
        try:
            if self._chaos.replicas and life.task in self._begun:
                if not lacks_counters(cluster, server, address):
                    return
                if not self._lost_together(life):
                    text = f"{life.task} came back without its variables, though its copy lived"
                    self._violations.append(text)
        except OpError:
            return  # it was killed again
        self._begun.add(life.task)
        zeros = {f"{server}/{w}": 0 for w in (ALL, *range(self._chaos.cluster.workers))}
        note = {"path": "", "servers": [server], "counters": zeros}
        self._hear(life, {"event": "restoring", "at": time.monotonic(), **note})
        try:
            start_counters(cluster, server, address)
        except OpError:
            return  # it was killed again
        self._hear(life, {"event": "restored", "at": time.monotonic(), **note})

    def _lost_together(self, life: Life) -> bool:
        """Whether servers ended so soon after each other that no copy could be made between."""
        assert life.began is not None
        since = life.began - _COPIED_SECONDS
        with self._lock:
            records = list(self._records.values())
        ended = {r.task for r in records if r.ended is not None and r.ended >= since}
        return sum(task.startswith("ps/") for task in ended) > 1

    def end(self, task: str, number: int) -> None:
        """End the process of a task by a signal."""
        life = self._pool.lives[task]
        self._pool.end(task, number)
        self._note_end(life)

    def signal(self, task: str, number: int) -> None:
        """Send a signal to the process of a task."""
        self._pool.lives[task].signal(number)

    def tell(self, task: str, **what: Any) -> None:
        """Tell the process of a task, or of all tasks if it is "", what it should do."""
        for name, life in self._pool.lives.items():
            if task in ("", name):
                life.tell(**what)

    def limit(self, size: int | None) -> None:
        """Let no process write a file beyond so many bytes, until this is called with None."""
        self._pool.limit(size)

    def look(self) -> None:
        """Start what has ended by itself again, and note how large processes are."""
        now = time.monotonic()
        for task, life in list(self._pool.lives.items()):
            record = self._records[life]
            if life.process.poll() is not None:
                record.status = self._pool.end(task)
                self._note_end(life)
                self.start(task)
            else:
                record.memory.append((now, life.memory()))

    # -- what comes of it ---------------------------------------------------------------------

    def _hear(self, life: Life, event: dict[str, Any]) -> None:
        if event["event"] == "done":
            self._steps_seen.set()
        with self._lock:
            record = self._records.get(life)
            if record is not None:
                record.events.append(event)

    def _note_end(self, life: Life) -> None:
        assert life.ended is not None
        self._records[life].ended = life.ended

    def _lives(self) -> list[LifeRecord]:
        return sorted(self._records.values(), key=lambda record: record.began)

    def _stop_workers(self, found: Findings) -> None:
        """Let all workers end; one that does not is a finding, with what its threads do."""
        workers = {t: v for t, v in self._pool.lives.items() if t.startswith("worker/")}
        if self._is_group:
            self._wait_until_all_train(list(workers.values()))
        for life in workers.values():
            life.tell(do="end")
        limit = time.monotonic() + END_SECONDS
        for task, life in workers.items():
            try:
                life.process.wait(max(0.0, limit - time.monotonic()))
            except Exception:
                found.violations.append(f"{task} does not end: see stacks-{task[-1]}.txt")
                self._write_stacks(task)
        for task, life in workers.items():
            status = self._pool.end(task)
            self._note_end(life)
            if status > 0:
                self._records[life].status = status

    def _wait_until_all_train(self, lives: Sequence[Life]) -> None:
        """Who was started last would wait for ever for a group whose other members have ended."""
        limit = time.monotonic() + _FIRST_STEP_SECONDS
        for life in lives:
            record = self._records[life]
            while time.monotonic() < limit and life.process.poll() is None:
                with self._lock:
                    if any(event["event"] == "done" for event in record.events):
                        break
                self._steps_seen.clear()
                self._steps_seen.wait(1.0)

    def _write_stacks(self, task: str) -> None:
        job, _, index = task.partition("/")
        try:
            tasks = admin.status(
                self._pool.addresses[job][int(index)], False, parts=True, stacks=True
            )
            text = "\n\n".join(f"{t.name}\n{t.stack}" for one in tasks for t in one.threads)
        except OpError as error:
            text = str(error)
        path = self._directory / f"stacks-{index}.txt"
        path.write_text(text, encoding="utf-8")

    def _read(self) -> tuple[list[Attempt], float]:
        """The counters and the accuracy at the end."""
        cluster = self._pool.cluster
        place = tf.train.replica_device_setter(cluster=cluster, worker_device="/job:ps")
        target = f"grpc://{self._pool.addresses['ps'][0]}"
        with tf.Graph().as_default():
            counters = Counters(cluster)
            with tf.Session(target) as session:
                began = time.monotonic()
                values = session.run(counters.own)
                ended = time.monotonic()
        of_workers = zip(*values, strict=True)
        final = [Attempt(began, ended, tuple(int(v) for v in own)) for own in of_workers]
        data = load_digits(self._chaos.seed)
        with tf.Graph().as_default(), tf.device(None if self._is_group else place):
            tf.train.get_or_create_global_step()
            model = digits_model()
            with tf.Session("" if self._is_group else target) as session:
                if self._is_group:
                    saved = tf.train.latest_checkpoint(self._work.directory)
                    tf.train.Saver().restore(session, saved)
                accuracy = float(session.run(model.accuracy, model.test_feed(data)))
        return final, accuracy
