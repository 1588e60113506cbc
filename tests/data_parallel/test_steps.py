"""What steps are for, and what is left of those that one worker runs for all."""

import pytest

import headrace as tf
from headrace.data_parallel.state import SharedUpdate, state_of
from headrace.data_parallel.steps import ScriptStep
from headrace.errors import InvalidArgumentError
from headrace.step.request import PlanRequest


def step(fetches=(), targets=(), feeds=()):
    return ScriptStep(
        PlanRequest(list(fetches), list(feeds), list(targets)), state_of(tf.get_default_graph())
    )


@pytest.fixture
def model():
    """A variable, a local one, and what trains the first."""
    v, own = tf.Variable(3.0, name="v"), tf.Variable(1.0, name="own")
    state = state_of(tf.get_default_graph())
    state.local.add(own.op)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(v * v)
    state.updates.append(SharedUpdate(train))
    return v, own, train


def test_a_step_that_trains(model):
    v, _, train = model
    assert step([v.value()], [train]).updates
    assert not step([v.value()], [train]).writes
    assert not step([v.value()]).updates


def test_a_step_that_changes_variables(model):
    v, own, _ = model
    found = step(targets=[tf.global_variables_initializer()])
    assert found.written() == [v]
    left = found.without_writes()
    assert left.targets == [own.initializer]
    assert step(targets=[own.initializer]).writes == []


def test_a_value_is_read_where_another_worker_assigns_it(model):
    v, _, _ = model
    assigned = v.assign(4.0)
    assert step([assigned]).without_writes().fetches == [v._snapshot]


def test_what_comes_of_a_change_cannot_be_fetched(model):
    v, _, _ = model
    with tf.control_dependencies([v.assign(4.0).op]):
        double = v.read_value() * 2.0
    message = r"(?s)changes variables by 'Assign.*test_steps.py, line \d+.*fetch values in a step"
    with pytest.raises(InvalidArgumentError, match=message):
        step([double]).without_writes()


def test_what_is_fed_is_not_computed(model):
    v, _, _ = model
    assigned = v.assign(4.0)
    assert not step([assigned * 2.0], feeds=[assigned]).writes


def test_changes_in_branches_are_seen(model):
    v, _, _ = model
    chosen = tf.cond(tf.constant(True), lambda: v.assign(1.0), lambda: v.read_value())
    assert step([chosen]).writes
