"""Regions: when they are compiled, what they keep, and checks."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import headrace as tf
from headrace.executor import equal_programs
from headrace.executor import region as regions
from headrace.ops.core import checks
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, Effects
from headrace.settings import flags


@pytest.fixture
def twice(new_op):
    """An op ``twice(x)``, with the list of what its implementations were called for."""
    calls = []

    def kernel(x):
        calls.append("trace")
        return x * 2

    def interpret(x):
        calls.append("interpret")
        return x * 2

    op = new_op("TestTwice(x: float) -> y: float", kernel=kernel, interpret=interpret)
    return op, calls


def test_a_region_is_interpreted_once_and_compiled_once(twice):
    op, calls = twice
    x = tf.placeholder(tf.float32, [None])
    y, sess = op(x), tf.Session()
    for _ in range(5):
        np.testing.assert_array_equal(sess.run(y, {x: np.ones(200_000)}), np.full(200_000, 2))
    assert calls == ["interpret", "trace"]


def test_sizes_that_only_the_run_tells_decide_each_for_itself(twice):
    op, calls = twice
    x = tf.placeholder(tf.float32, [None])
    y, sess = op(x), tf.Session()
    for size in (200_000, 2, 3, 200_000, 2):
        for _ in range(2):
            np.testing.assert_array_equal(sess.run(y, {x: np.ones(size)}), np.full(size, 2))
    # The large one is compiled when it comes again, the small ones never.
    assert calls == ["interpret", "trace", *["interpret"] * 6]


def test_a_region_that_costs_less_than_a_call_is_never_compiled(twice):
    op, calls = twice
    x = tf.placeholder(tf.float32, [2])
    y, sess = op(x), tf.Session()
    y.set_shape([2])
    for _ in range(5):
        np.testing.assert_array_equal(sess.run(y, {x: [1, 2]}), [2, 4])
    assert calls == ["interpret"] * 5


def test_a_new_shape_compiles_once_more(twice, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    op, calls = twice
    x = tf.placeholder(tf.float32, [None])
    y, sess = op(x), tf.Session()
    for size in (2, 3, 2, 3, 2):
        assert sess.run(y, {x: np.ones(size)}).shape == (size,)
    assert calls == ["trace", "trace"]


def test_one_plan_serves_all_structures_of_the_same_elements(twice, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    op, calls = twice
    x = tf.placeholder(tf.float32, [])
    z = tf.placeholder(tf.float32, [])
    y, sess = op(x + z), tf.Session()
    assert sess.run(y, {x: 1, z: 2}) == 6
    assert sess.run([y], {z: 2, x: 1}) == [6]
    assert sess.run({"y": y.name}, {x.name: 1, z: 2}) == {"y": 6}
    assert sess.make_callable(y, [z, x])(2, 1) == 6
    assert calls == ["trace"]


def test_a_region_keeps_a_limited_number_of_programs(twice, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    monkeypatch.setattr(regions, "MAX_PROGRAMS", 3)
    op, calls = twice
    x = tf.placeholder(tf.float32, [None])
    y, sess = op(x), tf.Session()
    for size in (1, 2, 3, 1, 4, 1, 5, 1):
        sess.run(y, {x: np.ones(size)})
    assert len(calls) == 5, "the shape in use stays"
    equal_programs.forget()  # which would have the code of those that are forgotten here
    sess.run(y, {x: np.ones(2)})
    assert len(calls) == 6


def test_checks_hold_for_each_shape_of_one_program(new_op, monkeypatch):
    """A variable that changes its shape has its program traced again, with other checks."""
    monkeypatch.setattr(flags, "interpret", "never")

    def kernel(value):
        if value.size:
            checks.require(value[0] < 10, "first is {0}", value[0])
        checks.require(value.sum() < 100, "sum is {0}", value.sum())
        return value * 1

    below = new_op("TestBelow(x: int64) -> y: int64", kernel=kernel, effects=CHECKS)
    v = tf.Variable(np.array([1], np.int64), validate_shape=False)
    x = tf.placeholder(tf.int64)
    change, out = raw.AssignVariableOp(v.handle, x), below(v.read_value())
    sess = tf.Session()

    def message(value):
        sess.run(change, {x: value})
        try:
            sess.run(out)
        except tf.errors.InvalidArgumentError as error:
            return error.message
        return None

    assert message([]) is None
    assert message([11]) == "first is 11"
    assert message([]) is None
    assert message([1, 2]) is None
    assert message([1, 200]) == "sum is 201"
    assert message([12]) == "first is 12"


def test_a_variable_assigned_from_another_keeps_its_value_when_the_other_changes(interpret):
    a, b = tf.Variable([1.0, 2.0]), tf.Variable([0.0, 0.0])
    copy, grow = b.assign(a).op, a.assign_add([1.0, 1.0]).op
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    for _ in range(3):
        sess.run(copy)
        before = sess.run(a)
        sess.run(grow)
        np.testing.assert_array_equal(sess.run(b), before)
    sess.run(tf.group(copy, grow))


def test_a_large_constant_outlives_the_updates_of_what_was_assigned_from_it():
    big = tf.constant(np.arange(70_000, dtype=np.float32))
    v = tf.Variable(tf.zeros([70_000]))
    copy, grow = v.assign(big).op, v.assign_add(tf.ones([70_000])).op
    sess = tf.Session()
    sess.run(v.initializer)
    for _ in range(3):
        sess.run(copy)
        sess.run(grow)
    assert sess.run(v)[5] == 6
    assert sess.run(big)[5] == 5


def test_an_interpreted_region_sees_its_own_writes_in_ops_without_a_numpy_form(new_op, monkeypatch):
    """State travels with the region, also to kernels that are compiled alone."""
    monkeypatch.setattr(flags, "interpret", "always")
    read = new_op(
        "TestRead(r: resource, x: float) -> y: float",
        kernel=lambda value, x: value * x,
        effects=Effects(reads=(0,)),
    )
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign(5.0)]):
        y = read(v.handle, tf.constant(2.0))
    sess = tf.Session()
    sess.run(v.initializer)
    assert sess.run(y) == 10.0


def test_programs_of_a_closed_session_are_freed(twice):
    op, _ = twice
    x = tf.placeholder(tf.float32, [2])
    y, sess = op(x), tf.Session()
    for _ in range(3):
        sess.run(y, {x: [1, 2]})
    plan = next(iter(sess._plans.values())).plan
    found = weakref.ref(plan.units[0].region)
    sess.close()
    del plan
    gc.collect()
    assert found() is None


def test_a_thousand_steps_keep_nothing():
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable(tf.zeros([2]))
    train = v.assign_add(x * 0.5)
    sess = tf.Session()
    sess.run(v.initializer)
    for _ in range(3):
        sess.run(train, {x: [1, 2]})
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        sess.run(train, {x: [1, 2]})
    gc.collect()
    assert len(gc.get_objects()) - before < 50


def _old_value_is_given_away(v, step, feed=None):
    with tf.Session() as sess:
        sess.run(v.initializer)
        for _ in range(3):
            sess.run(step.op, feed)
        store = sess._engine.store
        (key,) = [k for k in store._values if getattr(k, "name", "") == v.op.name]
        old = store.get(key)
        sess.run(step.op, feed)
        return old.is_deleted()


def test_variables_are_updated_in_place_unless_a_check_depends_on_data(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")  # so little would not be compiled
    v = tf.Variable(tf.ones([4, 3]))
    assert _old_value_is_given_away(v, v.assign(v / 2.0 + v[1:2, :]))
    rows = tf.placeholder(tf.int32, [2])
    feed = {rows: [0, 3]}
    assert _old_value_is_given_away(v, v.assign(v + tf.gather(v, rows)[:1]), feed)
    computed = tf.cast(tf.reduce_sum(v) * 0.0, tf.int32)
    assert not _old_value_is_given_away(v, v.assign(v + tf.gather(v, [computed])))


def test_a_program_that_turns_out_to_have_checks_is_compiled_once(new_op, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    traced = []

    def kernel(value):
        traced.append(1)
        checks.require(value < 100, "it is {0}", value)
        return value * 1

    below = new_op("TestUnder(x: int64) -> y: int64", kernel=kernel, effects=CHECKS)
    v = tf.Variable(np.int64(1))
    step = v.assign(below(v.read_value()) + 1)
    sess = tf.Session()
    sess.run(v.initializer)
    for value in (2, 3, 4, 5):
        assert sess.run(step) == value
        gc.collect()
    assert len(traced) == 2  # to find the check, and to compile


def test_random_ops_of_two_function_bodies_have_streams_of_their_own():
    def draws(_):
        return tf.random_uniform([], seed=1)

    one = tf.map_fn(draws, tf.zeros([3]))
    two = tf.map_fn(draws, tf.zeros([3]))
    with tf.Session() as sess:
        first, second = sess.run([one, two])
        np.testing.assert_array_equal(first, second)  # the same seeds, each from its start
        again = sess.run(one)
        assert not np.array_equal(again, first)
        np.testing.assert_array_equal(sess.run(two), again)


def test_what_fills_variables_is_interpreted_first_however_large(twice, monkeypatch):
    """Initialisers run once, and NumPy fills tensors faster than XLA compiles."""
    monkeypatch.setattr(flags, "interpret_limit", 10.0)
    op, calls = twice
    drawn = op(tf.random_uniform([1000]))
    drawn.set_shape([1000])
    filled = tf.Variable(drawn)
    tf.Session().run(filled.initializer)
    assert calls == ["interpret"]


def test_large_computations_are_compiled_at_once(twice, monkeypatch):
    monkeypatch.setattr(flags, "interpret_limit", 10.0)
    op, calls = twice
    chained = tf.random_uniform([1000])
    for _ in range(12):
        chained = op(chained)
    tf.Session().run(chained)
    assert set(calls) == {"trace"}
