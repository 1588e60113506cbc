"""Functions of TensorFlow's inner modules that layer libraries and papers' code take there."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.compat import defun
from headrace.compat import inner_functions as inner


def _run(*fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches if len(fetches) > 1 else fetches[0])


def test_defun_converts_arguments_and_counts_them() -> None:
    @defun.Defun(tf.float32, tf.float32, func_name="Scaled")
    def scaled(x, y):
        return x * y, x + y

    product, total = scaled(2, 3)
    assert (product.name, total.name) == ("Scaled:0", "Scaled:1")
    assert scaled.name == "Scaled"
    assert _run(product, total) == (6.0, 5.0)
    with pytest.raises(ValueError, match="arguments: 2, received: 1"):
        scaled(1.0)
    with pytest.raises(ValueError, match="Unknown keyword arguments"):
        scaled(1.0, 2.0, device="/cpu:0")


def test_results_of_defun_are_those_of_one_operation() -> None:
    @defun.Defun(tf.float32)
    def nothing(x):
        tf.add(x, 1.0)

    @defun.Defun(tf.float32)
    def itself(x):
        return x

    assert isinstance(nothing(1.0), tf.Operation)
    assert (itself(1.0).op.name, itself(1.0, name="mine").op.name) == ("itself", "mine")
    assert itself.declared_input_types == (tf.float32,)
    with pytest.raises(ValueError, match="can not return None"):
        defun.Defun(tf.float32, func_name="half")(lambda x: (x, None))(1.0)


def test_defun_with_gradients_of_its_own() -> None:
    @defun.Defun(tf.float32, tf.float32)
    def by_types(x, dy):
        return dy * 10.0 + x

    @defun.Defun(tf.float32, grad_func=by_types)
    def first(x):
        return x * x

    @defun.Defun(tf.float32, python_grad_func=lambda op, dy: dy * op.inputs[0] * 100.0)
    def second(x):
        return x * x

    x = tf.constant(3.0)
    assert _run(first(x), *tf.gradients(first(x), x), *tf.gradients(second(x), x)) == (
        9.0,
        13.0,
        300.0,
    )


def test_events_writer(tmp_path) -> None:
    writer = inner.EventsWriter(str(tmp_path / "run").encode())
    assert writer.FileName().startswith(str(tmp_path / "run.out.tfevents.").encode())
    value = tf.Summary.Value(tag="reward", simple_value=2.5)
    writer.WriteEvent(tf.Event(step=3, summary=tf.Summary(value=[value])))
    assert writer.Flush()
    assert writer.Close()
    (path,) = tmp_path.iterdir()
    first, second = tf.train.summary_iterator(str(path))
    assert first.file_version == "brain.Event:2"
    assert (second.step, second.summary.value[0].simple_value) == (3, 2.5)


def test_helpers_of_layers() -> None:
    assert inner.convert_data_format("channels_last", 4) == "NHWC"
    assert inner.convert_data_format("channels_first", 3) == "NCW"
    with pytest.raises(ValueError, match="rank not supported: 2"):
        inner.convert_data_format("channels_last", 2)
    assert inner.normalize_tuple(2, 2, "strides") == (2, 2)
    assert inner.normalize_padding("SAME") == "same"
    assert inner._compute_fans([3, 3, 4, 8]) == (36.0, 72.0)
    with pytest.raises(ValueError, match="Expected floating point type"):
        inner._assert_float_dtype(tf.int32)


def test_shape_internal_is_constant_where_it_can_be() -> None:
    assert inner.shape_internal(tf.zeros([2, 3])).op.type == "Const"
    assert inner.shape_internal(tf.placeholder(tf.float32, [None])).op.type == "Shape"


def test_hessian_vector_product() -> None:
    x = tf.constant([1.0, 2.0])
    (product,) = inner._hessian_vector_product(tf.reduce_sum(x**3), [x], [tf.constant([1.0, 0.5])])
    np.testing.assert_allclose(_run(product), [6.0, 6.0])
    with pytest.raises(ValueError, match="same length"):
        inner._hessian_vector_product(x, [x], [])


def test_dimensions_that_are_squeezed_out() -> None:
    predictions, labels, weights = inner._remove_squeezable_dimensions(
        tf.zeros([3, 1]), tf.zeros([3]), tf.ones([3, 1])
    )
    assert [t.shape.as_list() for t in (predictions, labels, weights)] == [[3], [3], [3]]


def test_pure_variable_scope_opens_no_name_scope() -> None:
    with inner._pure_variable_scope("a"):
        v = tf.get_variable("v", [])
        x = tf.constant(0.0, name="x")
    assert (v.name, x.name) == ("a/v:0", "x:0")


def test_updates_of_optimisers_on_variables_and_on_their_handles() -> None:
    from headrace.compat import training_ops

    grad = tf.constant([1.0, 2.0])
    by_name, by_handle, slot = (
        tf.Variable([5.0, 5.0]),
        tf.Variable([5.0, 5.0]),
        tf.Variable([0.0, 0.0]),
    )
    new = training_ops.apply_gradient_descent(by_name, 0.5, grad, use_locking=False)
    done = training_ops.resource_apply_gradient_descent(by_handle.handle, 0.5, grad)
    moved = training_ops.apply_momentum(by_name, slot, 0.0, grad, 0.9)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(new).tolist() == [4.5, 4.0]
        session.run([done, moved.op])
        assert session.run(by_handle).tolist() == [4.5, 4.0]
        assert session.run(slot).tolist() == [1.0, 2.0]
    assert {"apply_adam", "resource_sparse_apply_adam"} <= set(dir(training_ops))
    with pytest.raises(AttributeError, match="apply_nothing"):
        training_ops.apply_nothing  # noqa: B018


def test_generated_functions_take_attributes_by_position():
    from headrace.compat import gen_ops

    image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    largest = gen_ops.max_pool(image, [1, 2, 2, 1], [1, 1, 1, 1], "VALID", "NHWC", name="largest")
    shape = gen_ops.shape([[1, 2]], tf.int64, name="size")
    assert (largest.op.name, shape.op.name, shape.dtype) == ("largest", "size", tf.int64)
    with tf.Session() as session:
        assert session.run(largest).ravel().tolist() == [4.0, 5.0, 7.0, 8.0]


def test_hooks_around_a_session_and_the_step_that_counts():
    from headrace.compat import internals
    from headrace.train.session_layers import HookedSession

    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(ValueError, match="Global step tensor should be created"):
            internals._increment_global_step(1)
        tf.train.get_or_create_global_step()
        step = internals._increment_global_step(1)
        session.run(tf.global_variables_initializer())
        hook = tf.train.StopAtStepHook(last_step=2)
        hook.begin()
        hook.after_create_session(session, None)
        hooked = HookedSession(session, [hook])
        assert hooked.run(step) == 1
        assert not hooked.should_stop()
        hooked.run(step)
        assert hooked.should_stop()
