"""Function objects of Defun: what files hold of them."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.compat.defun import DefinedFunction, Defun


def test_the_definition_of_a_function() -> None:
    @Defun(tf.float32, tf.float32, func_name="Foo")
    def foo(x, y):
        """Sum and product."""
        return x + y, x * y

    assert isinstance(foo, DefinedFunction)
    assert (foo.name, foo.__name__, foo.__doc__) == ("Foo", "foo", "Sum and product.")
    definition = foo.definition
    assert definition.signature.name == "Foo"
    assert [a.name for a in definition.signature.input_arg] == ["x", "y"]
    assert [a.name for a in definition.signature.output_arg] == ["add", "mul"]
    assert [n.op for n in definition.node_def] == ["AddV2", "Mul"]
    assert foo.captured_inputs == []
    assert foo.stateful_ops == []
    assert foo.declared_input_types == (tf.float32, tf.float32)
    assert tf.get_default_graph().get_operations() == []


def test_names_tell_functions_apart() -> None:
    @Defun(tf.float32)
    def f(x):
        return x + 1.0

    first = f.name
    assert first.startswith("f_")
    assert len(first) == len("f_") + 11

    @Defun(tf.float32)
    def g(x):
        return x + 2.0

    assert g.name[2:] != first[2:]
    with tf.Graph().as_default():
        assert Defun(tf.float32)(f.__wrapped__).name == first


def test_what_a_body_captures_and_does() -> None:
    outside = tf.constant([1.0, 2.0], name="outside")

    @Defun(tf.float32)
    def f(x):
        return x * outside + tf.random_uniform([2], seed=1, name="drawn")

    assert [t.name for t in f.captured_inputs] == ["outside:0"]
    assert f.stateful_ops == [("drawn", "RandomUniform")]
    assert f.definition.signature.is_stateful
    assert len(f.definition.signature.input_arg) == 2


def test_functions_of_any_types_are_instantiated() -> None:
    @Defun()
    def f(x):
        return x + x

    one, two = f.instantiate([tf.float32]), f.instantiate([tf.int32])
    assert one is f.instantiate([tf.float32])
    assert one.name != two.name
    assert one.declared_input_types == (tf.float32,)
    assert f.declared_input_types == ()
    with tf.Session() as session:
        assert session.run([f(1.5), f(2), two(3)]) == [3.0, 4, 6]
    assert Defun()(lambda: tf.constant(2)).definition.signature.input_arg == []


def test_a_graph_holds_the_functions_that_are_added_to_it() -> None:
    @Defun(tf.float32, tf.float32, func_name="FGrad")
    def f_grad(x, dy):
        return dy * 2.0 * x

    @Defun(tf.float32, func_name="F", grad_func=f_grad)
    def f(x):
        return x * x

    graph = tf.Graph()
    f.add_to_graph(graph)
    f.add_to_graph(graph)
    message = graph.as_graph_def()
    assert [d.signature.name for d in message.library.function] == ["F", "FGrad"]
    assert f.grad_func_name == "FGrad"
    assert len(tf.get_default_graph().as_graph_def().library.function) == 0
    with tf.Graph().as_default():
        tf.import_graph_def(message, name="")


def test_a_gradient_that_is_set_later() -> None:
    @Defun(tf.float32, tf.float32)
    def by_hand(x, dy):
        return dy * 10.0

    @Defun(tf.float32)
    def f(x):
        return x * x

    f.set_grad_func(by_hand)
    x = tf.constant(3.0)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(tf.gradients(f(x), x)), [10.0])
    with pytest.raises(ValueError, match="has a gradient already"):
        f.set_grad_func(by_hand)


def test_what_is_no_function() -> None:
    with pytest.raises(ValueError, match="must be callable"):
        Defun(tf.float32)(3)
