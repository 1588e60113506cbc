"""The state machines of workers and masters, driven by events alone."""

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.distributed.master.machine import Farewells, Membership, Presence
from headrace.distributed.steps.tracker import StepTracker
from headrace.distributed.wire.failures import cancelled, unavailable
from headrace.distributed.worker import machine as machines
from headrace.distributed.worker.machine import OWN, Abort, Deliver, Refuse, Start, WorkerMachine
from headrace.errors import (
    AbortedError,
    CancelledError,
    InvalidArgumentError,
    UnavailableError,
)

STEP, PLAN, SESSION, CHIEF, PEER = 7, 3, 5, ("/job:chief", 11), "/job:ps"
LATE = 1000.0


def machine(ready=True):
    made = WorkerMachine(hold=60.0, orphan=60.0)
    made.plan_asked(PLAN, SESSION, CHIEF, 0.0)
    if ready:
        assert made.plan_ready(PLAN, [PEER])
    return made


def run_asked(made, run="run", step=STEP, plan=PLAN):
    return made.run_asked(step, plan, CHIEF[0], run)


# -- a worker's step ------------------------------------------------------------------------------

EVENTS = {
    "run": lambda m: run_asked(m),
    "tensors": lambda m: m.tensors_came(STEP, 1, "value", 1.0),
    "cancel": lambda m: m.cancel_asked(STEP, "because"),
    "peer lost": lambda m: m.peer_lost(PEER, "silent"),
    "chief lost": lambda m: m.peer_lost(CHIEF[0], "silent"),
    "ended": lambda m: m.ended(STEP),
    "tick": lambda m: m.tick(2.0),
    "late tick": lambda m: m.tick(LATE),
    "drop": lambda m: m.plans_dropped([PLAN]),
}


def check_order(order):
    """Apply events in an order; what the machine tells must make sense at every point."""
    made = machine()
    started = over = refused = False
    before_run, delivered = 0, 0
    for name in order:
        told = EVENTS[name](made)
        for one in told if isinstance(told, list) else [told]:
            if isinstance(one, Start):
                assert name == "run"
                assert not started
                assert not over
                assert not refused
                started = True
                assert len(one.held) == before_run
            elif isinstance(one, Refuse):
                assert name == "run"
                assert not started
                assert not refused
                refused = True
            elif isinstance(one, Deliver):
                assert started
                assert not over
                delivered += 1
            elif isinstance(one, Abort):
                assert started
                assert not over
                over = True
                made.ended(STEP)  # as the driver does
        if name == "tensors" and not started and not refused and not over:
            before_run += 1
        if name == "ended" and started:
            over = True
        if name in ("cancel", "late tick") and not started:
            before_run = 0
    made.ended(STEP)
    assert made.running() == []
    made.tick(LATE)
    assert made.held == 0
    return started, refused


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_every_order_of_events_with_repetitions(length):
    names = list(EVENTS) if length < 5 else ["run", "tensors", "cancel", "peer lost", "ended"]
    for order in itertools.product(names, repeat=length):
        started, refused = check_order(order)
        assert not (started and refused)
        if "run" in order and "drop" not in order and "late tick" not in order:
            assert started != ("cancel" in order[: order.index("run")])


def test_tensors_before_their_step_wait_for_it():
    made = machine()
    assert made.tensors_came(STEP, 1, "a", 0.0) is None
    assert made.tensors_came(STEP, 2, "b", 0.0) is None
    assert made.held == 1
    assert run_asked(made) == Start("run", [(1, "a"), (2, "b")])
    assert made.held == 0
    assert made.tensors_came(STEP, 3, "c", 0.0) == Deliver("run", 3, "c")


def test_tensors_that_nobody_wants_are_dropped_after_a_while():
    made = machine()
    made.tensors_came(STEP, 1, "a", 10.0)
    made.tick(70.0)
    assert made.held == 1
    made.tick(70.1)
    assert made.held == 0
    assert made.tensors_came(STEP, 2, "b", 80.0) is None
    assert made.held == 0


def test_a_step_that_was_cancelled_before_it_was_asked_for_is_refused_once():
    made = machine()
    made.tensors_came(STEP, 1, "a", 0.0)
    assert made.cancel_asked(STEP, "the client is gone") is None
    assert made.held == 0
    assert run_asked(made) == Refuse(STEP, PLAN, "the client is gone")
    assert run_asked(made) is None


def test_an_unknown_plan_is_refused():
    made = machine()
    assert run_asked(made, plan=99) == Refuse(STEP, 99)
    assert run_asked(made, run=None, step=8) == Refuse(8, PLAN)
    assert machine(ready=False).run_asked(STEP, PLAN, "a", "run") == Refuse(STEP, PLAN)


def test_steps_that_do_not_need_a_lost_peer_go_on():
    made = machine()
    made.plan_asked(4, SESSION, CHIEF, 0.0)
    made.plan_ready(4, ["/job:other"])
    run_asked(made)
    run_asked(made, "another run", step=8, plan=4)
    assert made.peer_lost(PEER, "silent") == [Abort("run", "silent", PEER)]
    assert made.running() == ["run", "another run"]
    made.ended(STEP)
    assert made.running() == ["another run"]


def test_a_step_of_a_plan_that_was_dropped_still_notices_a_lost_peer():
    made = machine()
    run_asked(made)
    made.plans_dropped([PLAN])
    assert made.peer_lost(PEER, "silent") == [Abort("run", "silent", PEER)]


def test_marks_of_ended_steps_have_a_limit(monkeypatch):
    monkeypatch.setattr(machines, "MAX_MARKS", 3)
    made = machine()
    for step in range(10):
        made.cancel_asked(step, "because")
    assert list(made._ended) == [7, 8, 9]


# -- a worker's plans -----------------------------------------------------------------------------


def test_a_plan_that_is_dropped_while_it_is_made_ready_does_not_come_to_life():
    for drop in (lambda m: m.plans_dropped([PLAN]), lambda m: m.plans_dropped([], SESSION)):
        made = machine(ready=False)
        drop(made)
        assert not made.plan_ready(PLAN, [PEER])
        assert made.plans == 0
        assert not made.has_session(SESSION)


def test_plans_of_a_master_that_stays_away_are_dropped():
    made = machine()
    made.plan_asked(4, 6, OWN, 0.0)
    assert made.orphans(59.0, lambda master: False) == []
    assert made.orphans(60.5, lambda master: False) == [SESSION]
    assert made.plans == 1
    assert made.orphans(LATE, lambda master: False) == []


def test_a_master_that_comes_back_in_time_keeps_its_plans():
    made = machine()
    assert made.orphans(50.0, lambda master: False) == []
    assert made.orphans(55.0, lambda master: master == CHIEF) == []
    assert made.orphans(110.0, lambda master: False) == []
    # It was started again: that is another master.
    again = (CHIEF[0], 12)
    assert made.orphans(116.0, lambda master: master == again) == [SESSION]


def test_plans_of_a_master_are_dropped_at_once_when_another_start_of_it_has_some():
    made = machine()
    again = (CHIEF[0], 12)
    made.plan_asked(4, 6, again, 1.0)
    assert made.orphans(2.0, lambda master: False) == []
    assert made.orphans(3.0, lambda master: master == again) == [SESSION]
    assert made.has_session(6)


def test_who_must_hear_of_a_lost_link():
    made = machine()
    assert made.watchers(PEER) == {CHIEF[0]}
    made.run_asked(STEP, PLAN, "/job:owner", "run")
    assert made.watchers(PEER) == {CHIEF[0], "/job:owner"}
    assert made.watchers("/job:other") == set()


class WorkerRules(RuleBasedStateMachine):
    """A worker with some plans and steps, and whatever comes for them."""

    steps = st.integers(0, 3)
    plans = st.integers(1, 2)
    peers = st.sampled_from(["a", "b"])

    def __init__(self):
        super().__init__()
        self.machine = WorkerMachine(60.0, 60.0)
        self.now = 0.0
        self.plan_peers = {}
        self.ready = set()
        self.running = {}
        self.held = {}
        self.over = {}

    def end(self, step):
        self.machine.ended(step)
        self.running.pop(step, None)
        self.over[step] = ""

    @rule(plan=plans, peer=peers)
    def ask_for_plan(self, plan, peer):
        self.machine.plan_asked(plan, plan, ("m", 1), self.now)
        self.plan_peers[plan] = {peer}
        self.ready.discard(plan)

    @rule(plan=plans)
    def plan_is_ready(self, plan):
        known = plan in self.plan_peers
        assert self.machine.plan_ready(plan, self.plan_peers.get(plan, ())) == known
        if known:
            self.ready.add(plan)

    @rule(plan=plans)
    def drop_plan(self, plan):
        self.machine.plans_dropped([plan])
        self.plan_peers.pop(plan, None)
        self.ready.discard(plan)

    @rule(step=steps, plan=plans)
    def ask_for_step(self, step, plan):
        told = self.machine.run_asked(step, plan, "m", (step, plan))
        if step in self.running:
            assert told is None
        elif step in self.over:
            reason = self.over[step]
            self.over[step] = ""
            assert told == (Refuse(step, plan, reason) if reason else None)
        elif plan in self.ready:
            assert told == Start((step, plan), self.held.pop(step, [])[1:])
            self.running[step] = (plan, set(self.plan_peers[plan]))
        else:
            assert told == Refuse(step, plan)
            self.held.pop(step, None)
            self.over[step] = ""

    @rule(step=steps, transfer=st.integers(1, 2))
    def tensors(self, step, transfer):
        told = self.machine.tensors_came(step, transfer, "v", self.now)
        if step in self.running:
            assert told == Deliver((step, self.running[step][0]), transfer, "v")
        else:
            assert told is None
            if step not in self.over:
                self.held.setdefault(step, [self.now]).append((transfer, "v"))

    @rule(step=steps)
    def cancel(self, step):
        told = self.machine.cancel_asked(step, "no more")
        if step in self.running:
            assert told == Abort((step, self.running[step][0]), "no more")
            self.end(step)
        else:
            assert told is None
            if step not in self.over:
                self.held.pop(step, None)
                self.over[step] = "no more"

    @rule(peer=st.sampled_from(["a", "b", "m"]))
    def lose(self, peer):
        hit = {
            step: Abort((step, plan), "gone", peer)
            for step, (plan, peers) in self.running.items()
            if peer == "m" or peer in peers
        }
        assert self.machine.peer_lost(peer, "gone") == list(hit.values())
        for step in hit:
            self.end(step)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data):
        self.end(data.draw(st.sampled_from(sorted(self.running))))

    @rule(seconds=st.sampled_from([1.0, 30.0, 61.0]))
    def pass_time(self, seconds):
        self.now += seconds
        self.machine.tick(self.now)
        for step in [s for s, h in self.held.items() if self.now - h[0] > 60.0]:
            del self.held[step]
            self.over[step] = ""

    @invariant()
    def agrees(self):
        running = [(step, plan) for step, (plan, _) in self.running.items()]
        assert self.machine.running() == running
        assert self.machine.held == len(self.held)
        assert self.machine.plans == len(self.plan_peers)


TestWorkerRules = WorkerRules.TestCase
TestWorkerRules.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


# -- the tracker of a step ------------------------------------------------------------------------


class Asked:
    """A tracker and when it ended."""

    def __init__(self, *tasks):
        self.ends = 0
        self.tracker = StepTracker(STEP, tasks, 0.0, self._ended)

    def _ended(self, tracker):
        self.ends += 1


def wrong(text="bad"):
    return InvalidArgumentError(None, None, text)


def gone(task):
    return unavailable(task, STEP, "silent")


def test_a_step_ends_when_all_parts_have_answered():
    asked = Asked("a", "b")
    asked.tracker.done("a", 1)
    asked.tracker.done("a", 2)
    assert asked.ends == 0
    asked.tracker.done("b", 3)
    assert asked.ends == 1
    assert asked.tracker.results == {"a": 1, "b": 3}
    assert asked.tracker.error is None


def test_a_failed_part_stops_the_others_and_waits_for_them():
    asked = Asked("a", "b", "c")
    assert asked.tracker.failed("b", wrong(), 1.0) == ["a", "c"]
    assert asked.tracker.failed("a", cancelled("failed elsewhere"), 1.0) == []
    assert asked.ends == 0
    asked.tracker.done("c", 1)
    assert asked.ends == 1
    assert asked.tracker.error.message == "bad"


def test_the_cause_is_preferred_to_what_followed_from_it():
    for order in itertools.permutations([("a", cancelled("x")), ("b", wrong()), ("c", gone("c"))]):
        asked = Asked("a", "b", "c")
        for task, error in order:
            asked.tracker.failed(task, error, 1.0)
        first = next(error for _, error in order if not isinstance(error, CancelledError))
        assert asked.tracker.error is first


def test_a_failed_step_waits_only_so_long_for_the_others():
    asked = Asked("a", "b")
    asked.tracker.failed("a", wrong(), 1.0)
    asked.tracker.overdue(2.9, 2.0)
    assert asked.ends == 0
    asked.tracker.overdue(3.0, 2.0)
    asked.tracker.overdue(3.1, 2.0)
    asked.tracker.done("b", 1)
    assert asked.ends == 1
    assert asked.tracker.results == {}


def test_a_lost_task_fails_the_step_also_after_its_answer():
    asked = Asked("a", "b")
    asked.tracker.done("a", 1)
    assert asked.tracker.lost("c", gone("c"), 1.0) == []
    assert asked.tracker.lost("a", gone("a"), 1.0) == ["b"]
    asked.tracker.failed("b", cancelled("x"), 1.0)
    assert asked.ends == 1
    assert isinstance(asked.tracker.error, UnavailableError)


def test_nothing_is_changed_by_what_comes_after_the_end():
    asked = Asked("a")
    asked.tracker.done("a", 1)
    assert asked.tracker.lost("a", gone("a"), 1.0) == []
    assert asked.tracker.cancel(wrong(), 1.0) == []
    assert asked.tracker.parted("a", "a", wrong(), 1.0) == []
    asked.tracker.overdue(LATE, 2.0)
    assert asked.ends == 1
    assert asked.tracker.error is None


def test_members_that_lost_each_other():
    asked = Asked("a", "b")
    assert asked.tracker.parted("a", "c", gone("c"), 1.0) == []
    assert asked.tracker.parted("a", "b", gone("b"), 1.0) == ["a", "b"]
    assert asked.tracker.tasks == {"a", "b"}


def test_tasks_that_were_not_asked_are_not_waited_for():
    asked = Asked("a", "b", "c")
    asked.tracker.failed("b", gone("b"), 1.0)
    asked.tracker.not_asked(["c"])
    assert asked.ends == 0
    asked.tracker.failed("a", cancelled("x"), 1.0)
    assert asked.ends == 1


TRACKED = {
    "done a": lambda t: t.done("a", 1),
    "done b": lambda t: t.done("b", 1),
    "a fails": lambda t: t.failed("a", wrong(), 1.0),
    "b gives up": lambda t: t.failed("b", cancelled("x"), 1.0),
    "a lost": lambda t: t.lost("a", gone("a"), 1.0),
    "parted": lambda t: t.parted("a", "b", gone("b"), 1.0),
    "cancel": lambda t: t.cancel(wrong("stop"), 1.0),
    "overdue": lambda t: t.overdue(3.0, 2.0),
}


def test_every_order_of_what_a_tracker_hears():
    for order in itertools.product(TRACKED, repeat=4):
        asked = Asked("a", "b")
        told = []
        for name in order:
            told += TRACKED[name](asked.tracker) or []
            assert (asked.ends == 1) == (not asked.tracker.tasks)
        assert len(set(told)) == len(told)  # nobody is told to stop twice
        for name in TRACKED:
            TRACKED[name](asked.tracker)
        assert asked.ends == 1


# -- what a master knows of others ----------------------------------------------------------------


def test_a_session_keeps_to_the_first_start_of_a_task():
    members = Membership()
    members.met("a", 1)
    members.met("a", 1)
    members.met("b", 5)
    with pytest.raises(AbortedError, match=r"Task a was started again: .* Make a new session"):
        members.met("a", 2)
    assert members.is_member("a", 1)
    assert not members.is_member("a", 2)
    assert members.members() == {"a": 1, "b": 5}


def link(incarnation, lost=False):
    return SimpleNamespace(peer=SimpleNamespace(incarnation=incarnation), lost=lost)


def test_what_a_task_could_not_be_told_it_is_told_later():
    left = Farewells(60.0, 8.0)
    for task in ("a", "b", "c"):
        left.add(task, 1, f"forget {task}", 0.0)
    assert left.due(1.0, lambda task: None) == []
    here = {"a": link(1), "b": link(2), "c": None}
    assert left.due(2.0, here.get) == [(here["a"], "forget a")]
    assert len(left) == 2  # b was started again and knows nothing any more
    assert left.due(10.0, here.get) == []
    assert left.due(61.0, here.get) == []
    assert len(left) == 0


def test_what_a_lost_link_may_not_have_carried_is_said_again():
    left = Farewells(60.0, 8.0)
    left.add("a", 1, "forget", 0.0)
    first, second = link(1), link(1)
    assert left.due(0.0, lambda task: first) == [(first, "forget")]
    assert left.due(1.0, lambda task: first) == []
    first.lost = True
    assert left.due(2.0, lambda task: None) == []
    assert left.due(3.0, lambda task: second) == [(second, "forget")]
    assert left.due(11.1, lambda task: second) == []
    assert len(left) == 0


def test_clients_that_stay_away():
    presence = Presence(60.0)
    assert presence.gone({"a", "b"}, 0.0, lambda c: True) == set()
    assert presence.gone({"a", "b"}, 60.0, lambda c: c == "b") == set()
    assert presence.gone({"a", "b"}, 60.1, lambda c: c == "b") == {"a"}
    assert presence.gone({"b"}, 61.0, lambda c: True) == set()
    assert presence.gone({"a"}, 200.0, lambda c: False) == set()
