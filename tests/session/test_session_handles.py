"""Tensors that stay in the session between steps."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import headrace as tf


def test_a_tensor_stays_for_later_steps() -> None:
    x = tf.placeholder(tf.float32, [2])
    keep = tf.get_session_handle(x * 3)
    with tf.Session() as session:
        kept, other = session.run([keep, tf.constant(1)], {x: [1, 2]})
        assert other == 1
        np.testing.assert_array_equal(kept.eval(), [3, 6])
        holder, value = tf.get_session_tensor(kept.handle, tf.float32)
        total = value + 1
        np.testing.assert_array_equal(session.run(total, {holder: kept.handle}), [4, 7])
        np.testing.assert_array_equal(session.run(total, {holder: kept}), [4, 7])
        np.testing.assert_array_equal(session.run(x + 1, {x: kept}), [4, 7])
        again = session.run(keep, {x: [0, 0]})
        assert str(again) != str(kept)
        np.testing.assert_array_equal(session.run(total, {holder: again.handle}), [1, 1])


def test_deleting() -> None:
    with tf.Session() as session:
        kept = session.run(tf.get_session_handle(tf.constant([5])))
        holder, deleter = tf.delete_session_tensor(kept.handle)
        session.run(deleter, {holder: kept.handle})
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in the session store"):
            kept.eval()
        second = session.run(tf.get_session_handle(tf.constant(5)))
        assert second.eval() == 5
        second.delete()
        holder, value = tf.get_session_tensor(second.handle, tf.int32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in the session store"):
            session.run(value, {holder: second.handle})


def test_what_nobody_has_is_forgotten() -> None:
    with tf.Session() as session:
        keep = tf.get_session_handle(tf.constant(7))
        holder, value = tf.get_session_tensor("", tf.int32)
        name = session.run(keep).handle
        gc.collect()
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in the session store"):
            session.run(value, {holder: name})
        name = session.run(keep).get_raw_handle()
        gc.collect()
        assert session.run(value, {holder: name}) == 7


def test_types() -> None:
    with pytest.raises(TypeError, match="must be of type Tensor"):
        tf.get_session_handle(3.0)
    with tf.Session() as session:
        kept = session.run(tf.get_session_handle(tf.constant(1.0)))
        holder, value = tf.get_session_tensor(kept.handle, tf.int32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="is of float32, not int32"):
            session.run(value, {holder: kept.handle})
