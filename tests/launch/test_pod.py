"""What the container of a pod settles before the script."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from headrace.launch.pod import completed_config, main, wait_for_own_name

CLUSTER = {"ps": ["p:1"], "worker": ["a:1", "b:1", "c:1"]}


def config(job, index, cluster=CLUSTER):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})}


def completed(environment, *arguments):
    found = completed_config(environment, *arguments)
    return json.loads(found["TF_CONFIG"]), found.get("HEADRACE_JOIN")


def test_first_workers_do_not_know_those_that_come_later_which_join():
    found, contact = completed(config("worker", 0), 0, 2, "p:1")
    assert (found["cluster"]["worker"], contact) == (["a:1", "b:1"], None)
    found, contact = completed(config("worker", 2), 0, 2, "p:1")
    assert (found["cluster"], contact) == (CLUSTER, "p:1")


def test_copies_of_servers_are_written_into_what_the_operator_has_written():
    found, _ = completed(config("ps", 0), 1, None, "")
    assert (found["replicas"], found["cluster"]) == (1, CLUSTER)
    assert completed_config({"A": "b"}, 1, None, "") == {"A": "b"}


def test_a_pod_waits_until_its_name_is_its_own():
    clock, answers = [0.0], iter([False, False, True])
    waited = []

    def wait(seconds):
        waited.append(seconds)
        clock[0] += seconds

    wait_for_own_name("w", 60, lambda host: next(answers), lambda: clock[0], wait)
    assert waited == [0.5, 0.5]
    with pytest.raises(TimeoutError, match=r"'w' is not the name of this pod after 60 s"):
        wait_for_own_name("w", 60, lambda host: False, lambda: clock[0], wait)
    assert len(waited) == 2 + 120


@pytest.mark.parametrize(
    "text",
    [
        '{"cluster": {"ps": ["p:1"]}}',
        '{"cluster": ["p:1"], "task": {"type": "ps", "index": 0}}',
        '{"cluster": {"ps": [1]}, "task": {"type": "ps", "index": 0}}',
        '{"cluster": {"ps": ["p:1"]}, "task": {"type": "ps", "index": "0"}}',
    ],
)
def test_a_description_of_other_types(text, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    found = CliRunner().invoke(main, ["--", "true"])
    assert found.exit_code == 1
    assert "TF_CONFIG must be a JSON object with 'cluster', lists of addresses" in found.output


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("program", [sys.executable, "no-such-program"])
def test_the_process_becomes_the_script(program):
    address = {"ps": ["localhost:1"]}
    environment = {**os.environ, **config("ps", 0, address)}
    shown = "import os; print(os.getpid(), os.environ['TF_CONFIG'])"
    command = [sys.executable, "-m", "headrace.launch.pod", "--replicas", "1", "--"]
    with subprocess.Popen(
        [*command, program, "-c", shown],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        out, error = process.communicate(timeout=60)
    if program != sys.executable:
        assert process.returncode == 1
        assert "The image has no program 'no-such-program': No such file" in error
        return
    pid, text = out.split(" ", 1)
    assert int(pid) == process.pid
    assert json.loads(text)["replicas"] == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("pass", ["True", "True"]), ("print(tf.estimator.train_and_evaluate and 1)", ["False"] * 2)],
    ids=["plain", "of clusters"],
)
def test_a_script_that_distributes_itself_is_not_spread_over_pods(tmp_path, text, expected):
    # The pod runs `headrace run`, whose import comes before anybody knows the script.
    (tmp_path / "train.py").write_text(
        "import tensorflow as tf\n"
        "from headrace.graph import random_seed\n"
        "from headrace.ops.state import share\n"
        "tf.Graph()\n"
        f"{text}\n"
        "print(share.current() is not None, random_seed.apart != 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "run", "train.py"],
        env={**os.environ, **config("worker", 1), "HEADRACE_DATA_PARALLEL": "async"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2:] == expected
