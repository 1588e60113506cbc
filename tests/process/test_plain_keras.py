"""`fit` of Keras by workers, where an optimiser or a step looks at all gradients together."""

from pathlib import Path

import pytest
from plain_scripts import Launched, alone

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

SCRIPT = Path(__file__).parents[1] / "data" / "plain_scripts" / "keras_custom.py"


def numbers(text):
    """All numbers that a script has printed, by their names."""
    lines = [line.split() for line in text.splitlines()]
    return [line[0] for line in lines], [float(n) for line in lines for n in line[1:]]


def check_alike(outputs, expected):
    """Each worker prints what the script prints alone."""
    names, values = numbers(expected)
    for output in outputs:
        found, of_worker = numbers(output)
        assert found == names
        assert of_worker == pytest.approx(values, rel=2e-4)


@pytest.mark.slow
def test_a_model_with_its_own_step(tmp_path):
    launched = Launched(SCRIPT, "sync", tmp_path, args=["step", "2"])
    check_alike(launched.outputs(), alone(SCRIPT, tmp_path, ["step", "2"]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["global_clipnorm", "accumulation", "scale"])
@pytest.mark.parametrize(("mode", "servers"), [("sync", 2), ("all-reduce", 0)])
def test_an_optimizer_that_looks_at_all_gradients(tmp_path, mode, servers, kind):
    launched = Launched(SCRIPT, mode, tmp_path, servers=servers, args=[kind, "3"])
    check_alike(launched.outputs(), alone(SCRIPT, tmp_path, [kind, "3"]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["step", "global_clipnorm", "accumulation", "scale"])
def test_they_train_asynchronously_too(tmp_path, kind):
    launched = Launched(SCRIPT, "async", tmp_path, args=[kind, "8"])
    for output in launched.outputs():
        lines = output.splitlines()
        errors = [float(line.split()[1]) for line in lines if line.startswith("mean_absolute")]
        assert errors[-1] <= errors[0]


@pytest.mark.slow
def test_moving_averages_begin_with_the_values_of_the_model(tmp_path):
    """The mean is that of all rows; the variance is that of each worker's rows, which is less."""
    launched = Launched(SCRIPT, "sync", tmp_path, args=["moving", "2"])
    first, second = launched.outputs()
    assert second == first
    found, expected = (
        numbers(t)[1][-5:] for t in (first, alone(SCRIPT, tmp_path, ["moving", "2"]))
    )
    assert found[0] == pytest.approx(expected[0], rel=1e-3)
    assert found[1:] == pytest.approx(expected[1:], abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "servers"), [("sync", 1), ("all-reduce", 0)])
def test_a_training_that_ended_early_goes_on_from_its_backup(tmp_path, mode, servers):
    one, many = tmp_path / "alone", tmp_path / "together"
    one.mkdir()
    many.mkdir()
    args = ["backup", "4", "fails"]
    Launched(SCRIPT, mode, many, servers=servers, args=args).outputs(code=3)
    assert (many / "backup").is_dir()
    outputs = Launched(SCRIPT, mode, many, servers=servers, args=args[:2]).outputs()
    assert not (many / "backup").exists()
    _, values = numbers(alone(SCRIPT, one, args[:2]))
    for output in outputs:
        _, found = numbers(output)
        assert found[:2] == [2, 3]
        # Of the history the last two epochs, the norm, and the number of steps.
        expected = [*values[6:8], *values[10:12], *values[12:]]
        assert found[2:] == pytest.approx(expected, rel=2e-4)


GIVEN = SCRIPT.with_name("keras_given.py")


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "servers"), [("sync", 1), ("all-reduce", 0)])
def test_values_from_a_callback_and_from_the_script_count(tmp_path, mode, servers):
    """`EarlyStopping` gives back the best weights at the end; the script sets others later."""
    launched = Launched(GIVEN, mode, tmp_path, servers=servers)
    check_alike(launched.outputs(), alone(GIVEN, tmp_path))


@pytest.mark.slow
def test_asynchronously_all_have_the_best_weights_of_the_chief(tmp_path):
    launched = Launched(GIVEN, "async", tmp_path, args=["async"])
    chief, other = (numbers(output)[1] for output in launched.outputs())
    assert chief[1] == pytest.approx(chief[0], rel=1e-5)
    assert other[1:] == chief[1:]


AVERAGES = SCRIPT.with_name("keras_averages.py")


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "servers"), [("sync", 1), ("all-reduce", 0)])
def test_the_model_has_the_averages_of_its_weights(tmp_path, mode, servers):
    launched = Launched(AVERAGES, mode, tmp_path, servers=servers)
    check_alike(launched.outputs(), alone(AVERAGES, tmp_path))


@pytest.mark.slow
def test_asynchronously_all_have_the_averages_of_the_chief(tmp_path):
    chief, other = (numbers(o)[1] for o in Launched(AVERAGES, "async", tmp_path).outputs())
    assert other[:5] == chief[:5]
    assert chief[:5] == pytest.approx(chief[5:], rel=1e-5)
