"""Every test starts with an empty default graph and checks the step graph around each pass."""

from __future__ import annotations

import pytest

from headrace.config import flags
from headrace.graph.graph import default_graph_stack, default_session_stack


@pytest.fixture(autouse=True)
def _fresh_graph(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flags, "verify", True)
    default_graph_stack.base = None
    default_graph_stack.items.clear()
    default_session_stack.items.clear()
    yield
    default_graph_stack.items.clear()
    default_session_stack.items.clear()


@pytest.fixture(params=["never", "always"])
def interpret(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test twice: with compiled and with interpreted plans."""
    monkeypatch.setattr(flags, "interpret", request.param)
    return request.param
