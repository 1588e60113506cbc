"""get_variable, variable scopes, sharing, partitioned variables and the global step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import train as steps
from headrace.ops.state.variables import Variable

# -- names ----------------------------------------------------------------------------------------


def test_scopes_prefix_names_of_variables_and_ops() -> None:
    with tf.variable_scope("a") as scope:
        v = tf.get_variable("v", [2])
        with tf.variable_scope("b"):
            w = tf.get_variable("w", [2])
        x = v + 1.0
    assert (v.name, w.name, x.name) == ("a/v:0", "a/b/w:0", "a/add:0")
    assert (scope.name, scope.original_name_scope) == ("a", "a/")
    assert tf.get_variable_scope().name == ""


def test_get_variable_ignores_name_scopes_and_variable_does_not() -> None:
    with tf.name_scope("n"):
        assert tf.get_variable("v", [2]).name == "v:0"
        assert tf.Variable(1.0).name == "n/Variable:0"


def test_opening_a_scope_twice_makes_a_new_name_scope() -> None:
    with tf.variable_scope("a"):
        first = tf.constant(1.0)
    with tf.variable_scope("a"):
        second = tf.constant(1.0)
        assert tf.get_variable("v", [2]).name == "a/v:0"
    assert (first.name, second.name) == ("a/Const:0", "a_1/Const:0")


def test_entering_a_scope_object_keeps_its_name_and_opens_a_name_scope() -> None:
    with tf.variable_scope("a") as scope:
        pass
    with tf.variable_scope("b"), tf.variable_scope(scope) as again:
        assert tf.get_variable("v", [2]).name == "a/v:0"
        assert tf.constant(1.0).name == "b/a/Const:0"
        assert again.original_name_scope == "a/"
        with tf.name_scope(again.original_name_scope):
            assert tf.constant(1.0).name == "a/Const:0"


def test_without_auxiliary_name_scope_op_names_stay() -> None:
    with tf.name_scope("n"), tf.variable_scope("a", auxiliary_name_scope=False) as scope:
        assert tf.get_variable("v", [2]).name == "a/v:0"
        assert tf.constant(1.0).name == "n/Const:0"
        assert scope.original_name_scope == "n/"
    with tf.variable_scope(scope, auxiliary_name_scope=False):
        assert tf.constant(1.0).name == "Const:0"


def test_default_names_are_made_unique() -> None:
    names = []
    for _ in range(3):
        with tf.variable_scope(None, "layer"):
            names.append(tf.get_variable("w", [2]).name)
    with tf.variable_scope("outer"), tf.variable_scope(None, default_name="layer") as scope:
        names.append(scope.name)
    assert names == ["layer/w:0", "layer_1/w:0", "layer_2/w:0", "outer/layer"]


def test_inner_default_names_start_anew_when_a_scope_is_left() -> None:
    for _ in range(2):
        with tf.variable_scope("outer"), tf.variable_scope(None, "layer") as scope:
            assert scope.name == "outer/layer"


def test_reentering_a_scope_object_counts_default_names_on() -> None:
    with tf.variable_scope("outer") as outer:
        with tf.variable_scope(None, "layer"):
            pass
        with tf.variable_scope(outer), tf.variable_scope(None, "layer") as scope:
            assert scope.name == "outer/layer_1"
        with tf.variable_scope(None, "layer") as scope:
            assert scope.name == "outer/layer_1"


def test_a_scope_block_may_be_entered_again() -> None:
    block = tf.variable_scope(None, "layer")
    with block as first:
        pass
    with block as second:
        pass
    assert (first.name, second.name) == ("layer", "layer")


# -- sharing --------------------------------------------------------------------------------------


def test_reuse_shares_and_is_inherited() -> None:
    with tf.variable_scope("a"):
        v = tf.get_variable("v", [2])
        with tf.variable_scope("b"):
            w = tf.get_variable("w", [2])
    with tf.variable_scope("a", reuse=True) as scope:
        assert scope.reuse is True
        assert tf.get_variable("v", [2]) is v
        assert tf.get_variable("v") is v
        with tf.variable_scope("b", reuse=False):
            assert tf.get_variable("w", [2]) is w


def test_auto_reuse_makes_and_shares() -> None:
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
        v = tf.get_variable("v", [2])
        assert tf.get_variable("v", [2]) is v
        with tf.variable_scope("b"):
            assert tf.get_variable_scope().reuse is tf.AUTO_REUSE


def test_reuse_variables_switches_a_scope() -> None:
    with tf.variable_scope("a") as scope:
        v = tf.get_variable("v", [2])
        scope.reuse_variables()
        assert tf.get_variable("v", [2]) is v
    with tf.variable_scope("a") as scope:
        assert not scope.reuse


def test_sharing_errors() -> None:
    tf.get_variable("v", [2])
    with pytest.raises(
        ValueError,
        match=r"Variable v already exists, disallowed\. Did you mean to set reuse=True or",
    ) as caught:
        tf.get_variable("v", [2])
    assert "test_variable_scope.py" in str(caught.value)
    tf.Variable(1.0, name="plain")
    with tf.variable_scope("", reuse=True):
        for name in ("w", "plain"):
            with pytest.raises(
                ValueError,
                match=rf"Variable {name} does not exist, or was not "
                r"created with tf\.get_variable\(\)\. Did you mean to set",
            ):
                tf.get_variable(name, [2])
        with pytest.raises(
            ValueError,
            match=r"Trying to share variable v, but specified shape "
            r"\(3,\) and found shape \(2,\)\.",
        ):
            tf.get_variable("v", [3])
        with pytest.raises(
            ValueError,
            match=r"Trying to share variable v, but specified dtype "
            r"int32 and found dtype float32",
        ):
            tf.get_variable("v", [2], tf.int32)


def test_each_graph_has_variables_of_its_own() -> None:
    v = tf.get_variable("v", [2])
    with tf.Graph().as_default():
        assert tf.get_variable("v", [2]) is not v


# -- arguments ------------------------------------------------------------------------------------


def test_defaults_of_the_scope_are_used_and_overridden() -> None:
    ones, twos = tf.ones_initializer(), tf.constant_initializer(2.0)
    with tf.variable_scope("a", initializer=ones, dtype=tf.float64, constraint=abs) as scope:
        v = tf.get_variable("v", [2])
        w = tf.get_variable("w", [2], tf.float32, twos)
        with tf.variable_scope("b", initializer=twos):
            x = tf.get_variable("x", [2])
        scope.set_initializer(twos)
        scope.set_dtype(tf.float32)
        y = tf.get_variable("y", [2])
    assert [t.dtype for t in (v, w, x, y)] == [tf.float64, tf.float32, tf.float64, tf.float32]
    assert v.constraint is abs
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        got = session.run([v, w, x, y])
    assert [g[0] for g in got] == [1.0, 2.0, 2.0, 2.0]


def test_initialisers_of_every_kind() -> None:
    made = [
        tf.get_variable("cls", [2], initializer=tf.ones_initializer),
        tf.get_variable("function", [2], initializer=lambda shape, dtype: tf.ones(shape, dtype)),
        tf.get_variable("three", [2], initializer=_with_info),
        tf.get_variable("thunk", initializer=lambda: tf.ones([2])),
        tf.get_variable("value", initializer=[1.0, 1.0]),
        tf.get_variable("tensor", initializer=tf.ones([2])),
        tf.get_variable("array", initializer=np.ones(2, np.float32)),
        tf.get_variable("integer", initializer=1),
        tf.get_variable("default", [2], tf.bool),
        tf.get_variable("text", [2], tf.string),
    ]
    with tf.Session() as session:
        session.run(tf.variables_initializer(made[:-1]))
        got = session.run(made[:-1])
    assert all(g.tolist() == [1.0, 1.0] for g in got[:7])
    assert got[7] == 1
    assert made[7].dtype == tf.int32
    assert got[8].tolist() == [False, False]


def _with_info(shape: Any, dtype: Any, partition_info: Any) -> Any:
    assert partition_info is None
    return tf.ones(shape, dtype)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="If initializer is a constant, do not specify shape"):
        tf.get_variable("v", [2], initializer=[1.0, 2.0])
    with pytest.raises(ValueError, match="did not get an initializer, so its `shape` argument"):
        tf.get_variable("v")
    with pytest.raises(ValueError, match=r"Shape of a new variable \(v\) must be fully defined"):
        tf.get_variable("v", [None])
    with pytest.raises(ValueError, match="Initializer type '<dtype: 'int32'>' and explicit"):
        tf.get_variable("v", dtype=tf.float32, initializer=tf.constant(1))
    with pytest.raises(ValueError, match=r"An initializer for variable v of tf\.resource is req"):
        tf.get_variable("v", [2], tf.resource)
    with pytest.raises(TypeError, match="If default_name is None then name_or_scope is required"):
        tf.variable_scope(None)
    with pytest.raises(TypeError, match="name_or_scope must be a string or VariableScope"):
        tf.variable_scope(3)
    with pytest.raises(ValueError, match="The reuse parameter must be True or False or None"):
        tf.variable_scope("a", reuse=3)
    with pytest.raises(ValueError, match="reuse=True cannot be used without a name_or_scope"):
        tf.variable_scope(None, "a", reuse=True).__enter__()
    with pytest.raises(TypeError, match="auxiliary_name_scope must be"):
        tf.variable_scope("a", auxiliary_name_scope=1)


def test_regularizers_join_the_losses() -> None:
    def regularizer(v: Any) -> Any:
        return tf.reduce_sum(v) * 0.5

    with tf.variable_scope("a", regularizer=regularizer):
        tf.get_variable("v", [2], initializer=tf.ones_initializer())
        tf.get_variable("w", [2], regularizer=tf.no_regularizer)
        with tf.variable_scope("b", reuse=tf.AUTO_REUSE):
            tf.get_variable("v", [2])
            tf.get_variable("v", [2])
    first, second = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert first.name == "a/v/Regularizer/mul:0"
    assert second.name == "a/b/v/Regularizer/mul:0"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(first) == 1.0


def test_custom_getters_compose() -> None:
    calls = []

    def outer(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(f"outer {name}")
        return getter(name, *args, **kwargs)

    def inner(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(f"inner {name}")
        return tf.identity(getter(f"{name}_renamed", *args, **kwargs), name="wrapped")

    with tf.variable_scope("a", custom_getter=outer), tf.variable_scope("b", custom_getter=inner):
        v = tf.get_variable("v", [2])
    assert calls == ["inner a/b/v", "outer a/b/v_renamed"]
    assert v.op.type == "Identity"
    assert [x.name for x in tf.global_variables()] == ["a/b/v_renamed:0"]
    w = tf.get_variable("w", [2], custom_getter=outer)
    assert isinstance(w, Variable)


def test_collections_of_a_scope() -> None:
    with tf.variable_scope("a") as scope:
        v = tf.get_variable("v", [2])
        w = tf.get_variable("w", [2], trainable=False)
        local = tf.get_local_variable("l", [2])
    tf.get_variable("ab", [2])
    assert scope.global_variables() == [v, w]
    assert scope.trainable_variables() == [v]
    assert scope.local_variables() == tf.local_variables() == [local]
    assert not local.trainable


def test_variable_op_scope_and_graph_of_values() -> None:
    with tf.variable_op_scope([tf.constant(1.0)], None, "layer") as scope:
        assert scope.name == "layer"
    other = tf.Graph()
    with other.as_default():
        x = tf.constant(1.0)
    with tf.variable_scope("a", values=[x]):
        assert tf.get_default_graph() is other


# -- partitioned variables ------------------------------------------------------------------------


def test_a_partitioned_variable_stands_for_its_concatenation(interpret: str) -> None:
    whole = np.arange(14, dtype=np.float32).reshape(7, 2)
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(3)):
        table = tf.get_variable("t", initializer=whole)
        scalar = tf.get_variable("s", [])
    assert isinstance(scalar, Variable)
    assert [v.name for v in table] == ["p/t/part_0:0", "p/t/part_1:0", "p/t/part_2:0"]
    assert [v.shape.as_list() for v in table] == [[3, 2], [2, 2], [2, 2]]
    assert [v._get_save_slice_info().spec for v in table] == [
        "7 2 0,3:0,2",
        "7 2 3,2:0,2",
        "7 2 5,2:0,2",
    ]
    assert (table.name, table.shape, len(table)) == ("p/t", [7, 2], 3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(table.as_tensor()), whole)
        np.testing.assert_array_equal(session.run(table * 2.0), whole * 2)
        session.run(table.assign(whole + 1))
        session.run(table.assign_sub(np.ones_like(whole)))
        session.run(table.assign_add(whole))
        np.testing.assert_array_equal(session.run(tf.convert_to_tensor(table)), whole * 2)


def test_sharing_a_partitioned_variable() -> None:
    halves = tf.fixed_size_partitioner(2)
    with tf.variable_scope("a", partitioner=halves) as scope:
        table = tf.get_variable("t", [4, 2])
        with pytest.raises(ValueError, match="Partitioned variable with name a/t already exists"):
            tf.get_variable("t", [4, 2])
    with tf.variable_scope(scope, reuse=True):
        assert tf.get_variable("t", [4, 2]) is table
        assert tf.get_variable("t") is table
        with pytest.raises(ValueError, match=r"but specified shape \(6, 2\) and found shape"):
            tf.get_variable("t", [6, 2])
        with pytest.raises(ValueError, match="PartitionedVariable a/u does not exist"):
            tf.get_variable("u", [4, 2])
    with tf.variable_scope("a"), pytest.raises(ValueError, match="No partitioner was provided"):
        tf.get_variable("t", [4, 2])
    tf.get_variable("plain", [4])
    with pytest.raises(ValueError, match="an unpartitioned version of the variable was found"):
        tf.get_variable("plain", [4], partitioner=halves)


def test_partitioners() -> None:
    shape = tf.TensorShape([10, 6])
    assert tf.fixed_size_partitioner(4)(shape=shape, dtype=tf.float32) == [4, 1]
    assert tf.fixed_size_partitioner(9, axis=1)(shape=shape, dtype=tf.float32) == [1, 6]
    by_size = tf.variable_axis_size_partitioner(3 * 6 * 4)
    assert by_size(shape=shape, dtype=tf.float32) == [4, 1]
    limited = tf.variable_axis_size_partitioner(1, max_shards=3)
    assert limited(shape=shape, dtype=tf.string) == [3, 1]
    least = tf.min_max_variable_partitioner(max_partitions=5, min_slice_size=100)
    assert least(shape=shape, dtype=tf.float32) == [3, 1]
    with pytest.raises(ValueError, match="must be positive"):
        tf.variable_axis_size_partitioner(0)
    with pytest.raises(ValueError, match="max_shards must be positive"):
        tf.variable_axis_size_partitioner(9, max_shards=0)
    with pytest.raises(ValueError, match="Cannot partition variable along axis 2"):
        tf.min_max_variable_partitioner(axis=2)(shape=shape, dtype=tf.float32)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([2, 2], r"Can only slice a variable along one dimension: shape: \(4, 6\), partitioning"),
        ([2], r"does not match the Variable's rank: \[2\] vs\. \(4, 6\)"),
        (3, "Partitioner must return a sequence, but saw: 3"),
        ([0, 1], r"Partitioner returned zero partitions for some axes: \[0, 1\]"),
        ([5, 1], r"Cannot split axis 0 of shape \[4, 6\] into 5 parts: it has only 4"),
    ],
)
def test_bad_answers_of_partitioners(answer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.get_variable("v", [4, 6], partitioner=lambda shape, dtype: answer)


def test_bad_partitioned_variables() -> None:
    with pytest.raises(ValueError, match="Partitioner must be callable, but received: 3"):
        tf.get_variable("v", [4], partitioner=3)
    with pytest.raises(ValueError, match="must be fully defined, but instead was"):
        tf.get_variable("v", [None], partitioner=tf.fixed_size_partitioner(2))


def test_create_partitioned_variables() -> None:
    parts = tf.create_partitioned_variables([4, 6], [1, 3], tf.ones_initializer())
    assert [v.name for v in parts] == [f"PartitionedVariable/part_{i}:0" for i in range(3)]
    assert [v.shape.as_list() for v in parts] == [[4, 2]] * 3
    with pytest.raises(ValueError, match="must have the length"):
        tf.create_partitioned_variables([4], [1, 3], tf.ones_initializer())
    with pytest.raises(ValueError, match=r"Some slices are less than 1: \[0, 3\]"):
        tf.create_partitioned_variables([4, 6], [0, 3], tf.ones_initializer())


def test_initialisers_see_which_part_they_make() -> None:
    seen = []

    def initializer(shape: Any, dtype: Any, partition_info: Any) -> Any:
        axis = partition_info.single_slice_dim(shape)
        seen.append((partition_info.full_shape, axis, partition_info.single_offset(shape)))
        return tf.zeros(shape, dtype)

    tf.get_variable("v", [4, 6], initializer=initializer, partitioner=tf.fixed_size_partitioner(2))
    assert seen == [([4, 6], 0, 0), ([4, 6], 0, 2)]


# -- the global step ------------------------------------------------------------------------------


def test_global_step() -> None:
    assert steps.get_global_step() is None
    with tf.variable_scope("a"), tf.name_scope("b"):
        step = steps.get_or_create_global_step()
    assert steps.get_or_create_global_step() is step
    assert steps.get_global_step() is step
    assert tf.get_collection(tf.GraphKeys.GLOBAL_STEP) == [step]
    assert (step.dtype, step.shape, step.trainable) == (tf.int64, [], False)
    with pytest.raises(ValueError, match='"global_step" already exists'):
        steps.create_global_step()
    with tf.Session() as session:
        session.run(step.initializer)
        session.run(step.assign_add(3))
        assert steps.global_step(session, step) == 3


def test_global_step_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match=r'"global_step" does not have integer type: tf\.float32'):
        steps.assert_global_step(tf.constant(1.0))
    with pytest.raises(TypeError, match=r'"global_step" is not scalar: \(2,\)'):
        steps.assert_global_step(tf.constant([1, 2]))
    with pytest.raises(TypeError, match='"global_step" must be a Variable or Tensor: 3'):
        steps.assert_global_step(3)
    v = tf.Variable(0, name="global_step", trainable=False)
    assert steps.get_global_step() is v


# -- arguments that cannot be used ----------------------------------------------------------------


@pytest.mark.parametrize("getter", [3, "getter"])
def test_a_getter_that_cannot_be_called_is_refused(getter: Any) -> None:
    message = f"Passed a custom_getter which is not callable: {getter}"
    with pytest.raises(ValueError, match=message):
        tf.get_variable("v", [2], custom_getter=getter)
    with tf.variable_scope("s", custom_getter=getter), pytest.raises(ValueError, match=message):
        tf.get_variable("v", [2])


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (None, ValueError, "Partitioner must return a sequence, but saw: None"),
        ([], ValueError, r"does not match the Variable's rank: \[\] vs. \(3, 2\)"),
        ([1.5, 1], TypeError, r"must return integers, one for each axis; it gave \[1.5, 1\]"),
    ],
)
def test_partitioners_that_return_nothing_useful(answer: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tf.get_variable("v", [3, 2], partitioner=lambda **_: answer)
    with (
        tf.variable_scope("s", partitioner=lambda **_: answer),
        pytest.raises(error, match=message),
    ):
        tf.get_variable("v", [3, 2])


def test_custom_getters_are_told_whether_a_variable_is_trained() -> None:
    seen = []

    def getter(getter: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(kwargs["trainable"])
        return getter(*args, **kwargs)

    with tf.variable_scope("s", custom_getter=getter):
        tf.get_variable("a", [2])
        tf.get_variable("b", [2], trainable=False)
        tf.get_variable("c", [2], synchronization=tf.VariableSynchronization.ON_READ)
    assert seen == [True, False, False]


@pytest.mark.parametrize(
    ("dtype", "value", "own"),
    [
        (tf.float32, 10, "int32"),
        (tf.int32, 10.5, "float32"),
        (tf.float32, [1, 2], "int32"),
        (tf.float64, [1.5, 2], "float32"),
        (tf.float32, np.array([1, 2]), "int64"),
    ],
)
def test_initial_values_have_the_type_that_is_asked_for(dtype: Any, value: Any, own: str) -> None:
    with pytest.raises(ValueError, match=f"Initializer type '<dtype: '{own}'>' and explicit dtype"):
        tf.get_variable("v", dtype=dtype, initializer=value)


def test_a_value_as_initialiser_keeps_its_type_under_the_default_of_a_scope() -> None:
    with tf.variable_scope("s", dtype=tf.float64):
        assert tf.get_variable("v", initializer=10).dtype == tf.int32
    with tf.variable_scope("t", initializer=10):
        assert tf.get_variable("v", dtype=tf.float32).dtype == tf.int32
