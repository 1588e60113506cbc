"""Which checkpoints a saver keeps, and the state file that says which are there."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.train.checkpoint import storage

# -- which checkpoints are kept ------------------------------------------------------------------


@pytest.fixture
def session() -> Any:
    v = tf.Variable(1.0, name="v")
    with tf.Session() as opened:
        opened.run(v.initializer)
        yield opened


def there(directory: Path) -> list[int]:
    return sorted(int(p.stem.rpartition("-")[2]) for p in directory.glob("m-*.index"))


def test_the_latest_of_two_threads_has_the_later_values(tmp_path: Path) -> None:
    step = tf.Variable(1, name="step")
    saver = tf.train.Saver()
    is_behind, goes_on = threading.Event(), threading.Event()

    def clock() -> float:  # asked when the files of a checkpoint are written
        if not is_behind.is_set():
            is_behind.set()
            assert goes_on.wait(60)
        return 0.0

    saver.clock = clock
    with tf.Session() as session:
        session.run(step.initializer)

        def save() -> None:
            saver.save(session, str(tmp_path / "m"), step)

        first, second = threading.Thread(target=save), threading.Thread(target=save)
        first.start()
        assert is_behind.wait(60)
        session.run(step.assign(2))
        second.start()
        second.join(0.3)  # it waits for the first; where it did not, it would be done by now
        goes_on.set()
        first.join()
        second.join()
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("m-2")
    assert there(tmp_path) == [1, 2]


@pytest.mark.parametrize(("keep", "left"), [(2, [4, 5]), (1, [5]), (0, [1, 2, 3, 4, 5])])
def test_max_to_keep(session: Any, tmp_path: Path, keep: int, left: list[int]) -> None:
    saver = tf.train.Saver(max_to_keep=keep)
    for step in range(1, 6):
        saver.save(session, str(tmp_path / "m"), step)
    assert there(tmp_path) == left
    assert saver.last_checkpoints == ([str(tmp_path / f"m-{s}") for s in left] if keep else [])
    names = {p.name for p in tmp_path.iterdir()} - {"checkpoint"}
    kinds = ("index", "meta", "data-00000-of-00001")
    assert names == {f"m-{s}.{kind}" for s in left for kind in kinds}


def test_a_path_with_a_doubled_slash(session: Any, tmp_path: Path) -> None:
    saver = tf.train.Saver(max_to_keep=1)
    for step in (1, 2):
        saver.save(session, f"{tmp_path}//m", step)
    saver.restore(session, f"{tmp_path}//m-2")
    assert there(tmp_path) == [2]


def test_one_checkpoint_is_kept_for_every_n_hours(session: Any, tmp_path: Path) -> None:
    now = [1000.0]

    class Timed(tf.train.Saver):
        clock = staticmethod(lambda: now[0])

    saver = Timed(max_to_keep=2, keep_checkpoint_every_n_hours=1)
    for step in range(10):
        now[0] += 1200
        saver.save(session, str(tmp_path / "m"), step)
    # Steps are 20 minutes apart: of the old ones, the first of each hour stays.
    assert there(tmp_path) == [3, 6, 8, 9]
    assert saver.last_checkpoints == [str(tmp_path / f"m-{s}") for s in (8, 9)]


def test_saving_again_under_a_name_keeps_it(session: Any, tmp_path: Path) -> None:
    saver = tf.train.Saver(max_to_keep=2)
    for step in (1, 2, 1, 3):
        saver.save(session, str(tmp_path / "m"), step)
    assert there(tmp_path) == [1, 3]


def test_recovered_checkpoints_are_deleted_in_turn(session: Any, tmp_path: Path) -> None:
    first = tf.train.Saver(max_to_keep=3)
    for step in (1, 2, 3):
        first.save(session, str(tmp_path / "m"), step)
    second = tf.train.Saver(max_to_keep=3)
    state = tf.train.get_checkpoint_state(str(tmp_path))
    second.recover_last_checkpoints([*state.all_model_checkpoint_paths, "/nowhere/m-9"])
    second.save(session, str(tmp_path / "m"), 4)
    assert there(tmp_path) == [2, 3, 4]


def test_lists_of_last_checkpoints(session: Any) -> None:
    saver = tf.train.Saver()
    saver.set_last_checkpoints(["a", "b"])
    assert saver.last_checkpoints == ["a", "b"]
    saver.set_last_checkpoints_with_time([("c", 1.0)])
    assert saver.last_checkpoints == ["c"]
    with pytest.raises(AssertionError, match="must be a list"):
        saver.set_last_checkpoints("a")


def test_step_numbers(session: Any, tmp_path: Path) -> None:
    step = tf.Variable(12, name="step")
    session.run(step.initializer)
    prefix = str(tmp_path / "m")
    assert tf.train.Saver().save(session, prefix, step) == f"{prefix}-12"
    assert tf.train.Saver(pad_step_number=True).save(session, prefix, 12) == f"{prefix}-00000012"
    assert tf.train.Saver().save(session, prefix, np.int64(5)) == f"{prefix}-5"


# -- the state file ------------------------------------------------------------------------------


def test_state_file_is_in_the_text_form(session: Any, tmp_path: Path) -> None:
    saver = tf.train.Saver()
    saver.save(session, str(tmp_path / "m"), 1)
    saver.save(session, str(tmp_path / "m"), 2)
    assert (tmp_path / "checkpoint").read_text() == (
        f'model_checkpoint_path: "{tmp_path}/m-2"\n'
        f'all_model_checkpoint_paths: "{tmp_path}/m-1"\n'
        f'all_model_checkpoint_paths: "{tmp_path}/m-2"\n'
    )
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "m-2")


def test_relative_paths(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tf.train.Saver().save(session, "sub/m", 1)
    assert 'model_checkpoint_path: "m-1"' in Path("sub/checkpoint").read_text()
    assert tf.train.latest_checkpoint("sub") == "sub/m-1"
    tf.train.Saver(save_relative_paths=True).save(session, str(tmp_path / "other/m"), 2)
    assert 'model_checkpoint_path: "m-2"' in Path("other/checkpoint").read_text()
    (tmp_path / "other").rename(tmp_path / "moved")
    assert tf.train.latest_checkpoint("moved") == "moved/m-2"


def test_states_that_cannot_be_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert tf.train.get_checkpoint_state(str(tmp_path)) is None
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    (tmp_path / "checkpoint").write_text("no state {")
    assert tf.train.get_checkpoint_state(str(tmp_path)) is None
    assert "checkpoint ignored" in caplog.text
    (tmp_path / "checkpoint").write_text('all_model_checkpoint_paths: "m"')
    with pytest.raises(ValueError, match="names no checkpoint"):
        tf.train.get_checkpoint_state(str(tmp_path))
    tf.train.update_checkpoint_state(str(tmp_path), str(tmp_path / "gone"))
    assert tf.train.latest_checkpoint(str(tmp_path)) is None


def test_state_messages(tmp_path: Path) -> None:
    state = tf.train.generate_checkpoint_state_proto(
        "/d", "/d/m-2", ["/d/m-1", "/d/m-2"], [1.0, 2.0], 5.0
    )
    assert list(state.all_model_checkpoint_timestamps) == [1.0, 2.0]
    assert state.last_preserved_timestamp == 5.0
    with pytest.raises(ValueError, match="equally many"):
        tf.train.generate_checkpoint_state_proto("/d", "/d/m-2", ["/d/m-1"], [1.0, 2.0])
    with pytest.raises(RuntimeError, match="conflicts with the path"):
        tf.train.update_checkpoint_state(str(tmp_path), str(tmp_path / "checkpoint"))


def test_a_kill_while_the_state_is_written_keeps_the_old_one(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = tf.train.Saver()
    first = saver.save(session, str(tmp_path / "m"), 1)

    def fail(source: str, target: str) -> None:
        if target.endswith("/checkpoint"):
            raise KeyboardInterrupt
        os.replace(source, target)

    monkeypatch.setattr(storage, "move", fail)
    with pytest.raises(KeyboardInterrupt):
        saver.save(session, str(tmp_path / "m"), 2)
    assert tf.train.latest_checkpoint(str(tmp_path)) == first


def test_files_of_checkpoints(session: Any, tmp_path: Path) -> None:
    path = tf.train.Saver().save(session, str(tmp_path / "m"))
    assert tf.train.checkpoint_exists(path)
    assert not tf.train.checkpoint_exists(str(tmp_path / "n"))
    os.utime(f"{path}.index", (1234, 1234))
    assert tf.train.get_checkpoint_mtimes([path, str(tmp_path / "n")]) == [1234.0]
    tf.train.remove_checkpoint(path)
    assert os.listdir(tmp_path) == ["checkpoint"]
