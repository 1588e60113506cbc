"""Threads of pipelines: bounded buffers, clean ends, errors, sessions that close meanwhile."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as tf

Dataset = tf.data.Dataset


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


class Pulled:
    """A generator that counts what has been pulled out of it."""

    def __init__(self, most=10**9):
        self.count, self.most = 0, most
        self.changed = threading.Condition()

    def __call__(self):
        while self.count < self.most:
            with self.changed:
                self.count += 1
                self.changed.notify_all()
            yield self.count - 1

    def wait_for(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: self.count >= count, timeout=20)


#: A pipeline, what it pulls ahead in the end, and the most that is under way beside that.
PIPELINES = {
    "prefetch": (lambda d: d.prefetch(4), 4, 1),
    "two in a row": (lambda d: d.prefetch(2).prefetch(3), 2 + 3, 2),
    "parallel map": (lambda d: d.map(lambda x: x + 0, 3).prefetch(2), 2 + 2, 2),
    "batches": (lambda d: d.batch(2).prefetch(2), 2 * 2, 2),
    "shuffle": (lambda d: d.shuffle(5).prefetch(1), 4 + 1, 2),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_slow_consumer_bounds_what_is_pulled(name):
    """After ``n`` elements are taken, no more is pulled than they and what the buffers hold."""
    build, ahead, more = PIPELINES[name]
    pulled = Pulled()
    size = 2 if name == "batches" else 1
    dataset = build(Dataset.from_generator(pulled, tf.int64, []))
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        for taken in range(1, 20):
            session.run(following)
            assert pulled.count <= taken * size + ahead + more
        pulled.wait_for(19 * size + ahead)  # it works ahead, too
    assert pulled.count <= 19 * size + ahead + more
    assert not threads()


def test_an_automatic_buffer_is_bounded():
    pulled = Pulled()
    dataset = Dataset.from_generator(pulled, tf.int64, []).prefetch(tf.data.experimental.AUTOTUNE)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        for taken in range(1, 50):
            session.run(following)
            assert pulled.count <= taken + 16 + 1


@pytest.mark.parametrize("calls", [None, 3])
def test_an_exception_in_a_worker_thread_reaches_the_step_and_the_rest_comes(calls):
    numbers = np.array([1, 0, 2, 0, 4], np.int32)
    dataset = Dataset.from_tensor_slices(numbers).map(lambda x: tf.floordiv(4, x), calls)
    following = tf.data.make_one_shot_iterator(dataset.prefetch(2)).get_next()
    found = []
    with tf.Session() as session:
        for _ in numbers:
            try:
                found.append(int(session.run(following)))
            except tf.errors.InvalidArgumentError as error:
                found.append(error.message)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(following)
    assert found == [4, "Integer division by zero", 2, "Integer division by zero", 1]
    assert not threads()


def test_a_session_that_closes_ends_who_waits_for_an_element():
    release, waits = threading.Event(), threading.Event()

    def numbers():
        yield 1
        waits.set()
        release.wait(20)
        yield 2

    dataset = Dataset.from_generator(numbers, tf.int64, []).prefetch(1)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    session = tf.Session()
    session.run(following)
    found = []

    def wait():
        try:
            found.append(session.run(following))
        except Exception as error:
            found.append(type(error))

    consumer = threading.Thread(target=wait)
    consumer.start()
    assert waits.wait(20)
    closer = threading.Thread(target=session.close)
    closer.start()
    release.set()
    closer.join(20)
    consumer.join(20)
    assert not closer.is_alive()
    assert not consumer.is_alive()
    assert found in ([tf.errors.CancelledError], [2], [RuntimeError])
    assert not threads()


@pytest.mark.parametrize("taken", [0, 1, 7])
def test_a_session_that_closes_in_the_middle_leaves_nothing(taken):
    pulled = Pulled()
    dataset = Dataset.from_generator(pulled, tf.int64, []).map(lambda x: x * 2, 2).prefetch(3)
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    session = tf.Session()
    session.run(iterator.initializer)
    for _ in range(taken):
        session.run(following)
    session.close()
    assert not threads()
    before = pulled.count
    with tf.Session() as other:
        other.run(iterator.initializer)
        other.run(following)
    assert pulled.count > before


def test_the_end_leaves_no_thread_while_the_session_is_open():
    dataset = Dataset.range(5).map(lambda x: x + 1, 2).prefetch(2)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        assert [int(session.run(following)) for _ in range(5)] == [1, 2, 3, 4, 5]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(following)
        assert not threads()


def test_two_threads_of_a_session_share_an_iteration():
    following = tf.data.make_one_shot_iterator(Dataset.range(200).prefetch(3)).get_next()
    found, lock = [], threading.Lock()
    with tf.Session() as session:

        def take():
            try:
                while True:
                    element = int(session.run(following))
                    with lock:
                        found.append(element)
            except tf.errors.OutOfRangeError:
                pass

        consumers = [threading.Thread(target=take) for _ in range(3)]
        for consumer in consumers:
            consumer.start()
        for consumer in consumers:
            consumer.join(20)
    assert sorted(found) == list(range(200))
    assert not threads()


def test_two_sessions_with_one_iterator_go_their_own_ways():
    iterator = tf.data.make_initializable_iterator(Dataset.range(9).prefetch(2))
    following = iterator.get_next()
    with tf.Session() as one, tf.Session() as two:
        one.run(iterator.initializer)
        assert [int(one.run(following)) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(tf.errors.FailedPreconditionError):
            two.run(following)
        two.run(iterator.initializer)
        assert int(two.run(following)) == 0
        assert int(one.run(following)) == 3
        one.close()
        assert int(two.run(following)) == 1


@pytest.mark.slow
def test_two_sessions_of_a_server_share_a_named_iterator():
    server = tf.train.Server.create_local_server()
    iterator = tf.data.make_initializable_iterator(Dataset.range(9), shared_name="shared")
    following = iterator.get_next()
    with tf.Session(server.target) as one, tf.Session(server.target) as two:
        one.run(iterator.initializer)
        assert [int(s.run(following)) for s in (one, two, one)] == [0, 1, 2]
