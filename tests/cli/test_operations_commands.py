"""`headrace status --watch`, `trace` and `doctor`, and the commands of docs/operations.md."""

from __future__ import annotations

import io
import json
import re
import shlex
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

import headrace as tf
from headrace.cli import main, watch
from headrace.cli.watch import StatusWatch
from headrace.distributed.protocol import control_pb2 as pb
from headrace.errors import UnavailableError

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
COMMANDS = re.findall(r"^    (headrace .*)$", PAGE, re.MULTILINE)


@pytest.fixture
def address():
    """A server whose session runs steps until the end of the test."""
    server = tf.train.Server({"worker": ["127.0.0.1:0"]})
    over = threading.Event()
    with tf.Graph().as_default():
        weights = tf.Variable(tf.zeros([256, 4]), name="weights", use_resource=True)
        step = weights.assign_add(tf.ones([256, 4])).op
        with tf.Session(server.target) as sess:
            sess.run(weights.initializer)

            def train():
                while not over.wait(0.001):
                    sess.run(step)

            thread = threading.Thread(target=train)
            thread.start()
            yield server.address
            over.set()
            thread.join()
    server.stop()


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_are_understood(command):
    words = shlex.split(command)[1:]
    with main.make_context("headrace", words, resilient_parsing=False) as context:
        name, found, rest = main.resolve_command(context, words)
        assert found is not None
        with found.make_context(name, rest, parent=context):
            pass


def test_the_commands_of_the_page_run(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = set()
    for command in COMMANDS:
        words = shlex.split(command.replace("HOST:PORT", address))[1:]
        if words[0] not in ("status", "trace", "doctor"):
            continue
        if "--watch" in words:
            words += ["--interval", "0.1", "--count", "2"]
        words = [str(tmp_path) if word == "/mnt/checkpoints" else word for word in words]
        result = run(*words)
        assert result.exit_code <= 1, (words, result.output)
        ran.add(words[0])
    assert ran == {"status", "trace", "doctor"}
    assert json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    assert list((tmp_path / "logs" / "plugins" / "profile").glob("*/headrace.xplane.pb"))


def test_a_pipe_gets_a_line_for_each_task(address):
    result = run("status", "--watch", "--interval", "0.1", "--count", "3", address)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert len(lines) == 6
    assert all(re.match(r"\d{4}-\d\d-\d\dT[\d:+.-]+ (worker/0|cluster) ", line) for line in lines)
    assert "steps/s" not in lines[0]
    assert re.search(r" steps/s=\d", lines[-2])
    assert re.search(r"1 tasks; \d+ steps, [\d.]+/s; 4.0 KiB of variables", lines[-1])


def test_status_has_totals(address):
    result = run("status", address)
    assert re.search(r"In all: \d+ steps; 4.0 KiB of variables; \d", result.output)


@pytest.mark.parametrize(
    "words",
    [
        ["status", "--watch", "--interval"],
        ["trace", "--out", "x", "--timeout"],
        ["chaos", "--minutes"],
        ["chaos", "--every"],
    ],
)
@pytest.mark.parametrize("number", ["nan", "inf", "1e30", "-nan"])
def test_times_are_numbers_that_can_be_waited_for(words, number):
    result = run(*words, number, *([] if words[0] == "chaos" else ["127.0.0.1:1"]))
    assert result.exit_code == 2
    assert f"Invalid value for '{words[-1]}'" in result.output


def test_watching_excludes_other_views(address):
    result = run("status", "--watch", "--steps", address)
    assert result.exit_code == 2
    assert "--watch shows rates of all tasks: leave out other options." in result.output


def test_nobody_to_watch():
    result = run("status", "--watch", "127.0.0.1:1")
    assert result.exit_code == 1
    assert "127.0.0.1:1 does not answer" in result.output


def task(index, steps=0, problem=""):
    return pb.TaskStatus(
        task=f"/job:worker/replica:0/task:{index}",
        address=f"host{index}:1",
        problem=problem,
        incarnation=1,
        steps_ended=steps,
        loop_steps=steps,
        loop_seconds=steps * 0.01,
        links=[pb.LinkStatus(peer="/job:ps/replica:0/task:0", transport="stream", bytes_out=steps)],
    )


class Answers:
    """What a cluster answers, one after the other, once a second."""

    def __init__(self, *answers):
        self.answers, self.now, self.asked = list(answers), 0.0, []

    def ask(self, address):
        self.asked.append(address)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def wait(self, seconds):
        self.now += seconds

    def watch(self):
        return StatusWatch("host0:1", self.ask, lambda: self.now, self.wait)


def panel_of(watched, width):
    console = Console(file=io.StringIO(), width=width, markup=False)
    console.print(watched.panel(console))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_at_each_width_names_and_numbers_are_whole(width):
    lost = task(2, problem="it has not answered for a long time, and nobody knows why")
    answers = Answers([task(i, 0) for i in range(3)], [task(0, 1000), task(1, 12345), lost])
    watched = answers.watch()
    list(watched.rounds(1.0, 2))
    text = panel_of(watched, width)
    assert max(map(len, text.splitlines())) <= width
    assert all(f"worker/{i}" in text for i in range(3))
    assert "12345.0" in text
    assert "worker/2 does not answer" in text
    assert ("┃" in text) == (width == 120)


def test_columns_of_which_no_task_has_anything_are_left_out():
    answers = Answers([task(0)], [task(0, 100)])
    watched = answers.watch()
    list(watched.rounds(1.0, 2))
    text = panel_of(watched, 150)
    assert "steps/s" in text
    assert "failed" not in text
    assert "variables" not in text.splitlines()[2]


def test_a_straggler_is_told():
    first = [task(i, 0) for i in range(3)]
    answers = Answers(first, [task(0, 100), task(1, 98), task(2, 20)])
    watched = answers.watch()
    assert list(watched.rounds(1.0, 2)) == [1, 2]
    lines = watched.lines()
    assert "straggler" not in lines[0] + lines[1]
    assert lines[2].endswith("straggler: 0.20 of the median of steps")
    text = panel_of(watched, 150)
    assert "worker/2 is a straggler: 0.20 of the median of steps" in text
    assert "Links" in text
    assert "ps/0" in text


def test_when_one_task_is_gone_another_one_is_asked():
    gone = UnavailableError(None, None, "host0:1 does not answer")
    answers = Answers([task(0), task(1)], gone, [task(0, problem="no answer"), task(1)])
    watched = answers.watch()
    assert list(watched.rounds(1.0, 2)) == [1, 2]
    assert answers.asked == ["host0:1", "host0:1", "host1:1"]
    assert watched.lines()[0] == "worker/0 does not answer: no answer"
    assert "1 without an answer" in watched.lines()[-1]


def test_a_cluster_that_is_gone_ends_the_watch():
    gone = UnavailableError(None, None, "host0:1 does not answer")
    answers = Answers([task(0)], *[gone] * 20)
    watched = answers.watch()
    with pytest.raises(click.ClickException, match="host0:1 does not answer"):
        list(watched.rounds(1.0, None))
    assert answers.now == 11.0


@pytest.mark.parametrize("where", ["asking", "waiting", "writing"])
def test_control_c_ends_the_watch(where, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    answers = Answers([task(0)], KeyboardInterrupt() if where == "asking" else [task(0)])
    if where == "waiting":
        answers.wait = interrupt
    if where == "writing":
        monkeypatch.setattr(click, "echo", interrupt)
    monkeypatch.setattr(watch, "StatusWatch", lambda address: answers.watch())
    watch.watch_cluster("host0:1", 1.0, None)
    assert len(capsys.readouterr().out.splitlines()) == (0 if where == "writing" else 2)


def test_a_trace_needs_a_place(address):
    result = run("trace", address)
    assert result.exit_code == 2
    assert "--out FILE, --logdir DIR or both" in result.output


def test_a_trace_whose_folder_cannot_be_made(address, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("trace", address, "--logdir", str(tmp_path / "file"))
    assert result.exit_code == 1
    assert result.output.startswith("Error: The trace cannot be written: ")
    assert len(result.output.splitlines()) == 1


def test_a_trace_where_nothing_runs(tmp_path):
    server = tf.train.Server.create_local_server()
    try:
        result = run("trace", server.address, "--out", str(tmp_path / "t"), "--timeout", "0.2")
        assert result.exit_code == 1
        assert "No task has a session, so no step runs" in result.output
        with tf.Session(server.target):
            result = run("trace", server.address, "--out", str(tmp_path / "t"), "--timeout", "0.2")
        assert result.exit_code == 1
        assert "No step has ended within 0.2 s" in result.output
    finally:
        server.stop()


@pytest.mark.parametrize("words", [["doctor", "--storage"], ["trace", "--logdir"]])
def test_a_folder_has_a_name(words):
    result = run(*words, "", "127.0.0.1:1")
    assert result.exit_code == 2
    assert "it names no folder" in result.output


def test_a_folder_of_the_doctor_is_the_same_for_tasks_that_work_elsewhere(address, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "headrace.operations.doctor.cluster.check_cluster",
        lambda address, storage: asked.append(storage) or [],
    )
    run("doctor", address, "--storage", "here/below")
    run("doctor", address, "--storage", "s3://bucket/below")
    assert asked == [str(Path("here/below").absolute()), "s3://bucket/below"]


def test_the_doctor_tells_what_to_mend(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("doctor", "--storage", str(tmp_path / "file" / "folder"))
    assert result.exit_code == 2
    lines = result.output.splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.startswith("fail  storage"))
    assert lines[at + 1].strip().startswith("-> Give the user of the tasks the right to write")


def test_the_doctor_speaks_json(address):
    result = run("doctor", "--json", address)
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["level"] == "ok"
    assert {"level": "ok", "subject": "tasks", "text": "1 of 1 answer", "mend": ""} in found[
        "findings"
    ]
    result = run("doctor", "--json", "127.0.0.1:1")
    assert (result.exit_code, json.loads(result.output)["level"]) == (2, "fail")
