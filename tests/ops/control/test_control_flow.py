"""cond, case, switch_case and while_loop, compiled and interpreted."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import headrace as tf
from headrace.ops.control.functions import build_body
from headrace.ops.core.build import raw
from headrace.ops.core.registry import EXTERNAL, define_op

pytestmark = pytest.mark.usefixtures("interpret")

_seen: list[float] = []


def _record(context, x):
    _seen.append(float(x))
    return x * 2


define_op(
    "TestRecord(x: T) -> y: T",
    attrs="T: type",
    shape=lambda op: [op.inputs[0].dims],
    host=_record,
    effects=EXTERNAL,
)


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


# -- cond ---------------------------------------------------------------------------------------


def test_cond_runs_the_chosen_branch():
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(x < 2.0, lambda: x * 2, lambda: x + 10)
    with tf.Session() as session:
        assert session.run(y, {x: 1.0}) == 2.0
        assert session.run(y, {x: 3.0}) == 13.0


def test_cond_returns_nested_structures():
    pair = collections.namedtuple("pair", "a b")
    flag = tf.placeholder(tf.bool, [])

    def branch(v):
        return lambda: {"p": pair(tf.constant(v), [tf.constant(v + 1)]), "q": v * 2}

    result = tf.cond(flag, branch(1), branch(5))
    assert isinstance(result["p"], pair)
    with tf.Session() as session:
        assert session.run(result, {flag: False}) == {"p": pair(5, [6]), "q": 10}


def test_cond_unpacks_a_list_of_one_unless_strict():
    flag = tf.constant(True)
    assert isinstance(tf.cond(flag, lambda: [tf.constant(1)], lambda: [tf.constant(2)]), tf.Tensor)
    kept = tf.cond(flag, lambda: [tf.constant(1)], lambda: [tf.constant(2)], strict=True)
    assert isinstance(kept, list)


def test_cond_assigns_only_in_the_branch_that_runs():
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.float32, [])
    change = tf.cond(x > 0, lambda: v.assign(x), lambda: v.assign_sub(1.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(change, {x: 5.0}) == 5.0
        assert session.run(v) == 5.0
        assert session.run(change, {x: -5.0}) == 4.0
        assert session.run(v) == 4.0


def test_cond_runs_operations_of_branches():
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.bool, [])
    ran = tf.cond(x, lambda: tf.group(v.assign_add(2.0)), lambda: tf.no_op())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(ran, {x: False})
        assert session.run(v) == 1.0
        session.run(ran, {x: True})
        assert session.run(v) == 3.0


def test_cond_initializes_a_variable_in_one_branch():
    v = tf.Variable(7.0)
    ready = tf.placeholder(tf.bool, [])
    value = tf.cond(ready, lambda: tf.identity(v), lambda: tf.constant(-1.0))
    with tf.Session() as session:
        assert session.run(value, {ready: False}) == -1.0
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
            session.run(value, {ready: True})
        session.run(tf.global_variables_initializer())
        assert session.run(value, {ready: True}) == 7.0


def test_ops_made_outside_run_whichever_branch_runs():
    v = tf.Variable(0.0)
    outside = v.assign_add(1.0)
    x = tf.placeholder(tf.bool, [])
    y = tf.cond(x, lambda: tf.identity(outside), lambda: tf.constant(0.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(y, {x: False})
        assert session.run(v) == 1.0


def test_cond_with_shapes_that_differ():
    x = tf.placeholder(tf.bool, [])
    y = tf.cond(x, lambda: tf.zeros([2]), lambda: tf.zeros([3]))
    assert y.shape.as_list() == [None]
    with tf.Session() as session:
        assert session.run(y, {x: True}).shape == (2,)
        assert session.run(y, {x: False}).shape == (3,)


def test_a_branch_that_the_shapes_do_not_fit_is_no_error_where_the_other_runs(monkeypatch):
    monkeypatch.setenv("HEADRACE_INTERPRET", "never")
    x, one = tf.placeholder(tf.float32, [2, None]), tf.placeholder(tf.bool, [])
    y = tf.cond(one, lambda: tf.squeeze(x * 2, [1]), lambda: x[:, 0])
    with tf.Session() as session:
        wide = [[1, 2], [3, 4]]
        np.testing.assert_array_equal(session.run(y, {x: wide, one: False}), [1, 3])
        np.testing.assert_array_equal(session.run(y, {x: [[1], [3]], one: True}), [2, 6])
        with pytest.raises(tf.errors.InvalidArgumentError, match="squeeze dim"):
            session.run(y, {x: wide, one: True})


def test_cond_runs_a_host_op_only_in_its_branch():
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(x > 0, lambda: raw.TestRecord(x), lambda: x)
    _seen.clear()
    with tf.Session() as session:
        assert session.run(y, {x: -1.0}) == -1.0
        assert session.run(y, {x: 4.0}) == 8.0
    assert _seen == [4.0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tf.cond(True, lambda: 1, lambda: 2), TypeError, "must not be a Python bool"),
        (lambda: tf.cond(tf.constant(True), 1, lambda: 2), TypeError, "true_fn must be callable"),
        (
            lambda: tf.cond(tf.constant(True), lambda: 1, lambda: 2, fn1=lambda: 1),
            TypeError,
            "fn1 and true_fn may not be set simultaneously",
        ),
        (
            lambda: tf.cond(tf.constant(True), lambda: None, lambda: 2),
            ValueError,
            "true_fn must have a return value",
        ),
        (
            lambda: tf.cond(tf.constant(True), lambda: (1, 2), lambda: 2),
            ValueError,
            "Incompatible return types of true_fn and false_fn",
        ),
        (
            lambda: tf.cond(tf.constant(True), lambda: 1, lambda: 2.0),
            ValueError,
            "must have the same type: int32, float32",
        ),
    ],
)
def test_cond_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_failed_check_in_a_branch_changes_no_variable():
    v = tf.Variable([1.0, 2.0])
    i = tf.placeholder(tf.int32, [])
    flag = tf.placeholder(tf.bool, [])

    def lookup():
        with tf.control_dependencies([v.assign_add([1.0, 1.0])]):
            return tf.gather(tf.constant([5.0, 6.0]), i)

    y = tf.cond(flag, lookup, lambda: tf.constant(0.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
            session.run(y, {i: 9, flag: True})
        np.testing.assert_array_equal(session.run(v), [1.0, 2.0])
        assert session.run(y, {i: 9, flag: False}) == 0.0


# -- case and switch_case -----------------------------------------------------------------------


def test_case_takes_the_first_true_predicate():
    x = tf.placeholder(tf.int32, [])
    y = tf.case(
        [(x < 1, lambda: tf.constant(10)), (x < 5, lambda: tf.constant(20))],
        default=lambda: tf.constant(30),
    )
    with tf.Session() as session:
        assert [session.run(y, {x: k}) for k in (0, 3, 9)] == [10, 20, 30]


def test_exclusive_case_fails_when_two_predicates_hold():
    x = tf.placeholder(tf.int32, [])
    y = tf.case({x < 1: lambda: tf.constant(1), x < 5: lambda: tf.constant(2)}, exclusive=True)
    with tf.Session() as session:
        assert session.run(y, {x: 3}) == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="More than one condition"):
            session.run(y, {x: 0})
        with pytest.raises(tf.errors.InvalidArgumentError, match="None of the conditions"):
            session.run(y, {x: 7})


def test_switch_case_uses_the_last_branch_for_other_indices():
    i = tf.placeholder(tf.int32, [])
    y = tf.switch_case(i, {0: lambda: 1.0, 1: lambda: 2.0}, default=lambda: 3.0)
    with tf.Session() as session:
        assert [session.run(y, {i: k}) for k in (0, 1, 2, -1)] == [1.0, 2.0, 3.0, 3.0]
    with pytest.raises(ValueError, match="contiguous range"):
        tf.switch_case(i, {0: lambda: 1.0, 2: lambda: 2.0})


# -- while --------------------------------------------------------------------------------------


def test_while_counts():
    i = tf.while_loop(lambda i: tf.less(i, 10), lambda i: [tf.add(i, 1)], [tf.constant(0)])
    assert run(i) == 10


def test_while_with_nesting_and_shape_invariants():
    pair = collections.namedtuple("pair", "j k")
    ijk = (tf.constant(0), pair(tf.constant(1), tf.constant(2)))
    final = tf.while_loop(
        lambda i, p: i < 10, lambda i, p: (i + 1, pair(p.j + p.k, p.j - p.k)), ijk
    )
    assert isinstance(final[1], pair)
    assert run(final) == (10, pair(32, 64))
    _, m = tf.while_loop(
        lambda i, m: i < 3,
        lambda i, m: [i + 1, tf.concat([m, m], axis=0)],
        loop_vars=[tf.constant(0), tf.ones([2, 2])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )
    assert m.shape.as_list() == [None, 2]
    assert run(m).shape == (16, 2)


def test_while_refuses_a_shape_that_changes():
    with pytest.raises(ValueError, match="is not an invariant for the loop") as failure:
        tf.while_loop(lambda m: True, lambda m: tf.concat([m, m], 0), [tf.ones([2])])
    assert "It enters the loop with shape (2,), but has shape (4,)" in str(failure.value)
    with pytest.raises(ValueError, match="not compatible with the initial shape"):
        tf.while_loop(
            lambda m: True, lambda m: m, [tf.ones([2])], shape_invariants=[tf.TensorShape([3])]
        )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tf.while_loop(1, lambda i: i, [0]), TypeError, "cond must be callable"),
        (lambda: tf.while_loop(lambda i: True, 1, [0]), TypeError, "body must be callable"),
        (
            lambda: tf.while_loop(lambda: True, lambda: 0, []),
            ValueError,
            "No loop variables provided",
        ),
        (lambda: tf.while_loop(lambda i: i, lambda i: i, [0]), TypeError, "boolean scalar"),
        (
            lambda: tf.while_loop(lambda i: i < 3, lambda i: tf.to_float(i), [0]),
            TypeError,
            "enters the loop with type tf.int32, but has type tf.float32",
        ),
        (
            lambda: tf.while_loop(lambda i, j: i < 3, lambda i, j: (i, j, j), [0, 0]),
            ValueError,
            "same nested structure",
        ),
    ],
)
def test_while_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_while_that_never_runs():
    x = tf.placeholder(tf.float32, [2])
    _, y = tf.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * 2), [0, x])
    np.testing.assert_array_equal(run(y, {x: [1, 2]}), [1, 2])


def test_while_stops_after_maximum_iterations():
    x = tf.placeholder(tf.float32, [])
    limit = tf.placeholder(tf.int32, [])
    fixed = tf.while_loop(lambda a: a < 100.0, lambda a: a * x, [1.0], maximum_iterations=3)
    fed = tf.while_loop(lambda a: a < 100.0, lambda a: a * x, [1.0], maximum_iterations=limit)
    with tf.Session() as session:
        assert session.run([fixed, fed], {x: 2.0, limit: 5}) == [8.0, 32.0]
        assert session.run([fixed, fed], {x: 50.0, limit: 5}) == [2500.0, 2500.0]


def test_while_with_a_trip_count_that_is_fed():
    n = tf.placeholder(tf.int32, [])
    _, total = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i), [0, 0])
    with tf.Session() as session:
        assert [session.run(total, {n: k}) for k in (0, 1, 5)] == [0, 0, 10]


def test_nested_loops_and_branches():
    n = tf.placeholder(tf.int32, [])

    def outer(i, total):
        _, inner = tf.while_loop(
            lambda j, t: j < i,
            lambda j, t: (j + 1, tf.cond(tf.equal(j % 2, 0), lambda: t + j, lambda: t - 1)),
            [0, total],
        )
        return i + 1, inner

    _, total = tf.while_loop(lambda i, t: i < n, outer, [0, 0])
    expected = 0
    for i in range(6):
        for j in range(i):
            expected = expected + j if j % 2 == 0 else expected - 1
    assert run(total, {n: 6}) == expected


def test_variables_change_in_each_iteration():
    v = tf.Variable(1.0)

    def body(i):
        with tf.control_dependencies([v.assign(v * 2.0)]):
            return i + 1

    i = tf.while_loop(lambda i: i < 5, body, [0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(i)
        assert session.run(v) == 32.0


def test_random_draws_differ_between_iterations():
    draws = tf.while_loop(
        lambda i, d: i < 3,
        lambda i, d: (i + 1, tf.concat([d[1:], tf.random_uniform([1], seed=7)], 0)),
        [0, tf.zeros([3])],
    )[1]
    with tf.Session() as session:
        first, second = session.run(draws), session.run(draws)
    assert len({*first.tolist(), *second.tolist()}) == 6


def test_random_draws_are_those_of_the_other_mode():
    tf.set_random_seed(3)
    total = tf.while_loop(
        lambda i, t: i < 4, lambda i, t: (i + 1, t + tf.random_normal([], seed=1)), [0, 0.0]
    )[1]
    assert run(total) == pytest.approx(_draws_of_seed(), rel=1e-5)


def _draws_of_seed():
    """The sum of four draws, from an op that is not in a loop."""
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        draw = tf.random_normal([], seed=1)
        with tf.Session() as session:
            return sum(session.run(draw) for _ in range(4))


def test_host_op_in_a_loop():
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, raw.TestRecord(a) + 1.0), [0, x])
    _seen.clear()
    assert run(y, {x: 1.0}) == 15.0
    assert _seen == [1.0, 3.0, 7.0]


def test_a_failed_check_ends_the_loop():
    v = tf.Variable(0.0)
    table = tf.constant([1.0, 2.0, 3.0])

    def body(i, a):
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i + 1, a + tf.gather(table, i)

    n = tf.placeholder(tf.int32, [])
    _, total = tf.while_loop(lambda i, a: i < n, body, [0, 0.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(total, {n: 3}) == 6.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
            session.run(total, {n: 2_000_000_000})
        assert session.run(v) == 3.0


def test_loop_over_a_static_shape_keeps_shapes():
    x = tf.placeholder(tf.float32, [None, 3])

    def body(i, a):
        return i + 1, tf.reshape(a, tf.shape(x)) + x[i]

    _, y = tf.while_loop(lambda i, a: i < tf.shape(x)[0], body, [0, tf.zeros_like(x)])
    data = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_allclose(run(y, {x: data}), np.tile(data.sum(0), (4, 1)))


def test_names_and_structure_of_results():
    with tf.name_scope("outer"):
        result = tf.while_loop(lambda i: i < 2, lambda i: i + 1, [tf.constant(0)])
    assert result.op.name == "outer/while/While"
    kept = tf.while_loop(
        lambda i: i < 2, lambda i: i + 1, [tf.constant(0)], return_same_structure=True
    )
    assert isinstance(kept, list)


def test_indexed_slices_as_loop_variable_and_branch_result():
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([3, 2]))
    doubled = tf.while_loop(
        lambda i, s: i < 2,
        lambda i, s: (i + 1, tf.IndexedSlices(s.values * 2, s.indices, s.dense_shape)),
        [0, slices],
    )[1]
    chosen = tf.cond(tf.constant(True), lambda: doubled, lambda: slices)
    assert isinstance(chosen, tf.IndexedSlices)
    np.testing.assert_array_equal(run(tf.convert_to_tensor(chosen)), [[0, 0], [4, 8], [0, 0]])


def test_partitioned_call_runs_a_function():
    x = tf.placeholder(tf.float32, [2])
    body, _ = build_body("f", lambda a: None, [(tf.float32, (2,), "a")])
    with body.as_default():
        body.outputs = [tf.square(body.inputs[0]) + 1.0]
    (y,) = raw.PartitionedCall([x], f=body, Tout=[tf.float32])[0]
    np.testing.assert_array_equal(run(y, {x: [1, 2]}), [2, 5])
    np.testing.assert_array_equal(run(tf.gradients(y, x)[0], {x: [1, 2]}), [2, 4])
