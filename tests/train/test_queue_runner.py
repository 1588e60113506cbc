"""QueueRunner: threads that fill queues, their end and their errors."""

from __future__ import annotations

import pytest

import headrace as tf


def _counted(limit: int) -> tf.Tensor:
    counter = tf.Variable(0, name="counter")
    return counter.count_up_to(limit)


def _run(session, runner, coord=None) -> list:
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    return runner.create_threads(session, coord=coord, start=True)


def test_the_queue_closes_when_the_input_ends() -> None:
    queue = tf.FIFOQueue(10, tf.int32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(_counted(4))])
    taken = queue.dequeue()
    with tf.Session() as session:
        for thread in _run(session, runner):
            thread.join()
        assert [session.run(taken) for _ in range(4)] == [0, 1, 2, 3]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(taken)
    assert runner.exceptions_raised == []


def test_the_last_of_several_threads_closes_the_queue() -> None:
    queue = tf.FIFOQueue(50, tf.int32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(_counted(40))] * 3)
    with tf.Session() as session:
        threads = _run(session, runner)
        assert len(threads) == 3
        for thread in threads:
            thread.join()
        size = session.run(queue.size())
        assert size == 40
        assert session.run(queue.is_closed())


def test_a_coordinator_stops_threads_that_wait() -> None:
    queue = tf.FIFOQueue(2, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)])
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = _run(session, runner, coord)
        assert len(threads) == 2  # one of them waits for the stop
        for _ in range(5):
            assert session.run(queue.dequeue()) == 1.0
        coord.request_stop()
        coord.join()
        assert not any(t.is_alive() for t in threads)
        assert session.run(queue.is_closed())


def test_errors_go_to_the_coordinator() -> None:
    queue = tf.FIFOQueue(5, tf.float32)
    fed = tf.placeholder(tf.float32, [])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(fed)])
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        _run(session, runner, coord)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value"):
            coord.join()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_errors_without_a_coordinator_are_kept() -> None:
    queue = tf.FIFOQueue(5, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.placeholder(tf.float32, []))])
    with tf.Session() as session:
        for thread in _run(session, runner):
            thread.join()
    assert [type(e) for e in runner.exceptions_raised] == [tf.errors.InvalidArgumentError]


def test_other_errors_may_mean_the_end() -> None:
    first, second = tf.FIFOQueue(5, tf.float32), tf.FIFOQueue(5, tf.float32)
    ends = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
    runner = tf.train.QueueRunner(second, [first.enqueue(1.0)], queue_closed_exception_types=ends)
    with tf.Session() as session:
        session.run(first.close())
        for thread in _run(session, runner):
            thread.join()
        assert session.run(second.is_closed())
    assert runner.queue_closed_exception_types == ends


def test_threads_are_made_once_for_each_session() -> None:
    queue = tf.FIFOQueue(1, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)])
    with tf.Session() as session, tf.Session() as other:
        coord = tf.train.Coordinator()
        assert len(runner.create_threads(session, coord, start=True)) == 2
        assert runner.create_threads(session, coord, start=True) == []
        assert len(runner.create_threads(other, coord, start=True)) == 2
        coord.request_stop()
        coord.join()
        assert len(runner.create_threads(session, coord)) == 2


def test_start_queue_runners_wants_a_session() -> None:
    queue = tf.FIFOQueue(2, tf.float32)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1.0)]))
    with pytest.raises(ValueError, match="No default session"):
        tf.train.start_queue_runners()
    with pytest.raises(TypeError, match=r"must be a .tf.Session"):
        tf.train.start_queue_runners("session")
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(coord=coord, start=False)
        assert len(threads) == 2
        assert not any(t.is_alive() for t in threads)
        assert all(t.daemon for t in threads)
        assert session.run(queue.size()) == 0


def test_missing_and_wrong_arguments() -> None:
    queue = tf.FIFOQueue(2, tf.float32)
    with pytest.raises(ValueError, match="Must provide queue and enqueue_ops"):
        tf.train.QueueRunner(queue)
    with pytest.raises(TypeError, match="queue_closed_exception_types"):
        tf.train.QueueRunner(
            queue, [queue.enqueue(1.0)], queue_closed_exception_types=(ValueError,)
        )


def test_a_runner_as_a_message() -> None:
    with tf.name_scope("scope"):
        queue = tf.FIFOQueue(2, tf.float32, name="queue")
        runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2)
    message = runner.to_proto()
    assert message.queue_name == "scope/queue"
    assert list(message.enqueue_op_name) == ["scope/queue_enqueue"] * 2
    assert runner.to_proto(export_scope="other") is None
    assert runner.to_proto(export_scope="scope").queue_name == "queue"
    again = tf.train.queue_runner.QueueRunner.from_proto(message)
    assert again.name == "scope/queue"
    assert again.enqueue_ops == runner.enqueue_ops
    assert again.cancel_op is runner.cancel_op
    assert again.queue_closed_exception_types == (tf.errors.OutOfRangeError,)
    with pytest.raises(ValueError, match="mutually exclusive"):
        tf.train.QueueRunner(queue, [queue.enqueue(1.0)], queue_runner_def=message)


def test_meta_graphs_carry_queue_runners() -> None:
    queue = tf.FIFOQueue(10, tf.int32, name="queue")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(_counted(3))]))
    queue.dequeue(name="take")
    message = tf.train.export_meta_graph()
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.train.import_meta_graph(message, import_scope="new")
        session.run(tf.global_variables_initializer())
        for thread in tf.train.start_queue_runners(session):
            thread.join()
        take = graph.get_tensor_by_name("new/take:0")
        assert [session.run(take) for _ in range(3)] == [0, 1, 2]
