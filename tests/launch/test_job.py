"""What can be launched, and what each task is told."""

import json
import re

import pytest

from headrace.distributed.cluster.tf_config import read_tf_config
from headrace.launch import LaunchJob, Resources, TaskId, environment_of, task_environment

ADDRESSES = {"ps": ["a:1", "a:2"], "worker": ["b:1", "b:2"]}


def test_the_tasks_of_a_job_come_servers_first():
    job = LaunchJob("train.py", ps=2, workers=2, evaluator=True)
    assert list(map(str, job.tasks)) == ["ps/0", "ps/1", "worker/0", "worker/1", "evaluator/0"]
    assert list(map(str, LaunchJob("train.py", workers=3, chief=True).tasks)) == [
        "chief/0",
        "worker/0",
        "worker/1",
    ]


def test_a_task_reads_its_cluster_from_its_environment():
    job = LaunchJob("train.py", ps=2, workers=2, replicas=1)
    found = task_environment(job, ADDRESSES, TaskId("worker", 1))
    config = read_tf_config(found)
    assert (config.job, config.task, config.cluster.replicas) == ("worker", 1, 1)
    assert config.cluster.as_dict() == ADDRESSES
    assert found["HEADRACE_DATA_PARALLEL"] == "async"
    assert found["HEADRACE_FIRST_WORKER_IS_CHIEF"] == "1"
    assert "HEADRACE_JOIN" not in found


@pytest.mark.parametrize("elastic", [None, (1, 3)])
def test_workers_know_whether_others_may_join(elastic):
    job = LaunchJob("train.py", ps=1, workers=2, elastic=elastic)
    tasks = TaskId("worker", 0), TaskId("ps", 0)
    told = [environment_of(job, task).get("HEADRACE_ELASTIC") for task in tasks]
    assert told == ["2" if elastic else None, None]


def test_a_worker_that_comes_later_knows_whom_to_ask():
    job = LaunchJob("train.py", ps=2, workers=2, elastic=(2, 4))
    addresses = {**ADDRESSES, "worker": ["b:1", "b:2", "b:3"]}
    found = task_environment(job, addresses, TaskId("worker", 2), contact="a:1")
    assert read_tf_config(found).cluster.task_address("worker", 2) == "b:3"
    assert found["HEADRACE_JOIN"] == "a:1"


def test_the_evaluator_is_no_part_of_the_cluster():
    job = LaunchJob("train.py", ps=2, workers=2, evaluator=True, chief=True)
    addresses = {"ps": ["a:1", "a:2"], "chief": ["b:1"], "worker": ["b:2"]}
    found = task_environment(job, addresses, TaskId("evaluator", 0))
    config = json.loads(found["TF_CONFIG"])
    assert config == {"cluster": addresses, "task": {"type": "evaluator", "index": 0}}
    assert set(found) == {"TF_CONFIG"}


@pytest.mark.parametrize(
    ("options", "worker"),
    [
        ({"ps": 1, "workers": 4}, "async"),
        ({"ps": 1, "workers": 4, "mode": "sync"}, "sync"),
        ({"ps": 1, "workers": 4, "mode": "sync", "backups": 1}, "sync:1"),
        ({"workers": 4}, "all-reduce"),
        ({"ps": 1, "workers": 4, "mode": "all-reduce"}, "all-reduce"),
        ({"ps": 1}, "async"),
        ({}, None),
        ({"workers": 4, "is_plain": True}, "all-reduce"),
        ({"workers": 4, "is_plain": False}, None),
    ],
)
def test_workers_are_told_how_a_script_without_a_cluster_trains(options, worker):
    job = LaunchJob("train.py", **options)
    assert environment_of(job, TaskId("worker", 0)).get("HEADRACE_DATA_PARALLEL") == worker
    assert "HEADRACE_DATA_PARALLEL" not in environment_of(job, TaskId("ps", 0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"script": ""}, "There is no script"),
        ({"workers": 0}, "A cluster needs a worker to train; there are 0: --workers 1 or more"),
        ({"ps": -1}, "There cannot be -1 parameter servers: --ps 0 or more"),
        ({"ps": 10**9}, "A launch has 10000 tasks at most, not 1000000000 parameter servers"),
        ({"workers": 10**20}, "10000 tasks at most"),
        ({"ps": 1, "elastic": (1, 10**9)}, "not 1 parameter servers and 1000000000 workers"),
        ({"restarts": -1}, "A task cannot be restarted -1 times"),
        ({"ps": 2, "replicas": 2}, "Servers have 0 or 1 copies, not 2"),
        ({"ps": 1, "replicas": 1}, "there must be two: --ps 2 or more, not 1"),
        ({"ps": 1, "elastic": (0, 3)}, "--elastic 0:3: the first number must be 1 or more"),
        ({"ps": 1, "elastic": (3, 2)}, "--elastic 3:2: the first number must be 1 or more"),
        ({"ps": 1, "workers": 5, "elastic": (1, 4)}, "--workers 5 is not within --elastic 1:4"),
        ({"elastic": (1, 4)}, "--elastic needs --ps 1 or more"),
        ({"ps": 1, "elastic": (1, 4), "mode": "all-reduce"}, "leave out --elastic or --all-reduce"),
        ({"workers": 2, "mode": "sync"}, "Training sync needs servers for the variables"),
        ({"ps": 1, "backups": 1}, "There cannot be 1 backups in mode async: they are for --sync"),
        (
            {"ps": 1, "workers": 2, "mode": "sync", "backups": 2},
            "--backup 2 leaves none of 2 workers to wait for",
        ),
    ],
)
def test_what_cannot_be_is_said_with_the_option(options, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        LaunchJob(**{"script": "train.py", **options})


def test_addresses_must_be_there():
    with pytest.raises(ValueError, match="Job 'ps' has 2 tasks, but 1 addresses"):
        task_environment(LaunchJob("train.py", ps=2), {"ps": ["a:1"]}, TaskId("ps", 0))


def test_what_tasks_ask_of_machines():
    job = LaunchJob("train.py", ps=1, resources={"worker": Resources(2, gpus=1, memory=2**30)})
    assert job.asks(TaskId("worker", 0)).gpus == 1
    assert job.asks(TaskId("ps", 0)) == Resources()
    with pytest.raises(ValueError, match="A task cannot ask for -1 gpus"):
        Resources(gpus=-1)
    for cpus in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"A task cannot ask for {cpus} cpus"):
            Resources(cpus)


def test_each_task_of_a_machine_has_a_port_for_metrics():
    job = LaunchJob("train.py", ps=2, workers=2, evaluator=True, metrics_port=9100)
    found = [task_environment(job, ADDRESSES, t).get("HEADRACE_METRICS_PORT") for t in job.tasks]
    assert found == ["9100", "9101", "9100", "9101", None]
    addresses = {**ADDRESSES, "worker": ["b:1", "b:2", "b:3"]}
    later = task_environment(job, addresses, TaskId("worker", 2), contact="a:1")
    assert later["HEADRACE_METRICS_PORT"] == "0"
    free = LaunchJob("train.py", ps=2, workers=2, metrics_port=0)
    found = {task_environment(free, ADDRESSES, t)["HEADRACE_METRICS_PORT"] for t in free.tasks}
    assert found == {"0"}


def test_tasks_know_the_form_of_their_logs():
    job = LaunchJob("train.py", ps=2, workers=2, log_format="json")
    assert task_environment(job, ADDRESSES, TaskId("ps", 0))["HEADRACE_LOG_FORMAT"] == "json"
    assert "HEADRACE_LOG_FORMAT" not in environment_of(LaunchJob("t.py"), TaskId("worker", 0))
