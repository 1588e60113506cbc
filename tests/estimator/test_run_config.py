"""RunConfig, and what it reads in TF_CONFIG."""

from __future__ import annotations

import copy
import json
import logging

import pytest

import headrace as tf
from headrace.settings import flags

CLUSTER = {
    "chief": ["host0:2222"],
    "ps": ["host1:2222", "host2:2222"],
    "worker": ["host3:2222", "host4:2222", "host5:2222"],
}
#: As a talk of 2018 shows it: the first worker is at the chief's address.
SLIDE = {
    "chief": ["host1:2222"],
    "worker": ["host1:2222", "host2:2222", "host3:2222"],
    "ps": ["host4:2222", "host5:2222"],
}
MASTER = {"master": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}


def _config(monkeypatch, cluster=None, kind=None, index=None, **rest):
    config = dict(rest)
    if cluster is not None:
        config["cluster"] = cluster
    if kind is not None:
        config["task"] = {"type": kind, "index": index}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    return tf.estimator.RunConfig()


def _place(config):
    return (
        config.task_type,
        config.task_id,
        config.global_id_in_cluster,
        config.is_chief,
        config.master,
        config.num_ps_replicas,
        config.num_worker_replicas,
        list(config.session_config.device_filters) if config.session_config else None,
    )


@pytest.mark.parametrize(
    ("cluster", "kind", "index", "place"),
    [
        (
            *(CLUSTER, "chief", 0),
            ("chief", 0, 0, True, "grpc://host0:2222", 2, 4, ["/job:ps", "/job:chief"]),
        ),
        (
            *(CLUSTER, "worker", 1),
            ("worker", 1, 2, False, "grpc://host4:2222", 2, 4, ["/job:ps", "/job:worker/task:1"]),
        ),
        (
            *(CLUSTER, "ps", 1),
            (
                *("ps", 1, 5, False, "grpc://host2:2222", 2, 4),
                ["/job:ps", "/job:worker", "/job:chief", "/job:master"],
            ),
        ),
        (CLUSTER, "evaluator", 0, ("evaluator", 0, None, False, "", 0, 0, None)),
        (
            *(SLIDE, "worker", 0),
            ("chief", 0, 0, True, "grpc://host1:2222", 2, 3, ["/job:ps", "/job:chief"]),
        ),
        (
            *(SLIDE, "worker", 2),
            ("worker", 2, 2, False, "grpc://host3:2222", 2, 3, ["/job:ps", "/job:worker/task:2"]),
        ),
        (
            *(MASTER, "master", "0"),
            ("master", 0, 0, True, "grpc://a:1", 1, 2, ["/job:ps", "/job:master"]),
        ),
        (
            {"chief": ["a:1"]},
            "chief",
            0,
            ("chief", 0, 0, True, "", 0, 1, ["/job:ps", "/job:chief"]),
        ),
        (None, None, None, ("worker", 0, 0, True, "", 0, 1, None)),
        (None, "worker", 0, ("worker", 0, 0, True, "", 0, 1, None)),
    ],
)
def test_what_a_task_is(monkeypatch, cluster, kind, index, place):
    config = _config(monkeypatch, cluster, kind, index)
    assert _place(config) == place
    if config.session_config is not None:
        assert config.session_config.allow_soft_placement
    assert bool(config.cluster_spec) == (cluster is not None and kind != "evaluator")


def test_a_worker_at_the_chiefs_address_is_no_task_of_its_own(monkeypatch):
    spec = _config(monkeypatch, SLIDE, "ps", 0).cluster_spec
    assert spec.as_dict()["worker"] == {1: "host2:2222", 2: "host3:2222"}
    only = {"chief": ["a:1"], "worker": ["a:1"], "ps": ["b:1"]}
    assert _config(monkeypatch, only, "worker", 0).num_worker_replicas == 1


def test_other_keys(monkeypatch, tmp_path):
    config = _config(
        monkeypatch,
        session_master="grpc://m:1",
        eval_session_master="grpc://e:1",
        model_dir=str(tmp_path),
        service={"a": 1},
        environment="cloud",
    )
    assert config.master == "grpc://m:1"
    assert config.evaluation_master == "grpc://e:1"
    assert config.model_dir == str(tmp_path)
    assert config.service == {"a": 1}
    assert _config(monkeypatch, CLUSTER, "worker", 0, session_master="").master == ""
    assert (
        _config(monkeypatch, CLUSTER, "evaluator", 0, eval_session_master="e").evaluation_master
        == "e"
    )
    monkeypatch.setenv("TF_CONFIG", json.dumps({"model_dir": "here"}))
    assert tf.estimator.RunConfig("here").model_dir == "here"
    with pytest.raises(ValueError, match="must have the same value as the model_dir in TF_CONFIG"):
        tf.estimator.RunConfig("there")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"TF_CONFIG is no JSON: .*It has the form \{.cluster"),
        ("[1]", "must be a JSON object, not \\[1\\]"),
        ('{"cluster": 3}', r"TF_CONFIG\['cluster'\] must be a JSON object of jobs.*not 3"),
        ('{"task": "ps"}', r"TF_CONFIG\['task'\] must be a JSON object with 'type' and 'index'"),
        ('{"model_dir": 3}', r"TF_CONFIG\['model_dir'\] must be a string, not 3"),
        ('{"model_dir": ""}', "model_dir in TF_CONFIG should be non-empty"),
        ('{"service": 3}', 'If "service" is set in TF_CONFIG, it must be a dict'),
        ('{"task": {"type": "ps"}}', "task type must be WORKER: .* is 'ps'"),
        ('{"task": {"index": 1}}', "task index must be 0: .* is 1"),
        ('{"task": {"index": "x"}}', r"TF_CONFIG\['task'\]\['index'\] must be an integer, not 'x'"),
        ('{"cluster": {"cheif": ["a:1"]}}', 'must have one "chief" node. Did you mean'),
        ('{"cluster": {"chief": ["a:1", "b:1"]}}', 'only one "chief" node: .* has 2'),
        ('{"cluster": {"chief": ["a:1"]}}', "task type must be set: .* is {}"),
        ('{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief"}}', "task index must be set"),
        (
            '{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": -1}}',
            "Task index must be non-negative number: .* is -1",
        ),
        (
            '{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": true}}',
            "must be an integer, not True",
        ),
        (
            '{"cluster": {"chief": ["a:1"]}, "task": {"type": "wroker", "index": 0}}',
            "wroker is not a valid task_type in the cluster_spec",
        ),
        (
            '{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 1}}',
            "1 is not a valid task_id for task_type chief in the cluster_spec",
        ),
        (
            '{"cluster": {"chief": ["a:1"], "ps": "b:1"}, "task": {"type": "chief", "index": 0}}',
            r"TF_CONFIG\['cluster'\]\['ps'\] must be a list of 'host:port', not 'b:1'",
        ),
        (
            '{"cluster": {"chief": ["a"]}, "task": {"type": "chief", "index": 0}}',
            r"TF_CONFIG\['cluster'\]: .*'a'",
        ),
        (
            '{"cluster": {"chief": ["a:1"], "master": ["b:1"]}}',
            "If `master` node exists in `cluster`, job `chief` is not supported",
        ),
        (
            '{"cluster": {"master": ["b:1"]}, "task": {"type": "evaluator", "index": 0}}',
            "task_type `evaluator` is not supported",
        ),
    ],
)
def test_a_malformed_tf_config(monkeypatch, text, message):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises((ValueError, TypeError), match=message):
        tf.estimator.RunConfig()


def test_defaults_and_replace(monkeypatch):
    config = tf.estimator.RunConfig()
    assert (config.save_checkpoints_secs, config.save_checkpoints_steps) == (600, None)
    assert (config.keep_checkpoint_max, config.keep_checkpoint_every_n_hours) == (5, 10000)
    assert (config.save_summary_steps, config.log_step_count_steps) == (100, 100)
    assert config.session_creation_timeout_secs == 7200
    new = config.replace(save_checkpoints_steps=5, model_dir="m", tf_random_seed=3)
    assert (new.save_checkpoints_secs, new.save_checkpoints_steps) == (None, 5)
    assert (config.save_checkpoints_steps, config.model_dir) == (None, None)
    assert new.replace(save_checkpoints_secs=3).save_checkpoints_steps is None
    assert copy.deepcopy(new).tf_random_seed == 3
    assert tf.estimator.RunConfig(save_checkpoints_secs=None).save_checkpoints_steps is None
    both = {"save_checkpoints_steps": 1, "save_checkpoints_secs": 1}
    for make in (lambda: tf.estimator.RunConfig(**both), lambda: config.replace(**both)):
        with pytest.raises(ValueError, match="cannot be both set"):
            make()
    with pytest.raises(ValueError, match=r"Replacing master is not supported. Allowed properties"):
        config.replace(master="x")


def test_the_log_shows_a_config_in_one_line(tmp_path, caplog):
    options = tf.GPUOptions(allow_growth=True)
    given = tf.ConfigProto(log_device_placement=True, gpu_options=options)
    config = tf.estimator.RunConfig(str(tmp_path), session_config=given)
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        tf.estimator.Estimator(lambda features: None, config=config)
    (line,) = [r.getMessage() for r in caplog.records if "Using config" in r.getMessage()]
    assert "\n" not in line
    assert f"'_model_dir': '{tmp_path}'" in line
    shown = "'_session_config': {gpu_options { allow_growth: true } log_device_placement: true}"
    assert shown in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model_dir": ""}, "model_dir should be non-empty"),
        ({"model_dir": 3}, "model_dir must be a path, given: 3"),
        ({"tf_random_seed": 1.5}, "tf_random_seed must be integer.; given: 1.5"),
        ({"save_summary_steps": -1}, "save_summary_steps should be >= 0; given: -1"),
        ({"save_checkpoints_steps": -1}, "save_checkpoints_steps should be >= 0"),
        ({"keep_checkpoint_max": "x"}, "keep_checkpoint_max should be >= 0; given: 'x'"),
        ({"keep_checkpoint_every_n_hours": 0}, "keep_checkpoint_every_n_hours should be > 0"),
        ({"log_step_count_steps": 0}, "log_step_count_steps should be > 0"),
        ({"session_config": 3}, "session_config must be instance of ConfigProto"),
        ({"device_fn": lambda x: x}, 'device_fn must be callable with exactly one argument "op"'),
        ({"protocol": "http"}, r"protocol should be grpc or grpc\+verbs"),
        ({"train_distribute": 3}, "train_distribute should be a strategy of tf.distribute"),
        ({"session_creation_timeout_secs": 0}, "session_creation_timeout_secs should be > 0"),
        ({"experimental_max_worker_delay_secs": 0.5}, "must be an integer if set"),
    ],
)
def test_values_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        tf.estimator.RunConfig(**arguments)


def test_the_directory_of_an_estimator(tmp_path, caplog):
    def model_fn(features, mode):
        return None

    made = tf.estimator.Estimator(model_fn)
    assert made.model_dir
    assert "Using temporary folder as model directory" in caplog.text
    assert tf.estimator.Estimator(model_fn, tmp_path).model_dir == str(tmp_path)
    config = tf.estimator.RunConfig("a")
    with pytest.raises(ValueError, match=r"with different values. In constructor: 'b'"):
        tf.estimator.Estimator(model_fn, "b", config)
    with pytest.raises(ValueError, match="config must be an instance of `RunConfig`"):
        tf.estimator.Estimator(model_fn, config=3)
    import os

    os.rmdir(made.model_dir)


def test_variables_go_to_the_servers_in_turn(monkeypatch):
    config = _config(monkeypatch, SLIDE, "worker", 0)
    estimator = tf.estimator.Estimator(lambda features: None, "m", config)
    with tf.device(estimator._device_fn):
        a, b = tf.get_variable("a", []), tf.get_variable("b", [])
        c = a + b
    assert [v.device for v in (a, b, c)] == [
        "/job:ps/task:0",
        "/job:ps/task:1",
        "/job:chief/task:0",
    ]


def test_the_first_worker_is_the_chief_where_the_launcher_says_so(monkeypatch):
    config = {"cluster": {"ps": ["p:1"], "worker": ["a:1", "b:1"]}}
    for index, kind in ((0, "chief"), (1, "worker")):
        task = {"task": {"type": "worker", "index": index}}
        monkeypatch.setenv("TF_CONFIG", json.dumps({**config, **task}))
        with pytest.raises(ValueError, match='it must have one "chief" node'):
            tf.estimator.RunConfig()
        monkeypatch.setattr(flags, "first_worker_is_chief", True)
        run = tf.estimator.RunConfig()
        assert (run.task_type, run.task_id, run.num_worker_replicas) == (kind, index, 2)
        monkeypatch.setattr(flags, "first_worker_is_chief", False)
