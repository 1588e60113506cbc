"""A job on a Ray cluster: Ray places tasks and starts them again; our links carry their tensors.

In: a `LaunchJob` or a function, and a Ray cluster. Out: an exit status, or the function's values.
Each task is an actor, those of the beginning in one placement group. Invariant: no actor of ours is
left when `run` or `launch` returns, whatever happened.

A task that comes back at its old address begins as before. At another address it joins the running
cluster by one of the others, as a worker does that comes later.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.distributed.cluster.cluster_spec import join_address, split_address
from headrace.distributed.security.credentials import Security
from headrace.distributed.services.dialling import release
from headrace.launch.display import Display
from headrace.launch.job import SERVER, LaunchJob, Resources, TaskId, task_environment
from headrace.launch.logs import TaskLogs
from headrace.launch.processes import words_of
from headrace.launch.ray_cluster import (
    RayError,
    RayOptions,
    asked_by,
    check_carried,
    check_fit,
    connected,
    shown,
    sizes,
)
from headrace.launch.ray_tasks import FunctionTask, ScriptTask, by_value
from headrace.launch.rules import Instruction, LaunchRules, Say, SignalTask, State
from headrace.launch.script import is_plain, source_of
from headrace.launch.watch import ClusterWatch
from headrace.settings import USERS_COMPILATION_CACHE

__all__ = ["RayError", "RayOptions", "launch", "run"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LONGEST_WAIT = 0.5
_SETTINGS = "HEADRACE_"
#: Ray has colours in the text of errors, at a terminal or not.
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_SHARED = {"HEADRACE_COMPILATION_CACHE": USERS_COMPILATION_CACHE}


def launch(job: LaunchJob, options: RayOptions) -> int:
    """Run a script on a Ray cluster; the worst exit status of its tasks.

    Raises:
        RayError: if there is no Ray, nobody at the address, or not enough of what is asked for.
    """
    with connected(options, log_to_driver=False) as ray:
        driver = _Driver(ray, job, options, None)
        driver.run()
        return driver.supervisor.exit_status


def run(
    function: Callable[[], Any] | str,
    *,
    ps: int = 0,
    workers: int = 1,
    arguments: Sequence[str] = (),
    cpus: float = 1.0,
    gpus: int = 0,
    memory: int | None = None,
    options: RayOptions | None = None,
    **more: Any,
) -> list[Any]:
    """Run a function, or a script, in the tasks of a cluster on Ray.

    Args:
        function: called without arguments in each worker, with ``TF_CONFIG`` in its environment;
            Ray carries it there. Or the name of a script.
        ps: tasks that hold variables. They serve; with ``options.servers_run_script``, and for
            scripts that deal with their cluster themselves, they run what the workers run.
        workers: tasks that train.
        arguments: of a script.
        cpus, gpus, memory: that each task asks for (memory in bytes); ``resources=`` for others by
            job, see `headrace.launch.LaunchJob`.
        options: the cluster.
        more: other arguments of `headrace.launch.LaunchJob`, such as ``elastic=(1, 8)``.

    Returns:
        What the function has returned in each worker, by number, a chief's first; [] for a script.

    Raises:
        RayError: if the cluster cannot run it, a function cannot be pickled, or a task has failed.
        FileNotFoundError: if there is no such script.
        TypeError: if it is neither a function nor the name of a script.
        ValueError: if there can be no such cluster, or for arguments of a function.
    """
    each = Resources(cpus, gpus, memory)
    jobs = ("ps", "chief", "worker", "evaluator")
    more["resources"] = {**dict.fromkeys(jobs, each), **more.get("resources", {})}
    called: Callable[[], Any] | None = None  # none for a script
    if isinstance(function, str):
        name = function
    elif not callable(function):
        raise TypeError(f"Give a function, or the name of a script, not {function!r}.")
    elif arguments:
        raise ValueError("arguments= are those of a script; a function is called without any.")
    else:
        name, called = getattr(function, "__name__", "function"), function
    job = LaunchJob(name, tuple(arguments), ps=ps, workers=workers, **more)
    if called is None:
        source_of(name, job.as_module)
    options = options or RayOptions()
    with connected(options, log_to_driver=called is not None) as ray:
        if called is not None:
            check_carried(ray, name, called)
        driver = _Driver(ray, job, options, called)
        driver.run()
    if driver.supervisor.exit_status:
        status = driver.supervisor.exit_status
        raise RayError(f"{name} has failed with {words_of(status)}.") from driver.problem
    found = sorted(driver.values.items(), key=lambda item: item[0])
    return [value for task, value in found if task.job in ("chief", "worker")]


# -- the driver -----------------------------------------------------------------------------------


@dataclass
class _Runner:
    """The actor of a task, and what is known of it.

    Attributes:
        address: "" until it is placed, and after its actor was lost.
        before, node: the last address it had, and where that was.
        due: when to ask for its place again.
        must_start: whether it is to be started once it is placed.
    """

    actor: Any
    address: str = ""
    before: str = ""
    node: str = ""
    due: float | None = None
    must_start: bool = False
    has_process: bool = False


class _Driver:
    """Runs one job from its placement to its end.

    Attributes:
        values: what functions have returned.
        problem: the last error of one.
    """

    def __init__(
        self, ray: Any, job: LaunchJob, options: RayOptions, function: Callable[[], Any] | None
    ) -> None:
        self._ray, self._job, self._options, self._function = ray, job, options, function
        self._servers_run = options.servers_run_script
        if self._servers_run is None:
            plain = is_plain(job.script, job.as_module, job.chosen_mode)
            self._servers_run = function is None and plain is not True
        self.supervisor = LaunchRules(job)
        self.values: dict[TaskId, Any] = {}
        self.problem: Exception | None = None
        self._display = Display(list, job.script, as_json=job.log_format == "json")
        self._logs: TaskLogs | None = None
        self._runners: dict[TaskId, _Runner] = {}
        #: Calls of actors that have not answered: what was asked, and of whom.
        self._calls: dict[Any, tuple[str, TaskId]] = {}
        self._caught: list[int] = []
        self._group: Any = None
        self._name = secrets.token_hex(8)
        self._watch = ClusterWatch(self._running_addresses, job.elastic is not None, lambda: None)
        nodes = [node for node in ray.nodes() if node["Alive"]]
        self._is_here = len({node["NodeManagerAddress"] for node in nodes}) == 1
        self._node_resources = [node["Resources"] for node in nodes]

    def run(self) -> None:
        """Run it to its end.

        Raises:
            RayError: if it cannot be placed.
        """
        if not self._is_here:
            self._check_security()
        check_fit(self._job, self._node_resources, self._options.wait)
        with contextlib.ExitStack() as stack:
            if self._function is None:
                self._logs = TaskLogs(self._options.log_folder, self._incomplete)
                stack.callback(self._logs.close)
            stack.enter_context(self._signals())
            stack.enter_context(self._display)
            stack.callback(self._release)
            stack.enter_context(by_value(self._ray))
            self._place_all()
            first, *others = self._job.tasks
            if others and self._runners[first].address:
                address = self._runners[first].address
                self._display.say(f"{first} is at {address}, for `headrace status`")
            if self._job.ps:
                self._watch.start()
                stack.callback(self._watch.stop)
            self._loop()

    def _check_security(self) -> None:
        found = Security.from_environment()
        try:
            found.check_address("192.0.2.1")  # any that is no loopback
        except Exception as error:
            raise RayError(f"The tasks will be on several machines: {error}") from None

    # -- placing ----------------------------------------------------------------------------------

    def _place_all(self) -> None:
        util, tasks = self._ray.util, self._job.tasks
        bundles = [asked_by(self._job.asks(task)) or {"CPU": 0.001} for task in tasks]
        self._group = util.placement_group(bundles, strategy=self._options.strategy)
        limit = max(self._options.wait, 30.0)
        end = time.monotonic() + limit
        while not self._group.wait(_LONGEST_WAIT):
            if self._caught:
                break
            if time.monotonic() >= end:
                free = shown(self._ray.available_resources())
                raise RayError(
                    f"Ray has not placed the tasks in {limit:.0f} s (strategy "
                    f"{self._options.strategy}): free are {free}. {sizes(self._node_resources)}"
                )
        for number, task in enumerate(tasks):
            self._make(task, number)
        while not all(runner.address for runner in self._runners.values()) and not self._caught:
            self._hear(_LONGEST_WAIT)
            self._place_again()

    def _make(self, task: TaskId, bundle: int | None) -> None:
        """An actor for a task, in a bundle of the group or wherever there is room."""
        kind = ScriptTask if self._function is None else FunctionTask
        asked = self._job.asks(task)
        options: dict[str, Any] = {
            "num_cpus": asked.cpus,
            "num_gpus": asked.gpus,
            "max_restarts": self._job.restarts,
            "max_concurrency": 4 if self._function is None else 1,
        }
        if asked.memory:
            options["memory"] = asked.memory
        if bundle is not None:
            strategies = self._ray.util.scheduling_strategies
            options["scheduling_strategy"] = strategies.PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=bundle
            )
        actor = self._ray.remote(kind).options(**options).remote(str(task), self._name)
        self._runners[task] = _Runner(actor)
        self._ask_place(task)

    def _ask_place(self, task: TaskId) -> None:
        runner = self._runners[task]
        runner.due = None
        port = split_address(runner.before)[1] if runner.before else 0
        call = runner.actor.place.remote(self._is_here, port, runner.node)
        self._calls[call] = ("place", task)

    def _place_again(self) -> None:
        now = time.monotonic()
        for task, runner in self._runners.items():
            if runner.due is not None and now >= runner.due:
                self._ask_place(task)

    def _placed(self, task: TaskId, host: str, port: int, node: str) -> None:
        runner = self._runners[task]
        runner.address, runner.node = join_address(host, port), node
        moved = runner.before not in ("", runner.address)
        if moved:
            self._display.say(f"{task} is at {runner.address} now")
        if self._function is None:
            self._listen(task)
        if runner.must_start and self.supervisor.tasks[task].state is State.RUNNING:
            self._start(task, moved)
        runner.before = runner.address

    # -- the loop ---------------------------------------------------------------------------------

    def _loop(self) -> None:
        rounds = 0
        self._do(self.supervisor.tick(time.monotonic()))
        while not self.supervisor.is_over:
            due = self.supervisor.next_time()
            left = _LONGEST_WAIT if due is None else due - time.monotonic()
            self._hear(max(0.01, min(left, _LONGEST_WAIT)))
            now = time.monotonic()
            while self._caught:
                number = self._caught.pop(0)
                self._display.say(f"{signal.Signals(number).name}: all tasks are asked to end")
                self._do(self.supervisor.stop(number, now))
            if self._watch.rounds != rounds:
                rounds = self._watch.rounds
                self._do(self.supervisor.size(self._watch.size, now))
                self._do(self.supervisor.waiting(self._watch.waiting(), now))
            self._place_again()
            self._do(self.supervisor.tick(now))
            unplaced = [task for task, runner in self._runners.items() if not runner.address]
            self._do(self.supervisor.unplaced(unplaced, now))

    def _hear(self, seconds: float) -> None:
        """Take in what actors have answered."""
        if not self._calls:
            time.sleep(seconds)
            return
        done, _ = self._ray.wait(list(self._calls), num_returns=1, timeout=seconds)
        for call in done:
            what, task = self._calls.pop(call)
            try:
                found = self._ray.get(call)
            except self._ray.exceptions.RayActorError as error:
                self._lost(what, task, error)
            except self._ray.exceptions.RayTaskError as error:
                self._failed(what, task, error)
            else:
                self._answered(what, task, found)

    def _answered(self, what: str, task: TaskId, found: Any) -> None:
        if what == "place":
            self._placed(task, *found)
        elif what == "run":
            self.values[task] = found
            self._ended(task, 0)
        elif what == "events":
            for event in found:
                self._event(task, event)
            if not any(event["event"] == "gone" for event in found):
                self._listen(task)

    def _event(self, task: TaskId, event: Mapping[str, Any]) -> None:
        if event["event"] == "host":
            self._compare(task, event["release"])
        elif event["event"] == "output":
            self._write(task, event["lines"])
            self._display.output(task, event["lines"])
        elif event["event"] == "ended":
            self._write(task, [f"--- {words_of(event['status'])} ---"])
            self._ended(task, event["status"])
        elif event["event"] == "gone":
            # The starter was killed. Ray starts actors again that end, so this one must.
            self._ray.kill(self._runners[task].actor, no_restart=False)
            self._lost("events", task, None)

    def _compare(self, task: TaskId, there: str) -> None:
        if there != release():
            text = (
                f"{task} has Headrace {there} on its node, and this machine {release()}: tasks of "
                "one cluster need the same. Install it on all nodes of the Ray cluster."
            )
            self._do(self.supervisor.lost(text, [task], time.monotonic()))

    def _write(self, task: TaskId, lines: list[str]) -> None:
        if self._logs is not None:
            self._logs.add(task, lines)

    def _incomplete(self, problem: str) -> None:
        self._display.say(problem, is_problem=True)

    def _ended(self, task: TaskId, status: int) -> None:
        self._runners[task].has_process = False
        self._do(self.supervisor.ended(task, status, time.monotonic()))

    def _failed(self, what: str, task: TaskId, error: Exception) -> None:
        """A function has raised an error, or a method of ours."""
        self.problem = error
        self._display.say(f"{task}: {_COLOR.sub('', str(error))}", is_problem=True)
        if what in ("run", "send"):
            self._ended(task, 1)

    def _lost(self, what: str, task: TaskId, error: Exception | None) -> None:
        """An actor has died, perhaps with its node; Ray starts it again unless it has given up."""
        runner = self._runners[task]
        self._calls = {c: w for c, w in self._calls.items() if w[1] != task}
        runner.address = ""
        gave_up = what == "place" and isinstance(error, self._ray.exceptions.ActorDiedError)
        if runner.has_process:
            self._ended(task, -signal.SIGKILL)
        if self.supervisor.is_stopping:
            return
        if gave_up:
            text = f"Ray does not start {task} again: {error}"
            self._do(self.supervisor.lost(text, [task], time.monotonic()))
            return
        runner.due = time.monotonic() + _LONGEST_WAIT

    # -- what is to be done -----------------------------------------------------------------------

    def _do(self, instructions: Sequence[Instruction]) -> None:
        for one in instructions:
            if isinstance(one, Say):
                self._display.say(one.text, one.is_problem)
            elif isinstance(one, SignalTask):
                self._signal(one.task, int(one.number))
            else:
                task = one.task
                if task not in self._runners:
                    self._make(task, None)
                runner = self._runners[task]
                if runner.address:
                    self._start(task, self.supervisor.has_joined(task))
                else:
                    runner.must_start = True

    def _signal(self, task: TaskId, number: int) -> None:
        runner = self._runners[task]
        if not runner.has_process:
            # Its actor is being placed: nothing runs that could end.
            self._ended(task, -number)
        elif self._function is None:
            call = runner.actor.send.remote({"signal": str(task), "number": number})
            self._calls[call] = ("send", task)
        else:
            self._ray.kill(runner.actor)

    def _start(self, task: TaskId, joins: bool) -> None:
        runner, job = self._runners[task], self._job
        runner.must_start, runner.has_process = False, True
        joins = joins or self.supervisor.has_joined(task)
        serves = task.job == SERVER and not self._servers_run
        environment = {
            **_SHARED,
            **{name: text for name, text in os.environ.items() if name.startswith(_SETTINGS)},
            **task_environment(job, self._addresses(task), task, self._contact(task, joins)),
            "HEADRACE_STARTS": str(self.supervisor.tasks[task].starts),
        }
        if self._function is not None:
            call = runner.actor.run.remote(None if serves else self._function, environment)
            self._calls[call] = ("run", task)
            return
        command = {
            "start": str(task),
            "program": None if serves else job.script,
            "module": job.as_module,
            "arguments": list(job.arguments),
            "environment": environment,
            "folder": os.getcwd(),
        }
        self._calls[runner.actor.send.remote(command)] = ("send", task)

    def _listen(self, task: TaskId) -> None:
        self._calls[self._runners[task].actor.events.remote()] = ("events", task)

    def _addresses(self, task: TaskId) -> dict[str, list[str]]:
        """What a task is told: the tasks of the beginning where they are now, and its own."""
        counts = self._job.counts
        found = {}
        for job, count in counts.items():
            own = task.index + 1 if task.job == job and self.supervisor.has_joined(task) else 0
            runners = [self._runners.get(TaskId(job, i)) for i in range(max(count, own))]
            found[job] = [(r.address or r.before) for r in runners if r is not None]
        return found

    def _contact(self, task: TaskId, joins: bool) -> str:
        """A running task by which another one joins, servers first."""
        own = self._runners[task].address
        others = [address for address in self._running_addresses() if address != own]
        return others[0] if joins and others else ""

    def _running_addresses(self) -> list[str]:
        lives = self.supervisor.tasks.values()
        running = [t.task for t in lives if t.state is State.RUNNING and t.task in self._runners]
        in_cluster = [self._runners[t] for t in running if t.job in self._job.counts]
        return [r.address for r in in_cluster if r.has_process and r.address]

    # -- the end ----------------------------------------------------------------------------------

    def _release(self) -> None:
        for runner in self._runners.values():
            self._ray.kill(runner.actor)
        if self._group is not None:
            self._ray.util.remove_placement_group(self._group)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Signals become events of the loop, where this is the main thread."""
        before: dict[int, Any] = {}
        with contextlib.suppress(ValueError):
            for one in _SIGNALS:
                before[one] = signal.signal(one, lambda number, _: self._caught.append(number))
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
