"""Which ops the suite executes: their values, their gradients, and their ways through files.

A plugin of pytest: a run of all tests records in every process, joins the records, and fails if an
op of the registry has none, so no list says which test covers which op. Runs of some tests (paths,
`-k`, `-m`) record nothing; `--op-record` makes them do so too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import wraps
from typing import Any
from unittest.mock import patch

import pytest

from headrace.autodiff import gradients
from headrace.executor import evaluate, interpreting, stages
from headrace.graph import graph_def
from headrace.graph.dtypes import DType, resource, variant
from headrace.graph_files import import_nodes
from headrace.ops.core import registry, static
from headrace.ops.core.build import PLACEHOLDER
from headrace.ops.core.registry import ArgDef, NotDifferentiable, OpDef
from headrace.passes import fold

_recorder = pytest.StashKey["Recorder"]()

#: What is recorded of an op.
KINDS = ("value", "gradient", "file")


class Recorder:
    """Records what the engine does, between `start` and `stop`.

    An op has a value when one of its implementations has returned; a gradient when its rule, or the
    vector-Jacobian product of its kernel, was put into a graph; a file when one test wrote it to a
    GraphDef and imported it.
    """

    def __init__(self) -> None:
        self.found: dict[str, set[str]] = {kind: set() for kind in KINDS}
        self._written: set[str] = set()
        self._imported: set[str] = set()
        self._patches = ExitStack()

    def start(self) -> None:
        """Begin to record."""
        self._replace(evaluate.Prepared, "__init__", self._of_prepared)
        self._replace(evaluate.Tracing, "evaluate", self._of_evaluate)
        self._replace(interpreting.Interpreting, "evaluate", self._of_evaluate)
        for module in (evaluate, interpreting, stages):
            self._replace(module, "handle_for", self._of_handle_for)
        for module in (static, fold):
            self._replace(module, "fold_values", self._of_fold_values)
        self._replace(gradients._Backward, "_through", self._of_through)
        self._replace(graph_def, "write_attrs", self._of_write_attrs)
        self._replace(import_nodes, "add_node", self._of_add_node)

    def stop(self) -> None:
        """Leave the engine as it was."""
        self._patches.close()

    def end_test(self) -> None:
        """What one test writes and another reads has not gone through a file."""
        self.found["file"] |= self._written & self._imported
        self._written.clear()
        self._imported.clear()

    def _replace(self, owner: Any, name: str, recording: Callable[[Any], Any]) -> None:
        function = getattr(owner, name)
        self._patches.enter_context(patch.object(owner, name, wraps(function)(recording(function))))

    def _of_prepared(self, init: Any) -> Any:
        def prepare(prepared: Any, node: Any) -> None:
            init(prepared, node)
            if node.type not in self.found["value"]:
                for name in ("kernel", "interpret", "host"):
                    setattr(prepared, name, self._counted(getattr(prepared, name), node.type))

        return prepare

    def _counted(self, function: Any, op_type: str) -> Any:
        if function is None:
            return None

        def implementation(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self.found["value"].add(op_type)
            return result

        return implementation

    def _of_evaluate(self, evaluate: Any) -> Any:
        def run(evaluation: Any, node: Any, args: Any) -> Any:
            outputs = evaluate(evaluation, node, args)
            if node.op_def.lower is not None:
                self.found["value"].add(node.type)
            return outputs

        return run

    def _of_handle_for(self, handle_for: Any) -> Any:
        def make(node: Any) -> Any:
            handle = handle_for(node)
            self.found["value"].add(node.type)
            return handle

        return make

    def _of_fold_values(self, fold_values: Any) -> Any:
        def compute(definition: OpDef, *args: Any) -> Any:
            outputs = fold_values(definition, *args)
            if outputs is not None:
                self.found["value"].add(definition.name)
            return outputs

        return compute

    def _of_through(self, through: Any) -> Any:
        def differentiate(backward: Any, op: Any, out_grads: Any, stops: Any) -> Any:
            if any(g is not None for g in out_grads):
                self.found["gradient"].add(op.type)  # a rule may also be there to refuse
            return through(backward, op, out_grads, stops)

        return differentiate

    def _of_write_attrs(self, write_attrs: Any) -> Any:
        def write(node: Any, op_def: OpDef, attrs: Any) -> None:
            write_attrs(node, op_def, attrs)
            self._written.add(op_def.name)

        return write

    def _of_add_node(self, add_node: Any) -> Any:
        def add(*args: Any, **kwargs: Any) -> Any:
            op = add_node(*args, **kwargs)
            self._imported.add(op.type)
            return op

        return add


def missing(op_defs: Iterable[OpDef], found: dict[str, set[str]]) -> dict[str, list[str]]:
    """By kind, the ops that should have a record of it and have none."""
    lacking: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for d in op_defs:
        for kind in needed(d):
            if d.name not in found[kind]:
                lacking[kind].append(d.name)
    return {kind: sorted(names) for kind, names in lacking.items() if names}


def needed(d: OpDef) -> tuple[str, ...]:
    """The kinds of record that an op has to have."""
    if d.traits.by_hand:  # before anything runs it, it is raised to functions
        return ()
    if d is PLACEHOLDER:  # what is fed takes its place
        return ("file",)
    return KINDS if has_gradient(d) else ("value", "file")


def has_gradient(d: OpDef) -> bool:
    """Whether an op has a gradient: a rule, or a derivative of what it computes."""
    if isinstance(d.gradient, NotDifferentiable):
        return False
    if d.gradient is None and d.kernel is None and d.lower is None:
        return False
    return all(any(_may_carry(a, d) for a in args) for args in (d.inputs, d.outputs))


def _may_carry(arg: ArgDef, d: OpDef) -> bool:
    """Whether the values of an argument may have gradients."""
    if arg.dtype is not None:
        return _carries(arg.dtype)
    allowed = d.attrs[str(arg.type_attr or arg.type_list_attr)].allowed
    return allowed is None or any(map(_carries, allowed))


def _carries(dtype: DType) -> bool:
    return dtype.is_floating or dtype.is_complex or dtype in (variant, resource)


# -- hooks of pytest ----------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "fail if the run leaves out the value, gradient or file of an op, as runs of all do"
    parser.addoption("--op-record", action="store_true", help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    asked = config.option.op_record or is_of_all_tests(config)
    if getattr(config, "workerinput", {}).get("op_record", asked):
        config.stash[_recorder] = Recorder()
        config.stash[_recorder].start()


def is_of_all_tests(config: pytest.Config) -> bool:
    """Whether a run takes every test but the slow ones: no paths, and nothing that picks tests."""
    chosen = config.option
    return (
        config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and chosen.markexpr == "not slow"
        and not any((chosen.keyword, chosen.collectonly, chosen.deselect, chosen.ignore))
        and not any(getattr(chosen, name, False) for name in ("lf", "stepwise"))
    )


@pytest.fixture(autouse=True)
def _record_ends(request: pytest.FixtureRequest) -> Any:
    yield
    if _recorder in request.config.stash:
        request.config.stash[_recorder].end_test()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """The processes of pytest-xdist do what this one does."""
    node.workerinput["op_record"] = _recorder in node.config.stash


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Joins what a process of pytest-xdist recorded."""
    # A process that was killed has left nothing.
    if _recorder in node.config.stash and hasattr(node, "workeroutput"):
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
def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    session = terminalreporter._session
    ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if _recorder not in config.stash or not ended or session.shouldfail or session.shouldstop:
        return
    own = [d for name, d in registry.all_op_defs().items() if not name.startswith("Test")]
    lacking = missing(own, config.stash[_recorder].found)
    for kind, names in lacking.items():
        terminalreporter.write_line(f"No test executes the {kind} of {len(names)} ops: {names}")
    if lacking:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
