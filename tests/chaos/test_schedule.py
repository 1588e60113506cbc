"""Schedules of faults: they follow from a seed, and leave tasks the time to come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.chaos.schedule import KINDS, Cluster, Fault, make_schedule


def test_equal_seeds_give_equal_schedules():
    one, other, third = (make_schedule(seed, 300, Cluster(2, 4)) for seed in (7, 7, 8))
    assert one == other != third


@given(
    seed=st.integers(0, 10**6),
    cluster=st.builds(Cluster, st.integers(1, 3), st.integers(1, 5)),
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, unique=True),
    every=st.floats(0.5, 10),
)
def test_a_task_is_left_alone_until_it_could_come_back(seed, cluster, kinds, every):
    faults = make_schedule(seed, 60, cluster, kinds, every)
    assert [f.at for f in faults] == sorted(f.at for f in faults)
    ends = {}
    for fault in faults:
        assert fault.kind in kinds
        assert fault.end <= 60.01
        assert fault.task in cluster.tasks or (fault.kind.endswith("disk") and not fault.task)
        assert fault.at >= ends.get(fault.task, 0)
        ends[fault.task] = fault.end


def test_all_kinds_and_tasks_are_hit():
    faults = make_schedule(7, 600, Cluster(2, 4))
    assert {f.kind for f in faults} == set(KINDS)
    assert {f.task for f in faults} == {*Cluster(2, 4).tasks, ""}


def test_a_fault_as_text():
    assert str(Fault(3.25, "stop", "ps/1", 2.0)) == "  3.2 s: stop ps/1 for 2.0 s"
    assert str(Fault(10.0, "cut", "worker/0", 0.0)) == " 10.0 s: cut worker/0"


def test_wrong_arguments():
    with pytest.raises(ValueError, match="No faults of the kinds flood: there are kill, stop"):
        make_schedule(1, 60, Cluster(2, 4), ["flood"])
    with pytest.raises(ValueError, match=r"every -1 s; it must be more than 0\."):
        make_schedule(1, 60, Cluster(2, 4), every=-1)
