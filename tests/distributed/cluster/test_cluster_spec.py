"""tf.train.ClusterSpec: every form of description, what it tells, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.cluster.cluster_spec import ClusterSpec, split_address
from headrace.distributed.cluster.tf_config import read_tf_config
from headrace.distributed.services.definitions import server_def
from headrace.errors import InvalidArgumentError
from headrace.test.cluster import free_ports

# The cluster of the talks: three workers and two parameter servers.
TALK = {
    "worker": ["worker0.example.com:2222", "worker1.example.com:2222", "worker2.example.com:2222"],
    "ps": ["ps0.example.com:2222", "ps1.example.com:2222"],
}


def test_three_workers_and_two_parameter_servers():
    cluster = tf.train.ClusterSpec(TALK)
    assert cluster.as_dict() == TALK
    assert cluster.jobs == ["worker", "ps"]
    assert cluster.num_tasks("worker") == 3
    assert cluster.num_tasks("ps") == 2
    assert cluster.task_indices("worker") == [0, 1, 2]
    assert cluster.task_address("ps", 1) == "ps1.example.com:2222"
    assert cluster.job_tasks("ps") == TALK["ps"]


def test_sparse_clusters():
    cluster = tf.train.ClusterSpec({"worker": {1: "w1:2222", 4: "w4:2222"}, "ps": ("ps0:2222",)})
    assert cluster.as_dict() == {"worker": {1: "w1:2222", 4: "w4:2222"}, "ps": ["ps0:2222"]}
    assert cluster.num_tasks("worker") == 2
    assert cluster.task_indices("worker") == [1, 4]
    assert cluster.job_tasks("worker") == [None, "w1:2222", None, None, "w4:2222"]
    with pytest.raises(ValueError, match=r"No task with index 0 in job 'worker': it has \[1, 4\]"):
        cluster.task_address("worker", 0)


def test_a_dictionary_without_gaps_is_dense():
    cluster = tf.train.ClusterSpec({"worker": {1: "w1:2222", 0: "w0:2222"}})
    assert cluster.as_dict() == {"worker": ["w0:2222", "w1:2222"]}


@pytest.mark.parametrize("tasks", [[], {}])
def test_a_job_without_tasks(tasks):
    cluster = tf.train.ClusterSpec({"ps": tasks})
    assert cluster.as_dict() == {"ps": {}}
    assert cluster.num_tasks("ps") == 0
    assert cluster.job_tasks("ps") == []
    assert cluster


@pytest.mark.parametrize(
    "description",
    [TALK, {"worker": {3: "w3:1"}, "ps": ["[::1]:2", "10.0.0.1:3"]}, {"local": []}, {}],
)
def test_round_trips(description):
    cluster = tf.train.ClusterSpec(description)
    copies = [
        tf.train.ClusterSpec(cluster.as_dict()),
        tf.train.ClusterSpec(cluster),
        tf.train.ClusterSpec(cluster.as_cluster_def()),
        tf.train.ClusterSpec(
            tf.train.ClusterDef.FromString(cluster.as_cluster_def().SerializeToString())
        ),
    ]
    for copy in copies:
        assert copy == cluster
        assert (copy != cluster) is False
        assert copy.as_dict() == cluster.as_dict()


def test_a_copy_does_not_change_with_its_source():
    tasks = {0: "w0:1"}
    cluster = tf.train.ClusterSpec({"worker": tasks})
    copy = tf.train.ClusterSpec(cluster)
    tasks[1] = "w1:1"
    cluster.as_dict()["worker"].append("w2:1")
    assert cluster.num_tasks("worker") == copy.num_tasks("worker") == 1


def test_the_message_is_in_order():
    cluster = tf.train.ClusterSpec({"worker": {7: "w7:1", 2: "w2:1"}, "ps": ["ps0:1"]})
    message = cluster.as_cluster_def()
    expected = tf.train.ClusterDef(
        job=[
            tf.train.JobDef(name="ps", tasks={0: "ps0:1"}),
            tf.train.JobDef(name="worker", tasks={2: "w2:1", 7: "w7:1"}),
        ]
    )
    assert message == expected
    assert tf.train.ServerDef(cluster=message, job_name="ps").cluster == expected


def test_equality_and_truth():
    one = tf.train.ClusterSpec({"worker": ["w0:1"]})
    assert one == tf.train.ClusterSpec({"worker": {0: "w0:1"}})
    assert one != tf.train.ClusterSpec({"worker": ["w0:2"]})
    assert one != tf.train.ClusterSpec({"ps": ["w0:1"]})
    assert one != tf.train.ClusterSpec({"worker": {1: "w0:1"}})
    assert one == {"worker": {0: "w0:1"}}
    assert one != "worker"
    empty = tf.train.ClusterSpec({})
    assert one
    assert one.__nonzero__()
    assert not empty
    assert not empty.__nonzero__()
    assert empty.jobs == []
    assert repr(one) == "ClusterSpec({'worker': ['w0:1']})"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_addresses_of_bytes_and_indices_of_numpy():
    cluster = tf.train.ClusterSpec({"worker": {np.int64(1): b"w1:1"}})
    assert cluster.as_dict() == {"worker": {1: "w1:1"}}


def test_free_ports_may_repeat():
    assert tf.train.ClusterSpec({"worker": ["localhost:0", "localhost:0"]}).num_tasks("worker") == 2


@pytest.mark.parametrize(
    "ask", ["num_tasks", "task_indices", "job_tasks", lambda c, job: c.task_address(job, 0)]
)
def test_unknown_jobs(ask):
    cluster = tf.train.ClusterSpec(TALK)
    call = ask if callable(ask) else lambda c, job: getattr(c, ask)(job)
    with pytest.raises(ValueError, match=r"No such job in cluster: 'workers' .*mean 'worker'\?"):
        call(cluster, "workers")


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("worker0:2222", "must be a dictionary mapping one or more job names"),
        (["worker0:2222"], "must be a dictionary mapping one or more job names"),
        (None, "must be a dictionary mapping one or more job names"),
        ({"worker": "w0:1"}, "tasks for job 'worker' must be a list or a dictionary"),
        ({"worker": 3}, "tasks for job 'worker' must be a list or a dictionary"),
        ({1: ["w0:1"]}, "Job names are strings, not 1"),
        ({"worker": {"0": "w0:1"}}, "job 'worker' are numbered by integers, not by '0'"),
        ({"worker": ["w0:1", 2222]}, "job 'worker' task 1 must be a string, not 2222"),
        ({"worker": [None]}, "job 'worker' task 0 must be a string, not None"),
    ],
)
def test_wrong_types(description, message):
    with pytest.raises(TypeError, match=message):
        tf.train.ClusterSpec(description)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"a/b": ["w0:1"]}, "Invalid job name 'a/b'"),
        ({"": ["w0:1"]}, "Invalid job name ''"),
        ({"worker": {-1: "w0:1"}}, "Task index -1 of job 'worker' is negative"),
        (
            {"ps": ["h:1"], "worker": ["g:1", "H:1"]},
            "'H:1' .*job 'ps' task 0 and job 'worker' task 1",
        ),
        ({"worker": ["h:1", "h:1"]}, "'h:1' .*job 'worker' task 0 and job 'worker' task 1"),
        ({"ps": [""]}, "job 'ps' task 0 is wrong: .* it is empty"),
        ({"ps": ["h:1", "h"]}, "job 'ps' task 1 is wrong: 'h' .* it has no port"),
        ({"ps": ["h:"]}, "job 'ps' task 0 is wrong: 'h:' .* it has no port"),
        ({"ps": [":2222"]}, "':2222' is no address of the form 'host:port'"),
        ({"ps": ["h:port"]}, "'h:port' is no address of the form 'host:port'"),
        ({"ps": ["h:65536"]}, "port 65536 is out of range"),
        ({"ps": ["h:100000"]}, "port 100000 is out of range"),
        ({"ps": ["h:1 "]}, "is no address"),
        ({"ps": ["a:1,b:1"]}, "several addresses; give a list"),
        ({"ps": ["grpc://h:1"]}, "leave out 'grpc://'"),
        ({"ps": ["::1:2222"]}, "an IPv6 address stands in brackets"),
        ({"ps": ["[::1]"]}, "it has no port"),
    ],
)
def test_wrong_values(description, message):
    with pytest.raises(ValueError, match=message):
        tf.train.ClusterSpec(description)


def test_a_message_is_checked_too():
    twice = tf.train.ClusterDef(job=[tf.train.JobDef(name="a"), tf.train.JobDef(name="a")])
    with pytest.raises(ValueError, match="Job 'a' is described twice"):
        tf.train.ClusterSpec(twice)
    wrong = tf.train.ClusterDef(job=[tf.train.JobDef(name="a", tasks={3: "nowhere"})])
    with pytest.raises(ValueError, match="job 'a' task 3 is wrong"):
        tf.train.ClusterSpec(wrong)


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("ps0:2222", ("ps0", 2222)),
        ("10.0.0.1:0", ("10.0.0.1", 0)),
        ("[2001:db8::1]:65535", ("2001:db8::1", 65535)),
        ("my-host.example.org:1", ("my-host.example.org", 1)),
    ],
)
def test_split_address(address, parts):
    assert split_address(address) == parts


# -- TF_CONFIG ----------------------------------------------------------------------------------


def test_tf_config_describes_a_cluster_and_a_task():
    text = '{"cluster": {"ps": ["[::1]:1"], "worker": ["a:1", "b:1"]}, "task": %s}'
    found = read_tf_config({"TF_CONFIG": text % '{"type": "worker", "index": 1}'})
    assert (found.job, found.task) == ("worker", 1)
    assert found.cluster.task_address("worker", 1) == "b:1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not set: each process of a cluster needs its own"),
        ('{"cluster": {"ps": ["a:1"]', "it is no JSON: Expecting"),
        ("[" * 100_000, "it is no JSON: "),
        ("[]", "the configuration lacks 'task'"),
        ('{"task": {}}', "'task' lacks 'type'"),
        ('{"task": 3}', "'task' in the configuration must be a JSON object, not 3"),
        ('{"task": {"type": 1, "index": 0}}', "'type' in 'task' must be a string, not 1"),
        ('{"task": {"type": "ps", "index": "0"}}', "'index' in 'task' must be an integer, not '0'"),
        ('{"task": {"type": "ps", "index": 0}}', "the configuration lacks 'cluster'"),
        (
            '{"task": {"type": "ps", "index": 0}, "cluster": {"ps": ["a"]}}',
            "'cluster': The address of job 'ps' task 0 is wrong: 'a' is no address",
        ),
        (
            '{"task": {"type": "ps", "index": 4}, "cluster": {"ps": ["a:1"]}}',
            "'cluster': No task with index 4 in job 'ps'",
        ),
    ],
)
def test_a_tf_config_that_is_wrong_says_where(text, message):
    with pytest.raises(InvalidArgumentError) as caught:
        read_tf_config({"TF_CONFIG": text})
    assert caught.value.message.startswith(f"TF_CONFIG: {message}")
    assert 'It has the form {"cluster": ' in caught.value.message


@pytest.mark.parametrize("address", [b"\xff:1", "\ud800:1", "a\0b:1", "ps\u200b:1"])
def test_addresses_that_no_message_can_hold(address):
    with pytest.raises(ValueError, match="The address of job 'ps' task 0 is wrong") as caught:
        ClusterSpec({"ps": [address]})
    assert type(caught.value) is ValueError


@pytest.mark.parametrize("index", [2**31, 2**70, 10**7])
def test_indices_have_a_limit(index):
    with pytest.raises(ValueError, match=f"Task index {index} of job 'ps' is larger than 1000000"):
        ClusterSpec({"ps": {index: "a:1"}})


def test_replicas():
    cluster = tf.train.ClusterSpec(TALK, replicas=1)
    again = tf.train.ClusterSpec(cluster.as_cluster_def())
    assert again.replicas == tf.train.ClusterSpec(cluster).replicas == 1
    assert again == cluster != tf.train.ClusterSpec(TALK)
    assert repr(cluster).endswith(", replicas=1)")
    first, second = "/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1"
    assert cluster.keepers() == {first: second, second: first}
    assert tf.train.ClusterSpec(TALK).keepers() == {}
    text = json.dumps({"cluster": TALK, "task": {"type": "ps", "index": 0}, "replicas": 1})
    assert read_tf_config({"TF_CONFIG": text}).cluster == cluster


def test_impossible_replicas():
    with pytest.raises(ValueError, match="`replicas` is 0 or 1, not 2"):
        tf.train.ClusterSpec(TALK, replicas=2)
    with pytest.raises(ValueError, match="there must be two of them; the cluster has 1"):
        tf.train.ClusterSpec({"ps": ["a:1"]}, replicas=1)


def test_a_server_has_the_copies_that_tf_config_states_for_its_cluster(monkeypatch):
    """Programs of the time read addresses from TF_CONFIG by themselves."""
    cluster = {"ps": ["a:1", "b:1"], "worker": ["c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "replicas": 1}))
    made = server_def(ClusterSpec(cluster), "worker", 0, None, None)
    assert made.cluster.replicas == 1
    # As an Estimator has it, whose first worker is the chief.
    chief = {"ps": ["a:1", "b:1"], "chief": ["c:1"]}
    assert server_def(chief, "chief", 0, None, None).cluster.replicas == 1
    other = {"ps": ["a:2", "b:2"]}
    assert server_def(other, "ps", 0, None, None).cluster.replicas == 0
    monkeypatch.setenv("TF_CONFIG", "{")
    assert server_def(cluster, "worker", 0, None, None).cluster.replicas == 0


def test_ports_are_none_that_systems_give_to_connections():
    found = free_ports(50)
    assert len(set(found)) == 50
    assert max(found) < 32_768
