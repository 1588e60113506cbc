"""Which rows of what is fed are a worker's, and what cannot be shared out."""

import logging

import numpy as np
import pytest

import headrace as tf
from headrace.data_parallel.batches import BatchShares
from headrace.data_parallel.state import state_of
from headrace.data_parallel.steps import ScriptStep
from headrace.errors import InvalidArgumentError
from headrace.step.request import PlanRequest

HERE = r"\(.*test_parallel_batches\.py, line \d+\)"


def step_of(train, feeds):
    """A step that runs an operation."""
    return ScriptStep(PlanRequest([], list(feeds), [train]), state_of(tf.get_default_graph()))


def shares(job, loss, feeds):
    """The shares of a step that trains with a loss."""
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return BatchShares(job, step_of(train, feeds))


def model(*shapes):
    """Placeholders, and the mean of what is computed of all."""
    fed = [tf.placeholder(tf.float32, shape, name=f"x{i}") for i, shape in enumerate(shapes)]
    w = tf.Variable(2.0)
    return fed, tf.add_n([tf.reduce_mean(w * x) for x in fed])


def test_rows_are_dealt_out(second_in_step):
    (x, rate), loss = model([None, 2], [3])
    made = shares(second_in_step, loss, [x, rate])
    (rows, same), weights = made.own([np.arange(10).reshape(5, 2), [7.0, 8.0, 9.0]])
    assert rows.tolist() == [[2, 3], [6, 7]]
    assert same == [7.0, 8.0, 9.0]
    assert weights == [np.float32(0.8)]
    assert len(made.weights) == 1


def test_shares_of_one_size_have_no_weights(second_in_step):
    (x,), loss = model([None])
    assert shares(second_in_step, loss, [x]).own([[1.0, 2.0]]) == ([[2.0]], [])


def by_hand(reduce):
    """A step by `tf.gradients` and `apply_gradients`, whose gradients are clipped between."""
    x, w = tf.placeholder(tf.float32, [None]), tf.Variable(2.0)
    # A gradient within the loss is not one of the update.
    slope = tf.gradients(w * x * x, x)[0]
    grads, _ = tf.clip_by_global_norm(tf.gradients(reduce(slope), [w]), 5.0)
    train = tf.train.GradientDescentOptimizer(0.1).apply_gradients([(grads[0], w)])
    return x, train, grads[0]


@pytest.mark.parametrize(("reduce", "weight"), [(tf.reduce_mean, 0.8), (tf.reduce_sum, 2.0)])
def test_gradients_that_a_script_makes_itself_are_weighted(second_in_step, reduce, weight):
    x, train, _ = by_hand(reduce)
    made = BatchShares(second_in_step, step_of(train, [x]))
    assert made.own([[1.0] * 5])[1] == [np.float32(weight)]


def test_a_sum_is_weighted_where_shares_are_alike_and_from_a_dataset(second_in_step):
    rows = tf.data.Dataset.range(8).batch(4).make_one_shot_iterator().get_next()
    loss = tf.reduce_sum(tf.to_float(rows) * tf.Variable(2.0))
    assert shares(second_in_step, loss, []).own([]) == ([], [np.float32(2.0)])


def test_what_has_no_known_shape_is_a_batch_unless_it_is_a_scalar(second):
    (x, rate), loss = model(None, None)
    values, _ = shares(second, loss, [x, rate]).own([[1.0, 2.0], 3.0])
    assert values == [[2.0], 3.0]


@pytest.mark.parametrize("worker", ["second", "second_in_step"])
def test_a_batch_of_a_fixed_size_is_refused(request, worker):
    job = request.getfixturevalue(worker)
    (x,), loss = model([100, 784])
    message = (
        rf"'x0' {HERE} is fed a batch of the fixed shape \[100, 784\], which workers cannot share "
        rf"in the training step '.*' {HERE}\. Make its first dimension None\."
    )
    with pytest.raises(InvalidArgumentError, match=message):
        shares(job, loss, [x])


@pytest.mark.parametrize("noise", ["dropout", "random_normal", "py_func"])
def test_noise_is_no_source_of_examples(second, noise):
    (x,), _ = model([8, 2])
    noises = {
        "dropout": lambda: tf.nn.dropout(x, 0.5),
        "random_normal": lambda: x + tf.random_normal([8, 2]),
        "py_func": lambda: tf.reshape(tf.py_func(np.negative, [x], tf.float32), [8, 2]),
    }
    loss = tf.reduce_mean(tf.Variable(2.0) * noises[noise]())
    with pytest.raises(InvalidArgumentError, match=r"is fed a batch of the fixed shape \[8, 2\]"):
        shares(second, loss, [x])


def test_a_fixed_shape_beside_a_dataset_is_no_batch(second):
    rate = tf.placeholder(tf.float32, [2])
    rows = tf.data.Dataset.range(8).batch(4).make_one_shot_iterator().get_next()
    loss = tf.reduce_mean(tf.Variable(2.0) * tf.to_float(rows)) * rate[0]
    assert shares(second, loss, [rate]).own([[1.0, 2.0]]) == ([[1.0, 2.0]], [])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: tf.random_normal([8]),
        lambda: tf.reshape(tf.py_func(lambda: np.ones(8, np.float32), [], tf.float32), [8]),
    ],
)
def test_drawn_examples_are_other_ones_in_each_worker(second, caplog, draw):
    shares(second, tf.reduce_mean(tf.Variable(2.0) * draw()), [])
    assert not [r for r in caplog.records if r.levelno == logging.WARNING]


def test_batches_of_different_sizes_are_refused(second):
    (x, y), loss = model([None], [None])
    message = (
        r"must be the batch, so that each worker can take its rows\. These have different numbers "
        rf"of rows: 'x0' {HERE} 4, 'x1' {HERE} 3\. Give a placeholder that is no batch a fixed "
        r"first dimension\."
    )
    with pytest.raises(InvalidArgumentError, match=message):
        shares(second, loss, [x, y]).own([[1.0] * 4, [1.0] * 3])


def test_fewer_rows_than_workers_are_refused(second):
    (x,), loss = model([None])
    message = (
        rf"'x0' {HERE} is fed 1 rows, which 2 workers cannot share: each needs one at least\. "
        r"Feed larger batches, or launch fewer workers\."
    )
    with pytest.raises(InvalidArgumentError, match=message):
        shares(second, loss, [x]).own([[1.0]])


@pytest.mark.parametrize("name", [None, "x"])
def test_a_sparse_tensor_is_refused(second, name):
    x = tf.sparse_placeholder(tf.float32, name=name)
    loss = tf.reduce_mean(tf.sparse_tensor_dense_matmul(x, tf.Variable([[1.0]])))
    message = (
        rf"'(x/indices|Placeholder\w*)' {HERE} is fed a SparseTensor, whose rows cannot "
        r"be shared out to workers\. Read sparse examples with a tf\.data\.Dataset\."
    )
    with pytest.raises(InvalidArgumentError, match=message):
        shares(second, loss, [x.indices, x.values, x.dense_shape])


@pytest.mark.parametrize("worker", ["second", "second_in_step"])
def test_a_step_without_input_is_said_to_be_the_same_in_all(request, worker, caplog):
    shares(request.getfixturevalue(worker), tf.square(tf.Variable(1.0)), [])
    (said,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "has no input that workers can share, neither a batch that is fed nor a dataset" in said
    assert "test_parallel_batches.py, line" in said
