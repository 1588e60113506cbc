"""The scope that chooses the precision of transfers: what carries it, and that passes keep it."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.graph.wire_precision import ATTRIBUTE, chosen
from headrace.passes.ir import build_step
from headrace.passes.pipeline import optimize


def choice(x):
    return chosen((x.op if isinstance(x, tf.Tensor) else x).attrs)


def test_operations_inside_carry_the_innermost_choice():
    before = tf.constant(1.0)
    with tf.wire_precision("bfloat16"):
        outer = tf.constant(1.0)
        with tf.wire_precision("int8"):
            inner = tf.constant(1.0)
        with tf.wire_precision(None):
            off = tf.constant(1.0)
        with tf.wire_precision("float32"):
            also_off = tf.constant(1.0)
        again = tf.constant(1.0)
    after = tf.constant(1.0)
    found = [choice(t) for t in (before, outer, inner, off, also_off, again, after)]
    assert found == ["", "bfloat16", "int8", "float32", "float32", "bfloat16", ""]
    assert ATTRIBUTE not in before.op.attrs


def test_the_scope_ends_with_an_error_inside():
    with pytest.raises(RuntimeError), tf.wire_precision("int8"):
        raise RuntimeError
    assert choice(tf.constant(1.0)) == ""


def test_the_scope_belongs_to_the_graph_that_is_the_default_on_entry():
    scope = tf.wire_precision("int8")
    with tf.Graph().as_default(), scope:
        assert choice(tf.constant(1.0)) == "int8"
        with tf.Graph().as_default():
            assert choice(tf.constant(1.0)) == ""
    assert choice(tf.constant(1.0)) == ""


def test_bodies_of_loops_carry_it():
    with tf.wire_precision("float16"):
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], name="loop")
    bodies = tf.get_default_graph()._functions.values()
    added = [op for body in bodies for op in body._ops if op.type in ("Less", "Add", "AddV2")]
    assert len(added) == 2
    assert [choice(op) for op in added] == ["float16"] * 2


@pytest.mark.parametrize("wrong", ["bflot16", "", 16, ["int8"], b"int8"])
def test_unknown_precisions_are_refused_before_anything_is_built(wrong):
    with pytest.raises(ValueError, match="'float32', 'bfloat16', 'float16', 'int8', or None"):
        tf.wire_precision(wrong)


def test_a_near_name_is_suggested():
    with pytest.raises(ValueError, match=r"'bflot16'\. Did you mean 'bfloat16'\?"):
        tf.wire_precision("bflot16")


def test_an_attribute_from_elsewhere_is_checked():
    assert chosen({ATTRIBUTE: b"int8"}) == "int8"
    with pytest.raises(ValueError, match="'int7'"):
        chosen({ATTRIBUTE: "int7"})


def test_it_survives_a_graph_def_and_changes_no_value():
    with tf.wire_precision("int8"):
        x = tf.constant([0.1, 0.7], name="x")
        _, y = tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s * 2.0), [0, x])
    message = type(tf.GraphDef()).FromString(
        tf.get_default_graph().as_graph_def().SerializeToString()
    )
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.import_graph_def(message, name="")
        assert choice(graph.get_tensor_by_name("x:0")) == "int8"
        bodies = [op for f in graph._functions.values() for op in f._ops]
        assert {choice(op) for op in bodies if op.type == "Mul"} == {"int8"}
        value = session.run(graph.get_tensor_by_name(y.name))
    np.testing.assert_array_equal(value, 4 * np.float32([0.1, 0.7]))


# -- passes -------------------------------------------------------------------------------------


def after_passes(fetch, *feeds):
    """The node behind the fetch when the passes are through."""
    step = build_step([fetch], list(feeds), [])
    optimize(step)
    return step.fetches[0][0]


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [3], name="x")


def test_an_identity_that_chooses_is_no_detour(x):
    y = tf.square(x)
    with tf.wire_precision("int8"):
        coarse = tf.identity(y)
    assert chosen(after_passes(coarse, x).attrs) == "int8"
    assert after_passes(tf.identity(y), x).type == "Square"


def test_what_is_exact_is_not_replaced_by_what_is_not(x):
    with tf.wire_precision("int8"):
        y = tf.square(x)
        assert after_passes(tf.identity(y), x).type == "Square"
    assert chosen(after_passes(tf.identity(y), x).attrs) == ""
    assert chosen(after_passes(y + 0.0, x).attrs) == ""


def test_a_node_made_by_a_rule_takes_the_choice_of_the_one_it_replaces(x):
    matrix = tf.reshape(x, [1, 3])
    with tf.wire_precision("float16"):
        inner = tf.nn.softmax(matrix)
    with tf.wire_precision("bfloat16"):
        coarse = tf.log(inner)
    node = after_passes(coarse, x)
    assert (node.type, chosen(node.attrs)) == ("LogSoftmax", "bfloat16")
    node = after_passes(tf.log(inner), x)
    assert (node.type, chosen(node.attrs)) == ("LogSoftmax", "")


def test_folded_constants_keep_it():
    with tf.wire_precision("bfloat16"):
        y = tf.constant([1.0, 2.0]) * 3.0
    node = after_passes(y)
    assert (node.type, chosen(node.attrs)) == ("Const", "bfloat16")


def test_equal_operations_that_choose_differently_stay_two(x):
    with tf.wire_precision("int8"):
        coarse = tf.exp(x)
        same = tf.exp(x)
    step = build_step([coarse, same, tf.exp(x)], [x], [])
    optimize(step)
    assert sorted(chosen(n.attrs) for n in step.nodes if n.type == "Exp") == ["", "int8"]


def test_barriers_keep_it(x):
    with tf.wire_precision("int8"):
        y = x
        for _ in range(12):
            y = y * x
    step = build_step([tf.exp(y), tf.sin(y)], [x], [])
    optimize(step)
    barriers = [n for n in step.nodes if n.type == "_Materialize"]
    assert [chosen(n.attrs) for n in barriers] == ["int8"]
    with tf.Session(graph=x.graph) as session:
        value = session.run([tf.exp(y), tf.sin(y)], {x: np.ones(3, np.float32)})
    np.testing.assert_allclose(value[0], np.exp(np.ones(3)), rtol=1e-6)


def test_joined_products_take_the_choice_of_their_sum():
    a = tf.placeholder(tf.float32, [2, 50])
    b = tf.placeholder(tf.float32, [2, 50])
    terms = [tf.matmul(a, b, transpose_a=True), tf.matmul(b, a, transpose_a=True)]
    with tf.wire_precision("int8"):
        total = tf.add_n(terms)
    step = build_step([tf.exp(total)], [a, b], [])
    optimize(step)
    products = [n for n in step.nodes if n.type == "MatMul"]
    assert [chosen(n.attrs) for n in products] == ["int8"]


def test_terms_that_choose_differently_are_not_joined():
    a = tf.placeholder(tf.float32, [2, 50])
    b = tf.placeholder(tf.float32, [2, 50])
    with tf.wire_precision("int8"):
        first = tf.matmul(a, b, transpose_a=True)
    total = tf.add_n([first, tf.matmul(b, a, transpose_a=True)])
    step = build_step([tf.exp(total)], [a, b], [])
    optimize(step)
    assert len([n for n in step.nodes if n.type == "MatMul"]) == 2


def test_fed_placeholders_keep_it():
    with tf.wire_precision("int8"):
        x = tf.placeholder(tf.float32, [3])
    step = build_step([tf.exp(x)], [x], [])
    assert chosen(step.feeds[0].attrs) == "int8"
