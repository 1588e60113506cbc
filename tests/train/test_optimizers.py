"""All optimisers in one table: what holds for every one of them, and where they differ.

That each step is TensorFlow's to 1e-6 is checked by tests/golden (family ``optimizers``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import raw
from headrace.settings import flags


@dataclass(frozen=True)
class Rule:
    """One optimiser. ``slots``: names of the slot variables of a variable ``v``.

    Attributes:
        steps: enough to come near the minimum of a quadratic.
        row_local: rows without a gradient stay as they are, so sparse steps are dense ones.
        minimum: whether the minimum of the loss is what it goes to (not with regularisation).
    """

    name: str
    make: Callable[[], Any]
    slots: tuple[str, ...] = ()
    steps: int = 150
    row_local: bool = False
    shared: tuple[str, ...] = ()
    kinds: tuple[str, ...] = field(default=())


def _step() -> Any:
    return tf.train.get_or_create_global_step()


def _averaged() -> Any:
    return tf.train.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.1), 0.5)


T = tf.train
RULES = [
    Rule("sgd", lambda: T.GradientDescentOptimizer(0.1), row_local=True),
    Rule("momentum", lambda: T.MomentumOptimizer(0.02, 0.9), ("v/Momentum",), kinds=("momentum",)),
    Rule(
        "nesterov",
        lambda: T.MomentumOptimizer(0.02, 0.9, use_nesterov=True),
        ("v/Momentum",),
        kinds=("momentum",),
    ),
    Rule(
        "adagrad",
        lambda: T.AdagradOptimizer(0.5),
        ("v/Adagrad",),
        row_local=True,
        kinds=("accumulator",),
    ),
    Rule(
        "adagrad_da",
        lambda: T.AdagradDAOptimizer(1.0, _step()),
        ("v/AdagradDA", "v/AdagradDA_1"),
        kinds=("gradient_accumulator", "gradient_squared_accumulator"),
    ),
    Rule(
        "adadelta",
        lambda: T.AdadeltaOptimizer(1.0, 0.9, 1e-2),
        ("v/Adadelta", "v/Adadelta_1"),
        kinds=("accum", "accum_update"),
    ),
    Rule(
        "adam",
        lambda: T.AdamOptimizer(0.1, beta2=0.99),
        ("v/Adam", "v/Adam_1"),
        shared=("beta1_power", "beta2_power"),
        kinds=("m", "v"),
    ),
    Rule(
        "rmsprop",
        lambda: T.RMSPropOptimizer(0.02, 0.9),
        ("v/RMSProp", "v/RMSProp_1"),
        steps=250,
        kinds=("momentum", "rms"),
    ),
    Rule(
        "rmsprop_centered",
        lambda: T.RMSPropOptimizer(0.02, 0.9, centered=True, epsilon=1e-2),
        ("v/RMSProp", "v/RMSProp_1", "v/RMSProp_2"),
        steps=250,
        kinds=("mg", "momentum", "rms"),
    ),
    Rule(
        "ftrl",
        lambda: T.FtrlOptimizer(1.0),
        ("v/Ftrl", "v/Ftrl_1"),
        kinds=("accum", "linear"),
    ),
    Rule("proximal_sgd", lambda: T.ProximalGradientDescentOptimizer(0.1), row_local=True),
    Rule(
        "proximal_adagrad",
        lambda: T.ProximalAdagradOptimizer(0.5),
        ("v/ProximalAdagrad",),
        row_local=True,
        kinds=("accumulator",),
    ),
    Rule("averaged", _averaged, ("v/ExponentialMovingAverage",)),
]
BY_NAME = {rule.name: rule for rule in RULES}
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)

START = np.array([[2.0, -1.0], [0.5, 3.0], [-2.0, 1.0]])
TARGET = np.array([[1.0, 1.5], [-0.5, 0.25], [0.5, -1.0]])


def minimise(rule: Rule, dtype: Any = tf.float32) -> tuple[Any, Any, Any]:
    """A variable ``v``, the loss (distance to TARGET), and a step."""
    v = tf.Variable(START, name="v", dtype=dtype)
    loss = tf.reduce_sum(tf.square(v - tf.constant(TARGET, dtype)))
    return v, loss, rule.make().minimize(loss, global_step=_step())


@every_rule
def test_converges(rule: Rule) -> None:
    v, loss, step = minimise(rule)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(rule.steps):
            session.run(step)
        assert session.run(loss) < 0.02
        np.testing.assert_allclose(session.run(v), TARGET, atol=0.1)
        assert session.run(_step()) == rule.steps


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64], ids=lambda d: d.name)
@every_rule
def test_keeps_the_type_of_the_variable(rule: Rule, dtype: Any) -> None:
    v, _, step = minimise(rule, dtype)
    slots = [s for s in tf.global_variables() if s.op.name in rule.slots]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(v)
        session.run(step)
        after, *values = session.run([v, *slots])
    assert after.dtype == dtype.as_numpy_dtype
    assert not np.array_equal(after, before)
    assert all(x.dtype == dtype.as_numpy_dtype for x in values)


@every_rule
def test_slots_have_the_names_of_tensorflow(rule: Rule) -> None:
    minimise(rule)
    names = {x.op.name for x in tf.global_variables()}
    assert names == {"v", "global_step", *rule.slots, *rule.shared}
    assert [x.op.name for x in tf.trainable_variables()] == ["v"]
    if rule.name == "averaged":
        return
    with tf.Graph().as_default():
        v = tf.Variable(START, name="v", dtype=tf.float32)
        optimizer = rule.make()
        optimizer.minimize(tf.reduce_sum(v * v))
        assert tuple(optimizer.get_slot_names()) == rule.kinds
        assert {optimizer.get_slot(v, k).op.name for k in rule.kinds} == set(rule.slots)
        assert {x.op.name for x in optimizer.variables()} == {*rule.slots, *rule.shared}
        assert optimizer.get_slot(v, "no such slot") is None


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of a few steps, of many shapes: compiling them would take most of the time."""
    monkeypatch.setattr(flags, "interpret", "always")


def run_on_rows(rule: Rule, sparse: bool, ids: list[list[int]]) -> list[np.ndarray]:
    """The variable after each step whose loss is of some rows only."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(START, name="v", dtype=tf.float32)
        where = tf.placeholder(tf.int32, [None])
        one_hot = tf.matmul(tf.one_hot(where, 3), v)
        rows = tf.nn.embedding_lookup(v, where) if sparse else one_hot
        loss = tf.reduce_sum(tf.square(rows - 0.3))
        optimizer = rule.make()
        pairs = optimizer.compute_gradients(loss, [v])
        assert isinstance(pairs[0][0], tf.IndexedSlices) == sparse
        step = optimizer.apply_gradients(pairs, global_step=_step())
        session.run(tf.global_variables_initializer())
        values = []
        for i in ids:
            session.run(step, {where: i})
            values.append(session.run(v))
        return values


@every_rule
def test_sparse_steps_are_dense_steps_when_all_rows_have_gradients(
    rule: Rule, interpreted: None
) -> None:
    # Rows repeat: their gradients are to be summed before the update, not after.
    ids = [[0, 1, 2], [2, 2, 0, 1], [1, 1, 1, 0, 2]]
    for a, b in zip(run_on_rows(rule, True, ids), run_on_rows(rule, False, ids), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "rule", [r for r in RULES if r.row_local or r.name == "adam"], ids=lambda r: r.name
)
def test_sparse_steps_are_dense_steps(rule: Rule, interpreted: None) -> None:
    ids = [[1], [1, 1, 0], [2, 0, 2]]
    for a, b in zip(run_on_rows(rule, True, ids), run_on_rows(rule, False, ids), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["momentum", "rmsprop", "rmsprop_centered", "adadelta"])
def test_rows_without_gradient_stay(name: str, interpreted: None) -> None:
    first, second = run_on_rows(BY_NAME[name], True, [[0, 1, 2], [1, 1]])
    np.testing.assert_array_equal(first[[0, 2]], second[[0, 2]])
    assert not np.array_equal(first[1], second[1])


@every_rule
def test_goes_on_identically_after_save_and_restore(
    rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "interpret", "never")  # the last bit of a result may depend on it
    v, _, step = minimise(rule)
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        path = saver.save(session, str(tmp_path / "m"), write_meta_graph=False)
        for _ in range(3):
            session.run(step)
        straight = session.run(v)
    with tf.Session() as session:
        saver.restore(session, path)
        for _ in range(3):
            session.run(step)
        np.testing.assert_array_equal(session.run(v), straight)


@every_rule
def test_interpreted_and_compiled_steps_agree(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for mode in ("never", "always"):
        monkeypatch.setattr(flags, "interpret", mode)
        results.append(run_on_rows(rule, True, [[0, 2, 0], [2, 2, 1]]))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6)


# -- the base class ------------------------------------------------------------------------------


def sgd() -> Any:
    return tf.train.GradientDescentOptimizer(1.0)


def test_partitioned_variables_are_trained_part_by_part() -> None:
    v = tf.get_variable(
        "v", initializer=np.ones((4, 2), np.float32), partitioner=tf.fixed_size_partitioner(2)
    )
    loss = tf.reduce_sum(v.as_tensor() * np.arange(8, dtype=np.float32).reshape(4, 2))
    for variables in (None, v, [v]):
        step = sgd().minimize(loss, var_list=variables)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(step)
            want = 1 - np.arange(8).reshape(4, 2)
            np.testing.assert_array_equal(session.run(v.as_tensor()), want)


@pytest.mark.parametrize("gate", [0, 1, 2])
def test_gating_gives_the_same_step(gate: int) -> None:
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    step = sgd().minimize(a * b, gate_gradients=gate)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run([a, b]) == [-1.0, 1.0]


def test_gradients_can_be_changed_between_the_two_halves() -> None:
    v = tf.Variable([3.0, 4.0])
    pairs = sgd().compute_gradients(tf.reduce_sum(v * [30.0, 40.0]))
    step = sgd().apply_gradients([(tf.clip_by_norm(g, 1.0), x) for g, x in pairs])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        np.testing.assert_allclose(session.run(v), [3 - 0.6, 4 - 0.8], rtol=1e-6)


def test_constraints_hold_after_each_step() -> None:
    v = tf.Variable([1.0, -1.0], constraint=lambda x: tf.clip_by_value(x, -2.0, 2.0))
    step = sgd().minimize(tf.reduce_sum(v * [10.0, 10.0]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(v).tolist() == [-2.0, -2.0]


def test_learning_rates_may_be_tensors_and_functions() -> None:
    v = tf.Variable(0.0)
    rate = tf.placeholder(tf.float64, [])
    fed = tf.train.GradientDescentOptimizer(rate).minimize(v * 1.0)
    called = tf.train.MomentumOptimizer(lambda: 0.5, lambda: 0.0).minimize(v * 1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(fed, {rate: 2.0})
        assert session.run(v) == -2.0
        session.run(called)
        assert session.run(v) == -2.5


def test_what_an_optimiser_refuses() -> None:
    v, unused = tf.Variable(1.0, name="v"), tf.Variable(1.0, name="unused")
    whole_number = tf.Variable(1, name="n", trainable=False)
    with pytest.raises(ValueError, match=r"No gradients provided for any variable.*unused"):
        sgd().minimize(v * 2.0, var_list=[unused])
    with pytest.raises(ValueError, match="gate_gradients must be one of"):
        sgd().minimize(v * 2.0, gate_gradients=7)
    with pytest.raises(ValueError, match="No variables provided"):
        sgd().apply_gradients([])
    with pytest.raises(ValueError, match="Invalid type"):
        sgd().minimize(tf.cast(whole_number, tf.int32))
    with pytest.raises(ValueError, match="Must specify the optimizer name"):
        tf.train.GradientDescentOptimizer(0.1, name="")
    with pytest.raises(TypeError, match="must be convertible to a Tensor"):
        sgd().apply_gradients([(object(), v)])
    with pytest.raises(TypeError, match="global_step must be a variable"):
        sgd().minimize(v * 2.0, global_step=tf.constant(0))
    with pytest.raises(ValueError, match="initial_accumulator_value must be positive"):
        tf.train.AdagradOptimizer(0.1, 0.0)
    with pytest.raises(ValueError, match=r"learning_rate_power 0\.5 needs to be negative or zero"):
        tf.train.FtrlOptimizer(0.1, 0.5)


def test_the_train_op_is_found_under_its_name() -> None:
    variable = tf.Variable([1.0, 2.0])
    step = tf.train.create_global_step()
    loss = tf.reduce_sum(variable**2)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step, name="fit")
    assert (train.name, train.type) == ("fit", "AssignAddVariableOp")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run("fit")
        assert sess.run([step, variable])[0] == 1
        np.testing.assert_array_equal(sess.run(variable), [0.0, 0.0])


def test_a_global_step_is_found_by_its_name() -> None:
    """Programs make the variable themselves and pass what get_global_step finds."""
    step = tf.Variable(0, name="global_step", trainable=False)
    assert tf.contrib.framework.get_global_step() is step
    value = tf.get_default_graph().get_tensor_by_name("global_step:0")
    for given in (tf.train.get_global_step(), value):
        weight = tf.Variable(1.0)
        train = tf.train.AdamOptimizer().minimize(weight * weight, global_step=given)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train)
            assert sess.run(step) == tf.train.global_step(sess, given) == 1


def test_no_variables() -> None:
    with pytest.raises(ValueError, match="No variables to optimize"):
        sgd().minimize(tf.constant(1.0))


def test_gradients_of_the_wrong_shape_are_refused() -> None:
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match=r"gradient has shape .*3.* variable has shape .*2"):
        sgd().apply_gradients([(tf.constant([1.0, 2.0, 3.0]), v)])
    u = tf.Variable(np.ones((2, 3)), dtype=tf.float32)
    slices = tf.IndexedSlices(tf.ones([1, 4]), tf.constant([0]), tf.constant([2, 3]))
    with pytest.raises(ValueError, match="rows"):
        tf.train.AdagradOptimizer(0.1).apply_gradients([(slices, u)])


@pytest.mark.parametrize("rule", [r for r in RULES if r.name != "averaged"], ids=lambda r: r.name)
def test_rows_outside_the_variable_are_refused(rule: Rule) -> None:
    v = tf.Variable(START, name="v", dtype=tf.float32)
    where = tf.placeholder(tf.int32, [None])
    slices = tf.IndexedSlices(tf.ones([2, 2]), where, tf.constant([3, 2]))
    step = rule.make().apply_gradients([(slices, v)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for wrong in ([0, 3], [-1, 0]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
                session.run(step, {where: wrong})
            np.testing.assert_array_equal(session.run(v), START)


def test_the_swapping_saver_writes_averages(tmp_path: Path) -> None:
    optimizer = _averaged()
    with pytest.raises(RuntimeError, match="before swapping_saver"):
        optimizer.swapping_saver()
    v = tf.Variable(1.0, name="v")
    step = optimizer.minimize(v * 1.0)
    saver = optimizer.swapping_saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        path = saver.save(session, str(tmp_path / "m"))
        value = session.run(v)
    assert value == np.float32(0.9)
    assert tf.train.load_variable(path, "v") == np.float32(0.95)
    assert tf.train.load_variable(path, "v/ExponentialMovingAverage") == value


@pytest.mark.usefixtures("interpret")
@pytest.mark.parametrize("sparse", [False, True])
def test_adagrad_v2_has_epsilon_beside_the_root(sparse: bool) -> None:
    v, accum = tf.Variable([1.0, 2.0]), tf.Variable([0.0, 3.0])
    grad = np.array([2.0, 1.0], np.float32)
    if sparse:
        step = raw.ResourceSparseApplyAdagradV2(v.handle, accum.handle, 0.5, 1.0, grad, [0, 1])
    else:
        step = raw.ResourceApplyAdagradV2(v.handle, accum.handle, 0.5, 1.0, grad)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        squares = np.array([4.0, 4.0])
        np.testing.assert_array_equal(session.run(accum), squares)
        want = np.array([1.0, 2.0]) - 0.5 * grad / (np.sqrt(squares) + 1.0)
        np.testing.assert_allclose(session.run(v), want, rtol=1e-6)


_REGULARISED = {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02}


@pytest.mark.parametrize(
    "make",
    [
        lambda: T.FtrlOptimizer(1.0, l2_shrinkage_regularization_strength=0.1, **_REGULARISED),
        lambda: T.ProximalGradientDescentOptimizer(0.1, **_REGULARISED),
        lambda: T.ProximalAdagradOptimizer(0.5, **_REGULARISED),
        lambda: T.AdagradDAOptimizer(1.0, _step(), **_REGULARISED),
    ],
    ids=["ftrl_v2", "proximal_sgd", "proximal_adagrad", "adagrad_da"],
)
def test_sparse_and_dense_steps_agree_with_regularisation(make: Any, interpreted: None) -> None:
    rule, ids = Rule("regularised", make), [[0, 1, 2], [2, 1, 1, 0]]
    for a, b in zip(run_on_rows(rule, True, ids), run_on_rows(rule, False, ids), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_slots_made_again_under_reuse_are_those_that_are_there() -> None:
    """Programs build a model twice, the second time with its variables shared."""

    def build(reuse: Any) -> Any:
        with tf.variable_scope("m", reuse=reuse):
            w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
            optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
            return optimizer, w, optimizer.minimize(tf.reduce_sum(w * w))

    first, w, step = build(None)
    second, _, again = build(True)
    third, _, _ = build(tf.AUTO_REUSE)
    slot = first.get_slot(w, "momentum")
    assert slot.name == "m/m/w/Momentum:0"
    assert second.get_slot(w, "momentum") is slot
    assert third.get_slot(w, "momentum") is slot
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        session.run(again)
        np.testing.assert_allclose(session.run(slot), 0.9 * 2 + 2 * 0.8, rtol=1e-6)


def test_slots_first_made_under_reuse_are_made() -> None:
    with tf.variable_scope("m"):
        tf.get_variable("w", [2])
    with tf.variable_scope("m", reuse=True):
        w = tf.get_variable("w", [2])
        optimizer = tf.train.AdamOptimizer()
        optimizer.minimize(tf.reduce_sum(w * w))
        other = tf.train.AdamOptimizer()
        other.minimize(tf.reduce_sum(w * w))
    assert optimizer.get_slot(w, "m").name == "m/m/w/Adam:0"
    assert other.get_slot(w, "m") is not optimizer.get_slot(w, "m")
