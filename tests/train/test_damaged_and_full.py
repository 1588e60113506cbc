"""Training that goes on: from an older checkpoint if the newest is damaged, and on a full disk."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as tf
from headrace.ops.embeddings import table_files


def train(directory, last, **more):
    """Train to a step, with a checkpoint at each; the value of a variable that counts steps."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        count = tf.get_variable("count", initializer=tf.zeros([1000]))
        for name in more.get("others", ()):
            tf.get_variable(name, [3])
        both = tf.group(step.assign_add(1), count.assign_add(tf.ones([1000])))
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=directory,
            save_checkpoint_steps=1,
            save_checkpoint_secs=None,
            hooks=[tf.train.StopAtStepHook(last_step=last)],
            log_step_count_steps=None,
        ) as session:
            began = int(session.run(step))
            while not session.should_stop():
                session.run(both)
            return began


def data_of(directory, step):
    files = Path(directory).glob(f"model.ckpt-{step}.data-*")
    return next(f for f in files if f.stat().st_size)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


DAMAGES = {
    "flipped": lambda d: flip(data_of(d, 3)),
    "cut off": lambda d: os.truncate(data_of(d, 3), 100),
    "no data": lambda d: data_of(d, 3).unlink(),
    "no index": lambda d: (Path(d) / "model.ckpt-3.index").unlink(),
    "index cut off": lambda d: os.truncate(Path(d) / "model.ckpt-3.index", 20),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_training_goes_on_from_the_checkpoint_before(damage, tmp_path, caplog):
    assert train(str(tmp_path), 3) == 0
    DAMAGES[damage](tmp_path)
    caplog.clear()
    assert train(str(tmp_path), 5) == 2
    said = [r.getMessage() for r in caplog.records if "checkpoint" in r.getMessage().lower()]
    assert any(re.search(r"model\.ckpt-3 cannot be restored: ", text) for text in said)
    assert any(re.search(r"from the older checkpoint .*model\.ckpt-2\.", text) for text in said)
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.get_tensor("global_step") == 5
    assert reader.get_tensor("count").tolist() == [5.0] * 1000
    assert train(str(tmp_path), 6) == 5


def test_if_all_are_damaged_the_newest_says_what_is_wrong(tmp_path):
    train(str(tmp_path), 2)
    for step in range(3):
        flip(data_of(tmp_path, step))
    with pytest.raises(tf.errors.DataLossError, match=r"model\.ckpt-2.*is damaged"):
        train(str(tmp_path), 5)


def test_a_graph_that_does_not_fit_is_no_damage(tmp_path):
    """Older checkpoints are not asked whether they would fit."""
    train(str(tmp_path), 2)
    with pytest.raises(tf.errors.NotFoundError, match="Key new not found"):
        train(str(tmp_path), 5, others=["new"])


_FULL = """
import resource, signal, sys
import headrace as tf
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limits = {int(k): int(v) for k, v in (pair.split(":") for pair in sys.argv[2].split(","))}
step = tf.train.get_or_create_global_step()
weights = tf.get_variable("weights", initializer=tf.zeros([100_000]))
train = tf.group(step.assign_add(1), weights.assign_add(tf.ones([100_000])))
with tf.train.MonitoredTrainingSession(
    checkpoint_dir=sys.argv[1], save_checkpoint_steps=1, save_checkpoint_secs=None,
    hooks=[tf.train.StopAtStepHook(last_step=5)], log_step_count_steps=None,
) as session:
    for i in range(5):
        if i in limits:  # no file may be larger: the system says so as it does of a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (limits[i], resource.RLIM_INFINITY))
        session.run(train)
print("ended")
"""
_TINY, _SMALL, _LARGE = 64, 100_000, 1 << 30

_TABLE = """table = tf.EmbeddingTable(8, tf.zeros_initializer(), name="t")
keys = tf.placeholder(tf.int64, [None])
loss = tf.reduce_sum(table.lookup(keys))
trained = tf.train.GradientDescentOptimizer(1.0).minimize(loss, var_list=[table])
"""


_LOST = """
class Lose(tf.train.SessionRunHook):
    def before_run(self, run_context):
        global i
        if i == 2:
            i = -1
            raise tf.errors.AbortedError(None, None, "a server was lost")
"""


def on_full_disk(directory, limits, program=_FULL):
    text = ",".join(f"{i}:{limit}" for i, limit in limits.items())
    return subprocess.run(
        [sys.executable, "-c", program, str(directory), text],
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_costs_the_save_and_not_the_job(tmp_path):
    done = on_full_disk(tmp_path, {1: _SMALL, 3: _LARGE})
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "ended"
    assert "No checkpoint for step 2: " in done.stderr
    assert "No checkpoint for step 3: " in done.stderr
    assert "No checkpoint for step 4: " not in done.stderr
    found = {p.name for p in tmp_path.iterdir() if p.name.startswith("model.ckpt")}
    steps = {int(re.findall(r"ckpt-(\d+)", name)[0]) for name in found}
    assert steps == {0, 1, 4, 5}, found
    assert tf.train.load_checkpoint(str(tmp_path)).get_tensor("weights").tolist() == [5.0] * 100_000


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_session_that_is_made_again_on_a_full_disk_goes_on(tmp_path):
    program = _FULL.replace("step = ", _LOST + "step = ", 1).replace("hooks=[", "hooks=[Lose(), ")
    done = on_full_disk(tmp_path, {1: _TINY, 4: _LARGE}, program)
    assert done.returncode == 0, done.stderr[-3000:]
    # It begins without a checkpoint; the next ones, which are due, have no room.
    assert "No checkpoint for step 1: " not in done.stderr
    assert "File too large. Training goes on" in done.stderr
    assert tf.train.load_checkpoint(str(tmp_path)).get_tensor("global_step") == 4


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_without_room_for_the_last_one_training_says_so(tmp_path):
    done = on_full_disk(tmp_path, {2: _SMALL})
    assert done.returncode != 0
    assert "ResourceExhaustedError" in done.stderr.splitlines()[-1] or "Exhausted" in done.stderr
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-2")


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_costs_an_increment_and_the_next_one_has_what_it_would_have_had(tmp_path):
    """Written in the background, and consistent, as well."""
    program = _FULL.replace("train = tf.group(", _TABLE + "train = tf.group(trained, ").replace(
        "session.run(train)",
        "session.run(train, {keys: range(2000) if i == 0 else range(i, 150)})",
    )
    more = ", incremental_tables=True, consistent_checkpoints=True, log_step"
    done = on_full_disk(tmp_path, {2: 3_000, 3: _LARGE}, program.replace(", log_step", more, 1))
    assert done.returncode == 0, done.stderr[-3000:]
    assert "No checkpoint for step 3: " in done.stderr
    assert "No checkpoint for step 4: " not in done.stderr
    end = ".table-t-00000-of-00001"
    headers = {n: table_files.read_header(f"{tmp_path}/model.ckpt-{n}{end}") for n in (1, 2, 4, 5)}
    assert not (tmp_path / f"model.ckpt-3{end}").exists()
    assert [len(h.after) for h in headers.values()] == [0, 1, 2, 3]
    assert [h.rows for h in headers.values()] == [2000, 149, 148, 146]
    table = tf.EmbeddingTable(8, tf.zeros_initializer(), name="t")
    with tf.Session() as session:
        assert session.run(table.restore(str(tmp_path / "model.ckpt-5"), slots=False)) == 2000
        assert session.run(table.lookup([0, 1, 149]))[:, 0].tolist() == [-1.0, -2.0, -5.0]
