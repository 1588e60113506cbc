"""One way from a graph to a plan, in one process and on a cluster."""

from __future__ import annotations

import gc
import re
import weakref
from functools import partial

import numpy as np
import pytest

import headrace as tf
from headrace.compat import control_flow_ops as tokens
from headrace.distributed.master.session import ClusterPlan
from headrace.executor.evaluate import prepared
from headrace.executor.plan import LocalPlan
from headrace.harness.cluster import with_cluster
from headrace.passes.ir import Node, build_step
from headrace.step import pipeline
from headrace.step.request import PlanRequest

STAGES = ["prune", "place", "rewrite", "split", "lower"]


@pytest.fixture
def one_task():
    with with_cluster(worker=1) as made:
        yield made


def _texts(cluster, fetches, feeds=(), targets=()):
    """How the step is described by a session of this process, and by one of a task."""
    found = []
    for target in ("", cluster.target("worker")):
        with tf.Session(target) as session:
            found.append(session.describe([*fetches, *targets], list(feeds)))
    return found


def _without_job(text):
    return re.sub(r"/job:\w+", "/job:J", text)


def _model():
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    w = tf.Variable(np.ones([4, 3], np.float32), name="w")
    loss = tf.reduce_sum(tf.nn.relu(x @ w)) * 1.0
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return [loss, x], [x], [train]


def _host_op():
    x = tf.placeholder(tf.float32, [2], name="x")
    return [tf.tanh(tf.py_func(lambda a: a + 1, [x * 2.0], tf.float32)), x], [x], []


def _loop():
    v = tf.Variable(2.0, name="v")
    return [tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * v), [0, 1.0])[1]], [], []


def _constant():
    return [tf.constant(3.0, name="three")], [], []


@pytest.mark.parametrize("graph", [_model, _host_op, _loop, _constant])
def test_both_descriptions_of_a_graph_are_the_same(one_task, graph):
    here, there = map(_without_job, _texts(one_task, *graph()))
    assert here == there
    assert [line.partition(":")[0] for line in here.splitlines()[:5]] == STAGES


def test_the_description_counts_what_each_stage_did():
    x = tf.placeholder(tf.float32, [2], name="x")
    a, b = tf.exp(x, name="a"), tf.exp(x, name="b")
    with tf.Session() as session:
        text = session.describe(tf.add(a, b, name="sum"), [x])
    device = "/job:localhost/replica:0/task:0"
    assert text == (
        "prune: 4 nodes\n"
        "place: 1 device of 1\n"
        "rewrite: 3 nodes left; merge common subexpressions: 1\n"
        "split: 1 part, 0 transfers\n"
        "lower: 1 part\n"
        f"part {device}\n"
        "  feed 0: x:0\n"
        f"  stage 0 on {device}/device:CPU:0\n"
        "    a = Exp(x:0)\n"
        "    sum = Add(a, a)\n"
        "  fetch 0: sum:0"
    )


def test_describing_a_plan_does_not_change_it():
    fetches, feeds, targets = _model()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.describe([*fetches, *targets], feeds)
        loss, _, _ = session.run([*fetches, *targets], {feeds[0]: np.ones([2, 4])})
        assert loss == 24.0
        assert session.run(fetches[0], {feeds[0]: np.ones([2, 4])}) == pytest.approx(19.2)


def test_several_tasks_have_parts_and_transfers():
    with with_cluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.Variable(np.ones(3, np.float32), name="w")
        with tf.device("/job:worker/task:0"):
            y = tf.exp(w * 2.0, name="y")
        with tf.Session(cluster.target("worker")) as session:
            lines = session.describe(y).splitlines()
    assert [line.partition(":")[0] for line in lines[:5]] == STAGES
    assert lines[1] == "place: 2 devices of 2"
    assert lines[3:5] == ["split: 2 parts, 1 transfer", "lower: 2 parts"]


def test_a_process_and_a_master_take_the_same_five_stages(one_task, monkeypatch):
    seen = []

    def noted(stage, run, *args):
        seen.append(stage)
        return run(*args)

    for stage in STAGES:
        monkeypatch.setattr(pipeline, stage, partial(noted, stage, getattr(pipeline, stage)))
    request = PlanRequest([tf.exp(tf.constant([1.0]))])
    kinds = []
    for target in ("", one_task.target("worker")):
        with tf.Session(target) as session:
            plan = session._engine.plan(request)
            kinds.append(type(getattr(plan, "plan", plan)))
    assert seen == STAGES * 2
    assert kinds == [LocalPlan, ClusterPlan]


def test_old_control_flow_by_hand_runs_on_a_cluster(one_task):
    pred, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2])
    false, true = tokens.switch(x, pred)
    value, index = tokens.merge([false * 10.0, true + 1.0])
    with tf.Session(one_task.target("worker")) as session:
        first = session.run([value, index], {pred: True, x: [1, 2]})
        second = session.run([value, index], {pred: False, x: [1, 2]})
    assert (first[0].tolist(), first[1]) == ([2, 3], 1)
    assert (second[0].tolist(), second[1]) == ([10, 20], 0)


def test_a_request_has_what_defines_a_kind_of_step():
    x = tf.placeholder(tf.float32, [])
    request = PlanRequest([x], [x])
    assert (request.targets, request.timeout, request.last) == ((), None, ())
    with pytest.raises(AttributeError):
        request.timeout = 1.0


def test_nodes_have_no_slots_of_partitioning_and_lowering():
    assert set(Node.__slots__) == {
        *("op", "op_def", "name", "inputs", "control", "attrs", "dtypes", "dims"),  # the graph
        *("device", "colocation"),  # the graph's constraint, which placement narrows
        "__weakref__",
    }


def test_what_the_executor_keeps_of_a_node_goes_with_it():
    x = tf.placeholder(tf.float32, [2])
    node = build_step([tf.tanh(x)], [x], []).fetches[0][0]
    kept = weakref.ref(prepared(node))
    assert prepared(node) is kept()
    other = build_step([tf.exp(x)], [x], []).fetches[0][0]
    assert prepared(other) is not kept()
    del node
    gc.collect()
    assert kept() is None
    assert prepared(other).op_def.name == "Exp"
