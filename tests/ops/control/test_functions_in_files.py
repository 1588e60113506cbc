"""Ops that hold functions and have effects: values, gradients, and the same from a GraphDef."""

from __future__ import annotations

import numpy as np

import headrace as tf
from headrace.autodiff.vjp import SYMBOLIC_GRADIENT
from headrace.graph.graph_def import graph_to_graph_def
from headrace.graph_files.import_graph import import_graph_def
from headrace.ops.control.functions import build_body
from headrace.ops.core.build import raw


def here_and_from_a_file(tensors, *types):
    """Values of tensors, which are the same in a graph read from a GraphDef of theirs."""
    graph = tensors[0].graph
    with graph.as_default():
        start = tf.global_variables_initializer()
    assert set(types) <= {op.type for op in graph.get_operations()}
    results = []
    message = graph_to_graph_def(graph, own_checks=True)
    copy = tf.Graph()
    with copy.as_default():
        import_graph_def(message, name="")
    for g in (graph, copy):
        with tf.Session(graph=g) as session:
            session.run(start.name)
            results.append(session.run([t.name for t in tensors]))
    here, there = results
    for mine, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(mine, other)
    return here


def counter():
    return tf.get_variable("count", initializer=0.0)


def test_scan_with_effects():
    count = counter()
    mapped = tf.map_fn(lambda x: x * count.assign_add(1.0), tf.constant([1.0, 2.0, 3.0]))
    (found,) = here_and_from_a_file([mapped], "Scan")
    assert found.tolist() == [1.0, 4.0, 9.0]


def test_case_with_effects():
    count, x = counter(), tf.constant(3.0)

    def counted():
        with tf.control_dependencies([count.assign_add(1.0)]):
            return x * x

    chosen = tf.switch_case(tf.constant(0), [counted, lambda: x])
    gradient = tf.gradients(chosen, x)
    assert here_and_from_a_file([chosen, *gradient], "Case") == [9.0, 6.0]


def test_call_with_effects():
    count, x = counter(), tf.constant([3.0, 4.0])
    body, _ = build_body("f", lambda a: count.assign_add(1.0), [(tf.float32, (2,), "a")])
    with body.as_default():
        body.outputs = [tf.square(body.inputs[0])]
    (y,) = raw.StatefulPartitionedCall([x, *body.captures], f=body, Tout=[tf.float32])[0]
    gradient = tf.gradients(y, x)
    found = here_and_from_a_file([y, *gradient], "StatefulPartitionedCall")
    assert [v.tolist() for v in found] == [[9.0, 16.0], [6.0, 8.0]]


def test_gradient_of_a_gradient_of_a_kernel():
    value = np.array([[2.0, 1.0], [1.0, 3.0]])
    x = tf.constant(value)
    (first,) = tf.gradients(tf.reduce_prod(x), x)
    (second,) = tf.gradients(tf.reduce_sum(first * first), x)
    found = here_and_from_a_file([first, second], SYMBOLIC_GRADIENT.name)
    product = np.prod(value)
    np.testing.assert_allclose(found[0], product / value)
    squares = (product / value) ** 2
    np.testing.assert_allclose(found[1], 2 * (squares.sum() - squares) / value)
