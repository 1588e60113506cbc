"""Checkpoints that have all of each step of any worker, or nothing of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from server_clusters import Cluster, eventually

import headrace as tf
from headrace.distributed.master import alone, held_steps, plans
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.services import holding
from headrace.files.progress import note_progress, progress
from headrace.train import save_ops
from headrace.train.asynchronous_saver import AsynchronousSaver

PS = "/job:ps/replica:0/task:"
KEYS = {f"{PS}{i}": [f"c{i}"] for i in range(2)}


class Counting:
    """Workers of a cluster of servers, each step of which adds one to a counter on each server."""

    def __init__(self, cluster: Cluster, workers: int) -> None:
        self.cluster = cluster
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.counters = []
            for i in range(2):
                with tf.device(f"/job:ps/task:{i}"):
                    self.counters.append(
                        tf.get_variable(f"c{i}", [], tf.int64, tf.zeros_initializer())
                    )
            self.steps = []
            for i in range(workers):
                with tf.device(f"/job:worker/task:{i}"):
                    first = tf.assign_add(self.counters[0], 1, use_locking=True)
                    # The second follows the first, with a way through the worker between them.
                    with tf.control_dependencies([tf.identity(first)]):
                        one = tf.identity(tf.constant(1, tf.int64))
                    self.steps.append(tf.assign_add(self.counters[1], one, use_locking=True).op)
            self.saver = tf.train.Saver(sharded=True, max_to_keep=3)
            self.init = tf.global_variables_initializer()
        self.sessions = [
            tf.Session(cluster.target("worker", i), graph=self.graph) for i in range(workers)
        ]

    @property
    def tasks(self) -> list[Any]:
        return [server.task for server in self.cluster.servers.values()]

    def moves(self, index: int) -> Any:
        """What a server does to have steps held."""
        return self.cluster["ps", index].task.moves

    def saver_of(self, consistent: bool) -> AsynchronousSaver:
        return AsynchronousSaver(self.saver, self.graph, consistent)

    @contextlib.contextmanager
    def training(self) -> Iterator[None]:
        """A thread for each worker but the first, which saves."""
        stop, errors = threading.Event(), list[BaseException]()
        self.made = 0

        def run(step: Callable[[], Any]) -> None:
            try:
                while not stop.is_set():
                    step()
                    self.made += 1
            except BaseException as error:
                errors.append(error)

        threads = [
            threading.Thread(target=run, args=(s.make_callable([step]),))
            for s, step in zip(self.sessions[1:], self.steps[1:], strict=True)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not errors, errors[0]

    def close(self) -> None:
        for session in self.sessions:
            session.close()


@pytest.fixture
def counting() -> Iterator[Counting]:
    cluster = Cluster(ps=2, worker=3).start_all()
    made = Counting(cluster, 3)
    made.sessions[0].run(made.init)
    yield made
    made.close()
    cluster.stop()


def gap(path: str) -> int:
    """By how much the counters of a checkpoint differ."""
    reader = tf.train.load_checkpoint(path)
    return abs(int(reader.get_tensor("c0")) - int(reader.get_tensor("c1")))


def test_consistent_checkpoints_have_whole_steps_while_others_train(
    counting, tmp_path, monkeypatch
):
    monkeypatch.setattr(plans, "FIRST_SECONDS", 30.0)  # other tests may hold up the processors
    saver, torn = counting.saver_of(True), counting.saver_of(False)
    session, gaps, most = counting.sessions[0], {True: [], False: []}, 0
    with counting.training():
        while len(gaps[True]) < 8 or (not any(gaps[False]) and most < 300):
            most += 1
            for kind, one in ((True, saver), (False, torn)):
                before = counting.made
                one.begin(session, str(tmp_path / f"m{kind}"), global_step=most)
                gaps[kind].append(gap(one.result()))
                session.run(counting.steps[0])
        assert counting.made > before
    assert not any(gaps[True])
    assert any(gaps[False])


def test_steps_that_do_not_end_cost_the_save_and_not_the_training(counting, tmp_path, monkeypatch):
    """One step waits for what another step brings; the next save waits for longer."""
    monkeypatch.setattr(plans, "FIRST_SECONDS", 0.05)
    with counting.graph.as_default():
        with tf.device("/job:worker/task:1"):
            queue = tf.FIFOQueue(1, tf.int64, shared_name="q")
            with tf.control_dependencies([queue.dequeue()]):
                waits = tf.assign_add(counting.counters[0], 0)
            goes = queue.enqueue(1)
        saver = counting.saver_of(True)
    session, other = counting.sessions[:2]
    thread = threading.Thread(target=other.run, args=(waits.op,))
    thread.start()
    step = counting.cluster["worker", 1].task.master
    while not any(p.gate.is_busy for s in step.sessions() for p in s.plans.values()):
        pass
    message = r"Steps that use c0 at /job:ps/.*0 did not end within .* those of /job:worker.*task:1"
    for _ in range(2):
        with pytest.raises(tf.errors.DeadlineExceededError, match=message):
            saver.begin(session, str(tmp_path / "m"), global_step=1)
        counting.sessions[2].run(counting.steps[2])  # all others go on
    session.run(goes)
    thread.join()
    saver.begin(session, str(tmp_path / "m"), global_step=1)
    assert gap(saver.result()) == 0


def test_steps_go_on_when_who_saves_is_gone(counting, monkeypatch):
    """The servers let them go when the link is lost."""
    held, go = threading.Event(), threading.Event()
    master = counting.cluster["worker", 0].task.master

    def save() -> None:
        with contextlib.suppress(tf.errors.OpError), master.alone.alone(KEYS, 5.0):
            held.set()
            go.wait(20)

    counting.sessions[1].run(counting.steps[1])
    thread = threading.Thread(target=save)
    thread.start()
    assert held.wait(20)
    step = threading.Thread(target=counting.sessions[1].run, args=(counting.steps[1],))
    step.start()
    counting.cluster["worker", 0].stop()
    step.join(8)
    assert not step.is_alive()
    go.set()
    thread.join()


def test_a_hold_that_was_not_kept_is_told(counting):
    """A server let steps go before the time: what was read counts for nothing."""
    master = counting.cluster["worker", 0].task.master
    counting.sessions[1].run(counting.steps[1])

    def run_alone() -> None:
        with master.alone.alone(KEYS, 5.0):
            moves = counting.moves(1)
            moves.tick(moves._now.until)

    with pytest.raises(
        tf.errors.DeadlineExceededError, match=r"not held at .*ps.*1 for all of the"
    ):
        run_alone()
    assert alone.MOST_SECONDS < held_steps._HOLD_SECONDS
    counting.sessions[1].run(counting.steps[1])


def test_who_notices_late_that_the_time_is_up_has_not_held_steps(counting):
    """The clock of a busy server ticks late: masters may have let steps go before."""
    master, moves = counting.cluster["worker", 0].task.master, counting.moves(1)
    with (
        pytest.raises(tf.errors.DeadlineExceededError, match="not held at"),
        master.alone.alone(KEYS, 5.0),
    ):
        moves.clock = lambda until=moves._now.until: until


def test_a_task_that_is_lost_in_the_end_leaves_the_others_free(counting, monkeypatch):
    master = counting.cluster["worker", 0].task.master
    ask = master.alone._ask

    def lost(task: str, message: Any) -> None:
        ask(task, message)
        if message.release and task == f"{PS}0":
            raise tf.errors.UnavailableError(None, None, "It is lost.")

    monkeypatch.setattr(master.alone, "_ask", lost)
    with (
        pytest.raises(tf.errors.UnavailableError, match="It is lost"),
        master.alone.alone(KEYS, 5.0),
    ):
        assert counting.moves(1)._now is not None
    # That was asked for, and answered, before the error came out.
    assert counting.moves(1)._now is None


def test_a_master_that_registers_while_others_are_asked_holds_its_steps(counting, monkeypatch):
    """Its part comes after the server has looked whose steps it must hold."""
    worker = counting.cluster["ps", 0].task.worker
    masters_of, other = worker.masters_of, counting.cluster["worker", 1].task.me
    step = threading.Thread(target=counting.sessions[1].run, args=(counting.steps[1],))
    started = []

    def registers_after(keys: Any) -> Any:
        found = masters_of(keys)
        if not started:
            started.append(True)
            step.start()
            assert eventually(lambda: (other.task, other.incarnation) in masters_of(keys))
            assert (other.task, other.incarnation) not in found
        return found

    monkeypatch.setattr(worker, "masters_of", registers_after)
    with counting.cluster["worker", 0].task.master.alone.alone(KEYS, 20.0):
        held = counting.cluster["worker", 1].task.master.held_steps._held
        assert [hold.source for hold in held.values()] == [f"{PS}0", f"{PS}1"][: len(held)]
        assert held
    step.join()


def test_a_master_that_was_away_when_others_were_asked_breaks_the_hold(counting, monkeypatch):
    """Its link comes back, and it knows nothing of it."""
    counting.sessions[1].run(counting.steps[1])
    peers, other = counting.cluster["ps", 0].task.peers, counting.cluster["worker", 1].task.me.task
    known = peers.known

    def run_alone() -> None:
        with counting.cluster["worker", 0].task.master.alone.alone(KEYS, 5.0):
            monkeypatch.setattr(peers, "known", known)

    monkeypatch.setattr(peers, "known", lambda task: None if task == other else known(task))
    with pytest.raises(tf.errors.AbortedError, match="lost a task whose steps it had held"):
        run_alone()
    counting.sessions[1].run(counting.steps[1])


def test_a_hold_that_is_asked_for_twice_is_one(counting, monkeypatch):
    moves, answers = counting.moves(0), []
    source = counting.cluster["worker", 0].task.me
    start = source.task, source.incarnation
    asks = [pb.HoldSteps(hold=7, keys=["c0"], seconds=s) for s in (20.0, 0.0)]
    moves.steps_asked(start, asks[0], answers.append)
    assert eventually(lambda: len(answers) == 1)
    monkeypatch.setattr(holding.step_threads, "submit", lambda call, *args: call(*args))
    moves.steps_asked(start, asks[1], answers.append)
    assert moves._now.asked == 7
    moves.steps_asked((source.task, 0), pb.HoldSteps(hold=7, release=True), answers.append)
    assert [said.HasField("failure") for said in answers] == [False, False]


@contextlib.contextmanager
def hooked(counting: Counting, folder: Any) -> Iterator[tuple[Any, Any]]:
    """A monitored session that saves consistent checkpoints, and its train op."""
    with counting.graph.as_default():
        step = tf.train.get_or_create_global_step()
        train = tf.group(counting.steps[0], step.assign_add(1))
        counting.sessions[0].run(step.initializer)
        hook = tf.train.CheckpointSaverHook(
            str(folder), save_steps=2, saver=tf.train.Saver(sharded=True), consistent=True
        )
        creator = tf.train.ChiefSessionCreator(
            tf.train.Scaffold(init_op=tf.no_op(), ready_op=tf.constant([], tf.string)),
            counting.cluster.target("worker", 0),
        )
        with tf.train.MonitoredSession(creator, [hook]) as session:
            yield session, train


def saved(folder: Any) -> list[str]:
    return list(tf.train.get_checkpoint_state(str(folder)).all_model_checkpoint_paths)


def test_hooks_save_whole_steps(counting, tmp_path):
    with counting.training(), hooked(counting, tmp_path) as (session, train):
        for _ in range(5):
            session.run(train)
    assert len(saved(tmp_path)) == 4
    assert not any(map(gap, saved(tmp_path)))


class LongCopies:
    """In the first save copies take for half a minute, by the clocks of all tasks."""

    def __init__(self, counting: Counting, makes_progress: bool) -> None:
        self.counting, self.makes_progress = counting, makes_progress
        self.late, self.kept, self.lock = 0.0, save_ops._kept, threading.Lock()
        self.saver = counting.cluster["worker", 0].task.master
        for task in counting.tasks:
            task.moves.clock = task.master.held_steps.clock = self.clock

    def clock(self) -> float:
        return time.monotonic() + self.late

    def __call__(self, context: Any, values: Any) -> Any:
        with self.lock:
            self.saver.alone.tick(self.clock())
            while self.late < (30.0 if self.makes_progress else 90.0):
                self.pass_by(3.0)
        return self.kept(context, values)

    def pass_by(self, seconds: float) -> None:
        self.late += seconds
        note_progress(int(self.makes_progress))
        begun = self.clock()
        self.saver.alone.tick(begun)
        if self.makes_progress:
            holds = [task.moves._now for task in self.counting.tasks if task.moves._now]
            assert len(holds) == 3  # of two servers, and of the worker that has the step
            until = begun + alone.MOST_SECONDS
            assert eventually(lambda: all(hold.until >= until for hold in holds))
        for task in self.counting.tasks:
            task.moves.tick(self.clock())
            task.master.held_steps.tick(self.clock())


def test_a_save_that_takes_long_holds_steps_for_all_of_it(counting, tmp_path, monkeypatch):
    monkeypatch.setattr(save_ops, "_kept", LongCopies(counting, True))
    with counting.training(), hooked(counting, tmp_path) as (session, train):
        session.run(train)
    assert len(saved(tmp_path)) == 2
    assert not any(map(gap, saved(tmp_path)))


def test_a_first_save_that_stands_still_ends_with_what_to_do(counting, tmp_path, monkeypatch):
    """It is not tried again and again: training would never begin."""
    monkeypatch.setattr(save_ops, "_kept", LongCopies(counting, False))
    text = "not held at .* nothing was written for 60 s.*consistent_checkpoints=False"
    with pytest.raises(tf.errors.DeadlineExceededError, match=text), hooked(counting, tmp_path):
        pass
    counting.sessions[1].run(counting.steps[1])  # nobody waits for it


@pytest.mark.parametrize("how", ["time", "loss"])
def test_later_saves_whose_steps_were_not_held_cost_the_checkpoint(
    counting, tmp_path, monkeypatch, how
):
    copies, calls = save_ops._kept, []

    def let_go(context: Any, values: Any) -> Any:
        if len(calls) == 2:  # that is the first save of two servers
            moves = counting.moves(0)
            if how == "time":
                moves.tick(moves._now.until)
            else:
                moves._now.is_broken = True
        calls.append(context)
        return copies(context, values)

    with hooked(counting, tmp_path) as (session, train):
        assert len(saved(tmp_path)) == 1
        calls[:] = [None, None]
        monkeypatch.setattr(save_ops, "_kept", let_go)
        before = session._sess._sess
        session.run(train)
        session.run(train)
        assert len(saved(tmp_path)) == 1
        session.run(train)
        assert session._sess._sess is before  # the session was not made anew
    assert len(saved(tmp_path)) == 2  # the last


def test_writers_say_how_far_they_are(counting, tmp_path):
    before = progress()
    with counting.graph.as_default():
        counting.saver.save(counting.sessions[0], str(tmp_path / "m"))
    assert progress() >= before + 16


def test_writers_that_rest_ask_whether_their_step_goes_on(counting, tmp_path, monkeypatch):
    asked = []

    class Asking:
        PIECE = 1 << 20

        def __init__(self, check: Callable[[], None]) -> None:
            self.check = check

        def __call__(self) -> None:
            asked.append(self.check())

    monkeypatch.setattr(save_ops, "_PACED", 0)
    monkeypatch.setattr(save_ops, "Pace", Asking)
    saver = counting.saver_of(True)
    saver.begin(counting.sessions[0], str(tmp_path / "m"))
    saver.result()
    assert asked
