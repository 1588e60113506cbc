"""A timeout for all steps of a session."""

import pytest

import headrace as tf


def test_a_step_that_waits_for_ever_ends_at_the_timeout_of_the_session():
    queue = tf.FIFOQueue(1, tf.float32, shapes=[()])
    config = tf.ConfigProto(operation_timeout_in_ms=20)
    with tf.Session(config=config) as session:
        with pytest.raises(tf.errors.DeadlineExceededError, match="Timed out waiting for notif"):
            session.run(queue.dequeue())
        with pytest.raises(tf.errors.DeadlineExceededError):  # options without a timeout
            session.run(queue.dequeue(), options=tf.RunOptions(), run_metadata=tf.RunMetadata())
        session.run(queue.enqueue(3.0))
        assert session.run(queue.dequeue(), options=tf.RunOptions(timeout_in_ms=60000)) == 3.0


def test_partial_options_keep_what_they_say():
    config = tf.ConfigProto(operation_timeout_in_ms=60000)
    metadata = tf.RunMetadata()
    with tf.Session(config=config) as session:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert (
            session.run(
                tf.placeholder_with_default(2, []) + 1, options=options, run_metadata=metadata
            )
            == 3
        )
    assert metadata.step_stats.dev_stats
    assert options.timeout_in_ms == 0
