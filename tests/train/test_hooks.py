"""The hooks of tf.train, one by one."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

import headrace as tf


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="tensorflow")
    return caplog


@pytest.fixture(autouse=True)
def _own_writers():
    yield
    tf.summary.FileWriterCache.clear()


def _train(steps: int, *hooks, fetch=None, increment: int = 1):
    """Run steps with hooks; the global step grows by ``increment`` in each."""
    count = tf.train.get_or_create_global_step().assign_add(increment)
    if fetch is None:
        fetch = count
    with tf.train.SingularMonitoredSession(hooks=list(hooks)) as session:
        done = 0
        while done < steps and not session.should_stop():
            session.run([fetch, count])
            done += 1
    return done


def _events(directory: Path) -> list:
    (path,) = directory.glob("events.*")
    return list(tf.train.summary_iterator(str(path)))


def _values(directory: Path, tag: str) -> list[tuple[int, float]]:
    return [
        (event.step, value.simple_value)
        for event in _events(directory)
        for value in event.summary.value
        if value.tag == tag
    ]


def test_stop_at_step() -> None:
    assert _train(99, tf.train.StopAtStepHook(num_steps=3)) == 3
    assert _train(99, tf.train.StopAtStepHook(last_step=7), increment=2) == 4
    for wrong in ({}, {"num_steps": 1, "last_step": 1}):
        with pytest.raises(ValueError, match="num_steps or last_step"):
            tf.train.StopAtStepHook(**wrong)
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="Global step"):
        tf.train.StopAtStepHook(1).begin()


def test_tensors_are_logged(log: pytest.LogCaptureFixture) -> None:
    value = tf.Variable(0, trainable=False, name="value").assign_add(2)
    _train(
        5,
        tf.train.LoggingTensorHook([value.op.outputs[0]] if False else {"v": value}, 2),
        fetch=value,
    )
    lines = [r.message for r in log.records if r.message.startswith("v = ")]
    assert lines[0] == "v = 2"
    assert [line.split(" (")[0] for line in lines] == ["v = 2", "v = 6", "v = 10"]
    assert lines[1].endswith(" sec)")


def test_tensors_are_logged_by_name_and_at_the_end(log: pytest.LogCaptureFixture) -> None:
    tf.constant([1.0, 2.0], name="pair")
    _train(2, tf.train.LoggingTensorHook(["pair:0"], at_end=True))
    _train(1, tf.train.LoggingTensorHook(["pair:0"], 1, formatter=lambda v: f"own {sorted(v)}"))
    texts = [r.message for r in log.records if "pair" in r.message]
    assert texts == ["pair:0 = [1. 2.]", "own ['pair:0']"]


def test_logging_arguments() -> None:
    for wrong in ({}, {"every_n_iter": 1, "every_n_secs": 1}):
        with pytest.raises(ValueError, match="exactly one of"):
            tf.train.LoggingTensorHook(["x"], **wrong)
    with pytest.raises(ValueError, match="invalid every_n_iter=0"):
        tf.train.LoggingTensorHook(["x"], every_n_iter=0)


def test_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(tf.train.SecondOrStepTimer, "clock", staticmethod(lambda: now[0]))
    timer = tf.train.SecondOrStepTimer(every_secs=5)
    assert timer.should_trigger_for_step(1)
    assert timer.update_last_triggered_step(1) == (None, None)
    now[0] += 4.9
    assert not timer.should_trigger_for_step(2)
    now[0] += 0.1
    assert timer.should_trigger_for_step(2)
    assert not timer.should_trigger_for_step(1)
    assert timer.update_last_triggered_step(3) == (pytest.approx(5.0), 2)
    assert timer.last_triggered_step() == 3
    steps = tf.train.SecondOrStepTimer(every_steps=3)
    steps.update_last_triggered_step(10)
    assert [s for s in range(10, 15) if steps.should_trigger_for_step(s)] == [13, 14]
    steps.reset()
    assert steps.should_trigger_for_step(10)
    with pytest.raises(ValueError, match="Either every_secs"):
        tf.train.SecondOrStepTimer()


def test_steps_per_second(monkeypatch: pytest.MonkeyPatch, log, tmp_path: Path) -> None:
    now = iter(range(0, 1000, 2))
    monkeypatch.setattr(tf.train.SecondOrStepTimer, "clock", staticmethod(lambda: next(now)))
    _train(7, tf.train.StepCounterHook(every_n_steps=3, output_dir=str(tmp_path)))
    tf.summary.FileWriterCache.clear()
    assert _values(tmp_path, "global_step/sec") == [(4, 1.5), (7, 1.5)]
    assert "global_step/sec: 1.5" in log.messages


def test_checkpoints(tmp_path: Path) -> None:
    calls: list = []

    class Listener(tf.train.CheckpointSaverListener):
        def begin(self) -> None:
            calls.append("begin")

        def before_save(self, session, global_step_value) -> None:
            calls.append(("before", global_step_value))

        def after_save(self, session, global_step_value):
            calls.append(("after", global_step_value))
            return global_step_value >= 4

        def end(self, session, global_step_value) -> None:
            calls.append(("end", global_step_value))

    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2, listeners=[Listener()])
    tf.train.get_or_create_global_step()
    tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver(max_to_keep=9))
    assert _train(99, hook) == 4
    assert calls == [
        "begin",
        ("before", 0),
        ("after", 0),
        ("before", 2),
        ("after", 2),
        ("before", 4),
        ("after", 4),
        ("end", 4),
    ]
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-4")
    assert (tmp_path / "graph.pbtxt").exists()
    tf.summary.FileWriterCache.clear()
    events = _events(tmp_path)
    assert [e.step for e in events if e.session_log.status == tf.SessionLog.CHECKPOINT] == [0, 2, 4]
    assert any(e.graph_def for e in events)


def test_the_last_step_is_saved(tmp_path: Path) -> None:
    tf.train.get_or_create_global_step()
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=100, saver=tf.train.Saver())
    _train(3, hook)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-3")


def test_a_checkpoint_hook_needs_one_saver(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both saver and scaffold"):
        tf.train.CheckpointSaverHook("x", 1, saver=object(), scaffold=object())
    tf.train.get_or_create_global_step()
    hook = tf.train.CheckpointSaverHook(str(tmp_path), 1)
    with pytest.raises(RuntimeError, match="No items in collection savers"):
        hook._get_saver()


def test_summaries(tmp_path: Path) -> None:
    step = tf.train.get_or_create_global_step()
    summary = tf.summary.scalar("twice", 2 * step)
    hook = tf.train.SummarySaverHook(save_steps=2, output_dir=str(tmp_path), summary_op=summary)
    _train(5, hook)
    tf.summary.FileWriterCache.clear()
    assert [s for s, _ in _values(tmp_path, "twice")] == [1, 3, 5]
    logs = [e for e in _events(tmp_path) if e.HasField("session_log")]
    assert logs[0].session_log.status == tf.SessionLog.START
    with pytest.raises(ValueError, match="Exactly one of scaffold or summary_op"):
        tf.train.SummarySaverHook(save_steps=1)


def test_nan(log: pytest.LogCaptureFixture) -> None:
    loss = tf.placeholder_with_default(np.float32(np.nan), [])
    with pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN loss during training"):
        _train(3, tf.train.NanTensorHook(loss))
    assert _train(3, tf.train.NanTensorHook(loss, fail_on_nan_loss=False)) == 1
    assert log.messages.count("Model diverged with loss = NaN.") == 2
    assert _train(3, tf.train.NanTensorHook(tf.constant(1.0))) == 3


def test_waiting_for_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    step = tf.train.get_or_create_global_step()
    add = step.assign_add(5)
    session = tf.Session()
    waits = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        session.run(add)

    monkeypatch.setattr(tf.train.GlobalStepWaiterHook, "sleep", staticmethod(sleep))
    hook = tf.train.GlobalStepWaiterHook(12)
    hook.begin()
    session.run(step.initializer)
    context = tf.train.SessionRunContext(tf.train.SessionRunArgs(None), session)
    assert hook.before_run(context) is None
    assert waits == [0.5] * 3
    hook.before_run(context)
    assert len(waits) == 3


def test_final_ops() -> None:
    x = tf.placeholder(tf.float32, [])
    hook = tf.train.FinalOpsHook({"double": 2 * x}, {x: 4.0})
    assert hook.final_ops_values is None
    _train(1, hook)
    assert hook.final_ops_values == {"double": 8.0}


def test_feeding_by_a_function() -> None:
    x = tf.placeholder(tf.float32, [])
    values = iter([1.0, 2.0])
    total = tf.Variable(0.0).assign_add(x)
    _train(2, tf.train.FeedFnHook(lambda: {x: next(values)}), fetch=total)
    assert list(values) == []


def test_profiles(tmp_path: Path) -> None:
    product = tf.multiply(tf.placeholder_with_default(2.0, []), 3.0, name="product")
    hook = tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path / "new"))
    _train(5, hook, fetch=product)
    files = sorted(p.name for p in (tmp_path / "new").iterdir())
    assert files == ["timeline-2.json", "timeline-4.json"]
    trace = json.loads((tmp_path / "new" / files[0]).read_text())
    assert "product" in json.dumps(trace)


def test_training_with_everything(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    """The loop of the era: it learns, and goes on where it was."""
    for last in (30, 60):
        with tf.Graph().as_default():
            x = tf.constant(np.linspace(-1, 1, 20, dtype=np.float32)[:, None])
            w = tf.get_variable("w", [1, 1], initializer=tf.zeros_initializer())
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 3 * x))
            tf.summary.scalar("loss", loss)
            step = tf.train.get_or_create_global_step()
            train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step)
            hooks = [tf.train.StopAtStepHook(last_step=last), tf.train.NanTensorHook(loss)]
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path),
                hooks=hooks,
                save_summaries_steps=10,
                save_checkpoint_steps=20,
                log_step_count_steps=10,
            ) as session:
                first = session.run(step)
                while not session.should_stop():
                    session.run(train)
            assert first == last - 30
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path)))
    np.testing.assert_allclose(reader.get_tensor("w"), [[3.0]], atol=1e-3)
    assert reader.get_tensor("global_step") == 60
    tf.summary.FileWriterCache.clear()
    files = sorted(tmp_path.glob("events.*"))
    steps = [
        e.step
        for f in files
        for e in tf.train.summary_iterator(str(f))
        for v in e.summary.value
        if v.tag == "loss"
    ]
    assert steps == [0, 10, 20, 30, 30, 40, 50, 60]
