"""What becomes of a launch when tasks end: the rules, with a clock of our own."""

import signal

import pytest

from headrace.launch.job import LaunchJob, TaskId
from headrace.launch.rules import ClusterSize, LaunchRules, Say, SignalTask, StartTask, State

LATE = 100.0


class Run:
    """A supervisor that was started; its instructions by kind."""

    def __init__(self, **options):
        self.rules = LaunchRules(LaunchJob("train.py", **options))
        self.now = 0.0
        self.started = self.take(self.rules.tick(0.0))

    def take(self, instructions):
        self.said = [i.text for i in instructions if isinstance(i, Say)]
        self.signals = [(str(i.task), i.number) for i in instructions if isinstance(i, SignalTask)]
        return [str(i.task) for i in instructions if isinstance(i, StartTask)]

    def ends(self, task, status=0, after=LATE):
        self.now += after
        job, _, index = task.partition("/")
        return self.take(self.rules.ended(TaskId(job, int(index)), status, self.now))

    def waits(self):
        self.now = self.rules.next_time()
        return self.take(self.rules.tick(self.now))

    def size(self, wanted, missing=None, present=(), late=0.0):
        tasks = frozenset(TaskId("worker", i) for i in present)
        found = ClusterSize({"worker": wanted}, {"worker": missing or 0}, tasks, self.now - late)
        return self.take([*self.rules.size(found, self.now), *self.rules.tick(self.now)])

    def state(self, task):
        job, _, index = task.partition("/")
        return self.rules.tasks[TaskId(job, int(index))].state


TERM, KILL = signal.SIGTERM, signal.SIGKILL


def test_servers_end_when_all_workers_are_done():
    run = Run(ps=2, workers=2)
    assert run.started == ["ps/0", "ps/1", "worker/0", "worker/1"]
    run.ends("worker/1")
    assert (run.said, run.signals) == (["worker/1 is done"], [])
    run.ends("worker/0")
    assert run.signals == [("ps/0", TERM), ("ps/1", TERM)]
    run.ends("ps/0", after=0.1)
    assert not run.rules.is_over
    run.ends("ps/1", -15, after=0.1)
    assert (run.rules.is_over, run.rules.exit_status) == (True, 0)


def test_who_does_not_end_is_killed():
    run = Run(ps=1)
    run.ends("worker/0")
    run.waits()
    assert run.said == ["ps/0 does not end and is killed"]
    assert run.signals == [("ps/0", KILL)]


def test_a_machine_that_does_not_tell_the_end_of_a_task_keeps_nobody():
    run = Run(ps=1)
    run.ends("worker/0")
    run.waits()
    assert not run.rules.is_over
    run.waits()
    assert run.said == ["ps/0 was killed, and its machine does not tell that it has ended"]
    assert (run.rules.is_over, run.rules.exit_status) == (True, 0)
    run = Run(workers=2)
    run.take(run.rules.stop(signal.SIGINT, run.now))
    for _ in range(2):
        run.take(run.rules.stop(signal.SIGINT, run.now))
        assert run.signals == [("worker/0", KILL), ("worker/1", KILL)]
    run.waits()
    assert (run.rules.is_over, run.rules.exit_status) == (True, 130)


def test_the_evaluator_gets_time_for_the_last_checkpoint():
    run = Run(ps=1, evaluator=True)
    run.ends("worker/0")
    assert run.signals == []
    run.ends("evaluator/0")
    assert run.signals == [("ps/0", TERM)]
    run = Run(ps=1, evaluator=True)
    run.ends("worker/0")
    run.waits()
    assert "the evaluator has not ended 300 s after the training" in run.said
    assert run.signals == [("ps/0", TERM), ("evaluator/0", TERM)]


def test_what_dies_is_started_again_with_growing_pauses_up_to_a_limit():
    run = Run(ps=1, workers=2, restarts=2)
    pauses = []
    for _ in range(2):
        assert run.ends("ps/0", -9, after=5.0) == []
        before = run.now
        assert run.waits() == ["ps/0"]
        pauses.append(run.now - before)
    assert pauses == [0.5, 1.0]
    run.ends("ps/0", -9, after=5.0)
    assert run.said == [
        "ps/0 has ended: signal SIGKILL, for the 3rd time in a row, and is given up. All are ended."
    ]
    assert run.signals == [("worker/0", TERM), ("worker/1", TERM)]
    run.ends("worker/0", -15, after=0.1)
    run.ends("worker/1", -15, after=0.1)
    assert run.rules.exit_status == 137


def test_a_long_life_counts_from_the_beginning():
    run = Run(ps=1, restarts=1)
    for _ in range(5):
        run.ends("ps/0", -9)
        assert run.waits() == ["ps/0"]


def test_others_go_on_without_a_worker_that_fails_too_often():
    run = Run(ps=1, workers=2, restarts=0)
    run.ends("worker/1", 3)
    assert run.said[0].endswith("and is given up. The others go on.")
    run.ends("worker/0")
    assert run.signals == [("ps/0", TERM)]
    run.ends("ps/0")
    assert run.rules.exit_status == 3


def test_a_script_that_ends_at_once_is_not_tried_again():
    run = Run(ps=1, workers=2)
    run.ends("worker/0", 1, after=0.7)
    assert run.said == [
        "worker/0 has ended: exit status 1, 0.7 s after its start. It would end so again: all "
        "are ended."
    ]
    assert [task for task, _ in run.signals] == ["ps/0", "worker/1"]
    # A signal is another matter: somebody has killed it.
    run = Run(ps=1, workers=2)
    run.ends("worker/0", -9, after=0.7)
    assert run.waits() == ["worker/0"]
    # So is what fails since that has been killed.
    run.ends("worker/1", 1, after=0.1)
    assert run.waits() == ["worker/1"]


def test_without_servers_the_others_go_on_and_all_start_again_together():
    run = Run(workers=3, restarts=1)
    run.ends("worker/1", -9)
    assert run.said == ["worker/1 has ended: signal SIGKILL. The others go on without it."]
    run.ends("worker/2", -9)
    run.ends("worker/0", -9)
    assert "No worker is left: all are started again in 0.5 s." in run.said[0]
    assert run.waits() == ["worker/0", "worker/1", "worker/2"]
    for task in ("worker/0", "worker/1", "worker/2"):
        run.ends(task, -9)
    assert run.said == ["worker/2 has ended: signal SIGKILL, and no worker is left."]
    assert (run.rules.is_over, run.rules.exit_status) == (True, 137)


def test_what_fails_without_a_worker_that_was_killed_at_the_beginning_is_started_again_with_it():
    run = Run(workers=2)
    run.ends("worker/0", -9, after=1.0)
    run.ends("worker/1", 1, after=1.0)
    assert "No worker is left: all are started again in 0.5 s." in run.said[0]
    assert run.waits() == ["worker/0", "worker/1"]


def test_a_worker_that_is_lost_shows_in_the_status_of_those_that_went_on():
    run = Run(workers=2)
    run.ends("worker/1", -9)
    run.ends("worker/0")
    assert (run.rules.is_over, run.rules.exit_status) == (True, 137)


def test_a_worker_without_which_its_group_does_not_begin_is_started_again():
    run = Run(workers=3, restarts=1)
    others = [TaskId("worker", i) for i in (1, 2)]

    def wait(*times):
        run.now += 1.0
        return run.take(run.rules.waiting(dict(zip(others, times, strict=False)), run.now))

    run.ends("worker/0", -9, after=2.0)
    assert run.said == ["worker/0 has ended: signal SIGKILL. The others go on without it."]
    wait(1.5, 2.5)  # before it has ended; others may be about to begin
    assert run.said == []
    wait(2.5)
    assert run.said == []
    wait(2.5, 2.5)
    assert run.said == [
        "the others wait for worker/0, without which their group does not begin: started again in "
        "0.5 s"
    ]
    assert run.waits() == ["worker/0"]
    run.ends("worker/0", -9, after=2.0)
    wait(run.now + 0.5, run.now + 0.5)
    assert run.said[0].endswith("their group does not begin. All are ended.")
    assert run.signals == [("worker/1", TERM), ("worker/2", TERM)]


def test_who_comes_back_when_the_others_have_ended_waits_for_nobody():
    run = Run(ps=1, workers=3)
    first, last = TaskId("worker", 0), TaskId("worker", 2)

    def waits(task, after):
        run.now += after
        run.take(run.rules.waiting({task: run.now}, run.now))
        return run.signals

    run.ends("worker/2", -9)
    assert run.waits() == ["worker/2"]
    run.ends("worker/1")
    assert waits(last, 1.0) == []  # worker/0 may be about to take it in
    run.ends("worker/0")
    began = run.rules.tasks[last].began
    run.take(run.rules.waiting({last: began}, run.now))
    assert run.signals == []  # that was the process before
    assert waits(first, 1.0) == []
    assert waits(last, 1.0) == [("worker/2", TERM)]
    assert run.said == [
        "worker/2 was started again, and waits for those that have ended: they are done"
    ]
    assert waits(last, 1.0) == []
    run.waits()
    assert run.signals == [("worker/2", KILL)]
    run.ends("worker/2", -9, after=0.1)
    assert run.signals == [("ps/0", TERM)]
    run.ends("ps/0")
    assert (run.rules.is_over, run.rules.exit_status) == (True, 0)


@pytest.mark.parametrize(("elastic", "seconds", "status"), [((1, 3), 0.0, 0), (None, 60.0, 137)])
def test_nobody_waits_for_ever_for_room_for_a_worker_when_the_others_have_ended(
    elastic, seconds, status
):
    run = Run(ps=1, workers=2, elastic=elastic)
    lost = [TaskId("worker", 1)]
    run.ends("worker/1", -9)
    assert run.waits() == ["worker/1"]
    run.take(run.rules.unplaced(lost, run.now))
    assert run.said == []  # the other one goes on
    run.ends("worker/0")
    run.size(2)
    run.take(run.rules.unplaced(lost, run.now))
    if seconds:
        assert run.signals == []
        run.take(run.rules.unplaced([], run.now + 30.0))  # it had room for a while
        run.now += 40.0
        run.take(run.rules.unplaced(lost, run.now))
        run.take(run.rules.unplaced(lost, run.now + seconds - 1.0))
        assert run.signals == []
        run.take(run.rules.unplaced(lost, run.now + seconds))
    assert run.said == ["there is no room for worker/1, and the others have ended"]
    assert run.signals == [("ps/0", TERM)]
    run.ends("ps/0")
    assert (run.rules.is_over, run.rules.exit_status) == (True, status)


def test_who_was_never_killed_may_wait_for_ever():
    run = Run(ps=1, workers=2)
    run.ends("worker/0")
    run.take(run.rules.waiting({TaskId("worker", 1): run.now}, run.now))
    assert run.signals == []


def test_ctrl_c_asks_and_the_second_one_kills():
    run = Run(ps=1)
    run.take(run.rules.stop(signal.SIGINT, 1.0))
    assert run.signals == [("ps/0", TERM), ("worker/0", TERM)]
    run.ends("worker/0", -15, after=0.1)
    run.take(run.rules.stop(signal.SIGINT, 2.0))
    assert run.signals == [("ps/0", KILL)]
    run.ends("ps/0", -9, after=0.1)
    assert (run.rules.is_over, run.rules.exit_status) == (True, 130)


def test_workers_are_started_as_the_cluster_wants_them():
    run = Run(ps=1, workers=2, elastic=(2, 4))
    assert run.size(2, present=[0, 1]) == []
    assert run.size(4, missing=2, present=[0, 1]) == ["worker/2", "worker/3"]
    assert run.rules.has_joined(TaskId("worker", 2))
    # They are on their way, and there are no more than the most.
    assert run.size(4, missing=2, present=[0, 1]) == []
    assert run.size(6, missing=3, present=[0, 1, 2]) == []
    # Those that are to leave end with 0, and may come back.
    run.ends("worker/3")
    run.size(4, present=[0, 1, 2, 3], late=1.0)
    assert run.said == []  # an answer of before its end
    run.size(3, present=[0, 1, 2])
    assert run.said == ["worker/3 has left, as it was asked to"]
    assert run.state("worker/3") is State.LEFT
    assert run.size(4, missing=1, present=[0, 1, 2]) == ["worker/3"]
    # At the end of the training nobody is started any more.
    run.ends("worker/0")
    assert run.size(4, missing=1, present=[1, 2, 3]) == []
    assert run.state("worker/0") is State.DONE
    for i in (1, 2, 3):
        run.ends(f"worker/{i}")
        run.size(4, missing=1)
    assert run.signals == [("ps/0", TERM)]


def test_who_ends_before_one_that_is_to_leave_has_done_the_work():
    run = Run(ps=1, workers=2, elastic=(1, 4))
    run.size(3, missing=1, present=[0, 1])
    # A loop that cannot be ended makes its last step, and the others theirs.
    for task, text in (("0", "is done"), ("2", "has left, as it was asked to"), ("1", "is done")):
        run.ends(f"worker/{task}")
        run.size(2, present=[0, 1, 2])
        assert run.said == [f"worker/{task} {text}"]
    assert run.state("worker/0") is State.DONE
    assert run.signals == [("ps/0", TERM)]


@pytest.mark.parametrize(("after", "state"), [(1.0, State.LEFT), (LATE, State.DONE)])
def test_who_leaves_may_do_so_when_more_are_wanted_again(after, state):
    run = Run(ps=1, workers=2, elastic=(1, 4))
    run.size(1, present=[0, 1])
    run.size(2, present=[0, 1])
    run.ends("worker/1", after=after)
    started = run.size(2, missing=1, present=[0])
    assert run.state("worker/1") is (State.RUNNING if state is State.LEFT else State.DONE)
    assert started == (["worker/1"] if state is State.LEFT else [])


def test_the_others_go_on_without_one_that_came_later_and_fails_at_once():
    run = Run(ps=1, workers=2, elastic=(2, 4), restarts=1)
    run.now = LATE
    assert run.size(3, missing=1, present=[0, 1]) == ["worker/2"]
    run.ends("worker/2", 1, after=0.5)
    assert run.said == ["worker/2 has ended: exit status 1. It is started again in 0.5 s."]
    run.waits()
    run.ends("worker/2", 1, after=0.5)
    assert run.said[0].endswith("for the 2nd time in a row, and is given up. The others go on.")
    assert (run.signals, run.state("worker/0")) == ([], State.RUNNING)


def test_more_than_a_launch_can_start_is_said_once():
    run = Run(ps=2, workers=1, elastic=(1, 2))
    run.size(9, missing=8, present=[0])
    (text,) = [t for t in run.said if "most" in t]
    assert text == (
        "9 tasks of the job worker are wanted; by --elastic, 2 is the most here. `headrace resize` "
        "asks for fewer."
    )
    run.size(9, missing=8, present=[0])
    assert run.said == []
    here = frozenset([TaskId("worker", 0), TaskId("ps", 0), TaskId("ps", 1)])
    started = run.take(
        [
            *run.rules.size(ClusterSize({"ps": 9999}, {"ps": 9997}, here, run.now), run.now),
            *run.rules.tick(run.now),
        ]
    )
    assert started == [f"ps/{i}" for i in range(2, 32)]
    assert run.said[-1].startswith("9999 tasks of the job ps are wanted; by what it began with, 32")


def test_a_cluster_that_does_not_answer_keeps_nobody_from_the_end():
    run = Run(ps=1, workers=1, elastic=(1, 2))
    run.ends("worker/0")
    run.take(run.rules.size(None, run.now + 1.0))
    assert run.signals == []
    run.take(run.rules.size(None, run.now + 11.0))
    assert run.signals == [("ps/0", TERM)]


@pytest.mark.parametrize("stopping", [False, True])
def test_a_machine_that_is_gone_ends_all(stopping):
    run = Run(ps=1, workers=2)
    if stopping:
        run.rules.stop(signal.SIGINT, 1.0)
    run.take(run.rules.lost("host b is gone", [TaskId("worker", 1)], 1.0))
    assert run.said == ["host b is gone"]
    run.ends("ps/0")
    run.ends("worker/0")
    assert run.rules.is_over
    assert run.rules.exit_status == (130 if stopping else 1)
