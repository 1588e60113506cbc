"""Equal operations side by side are computed on stacks."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.executor.side_by_side import EqualNodes, Taking, is_constant, plan_of
from headrace.passes.ir import build_step
from headrace.settings import flags

_COUNT = 40
_RANDOM = np.random.RandomState(0)
_MATRICES = _RANDOM.standard_normal((_COUNT, 8, 8)).astype(np.float32)
_BIASES = _RANDOM.standard_normal((_COUNT, 8)).astype(np.float32)
_X = _RANDOM.standard_normal((4, 8)).astype(np.float32)


def _members(x):
    return [tf.matmul(x, m) + b for m, b in zip(_MATRICES, _BIASES, strict=True)]


@pytest.fixture(params=["always", "never"])
def interpret(request, monkeypatch):
    monkeypatch.setattr(flags, "interpret", request.param)


def _run(fetches, feed, runs=2):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = [session.run(fetches, feed) for _ in range(runs)]
    for again in found[1:]:
        for one, other in zip(found[0], again, strict=True):
            np.testing.assert_array_equal(one, other)
    return found[0]


def test_sums_packs_and_single_members(interpret):
    x = tf.placeholder(tf.float32, [4, 8])
    members = _members(x)
    total, stacked, single = _run(
        [tf.add_n(members), tf.stack(members[::-1], 1), members[7]], {x: _X}
    )
    expected = np.matmul(_X, _MATRICES) + _BIASES[:, None]
    np.testing.assert_allclose(total, expected.sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(stacked, np.moveaxis(expected[::-1], 0, 1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(single, expected[7], rtol=1e-5, atol=1e-5)


def test_variables_of_an_ensemble_train(interpret):
    x = tf.placeholder(tf.float32, [4, 8])
    variables = [tf.Variable(m) for m in _MATRICES]
    before = [tf.tanh(tf.matmul(x, v, transpose_b=True)) for v in variables]
    loss = tf.add_n([tf.reduce_sum(b) for b in before])
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {x: _X})
        found = session.run(variables)
    slopes = 1 - np.tanh(np.matmul(_X, np.swapaxes(_MATRICES, 1, 2))) ** 2
    expected = _MATRICES - 0.5 * np.matmul(np.swapaxes(slopes, 1, 2), _X)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_reads_before_and_after_a_write_keep_their_places(interpret):
    v = tf.Variable(1.0)
    first = tf.add_n([v * float(i) for i in range(_COUNT)])
    with tf.control_dependencies([first]):
        write = v.assign(3.0)
    with tf.control_dependencies([write]):
        then = v.read_value()
        second = tf.add_n([then * float(i) for i in range(_COUNT)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([first, second]) == [780.0, 2340.0]


def test_plan_has_one_item_for_each_kind():
    x = tf.placeholder(tf.float32, [4, 8])
    step = build_step([tf.add_n([*_members(x), x])], [x], [])
    nodes = [n for n in step.nodes if n.inputs]
    plan = plan_of(nodes, is_constant, copies=False)
    assert plan is not None
    kinds = [u.nodes[0].type for u in plan.items if isinstance(u, EqualNodes)]
    assert kinds == ["MatMul", "AddV2"]
    (taking,) = [u for u in plan.items if isinstance(u, Taking)]
    assert taking.node.type == "AddN"
    assert plan.calls == 3


def test_few_large_or_unknown_stay_single():
    x = tf.placeholder(tf.float32, [None, 8])
    wide = tf.placeholder(tf.float32, [100, 100])
    for fetch in (
        tf.add_n(_members(x)),
        tf.add_n([wide * float(i) for i in range(_COUNT)]),
        tf.add_n(_members(x)[:3]),
    ):
        nodes = [n for n in build_step([fetch], [x, wide], []).nodes if n.inputs]
        assert plan_of(nodes, is_constant, copies=False) is None


def test_errors_name_the_operation_that_fails(interpret):
    x = tf.placeholder(tf.int32, [3])
    parts = [tf.floordiv(x + i, x - i, name=f"part_{i}") for i in range(_COUNT)]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(tf.add_n(parts), {x: [50, 51, 7]})
    assert caught.value.op is not None
    assert caught.value.op.name == "part_7"
