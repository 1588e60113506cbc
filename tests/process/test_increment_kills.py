"""A trainer with a table, killed at random moments of its incremental saves, on a disk and in S3.

Step ``n`` gives key ``n % 40`` of 200 the value ``n``, and a checkpoint follows each step. Whenever
the trainer is killed, the latest checkpoint has the table of one step, all of it, and none is
older than the last that was reported.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from task_processes import PATIENCE

import headrace as tf
from headrace.ops.embeddings import table_files

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
]

_KEYS, _ALL = 40, 200


def model() -> tuple[Any, ...]:
    """What the trainer has: step, how rows are assigned, and a saver."""
    table = tf.EmbeddingTable(2, tf.zeros_initializer(), name="t")
    step = tf.Variable(0, name="step")
    keys = tf.placeholder(tf.int64, [None])
    rows = tf.placeholder(tf.float32, [None, 2])
    saver = tf.train.Saver([table, step], max_to_keep=2, incremental_tables=True)
    return step, step.assign_add(1), table.assign(keys, rows), keys, rows, table.export(), saver


def train(directory: str) -> None:
    """Train for ever, on from the latest checkpoint."""
    step, add, assign, keys, rows, _, saver = model()
    with tf.Session() as session:
        state = tf.train.get_checkpoint_state(directory)
        if state:
            saver.recover_last_checkpoints(list(state.all_model_checkpoint_paths))
            saver.restore(session, state.model_checkpoint_path)
        else:
            session.run(step.initializer)
            session.run(assign, {keys: np.arange(_ALL), rows: np.zeros((_ALL, 2))})
        while True:
            n = int(session.run(add))
            session.run(assign, {keys: [n % _KEYS], rows: [[n, n]]})
            saver.save(session, f"{directory}/m", n, write_meta_graph=False)
            print("saved", n, flush=True)


def check(directory: str, reported: int) -> int:
    """The step of the latest checkpoint, whose table must be of that step."""
    path = tf.train.latest_checkpoint(directory)
    assert path is not None
    with tf.Graph().as_default(), tf.Session() as session:
        step, _, _, _, _, contents, saver = model()
        saver.restore(session, path)
        n, (keys, rows) = session.run([step, contents])
    wanted = np.zeros((_ALL, 2))
    for i in range(max(1, n - _KEYS + 1), n + 1):
        wanted[i % _KEYS] = i
    np.testing.assert_array_equal(keys, np.arange(_ALL))
    np.testing.assert_array_equal(rows, wanted)
    assert path.endswith(f"-{n}")
    assert n >= reported
    return int(n)


def survives(directory: str, kills: int, seed: int) -> None:
    """Kill the trainer at random moments, and look at the checkpoints."""
    rng, reported = random.Random(seed), 0
    program = "import sys; sys.path[:0] = sys.argv[2:]; import test_increment_kills as t"
    command = [sys.executable, "-c", f"{program}; t.train(sys.argv[1])", directory]
    command += [path for path in sys.path if path.endswith("process")]
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        watch = threading.Timer(PATIENCE, process.kill)
        watch.start()
        lines = iter(process.stdout)
        saves = rng.randint(2, 15)
        for _ in range(saves):
            reported = int(next(lines).split()[1])
        threading.Event().wait(rng.uniform(0, 0.05))
        process.kill()
        watch.cancel()
        reported = max([reported, *(int(line.split()[1]) for line in lines if line[-1] == "\n")])
        process.communicate()
        check(directory, reported)


def increments(directory: str) -> list[int]:
    """How many files each file of a table follows."""
    names = [n for n in tf.gfile.ListDirectory(directory) if n.endswith("t-00000-of-00001")]
    return [len(table_files.read_header(f"{directory}/{n}").after) for n in names]


def test_kills_of_incremental_saves_to_a_disk(tmp_path: Any) -> None:
    survives(str(tmp_path), 2, seed=1)
    assert max(increments(str(tmp_path))) > 0


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_many_kills_of_incremental_saves_to_a_disk(tmp_path: Any) -> None:
    survives(str(tmp_path), 100, seed=2)
    # A kill may keep the removal of files from being finished: they go when they are an hour old.
    assert len(increments(str(tmp_path))) < 200


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_many_kills_of_incremental_saves_to_s3(bucket: str) -> None:
    survives(bucket, 30, seed=3)
    assert max(increments(bucket)) > 0
