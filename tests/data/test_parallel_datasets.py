"""Parallel maps and interleaves: how many calls there are, their order, their threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as tf
from headrace.ops.data import tuning

Dataset = tf.data.Dataset
AUTOTUNE = tf.data.experimental.AUTOTUNE
OUT_OF_ORDER = tf.data.Options()
OUT_OF_ORDER.experimental_deterministic = False


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def threads():
    return {
        thread
        for thread in threading.enumerate()
        if thread.name.startswith(("headrace-prefetch", "headrace-map"))
    }


def elements(dataset, most=10**9):
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    found = []
    with tf.Session() as session:
        session.run(iterator.initializer)
        while len(found) < most:
            try:
                found.append(int(session.run(following)))
            except tf.errors.OutOfRangeError:
                break
    return found


class Machine:
    """A clock, and a pipeline of which each call takes a second and ``useful`` run at a time.

    Args:
        needs: seconds that the consumer needs for each element.
    """

    def __init__(self, useful, needs=0.0):
        self.now, self.useful, self.needs = 0.0, useful, needs

    def run(self, tuner, elements):
        for _ in range(elements):
            takes = 1.0 / min(tuner.count, self.useful)
            self.now += max(takes, self.needs)
            tuner.came(max(takes - self.needs, 0.0))
        return tuner.count


@pytest.mark.parametrize(
    ("useful", "needs", "expected"),
    [(8, 0.0, 8), (4, 0.0, 4), (2, 0.0, 2), (1, 0.0, 2), (16, 0.0, 16), (16, 0.25, 4), (16, 9, 2)],
)
def test_the_number_of_calls_climbs_as_long_as_that_brings_elements_faster(
    useful, needs, expected, monkeypatch
):
    machine = Machine(useful, needs)
    monkeypatch.setattr(tuning, "clock", lambda: machine.now)
    tuner = tuning.Tuner(most=16)
    assert machine.run(tuner, 32 * 8) == expected


def test_the_number_of_calls_climbs_again_when_that_brings_something_later(monkeypatch):
    machine = Machine(useful=2)
    monkeypatch.setattr(tuning, "clock", lambda: machine.now)
    tuner = tuning.Tuner(most=16)
    assert machine.run(tuner, 32 * 4) == 2
    machine.useful = 8
    assert machine.run(tuner, 32 * 40) == 8


def test_a_map_takes_as_many_threads_as_its_tuner_says(monkeypatch):
    """No call of a map begins beyond the number of calls."""
    monkeypatch.setattr(tuning.Tuner, "_decide", lambda self, seconds: None)
    lock, under_way, most = threading.Lock(), [0], [0]
    both = threading.Barrier(2, timeout=20)

    def noted(x):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        both.wait()  # two at a time, so that they meet
        with lock:
            under_way[0] -= 1
        return x

    dataset = Dataset.range(40).map(lambda x: tf.py_func(noted, [x], tf.int64), AUTOTUNE)
    assert elements(dataset) == list(range(40))
    assert most[0] == 2


def plain_interleave(lists, cycle, block):
    lists = [list(x) for x in lists]
    slots = [None] * cycle
    found, at = [], 0
    while lists or any(s is not None for s in slots):
        if slots[at] is None and lists:
            slots[at] = lists.pop(0)
        if slots[at] is not None:
            part, slots[at] = slots[at][:block], slots[at][block:]
            found += part
            if len(part) < block:
                slots[at] = None
        at = (at + 1) % cycle
    return found


@pytest.mark.parametrize("calls", [None, 1, 2, 8, AUTOTUNE])
@pytest.mark.parametrize(("cycle", "block"), [(1, 1), (2, 1), (3, 2), (8, 4)])
def test_an_interleave_keeps_its_order_with_any_number_of_calls(cycle, block, calls):
    def numbers(n):
        return Dataset.range(n * 10, n * 10 + n)

    expected = plain_interleave([range(n * 10, n * 11) for n in range(7)], cycle, block)
    before = threads()
    dataset = Dataset.range(7).interleave(numbers, cycle, block, calls)
    assert elements(dataset) == expected
    assert elements(dataset, most=5) == expected[:5]
    assert threads() <= before


def test_open_datasets_work_at_the_same_time():
    """Three of them, each with one element, can only end together."""
    together = threading.Barrier(3, timeout=20)

    def one(x):
        def meet(v):
            if v >= 10:
                together.wait()
            return v

        return Dataset.range(x, x + 20, 10).map(lambda y: tf.py_func(meet, [y], tf.int64))

    found = elements(Dataset.range(3).interleave(one, 3, 1, num_parallel_calls=3))
    assert found == [0, 1, 2, 10, 11, 12]


def held_back(event):
    """A function that keeps element 0 until the event is set."""

    def function(x):
        if x == 0:
            assert event.wait(timeout=20)
        return x

    return lambda x: tf.py_func(function, [x], tf.int64)


def first_and_rest(dataset, event):
    """The first element, which comes although element 0 is held back, and the others."""
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.Session() as session:
        first = int(session.run(following))
        event.set()
        while True:
            try:
                found.append(int(session.run(following)))
            except tf.errors.OutOfRangeError:
                return first, sorted(found)


def test_a_map_that_may_reorder_gives_what_is_done_first():
    event = threading.Event()
    dataset = Dataset.range(8).map(held_back(event), 2).with_options(OUT_OF_ORDER)
    assert first_and_rest(dataset, event) == (1, [0, 2, 3, 4, 5, 6, 7])


@pytest.mark.parametrize("how", ["options", "parallel_interleave", "sloppy_interleave"])
def test_an_interleave_that_may_reorder_passes_over_a_slow_dataset(how):
    event = threading.Event()

    def one(x):
        return Dataset.range(x, 8, 2).map(held_back(event))

    base = Dataset.range(2)
    dataset = {
        "options": lambda: base.interleave(one, 2, 1, 2).with_options(OUT_OF_ORDER),
        "parallel_interleave": lambda: base.apply(
            tf.data.experimental.parallel_interleave(one, 2, sloppy=True)
        ),
        "sloppy_interleave": lambda: base.apply(tf.contrib.data.sloppy_interleave(one, 2)),
    }[how]()
    assert first_and_rest(dataset, event) == (1, [0, 2, 3, 4, 5, 6, 7])


def test_an_error_in_an_open_dataset_comes_at_its_turn_and_the_rest_goes_on():
    def one(x):
        return Dataset.range(2).map(lambda y: tf.floordiv(10, x * 2 + y - 3))

    iterator = Dataset.range(3).interleave(one, 3, 1, 2).make_one_shot_iterator()
    following = iterator.get_next()
    found = []
    with tf.Session() as session:
        for _ in range(6):
            try:
                found.append(int(session.run(following)))
            except tf.errors.InvalidArgumentError as error:
                found.append(error.stages[0].split(" of ")[0].strip())
    expected = [10 // d if d else "At element 1" for d in (-3, -1, 1, -2, 0, 2)]
    assert found == expected


@pytest.mark.parametrize("taken", [0, 1, 4, 9])
@pytest.mark.parametrize("is_free", [False, True])
def test_saved_and_restored_they_go_on(taken, is_free):
    """In order with the same elements; else with all that had not come."""
    dataset = Dataset.range(4).interleave(lambda n: Dataset.range(n * 10, n * 10 + 4), 3, 2, 3)
    dataset = dataset.map(lambda x: x + 1, AUTOTUNE)
    if is_free:
        dataset = dataset.with_options(OUT_OF_ORDER)
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    state = tf.raw_ops.IteratorState(iterator._iterator_resource)
    saved = tf.placeholder(tf.string, [])
    restore = tf.raw_ops.RestoreIteratorState(iterator._iterator_resource, saved)
    every = sorted(n * 10 + i + 1 for n in range(4) for i in range(4))

    def rest(session):
        found = []
        while True:
            try:
                found.append(int(session.run(following)))
            except tf.errors.OutOfRangeError:
                return found

    with tf.Session() as session:
        session.run(iterator.initializer)
        first = [int(session.run(following)) for _ in range(taken)]
        where = session.run(state)
        second = rest(session)
        session.run(iterator.initializer)
        session.run(restore, {saved: where})
        third = rest(session)
    assert sorted(first + second) == sorted(first + third) == every
    if not is_free:
        assert second == third


def test_what_a_consumer_does_not_take_is_not_computed():
    """Back-pressure: each open dataset has a block and one element more under way."""
    lock, pulled = threading.Lock(), []

    def noted(x):
        with lock:
            pulled.append(x)
        return x

    def one(n):
        numbers = Dataset.range(n * 100, n * 100 + 100)
        return numbers.map(lambda x: tf.py_func(noted, [x], tf.int64))

    iterator = Dataset.range(3).interleave(one, 3, 2, 3).make_one_shot_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        found = [int(session.run(following)) for _ in range(6)]
    assert found == [0, 1, 100, 101, 200, 201]
    assert len(pulled) <= 6 + 3 * (2 + 1)
    assert np.all(np.asarray(pulled) % 100 < 6)
