"""tf.train.replica_device_setter and the strategies of tf.contrib.training."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

import headrace as tf
from headrace.passes.ir import build_step
from headrace.placement.devices import DeviceAttributes
from headrace.placement.placer import place

# The cluster of the talks: three workers and two parameter servers.
CLUSTER = tf.train.ClusterSpec(
    {
        "worker": ["worker0:2222", "worker1:2222", "worker2:2222"],
        "ps": ["ps0:2222", "ps1:2222"],
    }
)


def _variables(*shapes):
    return [tf.Variable(tf.zeros(shape), name=f"v{i}") for i, shape in enumerate(shapes)]


def _devices(variables):
    return [v.device for v in variables]


def _state_devices(variable):
    return {variable.op.device, variable.initializer.device, variable.value().device}


# -- the programs of the talks ---------------------------------------------------------------


def test_weights_on_two_parameter_servers():
    with tf.device("/job:ps/task:0"):
        weights_1 = tf.Variable(tf.truncated_normal([784, 100]), name="weights_1")
        biases_1 = tf.Variable(tf.zeros([100]), name="biases_1")
    with tf.device("/job:ps/task:1"):
        weights_2 = tf.Variable(tf.truncated_normal([100, 10]), name="weights_2")
        biases_2 = tf.Variable(tf.zeros([10]), name="biases_2")
    with tf.device("/job:worker/task:2"):
        images = tf.placeholder(tf.float32, [None, 784])
        layer_1 = tf.nn.relu(tf.matmul(images, weights_1) + biases_1)
        logits = tf.nn.relu(tf.matmul(layer_1, weights_2) + biases_2)
    for variable, task in ((weights_1, 0), (biases_1, 0), (weights_2, 1), (biases_2, 1)):
        assert _state_devices(variable) == {f"/job:ps/task:{task}"}
        assert variable.initial_value.device == f"/job:ps/task:{task}"
    assert {layer_1.device, logits.device, images.device} == {"/job:worker/task:2"}


@pytest.mark.parametrize("task", [0, 1, 2])
def test_each_worker_of_the_talk_builds_its_replica(task):
    worker = f"/job:worker/task:{task}"
    with tf.device(tf.train.replica_device_setter(cluster=CLUSTER, worker_device=worker)):
        weights_1 = tf.get_variable("weights_1", [784, 100])
        biases_1 = tf.get_variable("biases_1", [100], initializer=tf.zeros_initializer())
        weights_2 = tf.get_variable("weights_2", [100, 10])
        biases_2 = tf.get_variable("biases_2", [10], initializer=tf.zeros_initializer())
        global_step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 784])
        labels = tf.placeholder(tf.int64, [None])
        layer_1 = tf.nn.relu(tf.matmul(images, weights_1) + biases_1)
        logits = tf.matmul(layer_1, weights_2) + biases_2
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        optimizer = tf.train.AdagradOptimizer(0.01)
        train_op = optimizer.minimize(tf.reduce_mean(losses), global_step=global_step)
    in_turns = (weights_1, biases_1, weights_2, biases_2, global_step)
    for i, variable in enumerate(in_turns):
        assert _state_devices(variable) == {f"/job:ps/task:{i % 2}"}
    for tensor in (images, layer_1, logits, losses):
        assert tensor.device == worker
    for variable in in_turns[:4]:
        slot = optimizer.get_slot(variable, "accumulator")
        assert _state_devices(slot) == {variable.device}
    for op in tf.get_default_graph().get_operations():
        if op.type.startswith("ResourceApply") or op.type == "AssignAddVariableOp":
            assert op.device == op.inputs[0].op.device
    assert train_op.graph is tf.get_default_graph()


# -- the rules -------------------------------------------------------------------------------


def test_variables_take_turns_in_the_order_in_which_they_are_made():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        v1, v2, v3 = _variables([1000, 1000], [1], [1])
        total = v1 + v2 + v3
    assert _devices([v1, v2, v3]) == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert total.device == "/job:worker"


def test_a_setter_may_serve_several_blocks():
    setter = tf.train.replica_device_setter(ps_tasks=3)
    with tf.device(setter):
        first = tf.Variable(1.0)
    with tf.device(setter):
        second = tf.Variable(2.0)
    assert _devices([first, second]) == ["/job:ps/task:0", "/job:ps/task:1"]


def test_the_cluster_counts_not_ps_tasks():
    with tf.device(tf.train.replica_device_setter(ps_tasks=7, cluster=CLUSTER)):
        variables = _variables(*[[1]] * 3)
    assert _devices(variables) == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]


@pytest.mark.parametrize(
    "cluster",
    [
        {"parameters": ["a:1", "b:1"]},
        {"parameters": {0: "a:1", 1: "b:1"}},
        tf.train.ClusterSpec({"parameters": ["a:1", "b:1"]}).as_cluster_def(),
    ],
)
def test_clusters_in_other_forms_and_jobs_of_other_names(cluster):
    setter = tf.train.replica_device_setter(
        cluster=cluster, ps_device="/job:parameters/cpu:0", worker_device="/job:trainer"
    )
    with tf.device(setter):
        v, w = _variables([1], [1])
        total = v + w
    expected = [f"/job:parameters/task:{i}/device:CPU:0" for i in (0, 1)]
    assert _devices([v, w]) == expected
    assert total.device == "/job:trainer"


@pytest.mark.parametrize(
    "arguments",
    [{}, {"ps_tasks": 0}, {"cluster": {"worker": ["w:1"]}}, {"cluster": {"ps": []}, "ps_tasks": 3}],
)
def test_nothing_without_parameter_servers(arguments):
    setter = tf.train.replica_device_setter(**arguments)
    assert setter is None
    with tf.device(setter):
        assert tf.Variable(1.0).device == ""


def test_inner_blocks_win_field_by_field():
    setter = tf.train.replica_device_setter(
        ps_tasks=2, ps_device="/job:ps/cpu:0", worker_device="/job:worker/task:1/gpu:0"
    )
    with tf.device(setter):
        with tf.device("/gpu:3"):
            v = tf.Variable(1.0)
            product = v * 2.0
        with tf.device("/job:ps/task:5"):
            pinned = tf.Variable(1.0)
        with tf.device("/job:other"):
            elsewhere = tf.Variable(1.0)
            twice = elsewhere * 2.0
        last = tf.Variable(1.0)
    assert v.device == "/job:ps/task:0/device:GPU:3"
    assert product.device == "/job:worker/task:1/device:GPU:3"
    assert pinned.device == "/job:ps/task:5/device:CPU:0"
    assert elsewhere.device == "/job:other/device:CPU:0"
    assert twice.device == "/job:other/task:1/device:GPU:0"
    # The pinned one took a turn; the one in another job did not.
    assert last.device == "/job:ps/task:0/device:CPU:0"


def test_without_merging_placed_ops_are_left_alone():
    setter = tf.train.replica_device_setter(ps_tasks=2, merge_devices=False)
    with tf.device(setter):
        with tf.device("/cpu:0"):
            placed = tf.Variable(1.0)
            product = placed * 2.0
        v = tf.Variable(1.0)
        total = v + 1.0
    assert placed.device == product.device == "/device:CPU:0"
    assert v.device == "/job:ps/task:0", "the placed variable took no turn"
    assert total.device == "/job:worker"


def test_a_ps_device_without_a_job_gets_no_task():
    asked = []
    setter = tf.train.replica_device_setter(
        ps_tasks=2, ps_device="/cpu:0", ps_strategy=lambda op: asked.append(op) or 1
    )
    with tf.device(setter):
        v = tf.Variable(1.0)
    assert v.device == "/device:CPU:0"
    assert not asked


def test_an_empty_ps_device_leaves_variables_on_the_worker():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, ps_device="")):
        assert tf.Variable(1.0).device == "/job:worker"


def test_which_ops_go_to_parameter_servers():
    setter = tf.train.replica_device_setter(ps_tasks=2, ps_ops=["Const"])
    with tf.device(setter):
        c, d = tf.constant(1.0), tf.constant(2.0)
        v = tf.Variable(c)
    assert [c.device, d.device] == ["/job:ps/task:0", "/job:ps/task:1"]
    assert v.device == "/job:worker"


def test_node_defs_are_placed_as_well():
    setter = tf.train.replica_device_setter(ps_tasks=2)
    assert setter(tf.NodeDef(name="v", op="VariableV2")) == "/job:ps/task:0"
    assert setter(tf.NodeDef(name="t", op="MutableHashTableV2")) == "/job:ps/task:1"
    assert setter(tf.NodeDef(name="v", op="VarHandleOp", device="/gpu:0")) == (
        "/job:ps/task:0/device:GPU:0"
    )
    assert setter(tf.NodeDef(name="c", op="Const")) == "/job:worker"


def test_local_variables_go_there_too_unless_colocated():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        local = tf.Variable(0, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
        worker_side = tf.constant(1.0)
        with tf.colocate_with(worker_side.op):
            beside = tf.Variable(0.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    assert local.device == "/job:ps/task:0"
    assert beside.device == "/job:worker"


def test_wrong_arguments():
    with pytest.raises(TypeError, match="ps_strategy must be callable, not 3"):
        tf.train.replica_device_setter(ps_tasks=1, ps_strategy=3)
    with pytest.raises(ValueError, match="Malformed device name '/jobs:ps'"):
        tf.train.replica_device_setter(ps_tasks=1, ps_device="/jobs:ps")
    with pytest.raises(ValueError, match="Malformed device name 'worker'"):
        tf.train.replica_device_setter(ps_tasks=1, worker_device="worker")
    with pytest.raises(TypeError, match="must be a dictionary"):
        tf.train.replica_device_setter(cluster=["ps0:1"])


# -- where the ops of a variable land --------------------------------------------------------


def test_a_made_initial_value_is_made_where_the_variable_is():
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/gpu:0")):
        made = tf.get_variable("made", [10, 10])
        given = tf.Variable(tf.zeros([10]), name="given")
    ops = [op for op in tf.get_default_graph().get_operations() if "/Initializer/" in op.name]
    assert len(ops) > 1
    assert {(op.device, op.colocation) for op in ops} == {("", ("made",))}
    assert ops[-1] is made.initial_value.op
    # What the program computed outside the variable stays where the program put it.
    assert given.initial_value.device == "/job:worker/device:GPU:0"
    assert given.initializer.device == "/job:ps/task:0"


def test_variables_without_a_device_are_not_colocated_with_anything():
    v = tf.get_variable("v", [10, 10])
    assert v.initial_value.op.colocation == ()


def test_all_uses_of_a_variable_can_be_placed():
    """Nothing that needs the variable's state asks for the worker's device."""
    setter = tf.train.replica_device_setter(
        cluster=CLUSTER, worker_device="/job:worker/task:1/device:GPU:0"
    )
    with tf.device(setter):
        table = tf.get_variable("table", [100, 8])
        scale = tf.Variable(tf.ones([8]), name="scale")
        copy = tf.Variable(table.initialized_value()[0], name="copy")
        counter = tf.Variable(0, name="counter")
        ids = tf.placeholder(tf.int32, [None])
        rows = tf.nn.embedding_lookup(table, ids) * scale
        loss = tf.reduce_sum(rows) + tf.reduce_sum(tf.gather_nd(copy, [[0]]))
        train = tf.train.AdamOptimizer().minimize(loss)
        fetches = [
            loss,
            tf.report_uninitialized_variables(),
            tf.count_up_to(counter, 10),
            table[3].assign(tf.zeros([8])),
            tf.scatter_add(table, [1, 2], tf.ones([2, 8])),
            tf.assign_add(scale, tf.ones([8])),
        ]
        targets = [train, tf.global_variables_initializer()]
    tasks = [f"/job:ps/replica:0/task:{i}" for i in (0, 1)] + ["/job:worker/replica:0/task:1"]
    available = [DeviceAttributes(f"{t}/device:CPU:0", "CPU") for t in tasks]
    available.append(DeviceAttributes(f"{tasks[2]}/device:GPU:0", "GPU"))
    step = build_step(fetches, [ids], targets)
    state = place(step.nodes, available, default_device=available[2].name)
    for variable in tf.global_variables():
        task = variable.device.rpartition(":")[2]
        assert state[variable.op.name] == f"/job:ps/replica:0/task:{task}/device:CPU:0"


def test_one_process_runs_what_the_setter_placed_elsewhere():
    config = tf.ConfigProto(allow_soft_placement=True)
    with tf.device(tf.train.replica_device_setter(cluster=CLUSTER)):
        v, w = tf.Variable([1.0, 2.0]), tf.get_variable("w", initializer=lambda: tf.ones([2]))
        total = v + w
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(total), [2.0, 3.0])


# -- strategies ------------------------------------------------------------------------------


def _greedy(num_tasks, load_fn):
    strategy = tf.contrib.training.GreedyLoadBalancingStrategy(num_tasks, load_fn)
    return tf.train.replica_device_setter(ps_tasks=num_tasks, ps_strategy=strategy)


def _tasks(variables):
    return [int(v.device.rpartition(":")[2]) for v in variables]


def test_greedy_with_equal_loads_takes_turns():
    with tf.device(_greedy(2, lambda op: 1)):
        variables = _variables(*[[1]] * 5)
    assert _tasks(variables) == [0, 1, 0, 1, 0]


def test_greedy_by_bytes():
    with tf.device(_greedy(2, tf.contrib.training.byte_size_load_fn)):
        variables = _variables([1, 2], [2, 1], [3, 3], [1, 5], [5, 1], [2, 2])
    # Elements so far after each: (2, 0) (2, 2) (11, 2) (11, 7) (11, 12) (15, 12).
    assert _tasks(variables) == [0, 1, 0, 1, 1, 0]


def test_greedy_depends_on_the_order():
    with tf.device(_greedy(2, tf.contrib.training.byte_size_load_fn)):
        variables = _variables([10], [1], [1], [9])
    assert _tasks(variables) == [0, 1, 1, 1]


def test_greedy_counts_the_width_of_types():
    with tf.device(_greedy(2, tf.contrib.training.byte_size_load_fn)):
        wide = tf.Variable(np.zeros(4, np.float64))
        variables = _variables([3], [4], [1])
    assert _tasks([wide, *variables]) == [0, 1, 1, 1]


def test_byte_size_of_ops():
    load = tf.contrib.training.byte_size_load_fn
    assert load(tf.Variable(tf.zeros([3, 4])).op) == 48
    assert load(tf.constant(1.0).op) == 4
    with pytest.raises(ValueError, match="'Placeholder' is unknown: its shape is"):
        load(tf.placeholder(tf.float32, [None]).op)
    with pytest.raises(ValueError, match="'split' must have a single output, but has 2"):
        load(tf.split(tf.zeros([4]), 2)[0].op)
    with pytest.raises(ValueError, match="must have a single output, but has 0"):
        load(tf.no_op())


def test_load_functions_see_the_outputs_of_ops():
    seen = []
    setter = tf.train.replica_device_setter(
        ps_tasks=1, ps_ops=["Const"], ps_strategy=lambda op: seen.append(op.outputs[0].shape) or 0
    )
    with tf.device(setter):
        tf.zeros([3, 2])
    assert [s.as_list() for s in seen] == [[3, 2]]


def test_random_strategy_is_a_hash_of_name_and_seed():
    strategy = tf.contrib.training.RandomStrategy(5, seed=3)
    with tf.device(tf.train.replica_device_setter(ps_tasks=5, ps_strategy=strategy)):
        variables = _variables(*[[1]] * 8)
    expected = [int(hashlib.md5(f"v{i}_3".encode()).hexdigest(), 16) % 5 for i in range(8)]
    assert _tasks(variables) == expected
    assert len(set(expected)) > 2
    assert tf.contrib.training.RandomStrategy(1000)(variables[0].op) == (
        int(hashlib.md5(b"v0_0").hexdigest(), 16) % 1000
    )


def test_wrong_strategies():
    training = tf.contrib.training
    with pytest.raises(TypeError, match="load_fn must be callable, not None"):
        training.GreedyLoadBalancingStrategy(2, None)
    for make in (training.RandomStrategy, lambda n: training.GreedyLoadBalancingStrategy(n, len)):
        with pytest.raises(ValueError, match="at least one task, not 0"):
            make(0)


# -- names -----------------------------------------------------------------------------------


def test_missing_names_are_explained():
    with pytest.raises(AttributeError, match=r"'headrace\.contrib' has no attribute 'absent'"):
        _ = tf.contrib.absent
    with pytest.raises(AttributeError, match=r"Did you mean 'training'\?"):
        _ = tf.contrib.trainin
    with pytest.raises(AttributeError, match=r"Did you mean 'byte_size_load_fn'\?"):
        _ = tf.contrib.training.byte_size_fn
    with pytest.raises(AttributeError, match=r"Did you mean 'ClusterSpec'\?"):
        _ = tf.train.ClusterSpecs


@pytest.mark.process
def test_importing_brings_neither_network_nor_contrib():
    program = (
        "import sys, headrace as tf; tf.train.ClusterSpec({}); tf.train.replica_device_setter();"
        "print([m for m in sys.modules if m.partition('.')[0] == 'grpc' or 'contrib' in m"
        " or m == 'headrace.distributed.security.credentials'])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr
