"""Strategies of workers: where variables are, and workers that train together."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import headrace as tf
from headrace.contrib.distribute import CollectiveAllReduceStrategy, ParameterServerStrategy
from headrace.distribute.cluster_resolver import SimpleClusterResolver

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]}
X = np.linspace(-1, 1, 24).reshape(12, 2).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0]], np.float32) + 0.5).astype(np.float32)


def set_config(monkeypatch, cluster, job, index):
    config = {"cluster": cluster, "task": {"type": job, "index": index}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))


def test_parameters_take_turns_on_the_servers(monkeypatch):
    set_config(monkeypatch, CLUSTER, "worker", 1)
    strategy = tf.distribute.experimental.ParameterServerStrategy()
    with strategy.scope():
        variables = [tf.get_variable(name, [2]) for name in "abc"]
        local = tf.get_local_variable("here", initializer=1.0)
        sums = strategy.experimental_run_v2(lambda: tf.add_n(variables))
    assert [v.device for v in variables] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert local.device == sums.device == "/job:worker/replica:0/task:1/device:CPU:0"
    assert strategy.extended.parameter_devices == ("/job:ps/task:0", "/job:ps/task:1")
    assert (strategy.num_replicas_in_sync, strategy.extended.experimental_between_graph) == (
        1,
        True,
    )
    assert not strategy.extended.should_checkpoint
    config = strategy.update_config_proto(tf.ConfigProto())
    assert list(config.device_filters) == ["/job:ps", "/job:worker/task:1"]


def test_numbers_of_workers_that_reduce(monkeypatch):
    set_config(monkeypatch, {"worker": ["a:1", "b:1", "c:1"]}, "worker", 1)
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 3
    context = strategy.extended._input_context()
    assert (context.num_input_pipelines, context.input_pipeline_id) == (3, 1)
    with strategy.scope():
        number = strategy.experimental_run_v2(
            lambda: tf.distribute.get_replica_context().replica_id_in_sync_group
        )
    assert number == 1
    assert not strategy.extended.should_save_summary


@pytest.mark.parametrize(
    ("make", "cluster", "job", "index", "message"),
    [
        (
            CollectiveAllReduceStrategy,
            CLUSTER,
            "worker",
            0,
            "has no parameter servers, but the cluster has the job 'ps'",
        ),
        (
            ParameterServerStrategy,
            {"worker": ["a:1", "b:1"]},
            "worker",
            0,
            "keeps variables in the job 'ps', but it has the jobs worker only",
        ),
        (
            CollectiveAllReduceStrategy,
            {"worker": ["a:1", "b:1"]},
            "worker",
            7,
            "The cluster has no task 7 of job 'worker'; it has {'worker': 2}",
        ),
        (
            CollectiveAllReduceStrategy,
            {"worker": ["a:1", "b:1"]},
            None,
            None,
            "it is not said which one this process is",
        ),
    ],
)
def test_clusters_that_do_not_fit(monkeypatch, make, cluster, job, index, message):
    set_config(monkeypatch, cluster, job, index)
    with pytest.raises(ValueError, match=r".*") as error:
        make()
    assert message in str(error.value)


def test_resolvers(monkeypatch):
    set_config(monkeypatch, CLUSTER, "worker", 1)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert resolver.master() == "grpc://c:1"
    assert resolver.master("ps", 0) == "grpc://d:1"
    spec = tf.train.ClusterSpec({"worker": ["x:1"]})
    union = tf.distribute.cluster_resolver.UnionResolver(SimpleClusterResolver(spec), resolver)
    assert union.cluster_spec().as_dict()["worker"] == ["x:1", "b:1", "c:1"]
    with pytest.raises(TypeError, match="sub-class of `ClusterResolver`"):
        tf.distribute.cluster_resolver.UnionResolver(3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "TF_CONFIG is no JSON"),
        ("[" * 100_000, "TF_CONFIG is no JSON"),
        ("[]", "TF_CONFIG must be a JSON object"),
        ('{"task": [1]}', r"TF_CONFIG\['task'\] must be a JSON object, not \[1\]"),
        ('{"cluster": "a:1"}', r"TF_CONFIG\['cluster'\] must be a JSON object, not 'a:1'"),
        ('{"task": {"index": 1e400}}', r"TF_CONFIG\['task'\]\['index'\] must be a number, not inf"),
        ('{"task": {"index": "x"}}', r"TF_CONFIG\['task'\]\['index'\] must be a number, not 'x'"),
    ],
)
def test_a_tf_config_that_describes_nothing(monkeypatch, text, words):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=words):
        tf.distribute.cluster_resolver.TFConfigClusterResolver()


def test_a_cluster_of_wrong_types_has_no_master(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": 5}}')
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    with pytest.raises(TypeError, match="The tasks for job 'worker' must be a list"):
        resolver.master()


def test_tpus_of_other_hosts():
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("grpc://10.0.0.2:8470")
    with pytest.raises(tf.errors.UnimplementedError, match="uses the TPU cores of this process"):
        tf.distribute.experimental.TPUStrategy(resolver)


# -- training on tasks ----------------------------------------------------------------------------


def model(x, y, optimizer, total):
    w = tf.get_variable("w", [2, 1])
    table = tf.get_variable("table", initializer=np.ones((4, 1), np.float32))
    rows = tf.nn.embedding_lookup(table, tf.to_int32(x[:, 0] > 0))
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w) + rows - y)) / total
    train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return train, loss


def in_threads(functions):
    errors = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_workers_that_reduce_learn_what_one_learns():
    cluster = tf.test.create_local_cluster(num_workers=2, num_ps=1)[0]
    addresses = [server.target.removeprefix("grpc://") for server in cluster]
    found, starts = {}, {}

    def worker(index):
        with tf.Graph().as_default():
            tf.set_random_seed(index)  # without the chief's start they would differ
            strategy = CollectiveAllReduceStrategy()
            strategy.configure(None, {"worker": addresses}, "worker", index)
            with strategy.scope():
                data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(12).repeat()
                batches = strategy.experimental_distribute_dataset(data).make_one_shot_iterator()
                train, losses = strategy.experimental_run_v2(
                    lambda x, y: model(x, y, tf.train.AdamOptimizer(0.1), 12.0),
                    args=batches.get_next(),
                )
                loss = strategy.reduce(tf.distribute.ReduceOp.SUM, losses)
                with tf.train.MonitoredTrainingSession(
                    cluster[index].target, index == 0
                ) as session:
                    starts[index] = session.run("w:0")
                    seen = [session.run([loss, train])[0] for _ in range(5)]
                    found[index] = seen, session.run(["w:0", "table:0"])

    in_threads([lambda i=i: worker(i) for i in range(2)])
    np.testing.assert_array_equal(starts[0], starts[1])
    np.testing.assert_array_equal(found[0][0], found[1][0])
    for one, other in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_array_equal(one, other)
    train, loss = model(tf.constant(X), tf.constant(Y), tf.train.AdamOptimizer(0.1), 12.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.trainable_variables()[0].load(starts[0], session)
        wanted = [session.run([loss, train])[0] for _ in range(5)]
        np.testing.assert_allclose(found[0][0], wanted, rtol=1e-4)
        for value, name in zip(found[0][1], ("w:0", "table:0"), strict=True):
            np.testing.assert_allclose(value, session.run(name), rtol=1e-4, atol=1e-6)


def test_synchronous_replicas_under_a_parameter_server_strategy():
    workers, servers = tf.test.create_local_cluster(num_workers=2, num_ps=1)
    cluster = {
        "worker": [s.target.removeprefix("grpc://") for s in workers],
        "ps": [s.target.removeprefix("grpc://") for s in servers],
    }
    found = {}

    def worker(index):
        with tf.Graph().as_default():
            strategy = ParameterServerStrategy()
            strategy.configure(None, cluster, "worker", index)
            with strategy.scope():
                optimizer = tf.train.SyncReplicasOptimizer(tf.train.AdagradOptimizer(0.3), 2)
                rows = slice(index, 12, 2)  # both have all rows of the table
                with tf.variable_scope("", initializer=tf.zeros_initializer()):
                    train, _ = strategy.experimental_run_v2(
                        lambda: model(tf.constant(X[rows]), tf.constant(Y[rows]), optimizer, 6.0)
                    )
                hook = optimizer.make_session_run_hook(index == 0, num_tokens=0)
                with tf.train.MonitoredTrainingSession(
                    workers[index].target, index == 0, hooks=[hook]
                ) as session:
                    for _ in range(4):
                        session.run(train)
                    found[index] = session.run(["w:0", "table:0"])

    in_threads([lambda i=i: worker(i) for i in range(2)])
    with tf.variable_scope("", initializer=tf.zeros_initializer()):
        train, _ = model(tf.constant(X), tf.constant(Y), tf.train.AdagradOptimizer(0.3), 12.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(train)
        for value, name in zip(found[0], ("w:0", "table:0"), strict=True):
            np.testing.assert_allclose(value, session.run(name), rtol=1e-4, atol=1e-6)
