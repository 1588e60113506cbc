"""What becomes of a launch when tasks end: rules without processes, clocks or output.

Events come in with the time, in seconds; instructions go out.

- A worker, or the chief, that ends with 0 is done. When all are, servers are asked to end; before
  that the evaluator gets time for the last checkpoint. Nobody waits for a server that is done.
- A task that ends by a signal or with another status is started again, after a pause that grows,
  `restarts` times in a row. A life of a minute counts from the beginning. A worker of a job with
  servers that fails too often is left out, and so is the evaluator; otherwise all are ended.
- A program that fails with a status, not by a signal, in the first seconds of its first life would
  do so again: all are ended; unless a signal has ended another task, whose loss may be why, or it
  has come later to others that train.
- Workers without servers (all-reduce) go on without one that has failed, which cannot come back
  among them. When none is left all are started again. One without which their group has not begun
  is started again, too.
- A worker that was started again, and waits for a group of all-reduce whose members have all ended
  with 0, is not needed any more: it is asked to end, and done.

The exit status is the worst of the tasks; a signal counts 128 and its number.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from headrace.launch.job import CHIEF, EVALUATOR, SERVER, WORKER, LaunchJob, TaskId
from headrace.launch.processes import exit_status, words_of

__all__ = [
    "ClusterSize",
    "Instruction",
    "LaunchRules",
    "Say",
    "SignalTask",
    "StartTask",
    "State",
    "TaskLife",
]

_TRAINERS = (CHIEF, WORKER)
#: A launch starts so many servers, or four times those of its beginning, at most.
_MOST_SERVERS = 32


@dataclass(frozen=True)
class LaunchTiming:
    """How long a launch waits, in seconds.

    Attributes:
        first_pause, longest_pause: before a task is started again.
        early: a program that fails before is taken for one that cannot run.
        healthy: a life after which earlier failures are forgotten.
        end: from SIGTERM to SIGKILL.
        gone: from SIGKILL until a task whose end nobody tells is waited for no longer.
        evaluator: for the last evaluation.
        answer: of the cluster, whether a worker was to leave; and of a worker that is to leave.
        room: for a worker that no machine has room for, when the others have ended.
    """

    first_pause: float = 0.5
    longest_pause: float = 30.0
    early: float = 10.0
    healthy: float = 60.0
    end: float = 15.0
    gone: float = 10.0
    evaluator: float = 300.0
    answer: float = 10.0
    room: float = 60.0


class State(Enum):
    """Of a task."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LEFT = "left"
    ENDED = "ended"


@dataclass(frozen=True)
class StartTask:
    """Start a task."""

    task: TaskId


@dataclass(frozen=True)
class SignalTask:
    """Send a task a signal."""

    task: TaskId
    number: int


@dataclass(frozen=True)
class Say:
    """Tell the user; a problem or not."""

    text: str
    is_problem: bool = False


Instruction = StartTask | SignalTask | Say


@dataclass(frozen=True)
class ClusterSize:
    """What the running cluster says of its size.

    Attributes:
        wanted: tasks of each job, where somebody has asked for a number.
        missing: how many of them are to be started.
        present: tasks that the cluster has now.
        time: when it was asked.
    """

    wanted: dict[str, int]
    missing: dict[str, int]
    present: frozenset[TaskId]
    time: float


@dataclass
class TaskLife:
    """A task, over all its processes.

    Attributes:
        starts: how many; failures: those in a row that have failed.
        began: the start of the last one; due: of the next one.
        status: how the last one has ended, negative for a signal.
        unwanted: when it was last known that the cluster asks it to leave.
    """

    task: TaskId
    state: State = State.WAITING
    starts: int = 0
    failures: int = 0
    began: float = 0.0
    due: float = 0.0
    status: int | None = None
    unwanted: float | None = None


class LaunchRules:
    """The rules of one launch.

    Args:
        job: what was launched.
        timing: how long to wait.
        tasks: those of the job that are started here, if others are elsewhere.
    """

    def __init__(
        self,
        job: LaunchJob,
        timing: LaunchTiming | None = None,
        tasks: Iterable[TaskId] | None = None,
    ) -> None:
        self._job, self._timing = job, timing or LaunchTiming()
        #: Whether there are tasks that are not started here.
        self._is_part = tasks is not None
        self.tasks = {task: TaskLife(task) for task in tasks or job.tasks}
        #: Set when the launch ends before its time: what the exit status is then.
        self._ordered: int | None = None
        self._is_stopping = False
        self._evaluator_until: float | None = None
        self._kill_at: dict[TaskId, float] = {}
        #: Of those that were killed.
        self._gone_at: dict[TaskId, float] = {}
        #: Workers that are asked to end since the others have done the work.
        self._spare: set[TaskId] = set()
        #: Workers that have ended with 0, of which is not known yet whether they were to leave.
        self._asked: dict[TaskId, float] = {}
        self._room_until: float | None = None
        #: How many of a job were wanted, and are not started.
        self._refused: dict[str, int] = {}
        self._size: ClusterSize | None = None
        self._rounds = 0

    # -- what is asked ----------------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        """Whether all that run have been asked to end."""
        return self._is_stopping

    @property
    def is_over(self) -> bool:
        """Whether nothing runs, and nothing is to be started."""
        return self._is_stopping and not self._of(State.RUNNING)

    @property
    def exit_status(self) -> int:
        """The worst of the tasks, or that of the signal which has ended the launch."""
        if self._ordered is not None:
            return self._ordered
        ends = [t.status or 0 for t in self.tasks.values() if t.state is State.FAILED]
        return max(map(exit_status, ends), default=0)

    def next_time(self) -> float | None:
        """When `tick` has something to do, if nothing else happens."""
        times = [t.due for t in self._of(State.WAITING)] if not self._is_stopping else []
        times += [*self._kill_at.values(), *self._gone_at.values()]
        times += [] if self._evaluator_until is None else [self._evaluator_until]
        return min(times, default=None)

    def contact(self) -> TaskId:
        """A task by which others join."""
        return next(iter(self.tasks))

    def has_joined(self, task: TaskId) -> bool:
        """Whether a task is none of those at the beginning."""
        return task not in self._job.tasks

    # -- what happens -----------------------------------------------------------------------------

    def tick(self, now: float) -> list[Instruction]:
        """Time has passed; also the first event of a launch."""
        done: list[Instruction] = []
        late = [task for task, end in self._kill_at.items() if now >= end]
        done += [Say(f"{task} does not end and is killed", True) for task in late]
        done += self._kill(late, now)
        # A machine that is frozen, or cut off, tells of no end.
        for task in [task for task, end in self._gone_at.items() if now >= end]:
            text = f"{task} was killed, and its machine does not tell that it has ended"
            done += [Say(text, True), *self.ended(task, -signal.SIGKILL, now)]
        if self._evaluator_until is not None and now >= self._evaluator_until:
            seconds = self._timing.evaluator
            done.append(Say(f"the evaluator has not ended {seconds:.0f} s after the training"))
            done += self._stop(now)
        if self._is_stopping:
            return done
        for life in self._of(State.WAITING):
            if now >= life.due:
                life.state, life.began, life.starts = State.RUNNING, now, life.starts + 1
                done.append(StartTask(life.task))
        return done

    def ended(self, task: TaskId, status: int, now: float) -> list[Instruction]:
        """The process of a task has ended."""
        life = self.tasks[task]
        life.status = status
        self._kill_at.pop(task, None)
        self._gone_at.pop(task, None)
        if task in self._spare:
            life.state = State.DONE
            return [] if self._is_stopping else self._finished(now)
        if self._is_stopping:
            life.state = State.DONE if status == 0 else State.ENDED
            return []
        if status == 0:
            life.state = State.DONE
            if self._job.elastic and task.job == WORKER:
                self._asked[task] = now
                return []
            return [Say(f"{task} is done"), *self._finished(now)]
        return self._failed(life, status, now)

    def size(self, found: ClusterSize | None, now: float) -> list[Instruction]:
        """The cluster says how many it wants; None if it does not answer."""
        self._size = found or self._size
        if found is not None:
            for life in self._of(State.RUNNING):
                if self._is_too_many(life.task, found):
                    life.unwanted = found.time
        done: list[Instruction] = []
        for task, ended in sorted(self._asked.items()):
            # What was said before it ended may be of before it was asked to leave.
            known = found is not None and found.time >= ended
            if not known and now < ended + self._timing.answer:
                continue
            del self._asked[task]
            life = self.tasks[task]
            # Another number may have been asked for since it was told to leave.
            was_told = life.unwanted is not None and ended < life.unwanted + self._timing.answer
            if was_told or (self._size is not None and self._is_too_many(task, self._size)):
                life.state, life.unwanted = State.LEFT, None
                done.append(Say(f"{task} has left, as it was asked to"))
            else:
                done.append(Say(f"{task} is done"))
        if self._job.elastic:
            done += self._finished(now)
        if found is None or self._asked or self._is_stopping or self._has_ended():
            return done
        return [*done, *self._grow(found, now)]

    def waiting(self, since: Mapping[TaskId, float], now: float) -> list[Instruction]:
        """These tasks waited for a group of all-reduce, at these times.

        A group whose other members have ended with 0 is never complete. Who was not there from the
        beginning on may wait for tasks that are just being started, so only these times count.
        """
        left = self._trainers(State.RUNNING, State.WAITING)
        if not self._has_ended():
            return self._complete(left, since, now)
        in_vain = [t for t in left if t.starts > 1 and since.get(t.task, 0.0) > t.began]
        if self._is_stopping or self._asked or in_vain != left:
            return []
        done: list[Instruction] = []
        for life in in_vain:
            if life.task not in self._spare:
                self._spare.add(life.task)
                self._kill_at[life.task] = now + self._timing.end
                text = "was started again, and waits for those that have ended: they are done"
                done += [Say(f"{life.task} {text}"), SignalTask(life.task, signal.SIGTERM)]
        return done

    def unplaced(self, tasks: Iterable[TaskId], now: float) -> list[Instruction]:
        """No machine has room for these tasks; to be told again until one has.

        When all other workers have ended, nobody waits for those that came, or were to come, to a
        job that takes workers as they come; and not for long for others.
        """
        left = self._trainers(State.RUNNING, State.WAITING)
        is_end = self._has_ended() and not self._asked and not self._is_stopping
        if not left or not is_end or not {t.task for t in left} <= set(tasks):
            self._room_until = None
            return []
        if self._room_until is None:
            self._room_until = now if self._job.elastic else now + self._timing.room
        if now < self._room_until:
            return []
        for life in left:
            life.state = State.LEFT if self._job.elastic else State.FAILED
            life.status = life.status or 1
        names = ", ".join(str(t.task) for t in left)
        text = f"there is no room for {names}, and the others have ended"
        return [Say(text, is_problem=True), *self._finished(now)]

    def stop(self, number: int, now: float) -> list[Instruction]:
        """Somebody wants the launch to end, by a signal; the second time at once."""
        if self._ordered is not None:
            return self._kill([t.task for t in self._of(State.RUNNING)], now)
        self._ordered = exit_status(-number)
        return self._stop(now)

    def lost(self, text: str, tasks: Iterable[TaskId], now: float) -> list[Instruction]:
        """A machine is gone, and with it some tasks."""
        done: list[Instruction] = [Say(text, True)]
        for task in tasks:
            life = self.tasks[task]
            if life.state in (State.RUNNING, State.WAITING):
                life.state, life.status = State.FAILED, life.status or 1
        return [*done, *([] if self._is_stopping else self._stop(now))]

    # -- rules ------------------------------------------------------------------------------------

    def _of(self, *states: State) -> list[TaskLife]:
        return [t for t in self.tasks.values() if t.state in states]

    def _trainers(self, *states: State) -> list[TaskLife]:
        return [t for t in self._of(*states) if t.task.job in _TRAINERS]

    def _is_too_many(self, task: TaskId, size: ClusterSize) -> bool:
        """Whether a task is one of those that leave: the highest of a job do."""
        here = self._of(State.RUNNING, State.WAITING, State.DONE)
        lower = sum(t.task.job == task.job and t.task.index < task.index for t in here)
        return lower >= size.wanted.get(task.job, lower + 1)

    def _has_ended(self) -> bool:
        """Whether some worker is at the end of the training."""
        return bool(self._trainers(State.DONE))

    def _failed(self, life: TaskLife, status: int, now: float) -> list[Instruction]:
        lived, task = now - life.began, life.task
        how = f"{task} has ended: {words_of(status)}"
        is_early = life.starts == 1 and lived < self._timing.early
        would_again = status > 0 and is_early and not self.has_joined(task)
        if would_again and not self._was_killed(task):
            life.state = State.FAILED
            text = f"{how}, {lived:.1f} s after its start. It would end so again: all are ended."
            return [Say(text, True), *self._stop(now)]
        life.failures = 1 if lived >= self._timing.healthy else life.failures + 1
        if self._job.chosen_mode == "all-reduce" and task.job in _TRAINERS:
            life.state, life.due = State.FAILED, now
            return self._left_by(how, now)
        if life.failures > self._job.restarts:
            life.state = State.FAILED
            text = f"{how}, for the {_ordinal(life.failures)} time in a row, and is given up"
            if task.job in (WORKER, EVALUATOR) and self._trainers(State.RUNNING, State.WAITING):
                return [Say(f"{text}. The others go on.", True)]
            return [Say(f"{text}. All are ended.", True), *self._stop(now)]
        pause = self._again(life, now)
        return [Say(f"{how}. It is started again in {pause:.1f} s.", True)]

    def _complete(
        self, left: Sequence[TaskLife], since: Mapping[TaskId, float], now: float
    ) -> list[Instruction]:
        """Start workers again that were lost before their group was complete."""
        lost = self._trainers(State.FAILED)
        if self._is_stopping or self._job.chosen_mode != "all-reduce" or not (lost and left):
            return []
        end = max(t.due for t in lost)
        if not all(since.get(t.task, 0.0) > end for t in left):
            return []
        names = ", ".join(str(t.task) for t in lost)
        text = f"the others wait for {names}, without which their group does not begin"
        if any(t.failures > self._job.restarts for t in lost):
            return [Say(f"{text}. All are ended.", True), *self._stop(now)]
        pause = max(self._again(life, now) for life in lost)
        return [Say(f"{text}: started again in {pause:.1f} s", True)]

    def _was_killed(self, but: TaskId) -> bool:
        """Whether another task has ended by a signal: then its loss may be why one has failed."""
        return any((t.status or 0) < 0 for t in self.tasks.values() if t.task != but)

    def _again(self, life: TaskLife, now: float) -> float:
        """Let a task wait for its next start; for how long."""
        doubled = self._timing.first_pause * 2.0 ** (max(life.failures, 1) - 1)
        pause = min(doubled, self._timing.longest_pause)
        life.state, life.due = State.WAITING, now + pause
        return pause

    def _left_by(self, how: str, now: float) -> list[Instruction]:
        """A worker without servers has failed."""
        if self._trainers(State.RUNNING, State.WAITING):
            return [Say(f"{how}. The others go on without it.", True)]
        if self._is_part:
            return [Say(f"{how}. The others go on without it.", True), *self._stop(now)]
        lost = self._trainers(State.FAILED)
        if self._trainers(State.DONE) or self._rounds >= self._job.restarts:
            return [Say(f"{how}, and no worker is left.", True), *self._stop(now)]
        self._rounds += 1
        pause = max(self._again(life, now) for life in lost)
        return [Say(f"{how}. No worker is left: all are started again in {pause:.1f} s.", True)]

    def _finished(self, now: float) -> list[Instruction]:
        """See whether the training is over."""
        if self._asked or self._is_stopping or self._trainers(State.RUNNING, State.WAITING):
            return []
        evaluator = self.tasks.get(TaskId(EVALUATOR, 0))
        if evaluator is not None and evaluator.state in (State.RUNNING, State.WAITING):
            if self._evaluator_until is None:
                self._evaluator_until = now + self._timing.evaluator
                return [Say("the training is over; the evaluator has the last checkpoint to do")]
            return []
        return self._stop(now)

    def _stop(self, now: float) -> list[Instruction]:
        """Ask all that run to end."""
        self._is_stopping, self._evaluator_until = True, None
        self._kill_at = {t.task: now + self._timing.end for t in self._of(State.RUNNING)}
        for life in self._of(State.WAITING):
            life.state = State.ENDED
        return [SignalTask(t.task, signal.SIGTERM) for t in self._of(State.RUNNING)]

    def _kill(self, tasks: Iterable[TaskId], now: float) -> list[Instruction]:
        done: list[Instruction] = []
        for task in tasks:
            self._kill_at.pop(task, None)
            self._gone_at.setdefault(task, now + self._timing.gone)
            done.append(SignalTask(task, signal.SIGKILL))
        return done

    def _grow(self, found: ClusterSize, now: float) -> list[Instruction]:
        """Start what is missing."""
        if self._job.elastic is None:
            return []
        done: list[Instruction] = []
        servers = max(_MOST_SERVERS, 4 * self._job.ps)
        for job, most in ((WORKER, self._job.elastic[1]), (SERVER, servers)):
            live = [t for t in self._of(State.RUNNING, State.WAITING) if t.task.job == job]
            coming = sum(t.task not in found.present for t in live)
            for _ in range(found.missing.get(job, 0) - coming):
                if len(live) >= most:
                    done += self._refuse(job, found.wanted.get(job, 0), most)
                    break
                life = self._newcomer(job)
                life.state, life.due, life.failures = State.WAITING, now, 0
                live.append(life)
                done.append(Say(f"{life.task} is wanted and is started"))
        return done

    def _refuse(self, job: str, wanted: int, most: int) -> list[Instruction]:
        """Say once that so many tasks are not started here."""
        if self._refused.get(job) == wanted:
            return []
        self._refused[job] = wanted
        why = "--elastic" if job == WORKER else "what it began with"
        text = f"{wanted} tasks of the job {job} are wanted; by {why}, {most} is the most here"
        return [Say(f"{text}. `headrace resize` asks for fewer.", True)]

    def _newcomer(self, job: str) -> TaskLife:
        """The task of a job with the lowest number that does not run."""
        index = 0
        while (task := TaskId(job, index)) in self.tasks:
            if self.tasks[task].state in (State.LEFT, State.FAILED):
                return self.tasks[task]
            index += 1
        self.tasks[task] = TaskLife(task)
        return self.tasks[task]


def _ordinal(number: int) -> str:
    """
    >>> [_ordinal(n) for n in (1, 2, 3, 4)]
    ['1st', '2nd', '3rd', '4th']
    """
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"
