"""Programs of the 1.x era in `era/`, unchanged, through `headrace run`."""

from __future__ import annotations

import gzip
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.process

PROGRAMS = Path(__file__).parent / "era"


@pytest.fixture
def run(tmp_path):
    """``run(program, *arguments)``: in an empty folder; gives (status, output, errors)."""

    def start(program, *arguments):
        done = subprocess.run(
            [sys.executable, "-m", "headrace", "run", str(PROGRAMS / program), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=110,
        )
        return done.returncode, done.stdout, done.stderr

    return start


def _write_idx(path, array):
    header = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    with gzip.open(path, "wb") as file:
        file.write(header + array.astype(np.uint8).tobytes())


def test_softmax_on_image_files(run, tmp_path):
    rng = np.random.RandomState(0)
    for name, count in (("train", 200), ("t10k", 50)):
        labels = rng.randint(10, size=count)
        images = rng.randint(60, size=(count, 28, 28))
        images[np.arange(count), labels] += 190
        _write_idx(tmp_path / f"{name}-images-idx3-ubyte.gz", images)
        _write_idx(tmp_path / f"{name}-labels-idx1-ubyte.gz", labels)
    status, out, errors = run("softmax_digits.py", "--data_dir", ".")
    assert status == 0, errors
    assert float(re.search(r"accuracy (\S+)", out)[1]) > 0.9


def test_a_second_run_goes_on_from_the_first(run, tmp_path):
    status, out, errors = run("flags_and_summaries.py", "--train_dir=logs", "--max_steps=15")
    assert status == 0, errors
    assert "INFO:tensorflow:step 10, loss = " in errors
    assert out.startswith("steps 15 ")
    first = float(out.split()[-1])
    status, out, errors = run("flags_and_summaries.py", "--train_dir=logs", "--nolog_device")
    assert status == 0, errors
    assert out.startswith("steps 35 ")
    assert float(out.split()[-1]) < first / 2
    assert list((tmp_path / "logs").glob("events.out.tfevents.*"))
    assert (tmp_path / "logs" / "checkpoint").exists()


def test_wrong_flag_values_are_reported(run):
    status, out, errors = run("flags_and_summaries.py", "--max_steps=many")
    assert (status, out) == (1, "")
    assert "flag --max_steps=many: invalid literal for int()" in errors
    assert "Traceback" not in errors


def test_a_program_for_release_0_11(run):
    status, out, errors = run("before_one.py", "--hidden=9", "--out", "events")
    assert status == 1, errors
    assert "Parameters: hidden, out" in out
    assert "Right: 4" in out
    for note in (
        "tf.mul is deprecated; use tf.multiply instead.",
        "tf.concat(axis, values) is deprecated; use tf.concat(values, axis) instead.",
        "tf.train.SummaryWriter is deprecated; use tf.summary.FileWriter instead.",
    ):
        assert errors.count(f"WARNING:tensorflow:{note}") == 1
    assert errors.endswith("no error, but a message\n")


def test_inner_modules(run):
    status, out, errors = run("inner_modules.py")
    assert status == 0, errors
    assert out == "frozen and loaded\n"
    assert "WARNING:tensorflow:devices: ['CPU'" in errors
    assert "not shown" not in errors


def test_a_test_file_of_tensorflow(run):
    status, _, errors = run("tests_of_ops.py")
    assert status == 0, errors
    assert "Ran 7 tests" in errors
    assert "OK (skipped=1)" in errors


def test_benchmarks_of_a_test_file(run):
    status, _, errors = run("tests_of_ops.py", "--benchmarks=MatMul")
    assert status == 0, errors
    assert errors == "MatMulBenchmark.mat_mul: iters: 1, wall_time: 0.5\n"


def test_records_through_queues(run):
    status, out, errors = run("records_through_queues.py")
    assert status == 0, errors
    assert "Done training for 3 epochs, 15 steps." in out


def test_child_processes_have_headrace_too(run):
    status, out, errors = run("starts_workers.py")
    assert status == 0, errors
    assert out.splitlines() == ["worker 0 says 0", "worker 1 says 10", "parent of 1.15.0"]


def test_char_rnn(run):
    status, out, errors = run("char_rnn.py")
    assert status == 0, errors
    first, last = map(float, re.search(r"loss (\S+) -> (\S+)", out).groups())
    assert first > 2.3
    assert last < 0.6
    assert "'rnnlm/rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel:0'" in out
