"""Scripts that know nothing of clusters, run by the workers of one."""

import re
from pathlib import Path

import pytest
from plain_scripts import Launched, alone

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

DATA = Path(__file__).parents[1] / "data"
SCRIPTS = DATA / "plain_scripts"


@pytest.fixture(autouse=True)
def data(monkeypatch):
    monkeypatch.setenv("MNIST", str(DATA / "mnist5k"))


def numbers(text):
    """The numbers that a script has printed."""
    return [float(line.split()[-1]) for line in text.splitlines()]


def test_losses_of_synchronous_workers_are_those_of_the_script(tmp_path):
    # 101 rows for 3 workers: shares of different sizes. The loss is a sum over examples.
    launched = Launched(SCRIPTS / "softmax.py", "sync", tmp_path, workers=3, args=["sync"])
    first, *others = launched.outputs()
    assert others == [first, first]
    expected = alone(SCRIPTS / "softmax.py", tmp_path, ["sync"])
    assert numbers(first) == pytest.approx(numbers(expected), rel=1e-5)


@pytest.mark.slow
def test_a_loss_that_is_a_mean(tmp_path):
    args = ["sync", "mean"]
    launched = Launched(SCRIPTS / "softmax.py", "sync", tmp_path, servers=2, args=args)
    first, second = launched.outputs()
    assert second == first
    expected = alone(SCRIPTS / "softmax.py", tmp_path, args)
    assert numbers(first) == pytest.approx(numbers(expected), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["async", "sync:1"])
def test_accuracy_of_workers_that_do_not_wait_for_all(tmp_path, mode):
    launched = Launched(SCRIPTS / "softmax.py", mode, tmp_path, servers=2)
    for output in launched.outputs():
        assert numbers(output)[-1] > 0.8


@pytest.mark.slow
def test_all_reduce_trains_as_the_script_does(tmp_path):
    args = ["sync", "mean"]
    launched = Launched(SCRIPTS / "softmax.py", "all-reduce", tmp_path, servers=0, args=args)
    first, second = launched.outputs()
    assert second == first
    expected = alone(SCRIPTS / "softmax.py", tmp_path, args)
    assert numbers(first) == pytest.approx(numbers(expected), rel=1e-5)


def folders(tmp_path):
    """One for the script alone, one for the workers together."""
    found = tmp_path / "alone", tmp_path / "together"
    for folder in found:
        folder.mkdir()
    return found


@pytest.mark.slow
def test_a_monitored_session_with_a_dataset(tmp_path):
    one, many = folders(tmp_path)
    launched = Launched(SCRIPTS / "monitored.py", "sync", many, servers=2, args=["25"])
    first, second = launched.outputs()
    assert second == first
    expected = alone(SCRIPTS / "monitored.py", one, ["25"])
    assert numbers(first)[0] == numbers(expected)[0] == 25
    assert numbers(first)[1] == pytest.approx(numbers(expected)[1], rel=1e-3, abs=1e-9)
    for folder in (one, many):
        names = [path.name for path in (folder / "run").iterdir()]
        assert len([n for n in names if n.startswith("events")]) == 1
        saved = {n.partition(".index")[0] for n in names if n.endswith(".index")}
        assert saved == {f"model.ckpt-{n}" for n in (0, 10, 20, 25)}


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "servers"), [("sync", 1), ("all-reduce", 0)])
def test_a_supervisor_begins_writes_and_goes_on(tmp_path, mode, servers):
    one, many = folders(tmp_path)
    for begins in (0, 20):
        launched = Launched(SCRIPTS / "supervised.py", mode, many, servers=servers)
        first, second = launched.outputs()
        assert second == first
        expected = alone(SCRIPTS / "supervised.py", one)
        assert numbers(first)[:2] == numbers(expected)[:2] == [begins, begins + 20]
        assert numbers(first)[2] == pytest.approx(numbers(expected)[2], rel=1e-3, abs=1e-9)
        assert numbers(first)[3] == 0
    for folder in (one, many):
        names = [path.name for path in (folder / "run").iterdir()]
        assert len([n for n in names if n.startswith("events")]) == 2
        assert "graph.pbtxt" in names


@pytest.mark.slow
def test_an_asynchronous_global_step_counts_steps_of_the_script(tmp_path):
    launched = Launched(SCRIPTS / "monitored.py", "async", tmp_path, args=["60"])
    first, second = launched.outputs()
    assert second == first
    steps, error = numbers(first)
    assert steps in (60, 61)
    assert error < 0.1
    assert len(list((tmp_path / "run").glob("events*"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "servers"), [("sync", 1), ("all-reduce", 0)])
def test_an_estimator(tmp_path, mode, servers):
    one, many = folders(tmp_path)
    launched = Launched(SCRIPTS / "estimator.py", mode, many, servers=servers)
    first, second = launched.outputs()
    assert second == first
    expected = alone(SCRIPTS / "estimator.py", one)
    assert numbers(first) == pytest.approx(numbers(expected), rel=1e-3, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "servers"), [("sync", 2), ("all-reduce", 0)])
@pytest.mark.parametrize("args", [[], ["sum"], ["dataset"]], ids=["arrays", "sum", "dataset"])
def test_fit_of_keras(tmp_path, mode, servers, args):
    one, many = folders(tmp_path)
    launched = Launched(SCRIPTS / "keras_fit.py", mode, many, servers=servers, args=args)
    first, second = launched.outputs()
    assert numbers(second) == pytest.approx(numbers(first), rel=1e-6)
    expected = alone(SCRIPTS / "keras_fit.py", one, args)
    assert numbers(first) == pytest.approx(numbers(expected), rel=2e-4, abs=1e-6)
    names = {path.name for path in many.iterdir()}
    assert names == {path.name for path in one.iterdir()}
    assert len(list((many / "events" / "train").iterdir())) == 1
    assert len((many / "log.csv").read_text().splitlines()) == 4


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "workers"), [("async", 2), ("sync:1", 3)])
def test_fit_of_keras_by_workers_that_do_not_wait_for_all(tmp_path, mode, workers):
    one, many = folders(tmp_path)
    args = ["long"]
    launched = Launched(SCRIPTS / "keras_fit.py", mode, many, workers=workers, args=args)
    outputs = launched.outputs()
    error = evaluated(alone(SCRIPTS / "keras_fit.py", one, args))
    for output in outputs:
        assert evaluated(output) < max(3 * error, 0.5)


def evaluated(text):
    """What `evaluate` gave at the end."""
    return float(re.findall(r"evaluated (.*)", text)[-1])
