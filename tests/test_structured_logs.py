"""Lines of logs as JSON, the events in them, and how often they have happened."""

from __future__ import annotations

import ast
import io
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as tf
from headrace import structured_logs
from headrace.structured_logs import EVENTS, JsonFormatter, counts, tell

SRC = Path(tf.__file__).parent
KEYS = ["time", "level", "logger", "task", "step", "event", "message", "fields"]


@pytest.fixture
def lines(monkeypatch):
    """A logger, and what it wrote, as objects."""
    monkeypatch.setattr(structured_logs, "_task", "")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    log = logging.Logger("of this test", logging.DEBUG)
    log.addHandler(handler)
    return log, lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_has_all_keys(lines):
    log, written = lines
    before = counts()["variables_moved"]
    task = "/job:ps/replica:0/task:1"
    tell(log, "variables_moved", "%d moved", 3, task=task, step=7, fields={"bytes": 12})
    (line,) = written()
    assert list(line) == KEYS
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "INFO",
        "logger": "of this test",
        "task": "ps/1",
        "step": 7,
        "event": "variables_moved",
        "message": "3 moved",
        "fields": {"bytes": 12},
    }
    assert counts()["variables_moved"] == before + 1


def test_other_lines_have_the_same_keys(lines):
    log, written = lines
    structured_logs.this_task("/job:worker/replica:0/task:0")
    log.warning('a "quoted"\nline')
    try:
        raise ValueError("why")
    except ValueError:
        log.exception("failed")
    first, second = written()
    assert (first["task"], first["event"], first["step"]) == ("worker/0", None, None)
    assert first["message"] == 'a "quoted"\nline'
    assert second["exception"].endswith("ValueError: why")


def test_what_json_does_not_hold_is_text(lines):
    log, written = lines
    tell(log, "peer_lost", "gone", fields={"error": ValueError("x"), "path": Path("/a")})
    assert written()[0]["fields"] == {"error": "x", "path": "/a"}


def test_an_event_that_nobody_knows_is_refused(lines):
    with pytest.raises(KeyError, match="no_such"):
        tell(lines[0], "no_such", "text")


def test_every_event_is_told_somewhere():
    told = set()
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                texts = [a.value for a in node.args[:2] if isinstance(a, ast.Constant)]
                if name in ("tell", "_tell"):
                    told |= {text for text in texts if text in EVENTS}
    # Told as one of two, by a name.
    assert told | {"step_failed", "step_given_up"} == set(EVENTS)


PROGRAM = """
import logging
logging.basicConfig(format="root %(message)s")
import headrace as tf
tf.logging.info("from the program")
server = tf.train.Server({"worker": ["127.0.0.1:0"]})
server.stop()
"""


def test_a_process_writes_json_on_request():
    env = {**os.environ, "HEADRACE_LOG_FORMAT": "json"}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(line) for line in ran.stderr.splitlines()]
    assert [(line["logger"], line["event"]) for line in found] == [
        ("tensorflow", None),
        ("headrace.distributed", "server_started"),
        ("headrace.distributed", "server_stopped"),
    ]
    assert found[1]["task"] == "worker/0"
    assert found[1]["fields"]["address"].startswith("127.0.0.1:")
