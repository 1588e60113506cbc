"""Logs of tasks, and the losses in them."""

import math

import pytest

from headrace.launch.job import TaskId
from headrace.launch.logs import TaskLogs, loss_in


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
    logs = TaskLogs(tmp_path / "logs")
    logs.add(TaskId("worker", 1), ["loss = 2.0", "loss = 1.0"])
    logs.add(TaskId("worker", 1), ["end"])
    logs.close()
    assert (tmp_path / "logs" / "worker-1.log").read_text() == "loss = 2.0\nloss = 1.0\nend\n"
    assert logs.losses == {TaskId("worker", 1): 1.0}


def test_a_file_that_cannot_be_written_is_told_once(tmp_path):
    logs = TaskLogs(tmp_path)
    (tmp_path / "ps-0.log").mkdir()
    logs.add(TaskId("ps", 0), ["line"])
    assert "ps-0.log is not complete: Is a directory" in logs.problem
    logs.close()


def test_characters_that_are_none(tmp_path):
    """A name of a file that is no text, and what another machine may send."""
    logs = TaskLogs(tmp_path)
    logs.add(TaskId("ps", 0), ["a\ud800b"])
    logs.note("no file '\udcff.py'")
    logs.close()
    assert (tmp_path / "ps-0.log").read_text() == "a\\ud800b\n"
    assert (tmp_path / "launcher.log").read_text() == "no file '\\udcff.py'\n"
