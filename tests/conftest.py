"""Every test starts with an empty default graph and checks the step graph around each pass."""

from __future__ import annotations

import gc
import logging
import os

import pytest

from headrace.executor import equal_programs
from headrace.graph.graph import default_graph_stack, default_session_stack
from headrace.ops.core import registry
from headrace.ops.core.build import apply_op
from headrace.settings import flags

#: Processes of the tests leave nothing in the user's cache.
os.environ.setdefault("HEADRACE_COMPILATION_CACHE", "")

#: Which ops a run of all tests executes; a store of objects for those that ask for it.
pytest_plugins = ["op_record", "object_store"]


def pytest_collection_finish() -> None:
    """All tests are millions of objects, which each collection would go through again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _fresh_graph(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flags, "verify", True)
    default_graph_stack.base = None
    default_graph_stack.items.clear()
    default_session_stack.items.clear()
    equal_programs.forget()  # those that earlier tests have compiled
    yield
    default_graph_stack.items.clear()
    default_session_stack.items.clear()


@pytest.fixture(autouse=True)
def _loggers_as_at_start():
    """What one test says of logging is no matter of the next."""
    logging.disable(logging.NOTSET)
    logging.getLogger().setLevel(logging.WARNING)
    for name in ("tensorflow", "headrace"):
        logger = logging.getLogger(name)
        logger.disabled, logger.propagate = False, True
        logger.setLevel(logging.NOTSET)


@pytest.fixture(params=["never", "always"])
def interpret(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test twice: with compiled and with interpreted plans."""
    monkeypatch.setattr(flags, "interpret", request.param)
    return request.param


@pytest.fixture
def new_op():
    """``new_op(signature, **definition)`` defines an op and returns a function that applies it."""
    names = []

    def define(signature, **definition):
        op_def = registry.define_op(signature, **definition)
        names.append(op_def.name)

        def apply(*inputs, **attrs):
            return apply_op(op_def, inputs, attrs)

        return apply

    yield define
    for name in names:
        del registry._OPS[name], registry._DEFINED_IN[name]
