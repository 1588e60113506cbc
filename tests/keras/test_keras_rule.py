"""An optimiser of Keras in a graph does to variables what it does in Keras."""

import sys
from types import ModuleType

import numpy as np
import pytest

import headrace as tf
from headrace.keras import loading
from headrace.keras.graph_optimizer import GradientNotes, KerasRule
from headrace.keras.loading import load_keras

keras = load_keras()

RULES = {
    "sgd": lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: tf.keras.optimizers.Adam(0.01),
    "decay": lambda: tf.keras.optimizers.AdamW(0.01, weight_decay=0.1),
    "adagrad": lambda: tf.keras.optimizers.Adagrad(0.1),
    "clipped": lambda: tf.keras.optimizers.RMSprop(0.1, clipnorm=0.5),
    "clipped by all": lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.5),
    "hardly clipped by all": lambda: tf.keras.optimizers.Adam(0.1, global_clipnorm=100.0),
    "accumulated": lambda: tf.keras.optimizers.Adam(0.1, gradient_accumulation_steps=2),
    "accumulated, then clipped by all": lambda: tf.keras.optimizers.SGD(
        0.1, gradient_accumulation_steps=3, global_clipnorm=0.5, loss_scale_factor=8.0
    ),
}


@pytest.mark.parametrize("make", RULES.values(), ids=RULES)
def test_updates_are_those_of_keras(make):
    random = np.random.RandomState(0)
    start = [random.randn(3, 2).astype("f"), random.randn(2).astype("f")]
    theirs = [keras.Variable(value, name=f"w{i}") for i, value in enumerate(start)]
    optimizer = make()
    optimizer.build(theirs)
    ours = [tf.Variable(value) for value in start]
    notes = tf.Variable(np.zeros(1))
    given = [tf.placeholder(v.dtype, v.shape) for v in (*ours, notes)]
    rule = KerasRule(optimizer, dict(zip(ours, theirs, strict=True)), notes, GradientNotes(0, 0, 1))
    train = rule.apply_gradients(list(zip(given, [*ours, notes], strict=True)))
    begins = {v.path: v for v in optimizer.variables}
    begin = [s.assign(np.asarray(begins[p].value)) for v in ours for p, s in rule.slots_of(v)]
    rate = float(optimizer.learning_rate)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(begin)
        for _ in range(7):
            grads = [random.randn(*v.shape).astype("f") for v in start]
            optimizer.apply([keras.ops.array(g) for g in grads], theirs)
            session.run(train, dict(zip(given, [*grads, [rate]], strict=True)))
        for found, expected in zip(session.run(ours), theirs, strict=True):
            np.testing.assert_allclose(found, np.asarray(expected.value), rtol=1e-5, atol=1e-6)


def test_notes_add_up_what_is_counted_and_average_what_moves():
    layout = GradientNotes(2, 1, copies=3)
    assert layout.size == 4
    found = layout.next(np.array([9.0, 10.0, 20.0, 5.0]), np.array([0.1, 1.0, 2.0, 0.5]))
    assert found.tolist() == [0.1, 13.0, 26.0, 5.5]


def test_updates_with_scaled_losses_are_those_of_keras():
    """The third gradient is infinite for one variable: nothing changes but the scale."""
    random = np.random.RandomState(0)
    start = [random.randn(3, 2).astype("f"), random.randn(2).astype("f")]
    theirs = [keras.Variable(value, name=f"w{i}") for i, value in enumerate(start)]
    inner = tf.keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.5)
    optimizer = tf.keras.optimizers.LossScaleOptimizer(inner, 64.0, dynamic_growth_steps=2)
    optimizer.build(theirs)
    ours = [tf.Variable(value) for value in start]
    notes = tf.Variable(np.zeros(1))
    given = [tf.placeholder(v.dtype, v.shape) for v in (*ours, notes)]
    rule = KerasRule(optimizer, dict(zip(ours, theirs, strict=True)), notes, GradientNotes(0, 0, 1))
    train = rule.apply_gradients(list(zip(given, [*ours, notes], strict=True)))
    begins = {v.path: v for v in optimizer.variables}
    slots = [pair for v in (*ours, notes) for pair in rule.slots_of(v)]
    counter, scale = (slot for _, slot in rule.slots_of(notes))
    seen = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([slot.assign(np.asarray(begins[path].value)) for path, slot in slots])
        for step in range(6):
            grads = [random.randn(*v.shape).astype("f") for v in start]
            grads[1][0] = np.inf if step == 2 else grads[1][0]
            states = [v.value for v in optimizer.variables]
            values = [v.value for v in theirs]
            scaled = [g * optimizer.dynamic_scale.value for g in grads]
            values, states = optimizer.stateless_apply(states, scaled, values)
            for variable, value in zip(
                [*theirs, *optimizer.variables], [*values, *states], strict=True
            ):
                variable.assign(value)
            session.run(train, dict(zip(given, [*grads, [0.1]], strict=True)))
            now = session.run([counter, scale])
            assert now == [int(optimizer.step_counter.value), float(optimizer.dynamic_scale.value)]
            seen.append(float(now[1]))
            for found, expected in zip(session.run(ours), theirs, strict=True):
                np.testing.assert_allclose(found, np.asarray(expected.value), rtol=1e-5, atol=1e-6)
    assert seen == [64.0, 128.0, 64.0, 64.0, 128.0, 128.0]


def test_a_program_that_has_the_name_of_keras_is_told_so(monkeypatch):
    program = ModuleType("keras")
    program.__file__ = "/home/me/keras.py"
    monkeypatch.setitem(sys.modules, "keras", program)
    monkeypatch.setattr(loading, "_loaded", {})
    with pytest.raises(ImportError, match=r"needs Keras 3, but /home/me/keras\.py hides it"):
        load_keras()
