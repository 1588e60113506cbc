"""Scripts that know nothing of clusters, run by the workers of one."""

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
