"""What a launch writes as JSON."""

import json

import pytest

from headrace.launch.display import Display
from headrace.launch.job import TaskId


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


def test_their_logs_go_on_as_they_are(lines):
    told = '{"time": "2026", "level": "INFO", "task": "ps/0", "event": "peer_lost"}'
    (line,) = lines(lambda d: d.output(TaskId("ps", 0), [told]))
    assert line == json.loads(told)


def test_what_the_launcher_says(lines):
    first, second = lines(lambda d: (d.say("begins"), d.say("is gone", is_problem=True)))
    assert (first["logger"], first["level"]) == ("headrace.launch", "INFO")
    assert (second["level"], second["message"]) == ("WARNING", "is gone")
