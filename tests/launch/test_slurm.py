"""Tasks of a step of Slurm: who is who by its variables, and a step of real processes."""

import os
import socket
import subprocess
import sys

import pytest
from launches import CLUSTER, PATIENCE

from headrace.distribute.cluster_resolver import slurm_counts, slurm_hosts
from headrace.launch.job import LaunchJob, TaskId
from headrace.launch.slurm import OtherWorkers, SlurmTask, slurm_task

STEP = {
    "SLURM_PROCID": "3",
    "SLURM_JOB_ID": "41",
    "SLURM_STEP_ID": "2",
    "SLURM_STEP_NODELIST": "n[001-003,7]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
}


def test_lists_as_slurm_writes_them():
    assert slurm_hosts("n[001-003,7],login") == ["n001", "n002", "n003", "n7", "login"]
    assert slurm_hosts("a[1-2]-ib,b") == ["a1-ib", "a2-ib", "b"]
    assert slurm_counts("2(x3),1") == [2, 2, 2, 1]
    assert slurm_hosts("rack[0-1]n[08-09]") == ["rack0n08", "rack0n09", "rack1n08", "rack1n09"]


@pytest.mark.parametrize(
    "text",
    [
        "n[x]",
        "n[1-",
        "n[1-2",
        "n]",
        "n[]",
        "n[5-1]",
        "n[1,]",
        "n[\u00b2]",
        ";",
        "a b",
        "a,,b",
        "-[-]",
    ],
)
def test_lists_of_hosts_that_slurm_does_not_write(text):
    with pytest.raises(ValueError, match="is no list of hosts as Slurm writes them"):
        slurm_hosts(text)


@pytest.mark.parametrize("text", ["n[1-999999999]", "n[1-50000]", "n[1-400]m[1-400]"])
def test_more_than_any_cluster_has_takes_no_memory(text):
    with pytest.raises(ValueError, match="names more than 100000 hosts"):
        slurm_hosts(f"n[1-60000],{text}")
    for counts in ("999999999", "1(x999999999)", "0(x999999999)"):
        with pytest.raises(RuntimeError, match="more than 100000 tasks"):
            slurm_counts(counts)


def test_tasks_are_counted_over_hosts():
    job = LaunchJob("train.py", ps=2, evaluator=True)
    found = slurm_task(job, STEP, None, 9000)
    assert found.addresses == {
        "ps": ["n001:9000", "n001:9001"],
        "worker": ["n002:9000", "n002:9001", "n003:9000", "n003:9001"],
    }
    assert found.task == TaskId("worker", 1)
    assert found.job.workers == 4
    last = slurm_task(job, {**STEP, "SLURM_PROCID": "6"}, 4, 9000)
    assert last.task == TaskId("evaluator", 0)


def test_steps_have_ports_of_their_own():
    job = LaunchJob("train.py", ps=2)
    ports = {
        slurm_task(job, {**STEP, "SLURM_STEP_ID": str(i)}, None).addresses["ps"][0]
        for i in range(5)
    }
    assert len(ports) == 5


def test_variables_of_the_job_serve_where_the_step_has_none():
    variables = {
        "SLURM_PROCID": "0",
        "SLURM_JOB_ID": "1",
        "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_TASKS_PER_NODE": "1(x2)",
    }
    found = slurm_task(LaunchJob("train.py", ps=1), variables, None, 9000)
    assert found.addresses == {"ps": ["n1:9000"], "worker": ["n2:9000"]}


@pytest.mark.parametrize(
    ("variables", "workers", "words"),
    [
        ({"SLURM_PROCID": ""}, None, "SLURM_PROCID is not set: start the command by srun"),
        ({"SLURM_PROCID": "x"}, None, "SLURM_PROCID is 'x', which is no number"),
        ({"SLURM_PROCID": "9"}, None, "SLURM_PROCID is 9, but the step has 7 processes"),
        ({"SLURM_STEP_TASKS_PER_NODE": "2"}, None, "names 4 hosts, but numbers of tasks for 1"),
        ({"SLURM_STEP_ID": "x"}, None, "SLURM_STEP_ID is 'x', which is no number"),
        (
            {"SLURM_STEP_NODELIST": "n1,n1", "SLURM_STEP_TASKS_PER_NODE": "2(x2)"},
            None,
            "is given to both job 'ps' task 0 and job 'worker' task 0",
        ),
        ({}, 3, "has 7 processes (srun --ntasks), which cannot be 2 parameter servers"),
        (
            {"SLURM_STEP_NODELIST": "n1", "SLURM_STEP_TASKS_PER_NODE": "2"},
            None,
            "0 evaluators and at least one worker",
        ),
    ],
)
def test_steps_that_cannot_be_the_cluster(variables, workers, words):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        slurm_task(LaunchJob("train.py", ps=2), {**STEP, **variables}, workers)
    assert words in str(caught.value)


def test_the_last_port_of_a_host_must_be_one():
    with pytest.raises(ValueError, match=r"'ps' task 1 .+ port 65536 is out of range"):
        slurm_task(LaunchJob("train.py", ps=2), STEP, None, 65535)


def test_the_first_worker_waits_for_the_others_and_ends_the_servers():
    job = LaunchJob("train.py", ps=2, workers=3)
    addresses = {"ps": ["p:1", "q:1"], "worker": ["a:1", "b:1", "c:1"]}
    left = {"b:1": 2, "c:1": 0}
    ended, waited = [], []

    def answers(address):
        left[address] -= 1
        return left[address] >= 0

    for index in (1, 0):
        place = SlurmTask(job, addresses, TaskId("worker", index))
        others = OtherWorkers(place, answers, waited.append, lambda: 100.0 * len(waited))
        assert others.leads is (index == 0)
        others.watch()
        others.end_servers(ended.append)
    assert ended == ["p:1", "q:1"]
    assert len(waited) == 2


def test_the_first_worker_waits_for_one_that_has_not_begun():
    """It ended the servers before: who comes later would look for them for a minute, and fail."""
    place = SlurmTask(
        LaunchJob("train.py", ps=1, workers=3),
        {"ps": ["p:1"], "worker": ["a:1", "b:1", "c:1"]},
        TaskId("worker", 0),
    )
    now = [0.0]

    def wait(seconds):
        now[0] += seconds

    def answers(address):
        # One was there while this worker trained; the other comes, late, and goes.
        return now[0] < 3 if address == "b:1" else 10 < now[0] < 20

    others = OtherWorkers(place, answers, wait, lambda: now[0])
    others.watch()
    ended = []
    others.end_servers(lambda address: ended.append((address, now[0])))
    assert ended == [("p:1", 20)]


def test_the_first_worker_does_not_wait_for_who_has_come_and_gone_nor_for_ever():
    place = SlurmTask(
        LaunchJob("train.py", ps=1, workers=2),
        {"ps": ["p:1"], "worker": ["a:1", "b:1"]},
        TaskId("worker", 0),
    )
    now = [0.0]

    def wait(seconds):
        now[0] += seconds

    for comes, end in ((1, 4), (1000, 60)):
        now[0], ended = 0.0, []
        others = OtherWorkers(place, lambda _, c=comes: c < now[0] < 3, wait, lambda: now[0])
        others.watch()
        now[0] = max(now[0], 4)
        others.end_servers(lambda _, e=ended: e.append(now[0]))
        assert ended == [end]


@pytest.mark.process
@pytest.mark.slow
def test_a_port_that_is_taken(tmp_path):
    (tmp_path / "script.py").write_text("")
    command = [sys.executable, "-m", "headrace", "launch", "--on", "slurm", "--ps", "1"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        variables = {
            **STEP,
            "SLURM_PROCID": "0",
            "SLURM_STEP_NODELIST": "127.0.0.1",
            "SLURM_STEP_TASKS_PER_NODE": "2",
        }
        done = subprocess.run(
            [*command, "--port", str(port), "script.py"],
            cwd=tmp_path,
            env={**os.environ, **variables, "JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    assert done.returncode == 1
    assert f"Cannot listen at 127.0.0.1:{port}: the port is in use" in done.stdout


@pytest.mark.process
@pytest.mark.slow
def test_a_step_trains(tmp_path):
    """As srun starts it: the same command, with other variables for each."""
    (tmp_path / "script.py").write_text(CLUSTER)
    variables = {
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_STEP_TASKS_PER_NODE": "3",
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, "-m", "headrace", "launch", "--on", "slurm", "--ps", "1"]
    runs = [
        subprocess.Popen(
            [*command, "script.py", "50"],
            cwd=tmp_path,
            env={**os.environ, **variables, "SLURM_PROCID": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(3)
    ]
    outputs = [run.communicate(timeout=PATIENCE)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], outputs
    assert "[worker/1] end" in outputs[2]
    assert "headrace: ps/0 is done" in outputs[0]
    for name in ("ps-0", "worker-0", "worker-1"):  # one file would be overwritten by each
        notes = (tmp_path / "headrace-launch" / f"launcher-{name}.log").read_text()
        assert f"{name.replace('-', '/')} is done\n" in notes
        assert "\0" not in notes
