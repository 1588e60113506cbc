"""Graphs with control flow by tokens (Switch, Merge, Enter, Exit, NextIteration) import and run.

The goldens are real TensorFlow's: `tools/make_old_graph_goldens.py` writes them.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.graph.verify import verify
from headrace.graph_files.import_slices import TOKENS

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "old_graphs"
NAMES = sorted(p.name.removesuffix(".pb.gz") for p in GOLDEN.glob("*.pb.gz"))


def _load(name):
    message = tf.GraphDef.FromString(gzip.decompress((GOLDEN / f"{name}.pb.gz").read_bytes()))
    with np.load(GOLDEN / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    feeds = {key[3:]: value for key, value in arrays.items() if key.startswith("in/")}
    results = {key[4:]: value for key, value in arrays.items() if key.startswith("out/")}
    return message, feeds, results


def test_there_are_goldens():
    assert len(NAMES) >= 16


@pytest.mark.parametrize("name", NAMES)
def test_an_old_graph_gives_the_results_of_tensorflow(name):
    message, feeds, results = _load(name)
    tf.import_graph_def(message, name="")
    graph = tf.get_default_graph()
    verify(graph)
    everything = [*graph.get_operations()]
    for function in graph._functions.values():
        everything += function._ops
    # Switches stay for those that fetch them, and nothing uses them.
    assert not {op.type for op in everything} & (TOKENS - {"Switch"})
    switches = [op for op in everything if op.type == "Switch"]
    assert not any(t.consumers() for op in switches for t in op.outputs)
    with tf.Session() as sess:
        if "init" in graph._by_name:
            sess.run("init")
        found = sess.run(list(results), feeds)
    for (key, expected), value in zip(results.items(), found, strict=True):
        np.testing.assert_allclose(value, expected, rtol=2e-5, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("name", ["nested", "training_a_recurrent_network"])
def test_a_raised_graph_is_written_and_read_again(name):
    message, feeds, results = _load(name)
    tf.import_graph_def(message, name="")
    written = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.import_graph_def(written, name="")
        if "init" in graph._by_name:
            sess.run("init")
        found = sess.run(list(results), feeds)
    np.testing.assert_allclose(found[0], next(iter(results.values())), rtol=2e-5, atol=1e-6)


def test_names_of_exits_and_merges_stay():
    message, feeds, results = _load("loop")
    x = tf.constant(feeds["x:0"])
    y, end = tf.import_graph_def(
        message, {"x:0": x, "n:0": tf.constant(5)}, ["y:0", "while/Exit_1:0"], name="old"
    )
    assert end.name == "old/while/Exit_1:0"
    assert [op.type for op in tf.get_default_graph().get_operations()].count("StatelessWhile") == 1
    with tf.Session() as sess:
        a, b = sess.run([y, end])
    np.testing.assert_allclose(a, results["y:0"], rtol=1e-6)
    np.testing.assert_array_equal(a, b)


def test_gradients_of_a_raised_loop():
    message, feeds, results = _load("gradients_of_a_loop_and_a_branch")
    x = tf.placeholder(tf.float32, [3])
    z = tf.import_graph_def(message, {"x:0": x, "n:0": tf.constant(5)}, return_elements=["z:0"])[0]
    (grad,) = tf.gradients(tf.reduce_sum(z), x)
    with tf.Session() as sess:
        found = sess.run(grad, {x: feeds["x:0"]})
    np.testing.assert_allclose(found, results["grad:0"], rtol=1e-5)


def test_static_shapes_behind_a_loop_are_those_that_the_file_states():
    message, _, _ = _load("loop")
    for node in message.node:
        if node.name in ("while/Merge_1", "while/Exit_1"):
            node.attr["_output_shapes"].list.shape.add().dim.add(size=3)
    (y,) = tf.import_graph_def(message, return_elements=["y:0"])
    assert y.shape.as_list() == [3]
    (loop,) = [o for o in tf.get_default_graph().get_operations() if o.type == "StatelessWhile"]
    assert [t.shape.ndims for t in loop.outputs[:2]] == [None, 1]


def test_a_gradient_sees_the_random_draw_of_the_branch():
    message, feeds, _ = _load("training_with_dropout_in_a_branch")
    for node in message.node:
        if node.op == "RandomUniform":  # other numbers for every operation and step
            node.attr["seed"].i = node.attr["seed2"].i = 0
    wanted = ["x:0", "n:0", "cond/Merge:0", "gradients/MatMul_grad/MatMul_1:0"]
    *_, h, grad = tf.import_graph_def(message, return_elements=wanted, name="")
    with tf.Session() as sess:
        sess.run("init")
        x, (h, grad) = feeds["x:0"], sess.run([h, grad], feeds)
    assert (h == 0).any()
    # h is 2xw where it is not 0, and the gradient of the sum of its squares 4h there.
    np.testing.assert_allclose(grad, x.T @ (4 * h), rtol=1e-4)


def test_stacks_of_the_first_releases():
    message, feeds, results = _load("gradients_of_a_loop_and_a_branch")
    for node in message.node:
        node.op = node.op.replace("StackV2", "Stack").replace("StackP", "StackP").removesuffix("V2")
        if node.op == "Stack":
            node.attr.pop("max_size", None)
            del node.input[:]
        if node.op == "Add":
            node.op = "AddV2"
    assert {"Stack", "StackPush", "StackPop"} <= {n.op for n in message.node}
    tf.import_graph_def(message, name="")
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run("grad:0", feeds), results["grad:0"], rtol=1e-5)


def test_a_collection_goes_without_what_is_inside_a_loop():
    meta = tf.MetaGraphDef()
    meta.graph_def.CopyFrom(_load("loop")[0])
    meta.collection_def["kept"].node_list.value.extend(["while/add:0", "y:0"])
    tf.train.import_meta_graph(meta)
    assert [t.name for t in tf.get_collection("kept")] == ["y:0"]
    meta.collection_def["kept"].node_list.value.append("absent:0")
    with tf.Graph().as_default(), pytest.raises(KeyError, match="absent"):
        tf.train.import_meta_graph(meta)


def _node(message, name, op, inputs=(), **attrs):
    node = message.node.add(name=name, op=op)
    node.input.extend(inputs)
    for key, value in attrs.items():
        if isinstance(value, str):
            node.attr[key].s = value.encode()
        else:
            node.attr[key].type = value
    return node


def _switched():
    """x switched by p: `f` and `t` are the two sides."""
    message = tf.GraphDef()
    _node(message, "x", "Placeholder", dtype=1)
    _node(message, "p", "Placeholder", dtype=10)
    _node(message, "s", "Switch", ["x", "p"], T=1)
    _node(message, "f", "Neg", ["s"], T=1)
    _node(message, "t", "Exp", ["s:1"], T=1)
    return message


def test_a_merge_tells_which_value_it_took():
    message = _switched()
    _node(message, "m", "Merge", ["f", "t"], T=1)
    message.node[-1].attr["N"].i = 2
    _node(message, "index", "Identity", ["m:1"], T=3)
    tf.import_graph_def(message, name="")
    with tf.Session() as sess:
        assert sess.run(["m:0", "index:0"], {"x:0": 0.0, "p:0": True}) == [1.0, 1]
        assert sess.run(["m:0", "index:0"], {"x:0": 2.0, "p:0": False}) == [-2.0, 0]


def test_branches_wait_for_what_the_switch_waited_for():
    message = _switched()
    _node(message, "m", "Merge", ["f", "t"], T=1)
    _node(message, "before", "NoOp")
    message.node[2].input.append("^before")
    tf.import_graph_def(message, name="")
    (branch,) = [op for op in tf.get_default_graph().get_operations() if op.type == "StatelessIf"]
    assert [op.name for op in branch.control_inputs] == ["before"]


def test_a_merge_of_a_branch_and_a_value_that_is_always_there():
    message = _switched()
    _node(message, "m", "Merge", ["x", "t"], T=1)
    tf.import_graph_def(message, name="")
    with tf.Session() as sess:
        assert sess.run("m:0", {"x:0": 0.0, "p:0": True}) == 1.0
        assert sess.run("m:0", {"x:0": 2.0, "p:0": False}) == 2.0


def test_switches_that_wait_ask_the_same_predicate():
    message = _switched()
    _node(message, "before", "NoOp")
    _node(message, "asked", "Identity", ["p", "^before"], T=10)
    _node(message, "s2", "Switch", ["x", "asked"], T=1)
    _node(message, "t2", "Mul", ["t", "s2:1"], T=1)
    _node(message, "m", "Merge", ["f", "t2"], T=1)
    tf.import_graph_def(message, name="")
    (branch,) = [op for op in tf.get_default_graph().get_operations() if op.type == "StatelessIf"]
    assert [op.name for op in branch.control_inputs] == ["before"]
    with tf.Session() as sess:
        assert sess.run("m:0", {"x:0": 2.0, "p:0": True}) == pytest.approx(2 * np.exp(2))


def _several(message, count):
    """m merges x, 10x, ... of which the one runs that n tells."""
    _node(message, "x", "Placeholder", dtype=1)
    _node(message, "n", "Placeholder", dtype=3)
    for i in range(count):
        for name, dtype, value in ((f"i{i}", 3, np.int32(i)), (f"k{i}", 1, np.float32(10**i))):
            _node(message, name, "Const", dtype=dtype)
            message.node[-1].attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
        _node(message, f"p{i}", "Equal", ["n", f"i{i}"], T=3)
        _node(message, f"s{i}", "Switch", ["x", f"p{i}"], T=1)
        _node(message, f"v{i}", "Mul", [f"s{i}:1", f"k{i}"], T=1)
    _node(message, "m", "Merge", [f"v{i}" for i in range(count)], T=1)
    message.node[-1].attr["N"].i = count
    _node(message, "index", "Identity", ["m:1"], T=3)
    return message


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_merge_of_values_under_predicates_of_their_own(count):
    tf.import_graph_def(_several(tf.GraphDef(), count), name="")
    with tf.Session() as sess:
        for n in range(count):
            expected = [3.0 * 10**n, n]
            assert sess.run(["m:0", "index:0"], {"x:0": 3.0, "n:0": n}) == expected
        with pytest.raises(tf.errors.InvalidArgumentError, match="list with 0 elements"):
            sess.run("m:0", {"x:0": 3.0, "n:0": 7})


def test_conditionals_on_one_predicate_run_by_themselves():
    message = _switched()
    _node(message, "m", "Merge", ["f", "t"], T=1)
    _node(message, "label", "Placeholder", dtype=1)
    _node(message, "s2", "Switch", ["label", "p"], T=1)
    _node(message, "wait", "Assert", ["p", "s2:1"])
    message.node[-1].attr["T"].list.type.append(1)
    _node(message, "t2", "Neg", ["s2:1", "^wait"], T=1)
    _node(message, "f2", "Exp", ["s2"], T=1)
    _node(message, "m2", "Merge", ["f2", "t2"], T=1)
    tf.import_graph_def(message, name="")
    with tf.Session() as sess:  # no label is needed
        assert sess.run("m:0", {"x:0": 2.0, "p:0": False}) == -2.0
        assert sess.run("m2:0", {"label:0": 2.0, "p:0": True}) == -2.0


def test_what_no_result_needs_does_not_happen():
    with tf.Graph().as_default() as graph:
        tf.get_variable("v", initializer=1.0, use_resource=True)
        message = graph.as_graph_def()
    _node(message, "x", "Placeholder", dtype=1)
    _node(message, "p", "Placeholder", dtype=10)
    _node(message, "s", "Switch", ["x", "p"], T=1)
    _node(message, "add", "AssignAddVariableOp", ["v", "s:1"], dtype=1)
    _node(message, "t", "Exp", ["s:1"], T=1)
    _node(message, "m", "Merge", ["s", "t"], T=1)
    _node(message, "now", "ReadVariableOp", ["v"], dtype=1)
    tf.import_graph_def(message, name="")
    with tf.Session() as sess:
        feeds = {"x:0": 2.0, "p:0": True}
        sess.run("v/Assign")
        sess.run("m:0", feeds)
        assert sess.run("now:0") == 1.0


def _both_branches(message):
    _node(message, "wrong", "AddV2", ["f", "t"], T=1)


def _one_branch(message):
    _node(message, "m", "Merge", ["f", "t"], T=1)
    message.node[-1].input[1] = "f"


def _three_values(message):
    _node(message, "m", "Merge", ["f", "t", "x"], T=1)


def _loop_without_condition(message):
    _node(message, "e", "Enter", ["x"], T=1, frame_name="loop")
    _node(message, "lm", "Merge", ["e", "ni"], T=1)
    _node(message, "ni", "NextIteration", ["lm"], T=1)


def _cycle(message):
    _node(message, "c1", "Neg", ["c2"], T=1)
    _node(message, "c2", "Neg", ["c1"], T=1)


def _no_type(message):
    _node(message, "c", "Cast", ["s:1"])
    _node(message, "m", "Merge", ["f", "c"], T=1)
    _node(message, "n", "Switch", ["c", "p"], T=1)
    _node(message, "m2", "Merge", ["n", "n:1"], T=1)


def _no_predicate(message):
    _node(message, "s3", "Switch", ["x"], T=1)


def _absent_node(message):
    _node(message, "m", "Merge", ["f", "absent"], T=1)


def _unknown_op(message):
    _node(message, "q", "NoSuchOp", ["s"], T=1)
    _node(message, "m", "Merge", ["q", "t"], T=1)


WRONG = {
    "both branches": (_both_branches, "'wrong' needs both branches"),
    "one branch": (_one_branch, "'m' merges values that are not the two branches"),
    "three values": (_three_values, "'m' merges 3 values"),
    "no condition": (_loop_without_condition, "loop 'loop' has no LoopCond"),
    "cycle": (_cycle, "nodes in a cycle"),
    "no type": (_no_type, "has no attribute 'DstT'"),
    "no predicate": (_no_predicate, "lacks a node or an input"),
    "absent node": (_absent_node, "values that are not the two branches|lacks a node"),
    "unknown op": (_unknown_op, "Op type not registered 'NoSuchOp'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_raised_is_refused(case):
    change, said = WRONG[case]
    message = _switched()
    change(message)
    with pytest.raises(ValueError, match=said):
        tf.import_graph_def(message)
    assert not tf.get_default_graph().get_operations()


def test_values_of_one_branch_do_not_leave_it():
    message = _switched()
    _node(message, "m", "Merge", ["f", "t"], T=1)
    with pytest.raises(ValueError, match="Requested return node 't' not found"):
        tf.import_graph_def(message, return_elements=["t"])
