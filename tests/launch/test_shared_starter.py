"""Starters that are forked from one process, for actors that find it by a socket."""

from __future__ import annotations

import os
import secrets
import tempfile
import threading

import pytest

from headrace.launch.ray_tasks import ScriptTask, by_value

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.timeout(120)]


def test_tasks_of_one_machine_share_what_was_imported(tmp_path, monkeypatch):
    """Each has the environment of its own actor, and the folder is gone with the last of them."""
    script = tmp_path / "script.py"
    script.write_text("import os\nprint(os.environ['WHOSE'], os.environ.get('OTHER'))\n")
    launch = secrets.token_hex(8)
    monkeypatch.setenv("WHOSE", "first")
    monkeypatch.setenv("OTHER", "yes")
    first = ScriptTask("worker/0", launch)
    monkeypatch.setenv("WHOSE", "second")
    monkeypatch.delenv("OTHER")
    second = ScriptTask("worker/1", launch)
    command = {
        "program": str(script),
        "module": False,
        "arguments": [],
        "environment": {},
        "folder": str(tmp_path),
    }
    # Before the starter is there: it finds the command behind the environment.
    for name, task in (("worker/0", first), ("worker/1", second)):
        task.send({"start": name, **command})
    assert said(first) == ["first yes"]
    assert said(second) == ["second None"]
    for task in (first, second):
        task.close()
        assert task.events() == [{"event": "gone"}]
    folder = os.path.join(tempfile.gettempdir(), f"headrace-{launch}")
    pause = threading.Event()
    while os.path.exists(folder):
        pause.wait(0.05)


def said(task):
    """The lines of a task until its process has ended."""
    lines, is_over = [], False
    while not is_over:
        for event in task.events():
            lines += event.get("lines", [])
            is_over = is_over or event["event"] in ("ended", "gone")
    return lines


def test_actors_import_nothing_of_ours():
    """Ray carries the class itself, not its name."""
    cloudpickle = pytest.importorskip("cloudpickle")

    class Ray:
        pass

    Ray.cloudpickle = cloudpickle
    with by_value(Ray):
        assert b"_reach_starter" in cloudpickle.dumps(ScriptTask)
    assert b"_reach_starter" not in cloudpickle.dumps(ScriptTask)
