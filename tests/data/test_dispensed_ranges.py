"""Ranges of the input, dealt out to workers: each element once, or more often with failures."""

from __future__ import annotations

import random
import threading
from collections import Counter

import numpy as np
import pytest

import headrace as tf
from headrace.data.participant import Ledger
from headrace.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

PATIENCE = 60


def numbers(begin, end):
    return tf.data.Dataset.range(begin, end)


def pairs(begin, end):
    return tf.data.Dataset.range(begin, end).batch(2)


class Worker(threading.Thread):
    """Trains in a thread and graph of its own.

    Args:
        target: of a server; "" for a process alone.
        build: ``build()`` makes the dispenser and the batch.
        stop: makes so many steps at most.

    Attributes:
        seen: the numbers of the batches of its steps, each of which has succeeded.
    """

    def __init__(self, target="", build=None, is_chief=True, stop=None, optimizer=None, **options):
        super().__init__(daemon=True)
        self._target, self._build, self._is_chief = target, build, is_chief
        self._stop_after, self._options = stop, options
        self._optimizer = optimizer
        self.seen: list[int] = []
        self.steps = 0
        self.error: BaseException | None = None
        self.may_step = threading.Semaphore(10**6)

    def run(self) -> None:
        try:
            with tf.Graph().as_default():
                self._train()
        except BaseException as error:
            self.error = error

    def _train(self) -> None:
        dispenser, batch = self._build()
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        hooks = [dispenser.make_session_run_hook()]
        if self._optimizer is None:
            train = tf.group(step.assign_add(1), total.assign_add(1.0))
        else:
            made = self._optimizer(tf.train.GradientDescentOptimizer(0.1))
            train = made.minimize(total * tf.reduce_mean(tf.cast(batch, tf.float32)), step)
            hooks.insert(0, made.make_session_run_hook(self._is_chief, num_tokens=0))
        hooks += self._options.pop("hooks", [])
        with tf.train.MonitoredTrainingSession(
            self._target,
            self._is_chief,
            hooks=hooks,
            log_step_count_steps=None,
            save_summaries_steps=None,
            save_summaries_secs=None,
            **self._options,
        ) as sess:
            while not sess.should_stop() and self.steps != self._stop_after:
                self.may_step.acquire()
                sess.run(step)  # takes no element
                self.seen += np.ravel(sess.run([batch, train])[0]).tolist()
                self.steps += 1

    def ends(self) -> Worker:
        self.join(PATIENCE)
        assert not self.is_alive(), "it hangs"
        if self.error is not None:
            raise self.error
        return self


def train(build, **options) -> list[int]:
    worker = Worker(build=build, **options)
    worker.start()
    return worker.ends().seen


def builder(ranges, read=numbers, transform=None, **options):
    """What `Worker` builds with."""

    def build():
        dispenser = tf.data.InputDispenser(ranges, **options)
        return dispenser, dispenser.get_next(read, transform)

    return build


@pytest.fixture
def server():
    made = tf.train.Server.create_local_server()
    yield made
    made.stop()


# -- alone -------------------------------------------------------------------------------------


def test_epochs_in_order_and_at_random() -> None:
    ranges = [(0, 3), (3, 3), (3, 4), (4, 9), (9, 9)]  # two are empty, one at the end
    assert train(builder(ranges, num_epochs=2)) == [*range(9)] * 2
    single = [(i, i + 1) for i in range(20)]
    one = train(builder(single, num_epochs=2, shuffle_seed=5))
    assert sorted(one[:20]) == sorted(one[20:]) == [*range(20)]
    assert one[:20] != one[20:]
    assert one == train(builder(single, num_epochs=2, shuffle_seed=5))
    assert one != train(builder(single, num_epochs=2, shuffle_seed=6))


def test_files(tmp_path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text("".join(f"{10 * i + j}\n" for j in range(i)))

    def build():
        dispenser = tf.data.InputDispenser.for_files(str(tmp_path / "*.txt"))
        return dispenser, dispenser.get_next(
            lambda name: tf.data.TextLineDataset(name).map(
                lambda line: tf.string_to_number(line, tf.int64)
            )
        )

    assert train(build) == [10, 20, 21]
    with pytest.raises(ValueError, match="no files"):
        tf.data.InputDispenser.for_files(str(tmp_path / "*.csv"))


def test_ranges_of_several_types() -> None:
    dispenser = tf.data.InputDispenser([("a", 1, 0.5), (b"b", 2, 1.5)])
    texts, at = dispenser.get_next(
        lambda name, n, x: tf.data.Dataset.from_tensors((name, x)).repeat(n)
    )
    found = []
    with tf.train.MonitoredTrainingSession(hooks=[dispenser.make_session_run_hook()]) as sess:
        while not sess.should_stop():
            found.append(sess.run((texts, at)))
    assert found == [(b"a", 0.5), (b"b", 1.5), (b"b", 1.5)]


@pytest.mark.parametrize("keeps", [True, False])
def test_a_transformation_of_all_ranges(keeps) -> None:
    """Its buffers are emptied at the end; what it drops counts as seen."""

    def transform(dataset):
        if not keeps:
            dataset = dataset.filter(lambda ticket, number: tf.not_equal(number % 3, 0))
        dataset = dataset.map(lambda ticket, number: (ticket, number * 10))
        return dataset.shuffle(7, seed=1).batch(4, drop_remainder=not keeps)

    ranges = [(3 * i, 3 * i + 3) for i in range(5)]
    found = train(builder(ranges, transform=transform, num_epochs=2))
    if keeps:
        assert Counter(found) == Counter([10 * i for i in range(15)] * 2)
    else:
        assert len(found) == 20
        assert not any(i % 30 == 0 for i in found)


def test_an_element_that_fails_is_passed_over() -> None:
    def read(begin, end):
        return numbers(begin, end).map(lambda x: tf.floordiv(12, x))

    dispenser = tf.data.InputDispenser([(-1, 2), (2, 4)])
    number, found, failures = dispenser.get_next(read), [], []
    with tf.train.MonitoredTrainingSession(hooks=[dispenser.make_session_run_hook()]) as sess:
        while not sess.should_stop():
            try:
                found.append(int(sess.run(number)))
            except InvalidArgumentError as error:
                failures.append(error.message)
    assert failures == ["Integer division by zero"]
    assert sorted(found) == [-12, 4, 6, 12]


def test_without_end(tmp_path) -> None:
    found = train(builder([(0, 2), (2, 4)], num_epochs=None), stop=9)
    assert found == [0, 1, 2, 3, 0, 1, 2, 3, 0]


def test_what_is_wrong() -> None:
    made = tf.data.InputDispenser.for_records
    for ranges, kind in (([], ValueError), ([(1,), (1, 2)], TypeError), (["a", 1], TypeError)):
        with pytest.raises(kind):
            tf.data.InputDispenser(ranges)
    for count, size in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="must be positive"):
            made(count, size)
    with pytest.raises(ValueError, match="num_epochs"):
        made(1, 1, num_epochs=0)
    dispenser = made(4, 2)
    with pytest.raises(ValueError, match="prefetch"):
        dispenser.get_next(numbers, prefetch=0)
    with pytest.raises(ValueError, match="must keep the tickets"):
        made(4, 2, name="other").get_next(numbers, lambda d: d.map(lambda ticket, x: x))
    with pytest.raises(TypeError, match="Expected a tf"):
        made(4, 2, name="third").get_next(lambda begin, end: None)
    number = dispenser.get_next(numbers)
    with pytest.raises(ValueError, match="called before"):
        dispenser.get_next(numbers)
    with (
        tf.train.MonitoredTrainingSession() as sess,
        pytest.raises(FailedPreconditionError, match="make_session_run_hook"),
    ):
        sess.run(number)


# -- several workers ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_workers_come_and_go(server, seed) -> None:
    """Those that end early leave what they have to others, late ones get what is left."""
    choose = random.Random(seed)
    build = builder([(4 * i, 4 * i + 4) for i in range(12)], pairs, num_epochs=2, shuffle_seed=seed)
    workers = [
        Worker(server.target, build, i == 0, stop=None if i == 0 else choose.choice([None, 1, 4]))
        for i in range(4)
    ]
    for worker in workers:
        worker.start()
    found = Counter(i for worker in workers for i in worker.ends().seen)
    assert set(found) == set(range(48))
    assert min(found.values()) >= 2
    # Only what was in hand came again.
    early = sum(worker._stop_after is not None for worker in workers)
    assert sum(found.values()) <= 2 * 48 + 2 * 4 * early


def test_who_waits_gets_what_another_gives_back(server) -> None:
    """Both have one range; the one that is done waits for the other, which ends without it."""
    build = builder([(0, 4), (4, 8)], pairs)
    slow = Worker(server.target, build, stop=1)
    slow.may_step = threading.Semaphore(1)
    slow.start()
    quick = Worker(server.target, build, is_chief=False)
    quick.start()
    slow.ends()
    assert sorted(quick.ends().seen) in ([*range(8)], [4, 5, 6, 7])
    assert set(slow.seen + quick.seen) == set(range(8))


def test_replicas_in_step_do_not_wait_for_each_other(server) -> None:
    """One has no range left while the other, whose steps need its gradients, still has some."""

    def optimizer(inner):
        return tf.train.SyncReplicasOptimizer(inner, 2, 2)

    build = builder([(0, 2), (2, 20), (20, 22)], pairs)
    workers = [Worker(server.target, build, i == 0, optimizer=optimizer) for i in range(2)]
    for worker in workers:
        worker.start()
    found = sorted(i for worker in workers for i in worker.ends().seen)
    assert found == [*range(22)]


def test_workers_that_disagree_are_told(server) -> None:
    one = Worker(server.target, builder([(0, 4)]))
    one.may_step = threading.Semaphore(1)
    one.start()
    other = Worker(server.target, builder([(0, 4), (4, 8)]), is_chief=False)
    other.start()
    with pytest.raises(InvalidArgumentError, match="Workers disagree on the input"):
        other.ends()
    one.may_step.release(10)
    assert one.ends().seen == [0, 1, 2, 3]


# -- checkpoints -------------------------------------------------------------------------------


def test_what_is_done_stays_done(tmp_path) -> None:
    build = builder([(4 * i, 4 * i + 4) for i in range(4)], pairs, num_epochs=2, shuffle_seed=3)
    options = {"checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 100}
    first = train(build, stop=5, **options)  # two ranges, and half of the third
    second = train(build, **options)
    assert len(first) == 10
    assert Counter(first[:8] + second) == Counter([*range(16)] * 2)
    assert train(build, **options) == []  # all is done, says the checkpoint
    state = tf.train.load_variable(str(tmp_path), "input_dispenser/state")
    assert state.tolist()[3:] == [8]

    # One epoch more is one; other ranges are an error.
    more = builder([(4 * i, 4 * i + 4) for i in range(4)], pairs, num_epochs=3, shuffle_seed=3)
    assert sorted(train(more, **options)) == [*range(16)]
    with pytest.raises(InvalidArgumentError, match="one of 4 other ranges"):
        train(builder([(0, 4)], pairs), **options)
    with pytest.raises(NotFoundError, match="renamed/state"):
        train(builder([(0, 4)], name="renamed"), **options)


def test_a_restored_state_takes_from_those_that_are_there(server) -> None:
    """The chief restores while another trains on: what that one has had counts no more."""
    build = builder([(2 * i, 2 * i + 2) for i in range(4)], pairs)
    worker = Worker(server.target, build)
    worker.may_step = threading.Semaphore(2)
    worker.start()
    with tf.Graph().as_default():
        dispenser, _ = build()
        [saveable] = tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)
        with tf.Session(server.target) as sess:
            while worker.steps < 2:
                worker.join(0.01)
            sess.run(dispenser.initializer)
            assert sess.run(saveable.specs[0].tensor).tolist()[3] <= 2
    worker.may_step.release(100)
    worker.ends()
    assert set(worker.seen[2 * 2 :]) >= set(range(8))


# -- the books of a process --------------------------------------------------------------------


class _Part:
    def __init__(self):
        self.finished: list[int] = []

    def done(self, deal):
        self.finished.append(deal)


def test_a_range_is_done_when_steps_have_seen_all_of_it() -> None:
    """In a random order of what is read, comes through, is taken and seen, with drops."""
    for seed in range(300):
        choose = random.Random(seed)
        ledger, part = Ledger(), _Part()
        sizes = [choose.choice([0, 1, 2, 5]) for _ in range(6)]
        tickets = [ledger.begin(part, deal) for deal in range(6)]
        elements = [t for t, size in zip(tickets, sizes, strict=True) for _ in range(size)]
        choose.shuffle(elements)
        kept = [e for e in elements if choose.random() < 0.8]
        stepped: Counter[int] = Counter()
        for ticket, size in zip(tickets, sizes, strict=True):
            ledger.made(ticket, size)
        for element in kept:
            ledger.passed([element])
            ledger.taken([element])
            assert all(sizes[deal] == stepped[tickets[deal]] for deal in part.finished)
            ledger.stepped()
            stepped[element] += 1
            assert all(sizes[deal] == stepped[tickets[deal]] for deal in part.finished)
        ledger.flushed(part)
        assert sorted(part.finished) == [*range(6)]
