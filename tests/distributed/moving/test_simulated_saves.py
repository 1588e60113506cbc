"""Random schedules of consistent saves; see `simulated_save`."""

import pytest
from simulated_save import SimulatedSave

_SLOW = pytest.param(range(1000, 101_000), marks=[pytest.mark.slow, pytest.mark.timeout(3000)])


@pytest.mark.parametrize("seeds", [range(300), _SLOW], ids=["always", "slow"])
def test_a_checkpoint_has_all_of_each_step_that_did_not_fail(seeds):
    saved = given_up = ended = failed = renewals = let_go = 0
    for seed in seeds:
        world = SimulatedSave(seed).run(400)
        for first, second in world.saved:
            assert first ^ second <= world.failed, seed
        saved += len(world.saved)
        given_up, ended = given_up + world.given_up, ended + world.ended
        failed += len(world.failed)
        renewals, let_go = renewals + world.renewals, let_go + world.let_go
    # It was no easy world, and saves came to be in it.
    assert min(saved, given_up, ended, failed, renewals, let_go) > len(seeds) / 10
