"""Checkpoints that are written while training goes on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import headrace as tf
from headrace.graph_files.export_graph import graph_def_for_files, own_operations
from headrace.train import save_ops
from headrace.train.asynchronous_saver import AsynchronousSaver
from headrace.train.restore_check import ancestors
from headrace.train.saver_builder import BaseSaverBuilder

SIZE = 300_000  # large enough to be changed in place


class Disk:
    """What writes checkpoints, and waits when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.reached, self.full = threading.Event(), threading.Event(), False
        self.refused = threading.Event()
        self.go.set()
        self._write = save_ops.write
        monkeypatch.setattr(save_ops, "write", self)

    def __call__(self, *args: Any) -> None:
        self.reached.set()
        assert self.go.wait(60)
        if self.full:
            self.refused.set()
            raise tf.errors.ResourceExhaustedError(None, None, "no room")
        self._write(*args)

    def hold(self) -> None:
        """Writes wait from now on."""
        self.reached.clear()
        self.go.clear()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


class Model:
    """Variables that each step changes, in their ways: they all have the number of the step."""

    def __init__(self) -> None:
        self.step = tf.train.get_or_create_global_step()
        self.large = tf.get_variable("large", initializer=tf.zeros([SIZE]))
        self.rows = tf.get_variable("rows", initializer=tf.zeros([4, SIZE // 4]))
        add = tf.scatter_add(self.rows, [0, 1, 2, 3], tf.ones([4, SIZE // 4]))
        self.train = tf.group(self.step.assign_add(1), self.large.assign_add(tf.ones([SIZE])), add)


def step_of(path: str) -> int:
    """The step that all variables of a checkpoint are of."""
    reader = tf.train.load_checkpoint(path)
    names = ("global_step", "large", "rows")
    (found,) = {float(v) for n in names for v in set(reader.get_tensor(n).reshape(-1).tolist())}
    return int(found)


@pytest.mark.parametrize("sharded", [False, True])
def test_what_is_written_is_what_was_there_when_it_began(
    tmp_path: Path, disk: Disk, sharded: bool
) -> None:
    model = Model()
    background = AsynchronousSaver(tf.train.Saver(sharded=sharded), tf.get_default_graph())
    assert background._write is not None
    assert not any(op.type == "SaveV2" for op in ancestors(background._write))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for begin in (2, 7):
            while session.run(model.step) < begin:
                session.run(model.train)
            disk.hold()
            background.begin(session, str(tmp_path / "m"), global_step=model.step)
            assert disk.reached.wait(60)
            for _ in range(3):
                session.run(model.train)
            assert background.is_under_way
            assert not background.is_done
            assert (tf.train.latest_checkpoint(str(tmp_path)) or "-2")[-2:] == "-2"
            with pytest.raises(RuntimeError, match="under way"):
                background.begin(session, str(tmp_path / "m"))
            disk.go.set()
            path = background.result()
            assert path == tf.train.latest_checkpoint(str(tmp_path)) == f"{tmp_path}/m-{begin}"
            assert step_of(path) == begin
            assert session.run(model.step) == begin + 3
        with pytest.raises(RuntimeError, match="No save"):
            background.result()


def test_graph_files_are_tensorflows(tmp_path: Path) -> None:
    """The operations that hold values are not in them; what remains of them saves as ever."""
    Model()
    AsynchronousSaver(tf.train.Saver(), tf.get_default_graph())
    message = graph_def_for_files(tf.get_default_graph())
    assert own_operations(message) == []
    with tf.Graph().as_default():
        tf.import_graph_def(message, name="")


def test_values_that_are_gone(tmp_path: Path) -> None:
    """As when a task was started again between the two steps."""
    model = Model()
    background = AsynchronousSaver(tf.train.Saver(), tf.get_default_graph())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(model.train)
        with pytest.raises(tf.errors.AbortedError, match=r"m are not held any more"):
            session.run(background._write, {"save/Const:0": str(tmp_path / "m")})
    assert list(tmp_path.iterdir()) == []


class Seen(tf.train.CheckpointSaverListener):
    """What a listener is told."""

    def __init__(self) -> None:
        self.saved: list[int] = []

    def after_save(self, session: Any, global_step_value: Any) -> None:
        self.saved.append(global_step_value)


class At(tf.train.SessionRunHook):
    """Does something when so many steps have been made."""

    def __init__(self, actions: dict[int, Any]) -> None:
        self.actions, self.steps = actions, 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.steps += 1
        self.actions.get(self.steps, lambda: None)()


def train(directory: Path, last: int, actions: dict[int, Any]) -> tuple[Seen, list[str]]:
    """Train with a checkpoint at each second step; what listeners saw, and what was kept."""
    seen = Seen()
    with tf.Graph().as_default():
        model = Model()
        saving = tf.train.CheckpointSaverHook(
            str(directory),
            save_steps=2,
            scaffold=(scaffold := tf.train.Scaffold()),
            listeners=[seen],
            asynchronous=True,
        )
        hooks = [At(actions), saving, tf.train.StopAtStepHook(last_step=last)]
        creator = tf.train.ChiefSessionCreator(scaffold, checkpoint_dir=str(directory))
        with tf.train.MonitoredSession(creator, hooks) as session:
            while not session.should_stop():
                session.run(model.train)
    state = tf.train.get_checkpoint_state(str(directory))
    for path in state.all_model_checkpoint_paths:
        assert path.endswith(f"-{step_of(path)}")
    return seen, [p.rpartition("-")[2] for p in state.all_model_checkpoint_paths]


def test_training_goes_on_while_a_checkpoint_is_written(tmp_path: Path, disk: Disk) -> None:
    """One that is due meanwhile comes later; the last one is there at the end."""
    seen, kept = train(tmp_path, 12, {1: disk.hold, 7: disk.go.set})
    assert seen.saved[:2] == [0, 2]
    assert seen.saved[-1] == 12
    assert 4 not in seen.saved
    assert 6 not in seen.saved
    assert [int(step) for step in kept] == seen.saved[-5:]


def test_a_full_disk_costs_the_checkpoint(
    tmp_path: Path, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    def fill() -> None:
        disk.full = True

    def clear() -> None:
        assert disk.refused.wait(60)
        disk.full = False

    seen, kept = train(tmp_path, 9, {1: fill, 6: clear})
    assert "No checkpoint for step 2: no room" in caplog.text
    assert seen.saved[0] == 0
    assert seen.saved[-1] == 9
    assert 2 not in seen.saved
    assert [int(step) for step in kept] == seen.saved


def test_another_failure_reaches_the_program(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise tf.errors.UnknownError(None, None, "broken")

    with pytest.raises(tf.errors.UnknownError, match="broken"):
        train(tmp_path, 9, {1: lambda: monkeypatch.setattr(save_ops, "write", broken)})


def test_a_monitored_training_session(tmp_path: Path) -> None:
    model = Model()
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path),
        save_checkpoint_steps=1,
        asynchronous_checkpoints=True,
        hooks=[tf.train.StopAtStepHook(last_step=20)],
    ) as session:
        while not session.should_stop():
            session.run(model.train)
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest.endswith("-20")
    assert step_of(latest) == 20


def test_a_saver_that_writes_in_a_way_of_its_own() -> None:
    class Builder(BaseSaverBuilder):
        def save_op(self, filename_tensor: Any, saveables: Any) -> Any:
            return tf.no_op()

    Model()
    saver = tf.train.Saver(builder=Builder())
    with pytest.raises(ValueError, match=r"by SaveV2.*asynchronous=False"):
        AsynchronousSaver(saver, tf.get_default_graph())
