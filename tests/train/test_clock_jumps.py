"""A wall clock that is set while a program trains changes nothing but the dates in its files."""

import time

import pytest

import headrace as tf


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_hook_is_due_by_the_time_that_has_passed(monkeypatch, jump):
    passed = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    timer = tf.train.SecondOrStepTimer(every_secs=10.0)
    timer.update_last_triggered_step(1)
    wall = time.time()
    monkeypatch.setattr(time, "time", lambda: wall + jump)
    passed[0] += 9.0
    assert not timer.should_trigger_for_step(2)
    passed[0] += 2.0
    assert timer.should_trigger_for_step(3)
    assert timer.update_last_triggered_step(3) == (11.0, 2)


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_checkpoint_is_saved_and_found_after_a_jump(monkeypatch, tmp_path, jump):
    step = tf.train.get_or_create_global_step()
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=0.5)
    wall = time.time()
    with tf.Session() as session:
        session.run(step.initializer)
        saver.save(session, str(tmp_path / "model"), global_step=1)
        monkeypatch.setattr(time, "time", lambda: wall + jump)
        second = saver.save(session, str(tmp_path / "model"), global_step=2)
        assert tf.train.latest_checkpoint(str(tmp_path)) == second
        saver.restore(session, second)
