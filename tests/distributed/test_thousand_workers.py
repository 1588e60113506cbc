"""A master and a thousand workers as state machines: whatever dies, every step ends rightly."""

import pytest
from simulated_cluster import MASTER, NOTICE, Simulation

from headrace.errors import AbortedError, UnavailableError


def check_outcomes(simulation):
    """Every step has ended rightly, and soon; nothing of any is left."""
    assert not simulation.open
    for number, outcome in simulation.outcomes.items():
        members = {*outcome.members, MASTER}
        hits = [
            (max(at, outcome.began), died)
            for at, nodes, died in simulation.faults
            if at <= outcome.ended and nodes <= members
        ]
        for at, died in hits:
            if died and at > outcome.began:
                assert outcome.ended <= at + 5, (number, outcome, hits)
        if outcome.error is None:
            last = len(outcome.members) - 1
            assert outcome.value == last * (last + 1) // 2 + (last - 1) * last // 2
            assert outcome.ended <= outcome.began + 5
        else:
            assert isinstance(outcome.error, (UnavailableError, AbortedError)), outcome.error
            assert any(at <= outcome.ended <= at + 5 for at, _ in hits), (number, outcome, hits)
    simulation.run_until(simulation.now + 70.0)
    for node in (n for n in simulation.nodes.values() if n.alive):
        assert node.machine.running() == []
        assert node.machine.held == 0


def begun(workers, seed):
    simulation = Simulation(workers, seed)
    simulation.tick()
    return simulation


def test_a_step_over_a_thousand_workers():
    simulation = begun(1000, 1)
    plan, members = simulation.plan(simulation.names, 1)
    number = simulation.step(plan, simulation.names, members)
    simulation.run_until(5.0)
    assert simulation.outcomes[number].error is None
    check_outcomes(simulation)


@pytest.mark.parametrize("when", [0.0, 0.02, 0.06, 0.1, 0.2, 0.3])
def test_one_of_a_thousand_dies(when):
    simulation = begun(1000, 2)
    plan, members = simulation.plan(simulation.names, 1)
    number = simulation.step(plan, simulation.names, members)
    simulation.run_until(when)
    simulation.kill("w500")
    simulation.run_until(when + 6.0)
    assert isinstance(simulation.outcomes[number].error, (UnavailableError, type(None)))
    check_outcomes(simulation)


def test_after_a_restart_old_plans_are_refused_and_new_ones_run():
    simulation = begun(10, 3)
    plan, members = simulation.plan(simulation.names, 1)
    simulation.kill("w3", back_after=0.5)
    simulation.run_until(10.0)
    old = simulation.step(plan, simulation.names, members)
    plan, members = simulation.plan(simulation.names, 2)
    new = simulation.step(plan, simulation.names, members)
    simulation.run_until(20.0)
    assert isinstance(simulation.outcomes[old].error, AbortedError)
    assert simulation.outcomes[new].error is None


@pytest.mark.parametrize("fault", ["cut", "kill"])
def test_tensors_lost_before_the_second_task_was_asked_for_its_part(fault):
    simulation = begun(2, 4)
    simulation.delay = 0.3
    plan, members = simulation.plan(simulation.names, 1)
    for _ in range(300):
        number = simulation.step(plan, simulation.names, members)
        simulation.run_until(simulation.now + simulation.rng.uniform(0, 0.6))
        if fault == "cut":
            simulation.cut("w0", "w1", within=0.01)
        else:
            simulation.kill("w0", within=0.01, back_after=0.01)
        simulation.run_until(simulation.now + 5.0)
        assert number not in simulation.open
        assert isinstance(simulation.outcomes[number].error, (UnavailableError, type(None)))
        plan, members = simulation.plan(simulation.names, 1)
    assert sum(o.error is not None for o in simulation.outcomes.values()) > 20
    check_outcomes(simulation)


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_workers_with_all_that_can_happen(seed):
    errors = all_that_can_happen(1000, seed, [2, 3, 8, 50], plans=60, steps=200)
    for kind in (type(None), UnavailableError, AbortedError):
        assert kind in errors


def test_no_step_waits_for_ever_over_a_thousand_schedules():
    errors = [e for seed in range(1000) for e in all_that_can_happen(5, seed, [2, 3, 4], 4, 4)]
    assert sum(e is UnavailableError for e in errors) > 500


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_step_waits_for_ever_over_a_hundred_thousand_schedules():
    for seed in range(1000, 101_000):
        all_that_can_happen(5, seed, [2, 3, 4], 4, 4)


def all_that_can_happen(workers, seed, sizes, plans, steps):
    """The kinds of errors of so many steps, each over some workers, which die and are cut off."""
    simulation = begun(workers, seed)
    simulation.drop_rate = 0.0005
    rng = simulation.rng
    made = {}
    for _ in range(plans):
        alive = [n for n in simulation.names if simulation.nodes[n].alive]
        chosen = rng.sample(alive, rng.choice(sizes))
        made[simulation.plan(chosen, 1)] = chosen
    for (number, members), chosen in rng.sample(sorted_plans(made) * 4, steps):
        simulation.step(number, chosen, members)
        for _ in range(rng.randrange(3)):
            victim = rng.choice(rng.choice(list(made.values())))
            if rng.random() < 0.2:
                simulation.kill(victim, rng.uniform(0.01, NOTICE), rng.choice([None, 0.2, 3.0]))
            else:
                simulation.cut(victim, rng.choice([MASTER, *chosen]), rng.uniform(0.01, NOTICE))
        simulation.run_until(simulation.now + rng.uniform(0, 0.3))
    simulation.drop_rate = 0.0
    simulation.run_until(simulation.now + 10.0)
    check_outcomes(simulation)
    return [type(o.error) for o in simulation.outcomes.values()]


def sorted_plans(plans):
    return sorted(plans.items(), key=lambda item: item[0][0])
