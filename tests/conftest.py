"""Every test starts with an empty default graph and checks the step graph around each pass."""

from __future__ import annotations

import logging

import op_record
import pytest

from headrace.graph.graph import default_graph_stack, default_session_stack
from headrace.ops.core import registry
from headrace.ops.core.build import apply_op
from headrace.settings import flags

_recorder = pytest.StashKey[op_record.Recorder]()


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "fail if the run leaves out the value, gradient or file of an op (for runs of all tests)"
    parser.addoption("--op-record", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--op-record"):
        config.stash[_recorder] = op_record.Recorder()
        config.stash[_recorder].start()


@pytest.fixture(autouse=True)
def _record_ends(request: pytest.FixtureRequest):
    yield
    if _recorder in request.config.stash:
        request.config.stash[_recorder].end_test()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """Joins what a process of pytest-xdist recorded."""
    if _recorder in node.config.stash:
        for kind, names in node.workeroutput.get("op_record", {}).items():
            node.config.stash[_recorder].found[kind].update(names)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if _recorder not in config.stash:
        return
    recorder = config.stash[_recorder]
    recorder.stop()
    if hasattr(config, "workeroutput"):
        config.workeroutput["op_record"] = {k: sorted(v) for k, v in recorder.found.items()}


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if _recorder not in config.stash:
        return
    own = [d for name, d in registry.all_op_defs().items() if not name.startswith("Test")]
    lacking = op_record.missing(own, config.stash[_recorder].found)
    for kind, names in lacking.items():
        terminalreporter.write_line(f"No test executes the {kind} of {len(names)} ops: {names}")
    if lacking:
        terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _fresh_graph(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flags, "verify", True)
    default_graph_stack.base = None
    default_graph_stack.items.clear()
    default_session_stack.items.clear()
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
