"""Requests to hold steps, and descriptions of copies, as somebody may make them."""

import json
import threading
from collections import deque

import pytest

from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.services.definitions import server_def
from headrace.distributed.services.holding import Holding


@pytest.mark.parametrize("seconds", [float("nan"), -1.0, float("inf"), 1e300])
def test_times_that_nobody_can_wait_are_answered(seconds):
    # Of a task only what is asked before steps are held.
    holding = object.__new__(Holding)
    holding.task, holding._one, holding._now = "/job:ps/replica:0/task:0", threading.Lock(), None
    holding._changed, holding._ended = threading.Condition(), deque()
    holding._asked_for, holding.clock = set(), float
    answers, answered = [], threading.Event()

    def reply(said):
        answers.append(said)
        answered.set()

    holding.steps_asked(("w", 1), pb.HoldSteps(hold=1, seconds=seconds), reply)
    assert answered.wait(20)
    assert "Steps cannot be waited for" in answers[0].failure.message
    assert not holding._one.locked()


@pytest.mark.parametrize("replicas", ["yes", True, 1.5, {}])
def test_copies_of_other_types(replicas, monkeypatch):
    cluster = {"ps": ["a:1", "b:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"replicas": replicas, "cluster": cluster}))
    with pytest.raises(ValueError, match="TF_CONFIG: 'replicas' must be an integer, not"):
        server_def(cluster, "ps", 0, None, None)
