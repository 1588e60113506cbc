"""What is said of steps that train on workers, but not quite as the script does alone."""

import logging

import pytest

import headrace as tf
from headrace.data_parallel import notices
from headrace.data_parallel.state import state_of
from headrace.data_parallel.steps import ScriptStep
from headrace.errors import InvalidArgumentError
from headrace.step.request import PlanRequest

HERE = "test_notices.py, line "


@pytest.fixture
def warnings(caplog):
    """All that was said at WARNING so far."""
    return lambda: [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


def optimizer():
    return tf.train.GradientDescentOptimizer(0.1)


def mean():
    return tf.reduce_mean(tf.Variable(2.0) * tf.placeholder(tf.float32, [None]))


def by_value(pairs):
    return [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in pairs]


def by_norm(pairs):
    return [(tf.clip_by_norm(g, 1.0), v) for g, v in pairs]


def by_global_norm(pairs):
    grads, variables = zip(*pairs, strict=True)
    return list(zip(tf.clip_by_global_norm(grads, 1.0)[0], variables, strict=True))


@pytest.mark.parametrize("clip", [by_value, by_norm, by_global_norm])
def test_clipped_gradients(second_in_step, warnings, clip):
    optimizer().apply_gradients(clip(optimizer().compute_gradients(mean())))
    (said,) = warnings()
    assert said.startswith(f"Gradients are clipped by '{clip.__name__.replace('by', 'clip_by', 1)}")
    assert "each worker clips those of its own rows, not those of the whole batch." in said
    assert HERE in said


def test_clipped_gradients_of_rows(second, warnings):
    table = tf.Variable(tf.ones([4, 2]))
    looked_up = tf.nn.embedding_lookup(table, tf.placeholder(tf.int32, [None]))
    pairs = optimizer().compute_gradients(tf.reduce_mean(looked_up))
    optimizer().apply_gradients(by_value(pairs))
    assert len(warnings()) == 1


def test_gradients_that_are_scaled_and_limits_in_the_model_are_none(second_in_step, warnings):
    x = tf.placeholder(tf.float32, [None])
    limited = tf.clip_by_value(tf.Variable(2.0) * x, 0.0, 1.0)
    pairs = optimizer().compute_gradients(tf.reduce_mean(limited))
    optimizer().apply_gradients([(0.5 * g, v) for g, v in pairs])
    assert warnings() == []


def images():
    return tf.Variable(1.0) * tf.placeholder(tf.float32, [None, 4, 4, 2])


NORMALISED = {
    "rows": lambda: tf.layers.batch_normalization(tf.layers.flatten(images()), training=True),
    "fused": lambda: tf.layers.batch_normalization(images(), training=True),
    "by a placeholder": lambda: tf.layers.batch_normalization(
        images(), training=tf.placeholder(tf.bool, [])
    ),
}


@pytest.mark.parametrize("make", NORMALISED.values(), ids=NORMALISED)
@pytest.mark.parametrize("worker", ["second", "second_in_step"])
def test_batch_normalisation(request, warnings, worker, make):
    request.getfixturevalue(worker)
    optimizer().minimize(tf.reduce_mean(make()))
    (said,) = warnings()
    assert "gives each row what depends on all rows, as batch normalisation does: each" in said
    assert HERE in said


def test_a_branch_that_gets_what_depends_on_all_rows(second, warnings):
    x = tf.placeholder(tf.float32, [None]) * tf.Variable(2.0)
    optimizer().minimize(tf.reduce_mean(tf.cond(tf.reduce_mean(x) > 3, lambda: -x, lambda: x)))
    (said,) = warnings()
    assert "gives a row of the batch what depends on other rows is not known" in said
    assert HERE in said


def test_not_if_it_has_its_moving_averages(second, warnings):
    optimizer().minimize(tf.reduce_mean(tf.layers.batch_normalization(images(), training=False)))
    assert warnings() == []


def test_a_loss_that_is_neither_sum_nor_mean(second_in_step, warnings):
    optimizer().minimize(tf.sqrt(mean()))
    (said,) = warnings()
    assert "is neither a sum nor a mean over examples, as far as 'Sqrt" in said
    assert "workers train with the average of their own losses." in said
    assert said.count(HERE) == 2


def test_sums_and_means_are_no_matter(second_in_step, warnings):
    optimizer().minimize(mean())
    optimizer().minimize(tf.reduce_sum(tf.Variable(2.0) * tf.placeholder(tf.float32, [None])))
    assert warnings() == []


def test_asynchronous_workers_average_nothing(second, warnings):
    optimizer().minimize(tf.sqrt(mean()))
    assert warnings() == []


def say(train, feeds=()):
    state = state_of(tf.get_default_graph())
    notices.of_step(ScriptStep(PlanRequest([], list(feeds), [train]), state), state)


def test_a_queue_that_feeds_a_step(second_in_step, warnings):
    rows = tf.train.batch([tf.random_uniform([2])], batch_size=3)
    train = optimizer().minimize(tf.reduce_mean(tf.Variable(2.0) * rows))
    say(train)
    say(train)
    (said,) = warnings()
    assert "reads from a queue by 'batch" in said
    assert "each worker reads all of the queue's input" in said
    assert said.count(HERE) == 2


def test_the_queue_by_which_workers_wait_is_none(second_in_step, warnings):
    say(optimizer().minimize(mean()))
    assert warnings() == []


def test_a_batch_that_may_be_in_the_second_dimension(second, warnings):
    words = tf.placeholder(tf.float32, [None, None, 8], name="words")
    rows = tf.placeholder(tf.float32, [None, 8])
    loss = tf.reduce_mean(tf.Variable(2.0) * words) + tf.reduce_mean(rows)
    say(optimizer().minimize(loss), [words, rows])
    (said,) = warnings()
    assert said.startswith("'words' (")
    assert "If its batch is the second dimension, as in [time, batch], feed it with the" in said
    assert HERE in said


def test_a_session_says_so_and_refuses_before_the_first_step(second, warnings):
    words = tf.placeholder(tf.float32, [None, None], name="words")
    sparse = tf.sparse_placeholder(tf.float32, name="sparse")
    loss = tf.reduce_mean(tf.Variable(2.0) * words) + tf.reduce_mean(sparse.values)
    train = optimizer().minimize(loss)
    empty = tf.SparseTensorValue([[0]], [1.0], [1])
    with tf.Session() as sess, pytest.raises(InvalidArgumentError, match="is fed a SparseTensor"):
        sess.run(train, {words: [[1.0], [2.0]], sparse: empty})
    assert warnings()[0].startswith("'words' (")


def test_gradients_made_by_hand(second_in_step, warnings):
    x, v = tf.placeholder(tf.float32, [None]), tf.Variable(2.0)
    optimizer().apply_gradients([(tf.reduce_mean(x * v), v)])
    assert warnings() == []
    optimizer().apply_gradients([(tf.reduce_sum(x * v), v)])
    (said,) = warnings()
    assert "The gradient 'Sum" in said
    assert "is not made by tf.gradients and is no mean over examples: workers train with" in said
    assert HERE in said
