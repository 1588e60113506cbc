"""Logs of tasks, and the losses in them."""

import math
import os

import pytest

from headrace.launch.job import TaskId
from headrace.launch.logs import TaskLogs, loss_in

needs_full = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="needs the device that is always full, of Linux"
)


@pytest.mark.parametrize(
    ("line", "loss"),
    [
        ("INFO:tensorflow:loss = 0.25, step = 100 (0.1 sec)", 0.25),
        ("step 7 loss: 1e-3", 1e-3),
        ("Loss is -2.5", -2.5),
        ("{'loss': 3, 'accuracy': 0.5}", 3.0),
        ("train_loss 5", None),
        ("a loss of 3 messages", None),
        ("closs = 4", None),
    ],
)
def test_losses_that_lines_tell(line, loss):
    assert loss_in(line) == loss


def test_a_loss_that_is_no_number():
    assert math.isnan(loss_in("loss = nan, step = 3"))


def test_a_file_for_each_task(tmp_path):
    logs = TaskLogs(tmp_path / "logs", print)
    logs.add(TaskId("worker", 1), ["loss = 2.0", "loss = 1.0"])
    logs.add(TaskId("worker", 1), ["end"])
    logs.close()
    assert (tmp_path / "logs" / "worker-1.log").read_text() == "loss = 2.0\nloss = 1.0\nend\n"
    assert logs.losses == {TaskId("worker", 1): 1.0}


def test_a_file_that_cannot_be_written_is_told_once(tmp_path):
    said = []
    logs = TaskLogs(tmp_path, said.append)
    (tmp_path / "ps-0.log").mkdir()
    logs.add(TaskId("ps", 0), ["line"])
    logs.add(TaskId("ps", 0), ["line"])
    assert said == [f"{tmp_path}/ps-0.log is not complete: Is a directory"]
    logs.close()


@needs_full
def test_a_full_disk_for_what_the_launcher_says(tmp_path):
    said = []
    (tmp_path / "launcher.log").symlink_to("/dev/full")
    logs = TaskLogs(tmp_path, said.append)
    logs.note("begin")
    assert said == [f"{tmp_path}/launcher.log is not complete: No space left on device"]
    logs.close()


@needs_full
@pytest.mark.process
def test_a_launch_whose_logs_are_on_a_full_disk_says_so(launch, tmp_path):
    """While it runs, and goes on."""
    (tmp_path / "headrace-launch").mkdir()
    (tmp_path / "headrace-launch" / "worker-0.log").symlink_to("/dev/full")
    status, output, errors = launch("print('end')", "script.py").end()
    assert status == 0
    assert "[worker/0] end" in output
    said = "headrace: headrace-launch/worker-0.log is not complete: No space left on device\n"
    assert errors.count(said) == 1
    assert errors.index(said) < errors.index("worker/0 is done")


def test_characters_that_are_none(tmp_path):
    """A name of a file that is no text, and what another machine may send."""
    logs = TaskLogs(tmp_path, print)
    logs.add(TaskId("ps", 0), ["a\ud800b"])
    logs.note("no file '\udcff.py'")
    logs.close()
    assert (tmp_path / "ps-0.log").read_text() == "a\\ud800b\n"
    assert (tmp_path / "launcher.log").read_text() == "no file '\\udcff.py'\n"
