"""Rates between two readings of a cluster, and tasks that are slower than others."""

from __future__ import annotations

import pytest

from headrace.distributed.protocol import control_pb2 as pb
from headrace.operations.readings import ClusterReading, Readings, TaskRates
from headrace.operations.stragglers import stragglers


def status(task="worker", index=0, incarnation=1, links=(), **counted):
    made = pb.TaskStatus(task=f"/job:{task}/replica:0/task:{index}", incarnation=incarnation)
    for name, value in counted.items():
        setattr(made, name, value)
    for peer, received, sent in links:
        made.links.add(peer=peer, transport="stream", bytes_in=received, bytes_out=sent)
    return made


PS = "/job:ps/replica:0/task:0"


def rates(*readings):
    kept = Readings()
    for time, *tasks in readings:
        kept.add(ClusterReading(time, tuple(tasks)))
    return kept.rates()


def test_rates_are_differences():
    first = status(loop_steps=10, loop_seconds=1.0, cpu_seconds=5.0, links=[(PS, 100, 1000)])
    then = status(
        steps_ended=35,
        steps_failed=1,
        loop_steps=30,
        loop_seconds=2.0,
        cpu_seconds=8.0,
        steps_run=40,
        memory_bytes=7,
        links=[(PS, 300, 5000)],
    )
    (task,) = rates((100.0, first), (102.0, then))
    assert (task.task, task.steps, task.failed, task.memory) == ("worker/0", 35, 1, 7)
    assert (task.steps_rate, task.parts_rate, task.cores) == (10.0, 20.0, 1.5)
    assert task.step_seconds == pytest.approx(0.05)
    assert task.idle_seconds == pytest.approx(0.05)
    (link,) = task.links
    assert (link.peer, link.received, link.sent) == ("ps/0", 100.0, 2000.0)
    assert (task.received, task.sent) == (100.0, 2000.0)


def test_one_reading_has_no_rates():
    (task,) = rates((1.0, status(steps_ended=5, links=[(PS, 1, 2)])))
    assert (task.steps, task.steps_rate, task.sent) == (5, None, None)


def test_a_task_that_was_started_again_begins_anew():
    old = status(steps_ended=1000)
    (task,) = rates((1.0, old), (2.0, status(steps_ended=3, incarnation=2)))
    assert (task.steps, task.steps_rate) == (3, None)


def test_a_new_session_begins_anew():
    first, then = (
        status(loop_steps=steps, loop_seconds=steps / 20, steps_ended=1000) for steps in (900, 8)
    )
    (task,) = rates((1.0, first), (2.0, then))
    assert (task.steps_rate, task.step_seconds) == (8.0, 0.05)


def test_a_new_connection_counts_from_zero():
    (task,) = rates((1.0, status(links=[(PS, 900, 900)])), (2.0, status(links=[(PS, 40, 0)])))
    assert (task.received, task.sent) == (40.0, 0.0)


def test_rates_are_those_over_the_last_readings():
    readings = [(float(t), status(loop_steps=t * t)) for t in range(10)]
    (task,) = rates(*readings)
    assert task.steps_rate == (81 - 36) / 3


def test_who_does_not_answer_is_told():
    (task,) = rates((1.0, status()), (2.0, status(problem="no route")))
    assert (task.problem, task.steps_rate) == ("no route", None)


def test_the_oldest_step_is_told():
    made = status()
    made.steps.add(step=1, seconds=1.0, waiting_for=["/job:ps/replica:0/task:0"])
    made.steps.add(step=2, seconds=9.0, waiting_for=["/job:worker/replica:0/task:1"])
    (task,) = rates((1.0, made))
    assert (task.longest, task.waits_for) == (9.0, ("worker/1",))


def worker(index, rate=10.0, idle=0.0, cores=0.5, job="worker"):
    return TaskRates(f"{job}/{index}", job, steps_rate=rate, idle_seconds=idle, cores=cores)


@pytest.mark.parametrize(
    ("slow", "text"),
    [
        ({"rate": 3.0}, "0.30 of the median of steps"),
        ({"idle": 0.06}, "60.0 ms between steps, others 0.0"),
        ({"cores": 0.9}, "90.0 ms of processors for a step, others 50.0"),
    ],
)
def test_who_is_slower_than_others_of_its_job(slow, text):
    tasks = [worker(0), worker(1, **slow), worker(2), worker(0, 1.0, job="chief")]
    assert stragglers(tasks) == {"worker/1": text}


def test_alone_or_alike_nobody_is_slow():
    assert not stragglers([])
    assert not stragglers([worker(0)])
    assert not stragglers([worker(i, rate) for i, rate in enumerate((10.0, 9.0, 11.0))])
    # Those that run no steps (servers) are not compared.
    assert not stragglers([worker(0), worker(1, rate=None), worker(2, rate=0.0)])
