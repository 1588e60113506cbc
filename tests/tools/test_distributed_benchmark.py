"""The harness of `benchmarks/distributed.py`: its processes, its arithmetic and its programs."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import types
from pathlib import Path

import pytest

import headrace as tf

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def modules(monkeypatch):
    """The benchmark's modules, importable for the length of a test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import distributed
    import distributed_cluster
    import distributed_workloads

    return types.SimpleNamespace(
        bench=distributed, cluster=distributed_cluster, work=distributed_workloads
    )


@pytest.fixture
def start(modules, tmp_path):
    """Starts a task that runs a script, and ends it after the test."""
    with contextlib.ExitStack() as stack:

        def started(script: str):
            log = tmp_path / "log"
            with log.open("w") as errors:
                process = subprocess.Popen(
                    [sys.executable, "-S", "-c", script],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    start_new_session=True,
                )
            stack.callback(modules.cluster.end_group, process)
            return modules.cluster.TaskProcess("side ps0", process, log)

        yield started


ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


def test_a_task_answers(start):
    task = start(ECHO)
    task.ask(do="time", seconds=1)
    assert task.answer(10) == {"do": "time", "seconds": 1}


def test_an_error_shows_its_first_line_and_the_log(start):
    script = "import sys; sys.stderr.write('why\\n'); sys.stderr.flush()\n" + ECHO
    task = start(script)
    task.ask(error="Bad: thing\nmore")
    with pytest.raises(Exception, match=r"side ps0 failed: Bad: thing\n    why$"):
        task.answer(10)


def test_a_task_that_ends_is_named_with_its_status(start):
    task = start("import sys; sys.exit(3)")
    with pytest.raises(Exception, match="side ps0 ended with status 3"):
        task.answer(10)


def test_silence_is_an_error_after_the_timeout(start):
    with pytest.raises(Exception, match=r"side ps0 gave no answer in 0\.01 s"):
        start(ECHO).answer(0.01)


def test_the_end_of_another_task_ends_the_wait(modules, start):
    waiting, other = start(ECHO), start(ECHO)
    other.name = "side ps1"
    modules.cluster.end_group(other.process)
    with pytest.raises(Exception, match="side ps1 ended with status -9"):
        waiting.answer(0.01, [waiting, other])


def test_memory_of_a_task(start):
    task = start(ECHO)
    task.ask(here=1)
    task.answer(10)
    assert 2**20 < task.memory("VmRSS") <= task.memory("VmHWM") < 2**30


def test_free_ports_differ(modules):
    assert len(set(modules.cluster.free_ports(8))) == 8


def test_namespaces_say_why_not(modules, monkeypatch):
    monkeypatch.setattr(modules.cluster.shutil, "which", lambda tool: None)
    with pytest.raises(modules.cluster.NotAllowed, match="need ip and unshare and nsenter"):
        modules.cluster.Namespaces()


@pytest.mark.parametrize(
    ("measure", "ours", "target", "met"),
    [
        ("seconds", 1.0, 0.5, True),
        ("seconds", 1.1, 0.5, False),
        ("rate", 4.0, 2.0, True),
        ("rate", 3.9, 2.0, False),
        ("bytes", 1.0, None, None),
    ],
)
def test_verdict(modules, measure, ours, target, met):
    row = modules.bench.Row("name", "title", measure, target)
    row.values = {"headrace": [9.0, ours, 0.0], "tensorflow": [2.0]}
    assert row.met is met


class _Cluster:
    """Stands in for a cluster: notes what is asked of it, and may fail."""

    def __init__(self, side: str, asked: list, fails: bool = False) -> None:
        self.side, self.servers, self._asked, self._fails = side, [None], asked, fails

    def time(self, seconds, least):
        from distributed_cluster import SideError

        self._asked.append((self.side, "time"))
        if self._fails:
            raise SideError("side ps0 ended")
        return [[0.5, 0.25, 0.5], [0.25]]

    def check(self):
        self._asked.append((self.side, "check"))

    def close(self):
        self._asked.append((self.side, "close"))


def _bench(modules, monkeypatch, asked, failing=None):
    bench = modules.bench.Bench({"headrace": "", "tensorflow": ""}, 2, 1, 1.0, 1.0, Path())
    monkeypatch.setattr(
        bench, "_start", lambda side, *_: _Cluster(side, asked, side == failing), raising=True
    )
    return bench


def test_sides_take_turns(modules, monkeypatch):
    asked: list = []
    workload = modules.work.Workload("name", "title", 0.4, "null")
    row = _bench(modules, monkeypatch, asked).measure(workload)
    turn = [("headrace", "time"), ("tensorflow", "time")]
    assert asked[:6] == turn * 2 + [("headrace", "check"), ("tensorflow", "check")]
    assert row.values["headrace"] == [0.375, 0.375]
    assert row.percentiles("headrace")["p99"] == 0.5


def test_alone_means_one_side_at_a_time(modules, monkeypatch):
    asked: list = []
    workload = modules.work.Workload("name", "title", 0.4, "null", alone=True)
    _bench(modules, monkeypatch, asked).measure(workload)
    each = ["time", "check", "close"]
    assert asked == [(side, what) for side in ("headrace", "tensorflow") for what in each]


def test_rates_add_up_over_workers(modules, monkeypatch):
    workload = modules.work.Workload("name", "title", 2.0, "softmax", measure="rate")
    row = _bench(modules, monkeypatch, []).measure(workload)
    assert row.median("headrace") == pytest.approx(3 / 1.25 + 4)


def test_a_failed_side_leaves_the_other_alone(modules, monkeypatch):
    workload = modules.work.Workload("name", "title", 0.4, "null")
    row = _bench(modules, monkeypatch, [], failing="headrace").measure(workload)
    assert row.errors == {"headrace": "side ps0 ended"}
    assert row.median("tensorflow") == 0.375
    assert row.met is None


class _NoDevices(types.ModuleType):
    """Headrace, except that every device is the one at hand."""

    train = types.SimpleNamespace(
        replica_device_setter=lambda **_: None,
        GradientDescentOptimizer=tf.train.GradientDescentOptimizer,
    )

    def __getattr__(self, name):
        return getattr(tf, name)

    def device(self, name):
        return contextlib.nullcontext()


@pytest.mark.parametrize(
    ("build", "arguments"),
    [
        ("null", {"kind": "scalar"}),
        ("null", {"kind": "dense", "megabytes": 1}),
        ("null", {"kind": "sparse", "megabytes": 1}),
        ("softmax", {}),
        ("push", {}),
    ],
)
def test_programs_pass_their_own_check(modules, build, arguments):
    task = modules.work.Task(_NoDevices("headrace"), None, "", 0, 1, 2)
    program = modules.work.BUILDERS[build](task, **arguments)
    program.run()
    program.check()


def test_the_check_notices_steps_that_do_nothing(modules):
    module = _NoDevices("headrace")
    module.group = lambda *updates: tf.no_op()
    program = modules.work.null_step(modules.work.Task(module, None, "", 0, 1, 1), "scalar")
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        program.check()


def test_every_row_names_a_program_that_exists(modules):
    names = [workload.name for workload in modules.work.WORKLOADS]
    assert len(set(names)) == len(names)
    assert {w.build for w in modules.work.WORKLOADS} <= set(modules.work.BUILDERS)
