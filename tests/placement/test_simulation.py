"""The cost-aware choice among tasks: what spreads, what stays, memory, costs."""

from __future__ import annotations

import numpy as np
import pytest
from own_time import only_own_time
from placement_cluster import CLUSTER, MASTER, placed, ps, step_of, task, tasks, worker

import headrace as tf
from headrace.placement.cost import HeuristicCosts, TableCosts
from headrace.placement.placer import place
from headrace.settings import flags

LOCAL = "/job:localhost/replica:0/task:0/device:CPU:0"


def _named(*devices):
    """Ops that make a step name some tasks."""
    made = []
    for device in devices:
        with tf.device(device):
            made.append(tf.random_uniform([1]))
    return made


def _branches(x, count, size, depth=3):
    """Chains of matrix products that share only their input."""
    ends = []
    for branch in range(count):
        value = x
        for _ in range(depth):
            value = tf.matmul(value, tf.fill([size, size], 0.5 + branch))
        ends.append(value)
    return ends


def test_heavy_branches_spread_over_the_named_tasks():
    x = tf.placeholder(tf.float32, [1000, 1000])
    ends = _branches(x, 3, 1000)
    where, _ = placed([*ends, *_named(worker(0), worker(1))], feeds=[x])
    assert {where[e.op.name] for e in ends} == {MASTER, worker(0), worker(1)}
    for end in ends:  # each branch stays in one place
        chain = {where[end.op.name]}
        node = end.op
        while node.type == "MatMul":
            chain.add(where[node.name])
            chain.add(where[node.inputs[1].op.name])
            node = node.inputs[0].op
        assert len(chain) == 1


def test_light_branches_stay_with_their_input():
    x = tf.placeholder(tf.float32, [10, 10])
    ends = _branches(x, 3, 10)
    where, _ = placed([*ends, *_named(worker(0), worker(1))], feeds=[x])
    assert {where[e.op.name] for e in ends} == {MASTER}
    with tf.device("/job:worker/task:1"):
        y = tf.identity(x)
    ends = _branches(y, 3, 10)
    where, _ = placed([*ends, *_named(worker(0), worker(1))], feeds=[x])
    assert {where[e.op.name] for e in ends} == {worker(1)}


def test_tasks_that_the_step_does_not_name_are_not_used():
    x = tf.placeholder(tf.float32, [1000, 1000])
    where, _ = placed([*_branches(x, 4, 1000), *_named(ps(1))], feeds=[x])
    assert set(where.values()) == {MASTER, ps(1)}
    where, _ = placed(_branches(x, 4, 1000), feeds=[x])
    assert set(where.values()) == {MASTER}


def test_small_ops_do_not_leave_a_busy_device():
    with tf.device("/job:worker/task:0"):
        x = tf.random_uniform([1000, 1000])
        busy = tf.matmul(x, x)
    small = [tf.reduce_sum(x) * float(i) for i in range(3)]
    where, _ = placed([busy, *small, *_named(worker(1))])
    assert {where[s.op.name] for s in small} == {worker(0)}


def test_constants_go_where_they_are_used():
    with tf.device(worker(1)):
        x = tf.random_uniform([4], name="x")
    c = tf.constant(np.ones(4, np.float32), name="c")
    filled = tf.fill([4], 2.0, name="filled")
    with tf.device(worker(2)):
        y = x + c * 1.5 + filled
    where, _ = placed([y])
    assert where["c"] == where["filled"] == where["filled/dims"] == worker(2)
    assert where["x/shape"] == worker(1)
    assert placed([c])[0]["c"] == MASTER


def test_initial_values_are_made_where_the_variable_is():
    with tf.device(ps(1)):
        v = tf.get_variable("v", [1000, 1000])
    where, decided = placed([v.initializer])
    assert set(where.values()) == {ps(1)}
    assert set(decided.values()) == {ps(1)}
    assert "v" in decided
    assert len(decided) == 2  # the variable, and the random op that fills it


def test_unconstrained_variables_go_to_the_default_task():
    v = tf.Variable(tf.zeros([100]))
    with tf.device(worker(0)):
        update = v.assign_add(tf.ones([100]))
    where, decided = placed([update.op])
    assert where[v.op.name] == MASTER
    assert decided == {v.op.name: MASTER}


def test_an_accelerator_takes_the_work_that_is_worth_the_way():
    available = [*task("localhost", gpus=2)]
    gpu = "/job:localhost/replica:0/task:0/device:GPU:0"
    with tf.device("/cpu:0"):
        x = tf.random_uniform([1000, 1000])
    y = tf.reduce_sum(tf.matmul(x, x))
    where, _ = placed([y], available, gpu)
    assert where[y.op.name] == gpu
    assert gpu[:-1] + "1" not in where.values()


def test_a_full_device_takes_no_more():
    limit = 10_000_000
    available = [*task("master"), *tasks("worker", 2, gpus=1, gpu_memory=limit)]
    gpus = [worker(i, "/device:GPU:0") for i in range(2)]
    with tf.device(gpus[0]):
        x = tf.random_uniform([1500, 1000])  # 6 MB
    with tf.device(gpus[1]):
        other = tf.random_uniform([1])
    more = tf.tanh(x)  # 6 MB, while x is still needed
    last = more + x
    where, _ = placed([last, other], available)
    assert where[more.op.name] != gpus[0]
    roomy = [*task("master"), *tasks("worker", 2, gpus=1, gpu_memory=2 * limit)]
    assert placed([last, other], roomy)[0][more.op.name] == gpus[0]


def test_measured_times_change_the_choice():
    x = tf.placeholder(tf.float32, [10, 10])
    ends = [tf.tanh(x * 2.0), tf.tanh(x * 3.0)]
    fetches = [*ends, *_named(worker(0))]
    slow = TableCosts({e.op.name: 0.1 for e in ends})
    where, _ = placed(fetches, feeds=[x], cost_model=slow)
    assert {where[e.op.name] for e in ends} == {MASTER, worker(0)}
    where, _ = placed(fetches, feeds=[x])
    assert {where[e.op.name] for e in ends} == {MASTER}


def test_a_table_from_the_statistics_of_a_step(monkeypatch):
    monkeypatch.setattr(flags, "trace_ops", True)
    x = tf.random_uniform([3, 3])
    y = tf.matmul(x, x)
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(y, options=tf.RunOptions(trace_level=3), run_metadata=metadata)
    table = TableCosts.from_step_stats(metadata.step_stats)
    node = next(n for n in step_of([y]).nodes if n.name == y.op.name)
    device = CLUSTER[0]
    table.seconds[y.op.name] += 1.0
    assert table.compute_seconds(node, device) >= 1.0
    del table.seconds[y.op.name]
    assert table.compute_seconds(node, device) < 1.0


def test_heuristic_costs():
    costs = HeuristicCosts()
    a, b = CLUSTER[0], CLUSTER[1]
    assert costs.transfer_seconds(1e9, a, a) == 0.0
    assert costs.transfer_seconds(0, a, b) == pytest.approx(150e-6)
    assert costs.transfer_seconds(1e9, a, b) == pytest.approx(1.00015)
    cpu0, cpu1, gpu = task("localhost", cpus=2, gpus=1)
    assert costs.transfer_seconds(1e9, cpu0, cpu1) == 0.0
    assert 0 < costs.transfer_seconds(0, cpu0, gpu) < 150e-6
    x = tf.random_uniform([500, 500])
    nodes = {n.name: n for n in step_of([tf.matmul(x, x, name="product")]).nodes}
    product = nodes["product"]
    assert costs.output_bytes(product, 0) == 4 * 500 * 500
    assert costs.compute_seconds(product, gpu) < costs.compute_seconds(product, cpu0) < 0.2
    assert costs.compute_seconds(nodes["random_uniform/shape"], cpu0) == 0.0


def test_ten_thousand_nodes_take_less_than_half_a_second():
    with tf.device(MASTER):
        value = tf.random_uniform([64, 64])
    rows = [value] * 20
    for i in range(500):
        rows = [rows[k] * rows[(k + i) % 20] for k in range(20)]
    step = step_of([*rows, *_named(worker(0), worker(1), worker(2))])
    assert len(step.nodes) > 10000
    with only_own_time() as took:
        place(step.nodes, CLUSTER, default_device=MASTER)
    assert {n.device for n in step.nodes} == {MASTER, worker(0), worker(1), worker(2)}
    assert took() < 0.5, f"{took():.3f} s"
