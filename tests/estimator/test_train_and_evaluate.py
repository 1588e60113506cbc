"""tf.estimator.train_and_evaluate in one process: specs, exporters, when it evaluates."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

import pytest

import headrace as tf
from headrace.distributed.services import admin
from headrace.estimator import tasks
from headrace.test.cluster import free_ports

from .models import forever, line, once
from .test_export import _raw


class _Kept(tf.estimator.Exporter):
    def __init__(self, name="kept"):
        self._name = name
        self.calls = []

    @property
    def name(self):
        return self._name

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        self.calls.append((Path(checkpoint_path).name, is_the_final_export))
        return export_path


def _estimator(folder, **config):
    return tf.estimator.Estimator(line, config=tf.estimator.RunConfig(str(folder), **config))


@pytest.fixture
def clock(monkeypatch):
    """Time that goes on by what is slept, and a second with each look at it."""
    now = [0.0]

    def look():
        now[0] += 1
        return now[0]

    def sleep(seconds):
        now[0] += seconds
        slept.append(seconds)

    slept: list[float] = []
    monkeypatch.setattr(tasks.Clock, "now", staticmethod(look))
    monkeypatch.setattr(tasks.Clock, "sleep", staticmethod(sleep))
    monkeypatch.setattr(tf.train.SecondOrStepTimer, "clock", staticmethod(look))
    return slept


def test_every_checkpoint_but_the_first_is_evaluated(tmp_path):
    kept = _Kept()
    metrics, exports = tf.estimator.train_and_evaluate(
        _estimator(tmp_path, save_checkpoints_steps=10),
        tf.estimator.TrainSpec(forever, max_steps=25),
        tf.estimator.EvalSpec(once, exporters=kept, throttle_secs=0),
    )
    assert kept.calls == [
        ("model.ckpt-10", False),
        ("model.ckpt-20", False),
        ("model.ckpt-25", True),
    ]
    assert metrics["global_step"] == 25
    assert exports == [str(tmp_path / "export" / "kept")]


def test_evaluations_are_not_too_frequent(tmp_path, clock, caplog):
    caplog.set_level(logging.INFO, logger="tensorflow")
    kept = _Kept()
    tf.estimator.train_and_evaluate(
        _estimator(tmp_path, save_checkpoints_steps=1),
        tf.estimator.TrainSpec(forever, max_steps=6),
        tf.estimator.EvalSpec(once, exporters=[kept], throttle_secs=600),
    )
    assert [name for name, _ in kept.calls] == ["model.ckpt-1", "model.ckpt-6"]
    assert "Skip the current checkpoint eval due to throttle secs (600 secs)." in caplog.text


def test_exporters(tmp_path):
    final = tf.estimator.FinalExporter("final", _raw())
    latest = tf.estimator.LatestExporter("latest", _raw(), exports_to_keep=1)
    best = tf.estimator.BestExporter("best", _raw())
    times = iter(range(1_700_000_000, 1_700_000_100))
    spec = tf.estimator.EvalSpec(once, exporters=(final, latest, best), throttle_secs=0)
    with pytest.MonkeyPatch.context() as patch:
        export = tf.estimator.Estimator.export_saved_model.__globals__["export"]
        patch.setitem(export.__kwdefaults__, "clock", lambda: next(times))
        _, exports = tf.estimator.train_and_evaluate(
            _estimator(tmp_path, save_checkpoints_steps=3),
            tf.estimator.TrainSpec(forever, max_steps=9),
            spec,
        )
        again = tf.estimator.BestExporter("best", _raw())
        estimator = _estimator(tmp_path)
        worse = {"loss": 1e9, "global_step": 9}
        arguments = (estimator, str(tmp_path / "export" / "best"), estimator.latest_checkpoint())
        assert again.export(*arguments, worse, False) is None  # older results are read
        assert again.export(*arguments, {"loss": 0.0, "global_step": 10}, False) is not None
    folders = {p.name: sorted(p.iterdir()) for p in (tmp_path / "export").iterdir()}
    assert {name: len(found) for name, found in folders.items()} == {
        "final": 1,
        "latest": 1,
        "best": 4,
    }
    assert exports[0].decode() == str(folders["final"][0])


def test_exporters_that_cannot_be():
    for make, message in [
        (lambda: tf.estimator.LatestExporter("a", _raw(), exports_to_keep=0), "positive number"),
        (lambda: tf.estimator.BestExporter(compare_fn=None), "must not be None"),
        (lambda: tf.estimator.BestExporter(compare_fn=lambda a: 1), "include best_eval_result"),
        (
            lambda: tf.estimator.BestExporter(
                compare_fn=lambda best_eval_result, current_eval_result, x: 1
            ),
            r"not expected args: \['x'\]",
        ),
        (
            lambda: tf.estimator.BestExporter("b").compare_fn,
            "no attribute",
        ),
    ]:
        with pytest.raises((ValueError, AttributeError), match=message):
            make()
    best = tf.estimator.BestExporter("b", _raw())
    with pytest.raises(ValueError, match="best_eval_result cannot be empty or no loss"):
        best._compare_fn({}, {"loss": 1})


def test_specs_that_cannot_be(tmp_path):
    train, evaluate = tf.estimator.TrainSpec, tf.estimator.EvalSpec
    for make, message in [
        (lambda: train(3), "`input_fn` must be a function, given: 3"),
        (lambda: train(lambda x: x), r"following not expected args: \['x'\]"),
        (lambda: train(once, max_steps=0), "Must specify max_steps > 0, given: 0"),
        (lambda: train(once, hooks=[3]), "Hooks must be a SessionRunHook"),
        (lambda: evaluate(once, steps=-1), "Must specify steps > 0, given: -1"),
        (lambda: evaluate(once, name=3), "`name` must be string, given: 3"),
        (lambda: evaluate(once, start_delay_secs=-1), "start_delay_secs >= 0, given: -1"),
        (lambda: evaluate(once, throttle_secs=-1), "throttle_secs >= 0, given: -1"),
        (lambda: evaluate(once, exporters=3), "`exporters` must be an Exporter, an iterable"),
        (lambda: evaluate(once, exporters=[3]), "`exporters` must be an Exporter, an iterable"),
        (lambda: evaluate(once, exporters=_Kept("")), "that is `None` or empty"),
        (lambda: evaluate(once, exporters=_Kept(3)), "must have a string name. Given: <class 'int"),
        (lambda: evaluate(once, exporters=[_Kept(), _Kept()]), r"unique names.*\['kept', 'kept'\]"),
        (lambda: tf.estimator.train_and_evaluate(3, 4, 5), "`estimator` must have type"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            make()
    estimator = _estimator(tmp_path)
    with pytest.raises(TypeError, match="`train_spec` must have type"):
        tf.estimator.train_and_evaluate(estimator, 4, 5)
    with pytest.raises(TypeError, match="`eval_spec` must have type"):
        tf.estimator.train_and_evaluate(estimator, train(once), None)


def _task(monkeypatch, kind, index=0, port=1):
    cluster = '{"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:3"]}'
    monkeypatch.setenv(
        "TF_CONFIG", f'{{"cluster": {cluster}, "task": {{"type": "{kind}", "index": {index}}}}}'
    )


def test_an_evaluator_waits_for_checkpoints(tmp_path, monkeypatch, clock, caplog):
    caplog.set_level(logging.INFO, logger="tensorflow")
    trainer = _estimator(tmp_path)
    kept = _Kept()

    def sleep(seconds):
        clock.append(seconds)
        if len(clock) in (3, 5):
            with monkeypatch.context() as patch:
                patch.delenv("TF_CONFIG")
                trainer.train(forever, steps=5)

    monkeypatch.setattr(tasks.Clock, "sleep", staticmethod(sleep))
    _task(monkeypatch, "evaluator")
    found = tf.estimator.train_and_evaluate(
        _estimator(tmp_path),
        tf.estimator.TrainSpec(forever, max_steps=10),
        tf.estimator.EvalSpec(once, exporters=kept, start_delay_secs=7, throttle_secs=30),
    )
    assert found is None
    assert kept.calls == [("model.ckpt-5", False), ("model.ckpt-10", True)]
    assert clock[0] == 7
    assert [27 <= seconds <= 29 for seconds in clock[1:]] == [True] * 4
    assert "Estimator is not trained yet" in caplog.text
    assert "No new checkpoint ready for evaluation" in caplog.text
    assert "Exiting evaluation, global_step=10 >= train max_steps=10" in caplog.text


def test_an_evaluator_misses_a_checkpoint(tmp_path, monkeypatch):
    estimator = _estimator(tmp_path).train(forever, steps=2)
    evaluator = tasks.Evaluator(estimator, tf.estimator.EvalSpec(once), None)

    def lacks(*args, **kwargs):
        raise tf.errors.NotFoundError(None, None, "another model")

    def gone(*args, **kwargs):
        for path in tmp_path.glob("model.ckpt-2.*"):
            path.unlink()
        lacks()

    monkeypatch.setattr(estimator, "evaluate", lacks)
    with pytest.raises(tf.errors.NotFoundError):
        evaluator.evaluate_new()
    monkeypatch.setattr(estimator, "evaluate", gone)
    assert evaluator.evaluate_new() is False


def test_workers_begin_one_after_another(monkeypatch):
    workers = ", ".join(f'"127.0.0.1:{i + 10}"' for i in range(20))
    cluster = f'{{"chief": ["127.0.0.1:1"], "worker": [{workers}]}}'
    for index, most, expected in [(0, None, 5), (3, None, 20), (15, None, 60), (15, 12, 12)]:
        monkeypatch.setenv(
            "TF_CONFIG",
            f'{{"cluster": {cluster}, "task": {{"type": "worker", "index": {index}}}}}',
        )
        config = tf.estimator.RunConfig(experimental_max_worker_delay_secs=most)
        assert tasks._start_delay(config) == expected


def _local_task(monkeypatch, kind):
    """The address of a task on this machine, which TF_CONFIG says this process is."""
    jobs = ("chief", "worker", "ps")
    cluster = {job: [f"127.0.0.1:{port}"] for job, port in zip(jobs, free_ports(3), strict=True)}
    config = {"cluster": cluster, "task": {"type": kind, "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    return cluster[kind][0]


@pytest.mark.parametrize("kind", ["chief", "worker"])
def test_training_without_a_server_is_refused_at_once(tmp_path, monkeypatch, kind):
    address = _local_task(monkeypatch, kind)
    message = f"gives this process the address {address}, where no server runs.*train_and_evaluate"
    with pytest.raises(RuntimeError, match=message):
        _estimator(tmp_path).train(once)


def test_the_server_is_up_before_a_worker_begins(tmp_path, monkeypatch):
    address = _local_task(monkeypatch, "worker")
    before = set(threading.enumerate())

    class EnoughError(Exception):
        pass

    def sleep(seconds):
        assert seconds == 5
        assert admin.status(address, cluster=False)
        raise EnoughError

    monkeypatch.setattr(tasks.Clock, "sleep", staticmethod(sleep))
    with pytest.raises(EnoughError):
        tf.estimator.train_and_evaluate(
            _estimator(tmp_path), tf.estimator.TrainSpec(once, 1), tf.estimator.EvalSpec(once)
        )
    with pytest.raises((tf.errors.UnavailableError, tf.errors.DeadlineExceededError)):
        admin.status(address, cluster=False)
    left = set(threading.enumerate()) - before  # the engine's own stay for the next server
    for thread in left:
        if not thread.name.startswith("headrace"):
            thread.join(30)  # of gRPC, which ends when its channel is closed
            assert not thread.is_alive(), thread


def test_a_server_starts_and_waits(tmp_path, monkeypatch):
    address = _local_task(monkeypatch, "ps")
    estimator = _estimator(tmp_path)
    started, ended = threading.Event(), []
    start = tasks._start_server

    def told(config):
        server = start(config)
        started.set()
        return server

    monkeypatch.setattr(tasks, "_start_server", told)
    specs = tf.estimator.TrainSpec(once, 1), tf.estimator.EvalSpec(once)
    thread = threading.Thread(
        target=lambda: ended.append(tf.estimator.train_and_evaluate(estimator, *specs))
    )
    thread.start()
    assert started.wait(30)
    assert admin.status(address, cluster=False)
    assert not ended
    admin.shutdown(address, cluster=False)
    thread.join(30)
    assert ended == [None]


def test_one_evaluator_only_and_no_training_of_servers(tmp_path, monkeypatch):
    _task(monkeypatch, "evaluator", 1)
    specs = tf.estimator.TrainSpec(once), tf.estimator.EvalSpec(once)
    with pytest.raises(ValueError, match=r"only be one `evaluator` task.*Given task id 1"):
        tf.estimator.train_and_evaluate(_estimator(tmp_path), *specs)
    for kind in ("evaluator", "ps"):
        _task(monkeypatch, kind)
        with pytest.raises(ValueError, match=f"this task is {kind}"):
            _estimator(tmp_path).train(once)
    monkeypatch.setenv(
        "TF_CONFIG",
        '{"cluster": {"chief": ["a:1"], "local": ["b:1"]}, "task": {"type": "local", "index": 0}}',
    )
    with pytest.raises(ValueError, match=r"Task type local is not supported.*TF_CONFIG\['task'\]"):
        tf.estimator.train_and_evaluate(_estimator(tmp_path), *specs)
