"""What a fetched variable gives: its value when the step has changed it."""

from __future__ import annotations

import pytest

import headrace as tf
from headrace.harness.cluster import with_cluster


@pytest.fixture(params=["process", "cluster"])
def session(request):
    if request.param == "process":
        with tf.Session() as sess:
            yield sess
    else:
        with with_cluster(ps=1, worker=1) as cluster, tf.Session(cluster.target("worker")) as sess:
            yield sess


def variable(**options):
    return tf.Variable(1.0, name="v", **options)


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_gives_the_value_after_the_step_and_a_read_that_before(session, use_resource):
    v = variable(use_resource=use_resource)
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.25).minimize(v * v, step)
    session.run(tf.global_variables_initializer())
    fetches = [train, v, "v:0", v.value(), "v/read:0", step, {"twice": 2 * v}]
    assert session.run(fetches) == [None, 0.5, 0.5, 1.0, 1.0, 1, {"twice": 2.0}]
    assert session.run(fetches) == [None, 0.25, 0.25, 0.5, 0.5, 2, {"twice": 1.0}]
    assert session.run([v, step]) == [0.25, 2]


def test_what_bodies_change_counts(session):
    v = variable()

    def body(i):
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 3, body, [0])
    branch = tf.cond(tf.placeholder_with_default(True, []), lambda: v.assign(9.0), lambda: 0.0)
    session.run(v.initializer)
    assert session.run([loop, v]) == [3, 4.0]
    assert session.run([v, branch]) == [9.0, 9.0]


def test_it_waits_for_nothing_when_nothing_changes_it(session):
    v, other = variable(), tf.Variable(0.0)
    session.run(tf.global_variables_initializer())
    assert session.run([other.assign_add(1.0), v, other]) == [1.0, 1.0, 1.0]


def test_a_fed_variable_gives_what_was_fed(session):
    v = variable()
    session.run(v.initializer)
    assert session.run([v.assign_add(1.0), v], {v: 7.0})[1] == 7.0
    assert session.run(v) == 2.0


def test_a_callable_fetches_it_too(session):
    v = variable()
    session.run(v.initializer)
    step = session.make_callable([v.assign_add(1.0).op, v])
    assert [step()[1] for _ in range(3)] == [2.0, 3.0, 4.0]


def test_a_string_variable():
    v = tf.Variable("old")
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([v.assign("new").op, v, v.value()]) == [None, b"new", b"old"]


def test_the_variable_of_another_task():
    with with_cluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps"):
            v = variable()
        with tf.device("/job:worker"):
            step = v.assign_sub(tf.reduce_sum(v * 0.5))
        with tf.Session(cluster.target("worker")) as sess:
            sess.run(v.initializer)
            assert [sess.run([step.op, v])[1] for _ in range(2)] == [0.5, 0.25]
