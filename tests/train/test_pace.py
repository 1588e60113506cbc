"""Writers that give processors and memory back while steps run, on a clock of the test."""

import numpy as np
import pytest

from headrace.errors import CancelledError
from headrace.graph import dtypes
from headrace.train.checkpoint import CheckpointReader, TensorSlice, storage, write
from headrace.train.checkpoint.pace import Pace, PaceRule


class Machine:
    """A processor that steps and a writer share: steps go at ``rate`` while the writer rests, and
    at ``beside`` of that while it works. Each piece takes ``piece`` seconds."""

    def __init__(self, rate, beside, piece=0.005):
        self.rate, self.beside, self.piece = rate, beside, piece
        self.now = self.made = 0.0

    def steps(self):
        return int(self.made)

    def clock(self):
        return self.now

    def pass_by(self, seconds, share=1.0):
        self.now += seconds
        self.made += seconds * self.rate * share

    def write(self, pieces, pace):
        for _ in range(pieces):
            self.pass_by(self.piece, self.beside)
            pace()


def run(machine, pieces=1000):
    """Write so many pieces: for how long, and which part of their rate steps had."""
    pace = Pace(machine.steps, machine.clock, machine.pass_by)
    begun, made = machine.now, machine.made
    machine.write(pieces, pace)
    taken = machine.now - begun
    return taken, (machine.made - made) / taken / machine.rate if machine.rate else 1.0


@pytest.mark.parametrize("beside", [0.0, 0.3, 0.6, 0.8])
@pytest.mark.parametrize("rate", [10.0, 40.0, 1000.0])
def test_steps_keep_most_of_their_rate_and_the_save_ends(rate, beside):
    taken, kept = run(Machine(rate, beside))
    assert kept >= 0.8
    assert 5.0 <= taken <= 51.0  # five seconds of work


def test_nothing_waits_where_nobody_trains():
    machine = Machine(0.0, 0.0)
    begun = machine.now
    run(machine)
    assert machine.now - begun == pytest.approx(5.0 + 1.0, abs=0.11)


def test_nothing_waits_for_steps_that_the_writer_does_not_disturb():
    taken, kept = run(Machine(100.0, 1.0))
    assert kept == pytest.approx(1.0)
    assert taken < 8.0


def test_the_writer_works_all_of_the_time_when_training_has_ended():
    machine = Machine(40.0, 0.3)
    pace = Pace(machine.steps, machine.clock, machine.pass_by)
    machine.write(100, pace)
    assert pace.rule.share < 0.5
    machine.rate = 0.0
    machine.write(200, pace)
    begun = machine.now
    machine.write(500, pace)
    assert machine.now - begun == pytest.approx(2.5)


def test_a_long_rest_ends_when_training_does():
    """Somebody waits for the last checkpoint: the piece before took a minute."""
    machine = Machine(40.0, 0.3)

    def wait(seconds):
        assert seconds <= 0.25
        if machine.now > 70.0:
            machine.rate = 0.0
        machine.pass_by(seconds)

    pace = Pace(machine.steps, machine.clock, wait)
    machine.pass_by(60.0, 0.3)
    pace()
    assert 70.0 < machine.now < 72.0
    machine.write(10, pace)
    assert machine.now < 72.5


def test_a_slow_step_in_a_long_rest_is_no_end():
    """One step takes four seconds, once others have been fast enough to be counted."""
    machine = Machine(2.0, 1.0)
    pace = Pace(machine.steps, machine.clock, machine.pass_by)
    machine.pass_by(10.0)
    pace()
    assert machine.now > 35.0
    assert pace.rule.share < 1.0


def test_a_save_that_nobody_waits_for_does_not_rest_to_its_end():
    machine, checks = Machine(40.0, 0.3), []

    def check():
        checks.append(machine.now)
        if len(checks) == 3:
            raise CancelledError(None, None, "The session is closed.")

    pace = Pace(machine.steps, machine.clock, machine.pass_by, check)
    begun = machine.now
    machine.pass_by(60.0, 0.3)
    with pytest.raises(CancelledError):
        pace()
    assert machine.now - begun == pytest.approx(60.75)


def test_there_is_a_bound_for_all_rests():
    rule = PaceRule(usual=10.0)
    for _ in range(100):
        rule.saw(0.25, 1)
    assert rule.share == pytest.approx(0.1)
    assert rule.rest(1.0) == pytest.approx(9.0)
    assert sum(rule.rest(1.0) for _ in range(100)) == pytest.approx(111.0)
    assert rule.rest(1.0) == 0.0


def test_a_checkpoint_is_written_in_pieces_with_rests(tmp_path, monkeypatch):
    monkeypatch.setattr(Pace, "PIECE", 1000)
    machine = Machine(0.0, 0.0)
    pace, calls = Pace(machine.steps, machine.clock, machine.pass_by), []
    monkeypatch.setattr(Pace, "__call__", lambda self: calls.append(self))
    values = np.arange(5000, dtype=np.float32)
    prefix = str(tmp_path / "m")
    write(prefix, [TensorSlice.whole("v", dtypes.float32, values)], pace=pace)
    assert calls == [pace] * 20
    assert storage.CHUNK > Pace.PIECE
    np.testing.assert_array_equal(CheckpointReader(prefix).get_tensor("v"), values)
