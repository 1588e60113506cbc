"""Workers of a plain script: which clusters they take, and when they leave a script alone."""

import json
import socket

import pytest

import headrace as tf
from headrace.data_parallel import start
from headrace.data_parallel.mode import ParallelMode
from headrace.data_parallel.state import state_of
from headrace.data_parallel.steps import needed
from headrace.data_parallel.worker import ScriptWorker
from headrace.ops.state import share
from headrace.settings import flags

CLUSTER = {"ps": ["a:1", "a:2"], "worker": ["b:1", "b:2", "b:3"]}


def test_the_chief_comes_before_the_workers():
    made = ScriptWorker(ParallelMode("sync", 2), {**CLUSTER, "chief": ["c:1"]}, "worker", 1)
    assert (made.worker, made.workers, made.servers, made.is_chief) == (2, 4, 2, False)
    assert made.device == "/job:worker/task:1"


@pytest.mark.parametrize(
    ("mode", "cluster", "message"),
    [
        (ParallelMode("sync"), {"worker": ["b:1"]}, r"the cluster has none: start some \(--ps 1\)"),
        (ParallelMode("sync", 3), CLUSTER, "Of 3 workers an update cannot leave out 3"),
        (ParallelMode("async"), {"ps": ["a:1"]}, "There is no task 0 of job 'worker'"),
    ],
)
def test_clusters_that_cannot_be(mode, cluster, message):
    with pytest.raises(ValueError, match=message):
        ScriptWorker(mode, cluster, "worker", 0)


def test_settings_without_a_cluster_are_refused(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setattr(flags, "data_parallel", "async")
    with pytest.raises(ValueError, match="needs TF_CONFIG with a cluster and the task of this"):
        start.begin()


@pytest.mark.parametrize(
    "text",
    [
        '{"cluster": ["b:1"], "task": {"type": "worker", "index": 0}}',
        '{"cluster": {"worker": ["b:1"]}, "task": {"type": ["worker"], "index": 0}}',
        '{"cluster": {"worker": ["b:1"]}, "task": {"type": "worker", "index": 0.9}}',
        '{"cluster": {"worker": ["b:1"]}, "task": {"type": "worker", "index": 1e999}}',
    ],
)
def test_clusters_of_other_types_are_refused(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    monkeypatch.setattr(flags, "data_parallel", "async")
    with pytest.raises(ValueError, match="needs TF_CONFIG with a cluster and the task of this"):
        start.begin()


def test_variables_go_where_the_fewest_bytes_are(second):
    large, first, other = (tf.Variable(tf.zeros([n])) for n in (1000, 10, 10))
    local = tf.Variable(0.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    devices = [v.device for v in (large, first, other, local)]
    assert devices[:3] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1"]
    assert devices[3] == (large + first[0]).device == "/job:worker/task:1"


def test_workers_draw_other_numbers(second):
    tf.set_random_seed(1)
    assert tf.random_normal([2], seed=3).op.inputs[0].op.name
    drawn = next(op for op in tf.get_default_graph().get_operations() if "seed2" in op.attrs)
    assert drawn.attrs["seed2"] != 3


def test_a_script_with_a_server_is_left_alone(second):
    tf.train.Server(json.loads(json.dumps(second.cluster.as_dict())), "worker", 1, start=False)
    assert share.current() is None
    assert tf.Variable(1.0).device == ""


@pytest.mark.parametrize("taken", ["the port", "the port of metrics"])
def test_a_worker_whose_port_is_taken_ends_with_that(second, monkeypatch, taken):
    with socket.socket() as other:
        if taken == "the port":
            other.bind(("127.0.0.1", int(second.cluster.task_address("worker", 1)[10:])))
        else:
            pytest.importorskip("prometheus_client")
            other.bind(("127.0.0.1", 0))
            monkeypatch.setattr(flags, "metrics_port", str(other.getsockname()[1]))
        other.listen()
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"Cannot (listen|offer)"):
            tf.train.MonitoredTrainingSession()


def test_not_if_a_training_step_was_built_for_all(second):
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.Variable(1.0) * 2.0)
    with pytest.raises(RuntimeError, match=r"it makes a tf\.train\.Server, with"):
        tf.train.Server(second.cluster, "worker", 1, start=False)


def test_the_count_of_updates_begins_without_one(second):
    x = tf.placeholder(tf.float32, [None])
    loss = tf.reduce_mean(x * tf.Variable(1.0))
    tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
    (update,) = state_of(tf.get_default_graph()).updates
    assert x.op in needed([update.op], set())
    assert x.op not in needed([update.begin], set())


def test_one_worker_counts_its_steps_as_a_program_alone_does(second, monkeypatch):
    monkeypatch.setattr(second, "workers", 1)
    step = tf.train.get_or_create_global_step()
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.Variable(1.0) * 2.0, step)
    (update,) = state_of(tf.get_default_graph()).updates
    assert (update.own, update.begin) == ([], None)
    assert "FloorMod" not in {op.type for op in needed([update.op], set())}
