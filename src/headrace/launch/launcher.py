"""`headrace launch` at work: hosts, rules, logs and the panel in one loop."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.launch.display import Display, TaskRow
from headrace.launch.hosts import Host
from headrace.launch.job import SERVER, LaunchJob, TaskId, task_environment
from headrace.launch.logs import TaskLogs
from headrace.launch.processes import words_of
from headrace.launch.rules import Instruction, LaunchRules, Say, SignalTask, StartTask, State
from headrace.launch.watch import ClusterWatch

__all__ = ["Launch", "Launcher"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LONGEST_WAIT = 0.5
#: Seconds between two signs of life for the hosts.
_BEAT = 10.0


@dataclass(frozen=True)
class Launch:
    """A job, and how it is run here.

    Args:
        job: what runs.
        log_folder: for a log of each task.
        servers_run_script: whether tasks of the job ``ps`` run the script; otherwise the launcher
            has a program of its own for them.
        environment: variables for all tasks.
        addresses: of all tasks, if they are fixed; otherwise hosts have free ports for them.
        tasks: those that are started here; by default all.
        folder: where tasks run.
    """

    job: LaunchJob
    log_folder: Path
    servers_run_script: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tasks: Sequence[TaskId] | None = None
    folder: str = field(default_factory=os.getcwd)


class Launcher:
    """Runs a launch from its start to its end.

    Args:
        launch: what runs, and how.
        hosts: where; tasks are dealt out to them in turn.
    """

    def __init__(self, launch: Launch, hosts: Sequence[Host]) -> None:
        self._launch, self._hosts = launch, list(hosts)
        self._rules = LaunchRules(launch.job, tasks=launch.tasks)
        self._addresses = {job: list(tasks) for job, tasks in launch.addresses.items()}
        self._beat = 0.0
        self._placed: dict[TaskId, Host] = {}
        self._processes: set[TaskId] = set()
        # Those of a step of Slurm have one folder, and a launcher for each task.
        parts = [f"{task.job}-{task.index}" for task in launch.tasks or ()]
        self._logs = TaskLogs(
            launch.log_folder, self._incomplete, "-".join(["launcher", *parts]) + ".log"
        )
        self._caught: list[int] = []
        #: Whether a signal has ended the launch.
        self._is_told = False
        self._started_at = time.monotonic()
        self._bell, self._ring = socket.socketpair()
        self._watch = ClusterWatch(self._asked_first, launch.job.elastic is not None, self._wake)
        self._seen_rounds = 0
        title = f"{launch.job.script}: {_counted(launch.job)}"
        self._display = Display(self._rows, title, as_json=launch.job.log_format == "json")

    def run(self) -> int:
        """Run it; the exit status."""
        for end in (self._bell, self._ring):
            end.setblocking(False)
        with contextlib.ExitStack() as stack:
            stack.callback(self._close)
            stack.enter_context(self._signals())
            stack.enter_context(self._display)
            if self._has_places(self._rules.tasks):
                first, *others = self._launch.job.tasks
                if others and first in self._placed:
                    self._say(f"{first} is at {self._address(first)}, for `headrace status`")
                self._watch.start()
                self._loop()
        if self._display.is_stuck:
            os._exit(self._rules.exit_status)  # an interpreter would wait for the reader
        return self._rules.exit_status

    # -- the loop ---------------------------------------------------------------------------------

    def _loop(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._bell, selectors.EVENT_READ, self._hear_bell)
            for host in self._hosts:
                selector.register(host, selectors.EVENT_READ, self._listener(selector, host))
            self._do(self._rules.tick(time.monotonic()))
            while not self._rules.is_over:
                for key, _ in selector.select(self._patience()):
                    key.data()
                now = time.monotonic()
                while self._caught:
                    self._stop(self._caught.pop(0), now)
                if self._watch.rounds != self._seen_rounds:
                    self._seen_rounds = self._watch.rounds
                    self._do(self._rules.size(self._watch.size, now))
                    self._do(self._rules.waiting(self._watch.waiting(), now))
                self._do(self._rules.tick(now))
                self._display.refresh()
                if now - self._beat > _BEAT:
                    self._beat = now
                    for host in self._hosts:
                        host.send(beat=True)

    def _patience(self) -> float:
        due = self._rules.next_time()
        left = _LONGEST_WAIT if due is None else due - time.monotonic()
        return max(0.0, min(left, _LONGEST_WAIT))

    def _stop(self, number: int, now: float) -> None:
        self._is_told, is_first = True, not self._rules.is_stopping
        again = " (again: kills them)" if is_first and number == signal.SIGINT else ""
        self._display.say(f"{signal.Signals(number).name}: all tasks are asked to end{again}")
        self._do(self._rules.stop(number, now))

    def _do(self, instructions: Sequence[Instruction]) -> None:
        for one in instructions:
            if isinstance(one, Say):
                self._say(one.text, one.is_problem)
            elif isinstance(one, SignalTask):
                host = self._placed[one.task]
                host.send(signal=str(one.task), number=int(one.number))
            else:
                self._start(one)

    def _say(self, text: str, is_problem: bool = False) -> None:
        self._display.say(text, is_problem)
        self._logs.note(text)

    def _start(self, start: StartTask) -> None:
        task, job = start.task, self._launch.job
        if not self._has_places([task]):
            return
        contact = ""
        if self._rules.has_joined(task):
            contact = self._address(self._rules.contact())
        serves = task.job == SERVER and not self._launch.servers_run_script
        life = self._rules.tasks[task]
        if life.starts > 1:
            self._logs.add(task, [f"--- start {life.starts} ---"])
        self._processes.add(task)
        self._placed[task].send(
            start=str(task),
            program=None if serves else job.script,
            module=job.as_module,
            plain=job.is_plain,
            arguments=list(job.arguments),
            environment={
                **self._launch.environment,
                **task_environment(job, self._known_to(task), task, contact),
                "HEADRACE_STARTS": str(life.starts),
            },
            folder=self._launch.folder,
        )

    def _known_to(self, task: TaskId) -> dict[str, list[str]]:
        """The addresses that a task is told: those of the beginning, and its own."""
        counts = self._launch.job.counts
        own = task.index + 1 if self._rules.has_joined(task) else 0
        return {
            job: tasks[: max(counts.get(job, 0), own if job == task.job else 0)]
            for job, tasks in self._addresses.items()
        }

    def _has_places(self, tasks: Iterable[TaskId]) -> bool:
        """Give tasks a host and an address; otherwise the launch ends, and says why."""
        for task in tasks:
            try:
                if task not in self._placed:
                    self._place(task)
            except OSError as error:
                text = f"{task} gets no address: {error.strerror or error}"
                if error.errno == errno.EMFILE:
                    text += ". Ask for fewer tasks, or allow more open files (ulimit -n)"
                self._do(self._rules.lost(text, [task], time.monotonic()))
                return False
        return True

    def _place(self, task: TaskId) -> None:
        """Give a task a host and an address."""
        host = self._hosts[len(self._placed) % len(self._hosts)]
        self._placed[task] = host
        if task.job not in self._launch.job.counts:
            return  # an evaluator is no part of the cluster
        addresses = self._addresses.setdefault(task.job, [])
        while len(addresses) <= task.index:
            addresses.append(host.address())

    def _address(self, task: TaskId) -> str:
        return self._addresses[task.job][task.index]

    # -- what comes in ----------------------------------------------------------------------------

    def _listener(self, selector: selectors.BaseSelector, host: Host) -> Callable[[], None]:
        def listen() -> None:
            events: list[dict[str, Any]] | None = None
            problem = ""
            try:
                events = host.events()
            except ConnectionError as error:
                problem = str(error)
            if events is None:
                selector.unregister(host)
                self._lost(host, problem)
            for event in events or ():
                if not self._hear(host, event):
                    selector.unregister(host)
                    self._lost(host, f"{event!r:.200} came from it, which has no such task")
                    return

        return listen

    def _hear(self, host: Host, event: dict[str, Any]) -> bool:
        """Something has happened at a host; whether that can be."""
        if "task" not in event:
            return True
        task = next((t for t in self._processes if str(t) == event["task"]), None)
        if task is None or self._placed[task] is not host:
            return False
        if event["event"] == "output":
            self._logs.add(task, event["lines"])
            self._display.output(task, event["lines"])
        else:
            self._processes.discard(task)
            self._logs.add(task, [f"--- {words_of(event['status'])} ---"])
            self._do(self._rules.ended(task, event["status"], time.monotonic()))
        return True

    def _lost(self, host: Host, problem: str) -> None:
        """A connection has ended, or carries what it should not: with it all tasks there."""
        tasks = [t for t, h in self._placed.items() if h is host]
        why = problem or host.close()
        if problem:
            host.close()
        text = f"{host.name or 'this machine'} runs no tasks any more: {why or 'it is gone'}"
        self._do(self._rules.lost(text, tasks, time.monotonic()))

    def _hear_bell(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._bell.recv(4096)

    def _wake(self) -> None:
        """Called by the thread that asks the cluster."""
        with contextlib.suppress(OSError):
            self._ring.send(b"n")

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Signals of this process become events of the loop.

        Where one has ended the launch, others change nothing until the process is gone: one that
        came while Python ends would kill it, and its exit status would be another.
        """
        wakeup = signal.set_wakeup_fd(self._ring.fileno(), warn_on_full_buffer=False)
        before = {
            number: signal.signal(number, lambda number, _: self._caught.append(number))
            for number in _SIGNALS
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_IGN if self._is_told else handler)
            signal.set_wakeup_fd(wakeup)

    # -- what is shown ----------------------------------------------------------------------------

    def _asked_first(self) -> list[str]:
        """Addresses of tasks that run: servers first."""
        running = [t.task for t in self._rules.tasks.values() if t.state is State.RUNNING]
        return [self._address(t) for t in running if t.job in self._addresses][:3]

    def _rows(self) -> list[TaskRow]:
        rows = []
        for task, life in self._rules.tasks.items():
            reading, _ = self._watch.readings.get(task, (None, None))
            is_running = life.state is State.RUNNING
            rows.append(
                TaskRow(
                    task,
                    _state(life.state, life.due - time.monotonic(), life.status),
                    reading.steps if reading else None,
                    self._watch.rate(task) if is_running else None,
                    self._logs.losses.get(task),
                    reading.memory if reading and is_running else None,
                    max(life.starts - 1, 0),
                )
            )
        return rows

    def _incomplete(self, problem: str) -> None:
        """Logs lack something; now, since nobody hears what is said after the end."""
        self._display.say(problem, is_problem=True)

    def _close(self) -> None:
        self._watch.stop()
        for host in self._hosts:
            host.close()
        self._logs.close()
        for end in (self._bell, self._ring):
            end.close()


def _state(state: State, wait: float, status: int | None) -> str:
    """
    >>> _state(State.WAITING, 1.5, -9)
    'again in 1.5 s'
    """
    if state is State.WAITING:
        return "starts" if status is None else f"again in {max(wait, 0.0):.1f} s"
    if state in (State.FAILED, State.ENDED) and status:
        return f"{state.value}: {words_of(status)}"
    return str(state.value)


def _counted(job: LaunchJob) -> str:
    """
    >>> _counted(LaunchJob("train.py", ps=1, workers=2, evaluator=True))
    '1 ps, 2 worker, 1 evaluator'
    """
    parts = [f"{count} {name}" for name, count in job.counts.items()]
    return ", ".join([*parts, *(["1 evaluator"] if job.evaluator else [])])
