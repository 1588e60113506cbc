"""Graphs in files consist of TensorFlow's operations: ours are taken apart as they are written."""

from __future__ import annotations

import gzip
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.graph.graph_def import parse_graph_def
from headrace.graph.proto import MetaGraphDef, OpList
from headrace.graph_files import export_gradients, graph_util
from headrace.graph_files.export_graph import (
    _load_rules,
    _rules,
    graph_def_for_files,
    own_operations,
)
from headrace.graph_files.import_graph import import_graph_def
from headrace.harness.op_cases import RTOL, Built
from headrace.ops.core.build import raw
from headrace.ops.core.registry import all_op_defs
from headrace.train.meta_graph import graph_to_read

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "ops"))
import cases  # noqa: E402

GOLDEN = TESTS / "golden" / "op_definitions.pb.gz"
#: Checks that hand on their first input: Identity in files.
CHECKS = {"RequirePositive", "SameRows", "Settled"}
_load_rules()
LOWERED = [c for c in cases.CASES if c.op in _rules and not c.op.endswith(("If", "Case", "Call"))]


@cache
def peer_ops():
    ops = OpList.FromString(gzip.decompress(GOLDEN.read_bytes())).op
    return {op.name: {a.name for a in op.attr} for op in ops}


def nodes_of(message):
    yield from message.node
    for function in message.library.function:
        yield from function.node_def


PRECISE = ("float32", "float64", "complex64", "complex128")


def unknown(message):
    """Nodes and attributes that TensorFlow has no definition of."""
    return [
        (node.name, node.op, name)
        for node in nodes_of(message)
        for name in (*node.attr, "_")
        if node.op not in peer_ops()
        or (not name.startswith("_") and name not in peer_ops()[node.op])
    ]


def test_every_operation_of_our_own_has_a_rule_or_is_refused_by_name():
    ours = {n for n in all_op_defs() if n not in peer_ops() and not n.startswith("Test")}
    own = {n for n, d in all_op_defs().items() if d.traits.only_here or d.traits.library}
    assert ours - CHECKS - own - _rules.keys() == set()


@pytest.mark.parametrize("case", LOWERED, ids=lambda c: f"{c.op}-{c.name}")
def test_the_parts_give_the_values_of_the_operation(case):
    built = Built(case, case.flat_inputs())
    message = graph_def_for_files(built.graph)
    assert unknown(message) == []
    feeds = built.feeds()
    with built.graph.as_default(), tf.Session() as session:
        expected = session.run(list(built.op.outputs), feeds)
    with tf.Graph().as_default(), tf.Session() as session:
        import_graph_def(message, name="")
        names = [t.name for t in built.op.outputs]
        found = session.run(names, {t.name: v for t, v in feeds.items()})
    for mine, other in zip(found, expected, strict=True):
        rtol = RTOL.get(mine.dtype.name, 1e-9)
        np.testing.assert_allclose(
            np.asarray(mine, np.complex128), np.asarray(other, np.complex128), rtol, rtol
        )


DERIVED = {*export_gradients._forms, *export_gradients._GRADIENTS, "SoftmaxGrad", "LogSoftmaxGrad"}
DERIVED_CASES = [
    c
    for c in cases.CASES
    if c.op in DERIVED and not c.attrs.get("adjoint") and c.flat_inputs()[0].dtype.name in PRECISE
]


def test_derivatives_of_kernels_have_cases():
    assert {c.op for c in DERIVED_CASES} == DERIVED


@pytest.mark.parametrize("case", DERIVED_CASES, ids=lambda c: f"{c.op}-{c.name}")
def test_derivatives_of_kernels_are_taken_apart(case):
    built = Built(case, case.flat_inputs())
    wanted = [t for t in built.op.inputs if t.dtype.name in PRECISE]
    outputs = [t for t in built.op.outputs if t.dtype.name in PRECISE]
    feeds = built.feeds()
    with built.graph.as_default(), tf.Session() as session:
        seeds = [tf.ones_like(t) * 0.7 for t in outputs]
        grads = [g for g in tf.gradients(outputs, wanted, seeds) if g is not None]
        assert {op.type for op in built.graph.get_operations()} & {"SymbolicGradient"}
        expected = session.run(grads, feeds)
        message = graph_def_for_files(built.graph)
    assert unknown(message) == []
    assert own_operations(message) == []
    with tf.Graph().as_default(), tf.Session() as session:
        import_graph_def(message, name="")
        found = session.run([g.name for g in grads], {t.name: v for t, v in feeds.items()})
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, other, 1e-4, 1e-5)


def trained():
    x = tf.placeholder(tf.float32, [None, 4, 3], "x")
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4), x, dtype=tf.float32)
    mapped = tf.map_fn(
        lambda t: tf.cond(tf.reduce_sum(t) > 0, lambda: tf.tanh(t) * t, lambda: t * 2.0), outputs
    )
    total = tf.scan(lambda a, b: a * 0.5 + b, mapped)
    table = tf.get_variable("table", [6, 3])
    rows = tf.gather(
        tf.nn.embedding_lookup(table, tf.cast(x[:, 0, 0], tf.int32) % 6), [0, 2], axis=1
    )
    chosen = tf.switch_case(tf.shape(x)[0] % 2, [lambda: rows, lambda: tf.sin(rows)])
    looped = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, tf.sin(a)), [0, total])[1]
    loss = tf.reduce_mean(looped) + tf.reduce_sum(tf.nn.softmax(chosen)[:, 0])
    return x, loss, tf.train.AdamOptimizer(0.1).minimize(loss)


def losses(session, x, loss, train, name=lambda t: t):
    value = np.random.default_rng(0).standard_normal((2, 4, 3)).astype(np.float32)
    return [session.run([name(loss), name(train)], {name(x): value})[0] for _ in range(3)]


@pytest.mark.slow
def test_a_training_graph_has_only_operations_of_tensorflow_and_trains_as_before():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(1)
        x, loss, train = trained()
        assert own_operations(graph.as_graph_def()) == []
        own = {n.op for n in nodes_of(graph.as_graph_def())}
        assert {"StatelessScan", "SumLike", "ResourceSparseApplyAdam"} <= own
        message = graph_def_for_files(graph)
        assert unknown(message) == []
        init = tf.global_variables_initializer()
        names = [v.op.name for v in tf.global_variables()]
        reads = [v.read_value().name for v in tf.global_variables()]
        session.run(init)
        start = session.run(reads)
        expected = losses(session, x, loss, train)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        import_graph_def(message, name="")
        assign = [op for op in graph.get_operations() if op.type == "AssignVariableOp"]
        set_up = [
            next(op for op in assign if op.inputs[0].op.name == n and op.name.endswith("/Assign"))
            for n in names
        ]
        session.run(set_up, {op.inputs[1]: v for op, v in zip(set_up, start, strict=True)})
        found = losses(session, x, loss, train, lambda t: t.name)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_same_graph_is_written_the_same_way():
    trained()
    graph = tf.get_default_graph()
    first = graph_def_for_files(graph).SerializeToString(deterministic=True)
    assert graph_def_for_files(graph).SerializeToString(deterministic=True) == first


def test_names_of_parts_give_way_to_names_of_the_graph():
    x = tf.placeholder(tf.float32, [2, 3], "x")
    y = tf.nn.softmax(x, name="y")
    (grad,) = tf.gradients(y, x)
    tf.identity(x, name=f"{grad.op.name}/parts/Mul")
    written = [n.name for n in graph_def_for_files(tf.get_default_graph()).node]
    assert len(written) == len(set(written))


def test_parts_wait_for_what_the_operation_waits_for():
    x = tf.placeholder(tf.float32, [3])
    with tf.control_dependencies([tf.no_op("first")]):
        grad = raw.SoftmaxGrad(x, x, name="grad")
    message = graph_def_for_files(tf.get_default_graph())
    parts = {n.name: list(n.input) for n in message.node if n.name.startswith("grad")}
    waiting = [name for name, inputs in parts.items() if "^first" in inputs]
    assert waiting
    assert "grad" not in waiting
    assert parts["grad"][0].startswith("grad/parts/")
    assert grad.name == "grad:0"


def test_attributes_that_old_readers_lack_are_left_out_at_their_defaults():
    v = tf.Variable(tf.zeros([2]), name="v")
    tf.matmul([[1.0]], [[2.0]], name="product")
    message = graph_def_for_files(tf.get_default_graph())
    by_name = {n.name: n for n in message.node}
    assert "grad_a" not in by_name["product"].attr
    assign = by_name[v.initializer.name]
    assert "validate_shape" not in assign.attr
    with tf.Graph().as_default() as graph:
        import_graph_def(message, name="")
        assert graph.get_operation_by_name(assign.name).attrs["validate_shape"]


def test_write_graph_writes_a_graph_for_tensorflow(tmp_path):
    trained()
    path = tf.train.write_graph(tf.get_default_graph(), str(tmp_path), "g.pb", as_text=False)
    assert unknown(parse_graph_def(Path(path).read_bytes())) == []
    plain = tf.get_default_graph().as_graph_def()
    path = graph_util.write_graph(plain, str(tmp_path), "raw.pb", as_text=False)
    assert parse_graph_def(Path(path).read_bytes()) == plain


def test_a_meta_graph_is_for_tensorflow_and_comes_back_as_it_was(tmp_path):
    path = str(tmp_path / "m.meta")
    trained()
    message = tf.train.export_meta_graph(path)
    own = tf.get_default_graph().as_graph_def(add_shapes=True)
    assert unknown(message.graph_def) == []
    assert graph_to_read(message) == own
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(path)
        read = {n.name: n for n in graph.as_graph_def(add_shapes=True).node}
        assert all(read[n.name] == n for n in own.node)
    changed = MetaGraphDef.FromString(Path(path).read_bytes())
    changed.graph_def.node.add(name="more", op="NoOp")
    assert graph_to_read(changed) is changed.graph_def
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(changed)
        assert graph.get_operation_by_name("more")
        assert "StatelessScan" not in {n.op for n in nodes_of(graph.as_graph_def())}


def test_a_meta_graph_holds_what_both_graphs_have_once():
    trained()
    tf.constant(np.arange(250_000, dtype=np.float32), name="large")
    message = tf.train.export_meta_graph()
    assert message.ByteSize() < 1_500_000
    own = tf.get_default_graph().as_graph_def(add_shapes=True)
    assert graph_to_read(message) == own
    short = type(own).FromString(message.meta_info_def.any_info.value)
    short.node.add(name="nowhere")
    message.meta_info_def.any_info.value = short.SerializeToString()
    with pytest.raises(tf.errors.DataLossError, match="'nowhere', which the graph beside it lacks"):
        graph_to_read(message)


def test_a_plain_meta_graph_holds_its_graph_once():
    tf.Variable(1.0, name="v")
    assert not tf.train.export_meta_graph().meta_info_def.HasField("any_info")
