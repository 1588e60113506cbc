"""What a launch writes, as JSON and at terminals that cannot show all."""

import io
import json
import sys

import pytest
from rich.console import Console

from headrace.launch.display import Display
from headrace.launch.job import TaskId
from headrace.launch.processes import have_streams
from headrace.structured_logs import json_line


@pytest.fixture
def lines(capfd):
    """What a display writes, line by line."""

    def of(show):
        with Display(list, "title", as_json=True) as display:
            show(display)
        out, err = capfd.readouterr()
        assert err == ""
        return [json.loads(line) for line in out.splitlines()]

    return of


def test_what_tasks_print_has_their_name(lines):
    (line,) = lines(lambda d: d.output(TaskId("worker", 1), ["step 3"]))
    assert (line["task"], line["logger"], line["message"]) == ("worker/1", "output", "step 3")
    assert line["event"] is None


@pytest.mark.parametrize("known", ["/job:ps/replica:0/task:0", ""])
def test_their_logs_go_on_as_they_are_with_their_name(lines, known):
    told = json_line(0.0, "INFO", "tensorflow", "up", task=known, event="peer_lost", exception="x")
    (line,) = lines(lambda d: d.output(TaskId("ps", 0), [told]))
    assert line == json.loads(told) | {"task": "ps/0"}


@pytest.mark.parametrize(
    "printed",
    [
        '{"time": nan}',
        '{"time": 1}',
        '{"time": "now", "level": "INFO"}',
        json_line(0.0, "INFO", "a", "b").replace("null", "NaN"),
        json_line(0.0, "INFO", "a", "cut off here")[:80] + json_line(0.0, "INFO", "a", "b"),
        '{"time": ' + "[" * 100_000 + "}",
    ],
)
def test_what_only_looks_like_a_line_of_a_log_is_output(lines, printed):
    (line,) = lines(lambda d: d.output(TaskId("ps", 0), [printed]))
    assert (line["logger"], line["task"], line["message"]) == ("output", "ps/0", printed)


def test_what_the_launcher_says(lines):
    first, second = lines(lambda d: (d.say("begins"), d.say("is gone", is_problem=True)))
    assert (first["logger"], first["level"]) == ("headrace.launch", "INFO")
    assert (second["level"], second["message"]) == ("WARNING", "is gone")


def test_a_stream_that_lacks_characters_shows_the_lines_with_escapes(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    have_streams()
    with Display(list, "title", Console(file=io.StringIO())) as display:
        display.output(TaskId("ps", 0), ["caf\xe9"])
        display.output(TaskId("ps", 0), ["end"])
    assert raw.getvalue() == b"[ps/0] caf\\xe9\n[ps/0] end\n"


def test_brackets_in_the_name_of_a_script_are_no_markup():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with Display(list, "[/x]y.py: 1 worker", console):
        pass
    assert "[/x]y.py: 1 worker" in console.file.getvalue()
