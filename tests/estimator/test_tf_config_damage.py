"""TF_CONFIG with one thing wrong: the key is named, and what was expected there.

Which test shows which rule of TF_CONFIG and `train_and_evaluate`:

| rule | test |
|---|---|
| keys cluster, task, service, session_master, eval_session_master, model_dir, environment | test_run_config: test_other_keys |
| with a cluster: one chief (or master, then no evaluator); type and index are needed, in range | here, and test_run_config: test_a_malformed_tf_config |
| without: type worker, index 0, is_chief | test_run_config: test_what_a_task_is, test_a_malformed_tf_config |
| an evaluator sees an empty cluster, a local master, no servers or workers | test_run_config: test_what_a_task_is |
| only evaluator 0 | test_train_and_evaluate: test_one_evaluator_only_and_no_training_of_servers |
| num_worker_replicas counts the chief; num_ps_replicas; global id; master; device filters | test_run_config: test_what_a_task_is |
| a worker at the chief's address is the chief | test_run_config, test_cluster: test_chief_workers_servers_and_an_evaluator |
| servers start and stay | test_train_and_evaluate: test_a_server_starts_and_waits |
| start delays; a worker's server is up while it waits | test_train_and_evaluate: test_workers_begin_one_after_another, test_the_server_is_up_before_a_worker_begins |
| 600 s, steps or secs, 5 checkpoints, 100 steps, 7200 s | test_run_config: test_defaults_and_replace |
| a checkpoint may be gone before the evaluator has it | test_train_and_evaluate: test_an_evaluator_misses_a_checkpoint |
| EvalSpec's 100 steps, 120 s, 600 s; nothing without a new checkpoint; the end at max_steps | test_train_and_evaluate: test_an_evaluator_waits_for_checkpoints |
| the end of the input ends one worker's pass only | test_cluster: test_each_worker_has_its_own_epoch |
| locally: after each checkpoint, throttled, not after the first | test_train_and_evaluate: test_every_checkpoint_but_the_first_is_evaluated, test_evaluations_are_not_too_frequent |
| the task type local is refused | test_train_and_evaluate: test_one_evaluator_only_and_no_training_of_servers |
| variables on the servers, workers by themselves | test_run_config: test_variables_go_to_the_servers_in_turn, test_cluster |
"""  # noqa: E501

from __future__ import annotations

import copy
import json
import re
import threading

import pytest

import headrace as tf

GOOD = {
    "cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]},
    "task": {"type": "worker", "index": 0},
}
MISSING = object()

DAMAGE = [
    ("cluster", 3, r"TF_CONFIG\['cluster'\] must be a JSON object of jobs"),
    ("cluster", [1], r"TF_CONFIG\['cluster'\] must be a JSON object of jobs"),
    ("task", 3, r"TF_CONFIG\['task'\] must be a JSON object with 'type' and 'index'"),
    ("task", MISSING, r"task type must be set: TF_CONFIG\['task'\] is {}"),
    ("task type", MISSING, r"task type must be set: TF_CONFIG\['task'\] is {'index': 0}"),
    ("task type", "", "task type must be set"),
    ("task type", 3, r"TF_CONFIG\['task'\]\['type'\] must be a string, not 3"),
    ("task type", ["worker"], r"TF_CONFIG\['task'\]\['type'\] must be a string, not \['worker'\]"),
    ("task type", "Worker", r"TF_CONFIG\['task'\]\['type'\]. Did you mean 'worker'"),
    ("task index", MISSING, r"task index must be set: TF_CONFIG\['task'\] is {'type': 'worker'}"),
    ("task index", "a", r"TF_CONFIG\['task'\]\['index'\] must be an integer, not 'a'"),
    ("task index", 1.5, r"TF_CONFIG\['task'\]\['index'\] must be an integer, not 1.5"),
    ("task index", 1e400, r"TF_CONFIG\['task'\]\['index'\] must be an integer, not inf"),
    ("task index", [0], r"TF_CONFIG\['task'\]\['index'\] must be an integer, not \[0\]"),
    ("task index", "-1", r"must be non-negative number: TF_CONFIG\['task'\]\['index'\] is '-1'"),
    ("task index", 2, r"TF_CONFIG\['task'\]\['index'\] is 2, the job has the tasks \[0, 1\]"),
    ("cluster chief", MISSING, r"must have one .chief. node.*has the jobs \['ps', 'worker'\]"),
    ("cluster chief", [], r"only one .chief. node: TF_CONFIG\['cluster'\]\['chief'\] has 0"),
    ("cluster chief", ["a:1", "e:1"], r"TF_CONFIG\['cluster'\]\['chief'\] has 2"),
    ("cluster chief", "a:1", r"TF_CONFIG\['cluster'\]\['chief'\] must be a list of 'host:port'"),
    ("cluster chief", {"1": "a:1"}, r"only task of TF_CONFIG\['cluster'\]\['chief'\] must be 0"),
    ("cluster chief", {"x": "a:1"}, r"TF_CONFIG\['cluster'\]\['chief'\] must be an integer.*'x'"),
    ("cluster chief", [None], r"TF_CONFIG\['cluster'\]: .*'chief' task 0 must be a string"),
    ("cluster chief", ["a"], r"TF_CONFIG\['cluster'\]: .*it has no port"),
    ("cluster chief", ["a:99999999"], "port 99999999 is out of range"),
    ("cluster chief", ["http://a:1"], "leave out 'http://'"),
    ("cluster worker", None, r"TF_CONFIG\['cluster'\]\['worker'\] must be a list of 'host:port'"),
    ("cluster worker", ["b:1", "b:1"], r"'b:1' is given to both job 'worker' task 0 and .* task 1"),
    ("cluster worker", [], r"TF_CONFIG\['task'\]\['index'\] is 0, the job has the tasks \[\]"),
    ("cluster ps", ["a:1"], "'a:1' is given to both job 'chief' task 0 and job 'ps' task 0"),
    ("cluster ps", 3, r"TF_CONFIG\['cluster'\]\['ps'\] must be a list of 'host:port', not 3"),
    ("cluster evaluator", 3, r"TF_CONFIG\['cluster'\]\['evaluator'\] must be a list"),
    ("cluster master", ["e:1"], "If `master` node exists in `cluster`, job `chief` is not supp"),
    ("session_master", 3, r"TF_CONFIG\['session_master'\] must be a string, not 3"),
    ("eval_session_master", [], r"TF_CONFIG\['eval_session_master'\] must be a string"),
    ("environment", 3, r"TF_CONFIG\['environment'\] must be a string, not 3"),
    ("model_dir", 3, r"TF_CONFIG\['model_dir'\] must be a string, not 3"),
    ("model_dir", "", "model_dir in TF_CONFIG should be non-empty"),
    ("service", "x", 'If "service" is set in TF_CONFIG, it must be a dict'),
]


def _damaged(where, value):
    config = copy.deepcopy(GOOD)
    *path, last = where.split()
    inner = config[path[0]] if path else config
    if value is MISSING:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(config)


@pytest.mark.parametrize(("where", "value", "message"), DAMAGE)
def test_damage(monkeypatch, where, value, message):
    before = set(threading.enumerate())
    monkeypatch.setenv("TF_CONFIG", _damaged(where, value))
    with pytest.raises((ValueError, TypeError), match=message):
        tf.estimator.RunConfig()
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{'cluster': {}}", r"TF_CONFIG is no JSON: .* It has the form"),
        ('{"cluster"}', "TF_CONFIG is no JSON"),
        ('{"model_dir": "a",}', "TF_CONFIG is no JSON"),
        ("null", "TF_CONFIG must be a JSON object, not None"),
        ("NaN", "TF_CONFIG must be a JSON object, not nan"),
        ("[" * 100_000, "TF_CONFIG is no JSON: maximum recursion depth"),
        ('{"task": {}, "task": {}}', "the key 'task' is there twice"),
    ],
)
def test_damaged_text(monkeypatch, text, message):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=message):
        tf.estimator.RunConfig()


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("clutser", {}, "TF_CONFIG has the key 'clutser', which nothing reads. Did you mean 'clu"),
        ("task indx", 1, r"TF_CONFIG\['task'\] has the key 'indx'.*Did you mean 'index'"),
        ("cluster wroker", ["e:1"], r"TF_CONFIG\['cluster'\] has the key 'wroker'.*'worker'"),
    ],
)
def test_keys_that_are_misspelled(monkeypatch, caplog, where, value, message):
    monkeypatch.setenv("TF_CONFIG", _damaged(where, value))
    tf.estimator.RunConfig()
    (record,) = caplog.records
    assert re.search(message, record.getMessage())


def test_keys_of_platforms_are_not_told(monkeypatch, caplog):
    monkeypatch.setenv("TF_CONFIG", _damaged("job", {"scale_tier": "BASIC"}))
    assert tf.estimator.RunConfig().task_type == "worker"
    assert not caplog.records


def test_a_null_is_as_a_missing_key(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", _damaged("session_master", None))
    assert tf.estimator.RunConfig().master == "grpc://b:1"
