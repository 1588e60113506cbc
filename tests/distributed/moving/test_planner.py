"""Plans of moves: even shares with few moves, and nothing left where a task retires."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.distributed.moving.planner import plan_moves

TASKS = [f"ps{i}" for i in range(5)]


@st.composite
def clusters(draw):
    sizes = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1000)), max_size=40))
    found = {task: {} for task in TASKS}
    for i, (task, size) in enumerate(sizes):
        found[TASKS[task]][f"v{i}"] = size
    return found, draw(st.sets(st.sampled_from(TASKS), max_size=4))


def _after(sizes, moves):
    now = {task: dict(own) for task, own in sizes.items()}
    for name, source, to in moves:
        now[to][name] = now[source].pop(name)
    return now


@given(clusters())
@settings(max_examples=200, deadline=None)
def test_shares_are_even_and_who_retires_has_nothing(cluster):
    sizes, retiring = cluster
    moves = plan_moves(sizes, TASKS, retiring)
    assert len({name for name, _, _ in moves}) == len(moves)
    now = _after(sizes, moves)
    loads = {task: sum(own.values()) for task, own in now.items() if task not in retiring}
    assert not any(now[task] for task in retiring)
    assert sum(loads.values()) == sum(sum(own.values()) for own in sizes.values())
    largest = max((s for own in sizes.values() for s in own.values()), default=0)
    mean = sum(loads.values()) / len(loads)
    assert max(loads.values()) - min(loads.values()) <= max(largest, 0.1 * mean)
    # What is even stays as it is.
    assert plan_moves(now, TASKS, retiring) == []


def test_a_new_server_takes_its_share_and_nothing_else_moves():
    old = {f"ps{i}": {f"v{i}_{k}": 10 for k in range(15)} for i in range(2)}
    moves = plan_moves({**old, "ps2": {}}, ["ps0", "ps1", "ps2"])
    assert {to for _, _, to in moves} == {"ps2"}
    assert len(moves) in (9, 10)


def test_a_server_that_retires_gives_to_those_that_have_least():
    sizes = {"ps0": {"a": 100}, "ps1": {"b": 10}, "ps2": {"c": 50, "d": 40}}
    assert plan_moves(sizes, ["ps0", "ps1", "ps2"], ["ps2"]) == [
        ("c", "ps2", "ps1"),
        ("d", "ps2", "ps1"),
    ]


def test_tasks_without_variables_and_mistakes():
    assert plan_moves({}, ["ps0"]) == []
    with pytest.raises(ValueError, match="No task is left for variables: ps0 retire"):
        plan_moves({"ps0": {"a": 1}}, ["ps0"], ["ps0"])
    with pytest.raises(ValueError, match="Variable a is at ps0 and at ps1"):
        plan_moves({"ps0": {"a": 1}, "ps1": {"a": 1}}, ["ps0", "ps1"])
