"""Constraints, colocation, soft placement and errors, over many tasks."""

from __future__ import annotations

import numpy as np
import pytest
from placement_cluster import CLUSTER, MASTER, placed, ps, task, tasks, worker

import headrace as tf
from headrace.errors import InvalidArgumentError


def test_the_devices_of_the_talks():
    available = [*task("localhost"), *tasks("worker", 18, gpus=4), *tasks("parameters", 5)]
    names = {
        "/job:localhost/device:cpu:0": "/job:localhost/replica:0/task:0/device:CPU:0",
        "/job:worker/task:17/device:gpu:3": "/job:worker/replica:0/task:17/device:GPU:3",
        "/job:parameters/task:4/device:cpu:0": "/job:parameters/replica:0/task:4/device:CPU:0",
    }
    x = tf.placeholder(tf.float32, [2])
    results = []
    for name in names:
        with tf.device(name):
            results.append(x * 2.0)
    default = "/job:localhost/replica:0/task:0/device:CPU:0"
    where, _ = placed(results, available, default, feeds=[x])
    assert [where[r.op.name] for r in results] == list(names.values())


def test_partial_constraints_merge_within_scopes():
    with tf.device("/job:worker"), tf.device("/task:2"), tf.device("/cpu:0"):
        x = tf.random_uniform([2])
    assert placed([x])[0][x.op.name] == worker(2)


def test_constraints_of_a_colocation_group_merge():
    available = [*task("master"), *tasks("worker", 2, gpus=2)]
    with tf.device("/job:worker"):
        a = tf.random_uniform([2])
    with tf.device("/task:1"):
        b = tf.random_uniform([2])
    with tf.device("/gpu:1"):
        c = tf.random_uniform([2])
    for op in (b.op, c.op):
        op.colocation = (a.op.name,)
    where, _ = placed([a + b, c], available)
    expected = worker(1, "/device:GPU:1")
    assert {where[t.op.name] for t in (a, b, c)} == {expected}


def test_an_open_task_is_the_default_one_or_one_that_the_step_names_or_the_first():
    with tf.device("/job:worker"):
        x = tf.identity(tf.placeholder(tf.float32, [2], name="fed"))
    feed = tf.get_default_graph().get_tensor_by_name("fed:0")
    assert placed([x], feeds=[feed])[0][x.op.name] == worker(0)
    assert placed([x], default=worker(1), feeds=[feed])[0][x.op.name] == worker(1)
    with tf.device("/job:worker/task:2"):
        named = tf.identity(feed)
    assert placed([x, named], feeds=[feed])[0][x.op.name] == worker(2)


def test_what_uses_a_variable_runs_on_its_device():
    with tf.device("/job:ps/task:1"):
        v = tf.Variable(np.zeros(3, np.float32))
    x = tf.placeholder(tf.float32, [3])
    with tf.device("/job:worker/task:0"):
        update = v.assign_add(x * 2.0)
    where, _ = placed([update, v.initializer], feeds=[x])
    assert where[v.handle.op.name] == ps(1)
    assert {n: d for n, d in where.items() if d == worker(0)}
    for op in tf.get_default_graph().get_operations():
        if op.name in where and any(t.dtype == tf.resource for t in op.inputs):
            assert where[op.name] == ps(1)


def test_colocation_with_an_op_outside_the_step():
    with tf.device("/job:ps/task:1"):
        anchor = tf.random_uniform([2])
    x = tf.random_uniform([2])
    y = tf.random_uniform([2])
    x.op.colocation = y.op.colocation = (anchor.op.name,)
    where, _ = placed([x, y])
    assert where[x.op.name] == where[y.op.name] == ps(1)
    anchor.op._set_device("")
    where, _ = placed([x, y], pinned={anchor.op.name: worker(2)})
    assert where[x.op.name] == where[y.op.name] == worker(2)


def test_a_conflict_names_both_ops_and_their_lines():
    with tf.device("/job:ps/task:0"):
        a = tf.random_uniform([2], name="left")
    with tf.device("/job:ps/task:1"):
        b = tf.random_uniform([2], name="right")
    left, right = a.op, b.op
    right.colocation = (left.name,)
    with pytest.raises(InvalidArgumentError) as caught:
        placed([a, b])
    lines = [f'File "{__file__}", line {op.site.lineno}' for op in (left, right)]
    assert caught.value.message == (
        f"Cannot colocate nodes: '{right.name}' (made by {lines[1]}) asks for device "
        f"/job:ps/task:1, but must share a device with '{left.name}' (made by {lines[0]}) asks for "
        "device /job:ps/task:0."
    )
    assert left.site.lineno + 2 == right.site.lineno
    where, _ = placed([a, b], allow_soft_placement=True)
    assert where[left.name] == where[right.name] == ps(0)


def test_a_loop_with_variables_of_two_tasks_keeps_its_own_device():
    variables = []
    for i in range(2):
        with tf.device(f"/job:ps/task:{i}"):
            variables.append(tf.Variable(1.0, name=f"v{i}"))
    v, w = variables

    def loop():
        return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * v + w), (0, 1.0))[1]

    with tf.device("/job:worker/task:1"):
        inside = loop()
    free = loop()
    where, _ = placed([inside, free])
    assert where[inside.op.name] == worker(1)
    assert where[free.op.name] == MASTER
    assert where["v0"] == ps(0)
    assert where["v1"] == ps(1)


# -- devices that are not there ------------------------------------------------------------------


def _message(device, available=CLUSTER, default=MASTER):
    with tf.Graph().as_default():
        with tf.device(device):
            x = tf.random_uniform([2], name="x")
        with pytest.raises(InvalidArgumentError) as caught:
            placed([x], available, default)
    assert "Made by: File" in str(caught.value)
    return caught.value.message


def test_unknown_devices_list_those_that_exist():
    message = _message("/job:ps/task:2")
    assert "assigned to /job:ps/task:2 but available devices are [ " + MASTER in message
    assert ps(1) in message
    assert "Job 'ps' has 2 tasks, none of them 2." in message


def test_tasks_whose_devices_are_not_known_count_too():
    with tf.device("/job:ps/task:7"):
        x = tf.random_uniform([2])
    known = [d.task for d in CLUSTER]
    with pytest.raises(InvalidArgumentError, match="Job 'ps' has 2 tasks, none of them 7"):
        placed([x], task("master"), task_names=known)


def test_near_misses():
    assert "There is no job 'wroker'. Did you mean 'worker'?" in _message("/job:wroker/task:1")
    assert f"Did you mean '{worker(1)}'?" in _message("/job:worker/task:1/device:GPU:0")


def test_long_lists_are_shortened_to_the_nearest():
    message = _message("/job:worker/task:77/gpu:9", [*task("master"), *tasks("worker", 100)])
    assert worker(77) in message
    assert message.count("/replica:") == 9
    assert "... (101 in all)" in message


def test_soft_placement_prefers_the_cpu_of_the_same_task():
    def soft(device, available=CLUSTER):
        with tf.device(device):
            x = tf.random_uniform([2])
        return placed([x], available, allow_soft_placement=True)[0][x.op.name]

    assert soft("/job:worker/task:1/device:GPU:0") == worker(1)
    gpus = [*task("master"), *tasks("worker", 2, gpus=1)]
    assert soft("/job:worker/task:1/device:GPU:7", gpus) == worker(1)
    assert soft("/job:worker/task:1/device:TPU:0", gpus) == worker(1)
    only_gpu = [*task("master"), *tasks("worker", 2, cpus=0, gpus=2)]
    assert soft("/job:worker/task:1/cpu:0", only_gpu) == worker(1, "/device:GPU:0")
    assert soft("/job:worker/task:9") == worker(0)
    assert soft("/job:elsewhere/task:9") == MASTER
    assert soft("/gpu:3") == MASTER


# -- preferences ---------------------------------------------------------------------------------


def test_accelerators_first_but_host_ops_on_the_cpu():
    available = task("localhost", gpus=2)
    gpu, cpu = available[1].name, available[0].name
    x = tf.placeholder(tf.float32, [4])
    y = tf.square(x)
    chosen = tf.where(y > 1.0)
    where, _ = placed([chosen], available, gpu, feeds=[x])
    assert where[y.op.name] == gpu
    assert where[chosen.op.name] == cpu


def test_state_too_large_for_the_accelerator_goes_to_the_cpu():
    available = task("localhost", gpus=1, gpu_memory=5000)
    cpu, gpu = (d.name for d in available)
    one = tf.Variable(tf.zeros([1000]), name="one")
    two = tf.Variable(tf.zeros([1000]), name="two")
    where, _ = placed([one.initializer, two.initializer], available, gpu)
    assert sorted((where["one"], where["two"])) == [cpu, gpu]


def test_an_unknown_default_device():
    with pytest.raises(ValueError, match="The default device '/job:x' is not among"):
        placed([tf.constant(1)], default="/job:x")


def test_what_uses_a_resource_runs_where_that_is():
    """Also from within another device scope, as in TensorFlow: a worker fills a server's queue."""
    with tf.device("/job:ps/task:1"):
        queue = tf.FIFOQueue(3, tf.float32, [[]])
        sums = tf.ConditionalAccumulator(tf.float32, shape=[])
    with tf.device("/job:worker/task:2"):
        filled, taken = queue.enqueue(1.0), queue.dequeue()
        added = sums.apply_grad(2.0)
        value = taken + 1.0
    where, _ = placed([filled, taken, added, value])
    made = queue.queue_ref.op.name
    assert where[made] == where[filled.name] == where[taken.op.name] == ps(1)
    assert where[added.name] == ps(1)
    assert where[value.op.name] == worker(2)
    where, _ = placed([filled], pinned={made: ps(0)})
    assert where[filled.name] == ps(0)


def test_resources_of_one_op_do_not_give_way_to_each_other():
    with tf.device("/job:ps/task:0"):
        first = tf.get_variable("first", [2], use_resource=True)
    with tf.device("/job:ps/task:1"):
        queue = tf.FIFOQueue(3, tf.float32, [[]])
    filled = queue.enqueue(1.0)
    filled.colocation = (first.handle.op.name,)
    with pytest.raises(InvalidArgumentError, match="Cannot colocate nodes"):
        placed([filled])
