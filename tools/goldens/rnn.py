"""Recurrent cells, the functions that run them, and wrappers: values, gradients and names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import golden


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


class _Fixed:
    """An initialiser whose values depend on the shape alone."""

    def __init__(self, tf: Any, scale: float = 0.4) -> None:
        self.tf = tf
        self.scale = scale

    def __call__(self, shape: Any, dtype: Any = None, **_: Any) -> Any:
        dims = [int(d) for d in shape]
        values = np.random.RandomState(sum(dims) + len(dims)).standard_normal(dims)
        return self.tf.constant(values * self.scale, dtype=dtype or self.tf.float32)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _flat(item)]
    return [value]


def _report(tf: Any, outputs: Any, state: Any, prefix: str = "") -> dict[str, Any]:
    """Outputs, final state, gradients of a function of both, and the names of the variables."""
    results = {f"{prefix}output_{i}": o for i, o in enumerate(_flat(outputs))}
    results |= {f"{prefix}state_{i}": s for i, s in enumerate(_flat(state))}
    loss = tf.add_n([tf.reduce_sum(tf.sin(3 * v)) for v in results.values()])
    variables = tf.trainable_variables()
    names = [v.name for v in variables]
    for name, grad in zip(names, tf.gradients(loss, variables), strict=True):
        if grad is not None:
            results[f"{prefix}grad_{name}"] = grad
    results[f"{prefix}names"] = tf.constant(names)
    return results


def _step(tf: Any, make: Callable[[Any], Any]) -> dict[str, Any]:
    with tf.variable_scope("root", initializer=_Fixed(tf)):
        cell = make(tf.nn.rnn_cell)
        state = cell.zero_state(3, tf.float32)
        output, state = cell(tf.constant(_random(3, 4)), state)
        tf.get_variable_scope().reuse_variables()
        output, state = cell(tf.constant(_random(3, 4, seed=1)), state)
    return _report(tf, output, state)


@golden
def basic_rnn_cell(tf: Any) -> dict[str, Any]:
    return _step(tf, lambda cells: cells.BasicRNNCell(5))


@golden
def basic_rnn_cell_relu(tf: Any) -> dict[str, Any]:
    return _step(tf, lambda cells: cells.BasicRNNCell(5, activation=tf.nn.relu))


@golden
def gru_cell(tf: Any) -> dict[str, Any]:
    return _step(tf, lambda cells: cells.GRUCell(5))


@golden
def gru_cell_initializers(tf: Any) -> dict[str, Any]:
    return _step(
        tf,
        lambda cells: cells.GRUCell(
            5, kernel_initializer=_Fixed(tf, 0.2), bias_initializer=tf.zeros_initializer()
        ),
    )


@golden
def basic_lstm_cell(tf: Any) -> dict[str, Any]:
    return _step(tf, lambda cells: cells.BasicLSTMCell(5))


@golden
def basic_lstm_cell_joined(tf: Any) -> dict[str, Any]:
    return _step(
        tf, lambda cells: cells.BasicLSTMCell(5, forget_bias=0.0, state_is_tuple=False, name="mine")
    )


@golden
def lstm_cell(tf: Any) -> dict[str, Any]:
    return _step(tf, lambda cells: cells.LSTMCell(5, activation=tf.nn.softsign))


@golden
def lstm_cell_full(tf: Any) -> dict[str, Any]:
    return _step(
        tf,
        lambda cells: cells.LSTMCell(
            5,
            use_peepholes=True,
            cell_clip=0.4,
            initializer=_Fixed(tf, 0.6),
            num_proj=3,
            proj_clip=0.15,
            forget_bias=0.5,
        ),
    )


@golden
def lstm_cell_joined(tf: Any) -> dict[str, Any]:
    return _step(
        tf, lambda cells: cells.LSTMCell(5, num_proj=2, use_peepholes=True, state_is_tuple=False)
    )


@golden
def multi_rnn_cell(tf: Any) -> dict[str, Any]:
    return _step(
        tf,
        lambda cells: cells.MultiRNNCell(
            [
                cells.BasicLSTMCell(5),
                cells.ResidualWrapper(cells.GRUCell(5)),
                cells.DeviceWrapper(cells.LSTMCell(4, num_proj=2), "/cpu:0"),
                cells.DropoutWrapper(cells.BasicRNNCell(3), output_keep_prob=1.0),
            ]
        ),
    )


@golden
def multi_rnn_cell_joined(tf: Any) -> dict[str, Any]:
    return _step(
        tf,
        lambda cells: cells.MultiRNNCell(
            [cells.BasicLSTMCell(5, state_is_tuple=False), cells.GRUCell(4)], state_is_tuple=False
        ),
    )


def _over_time(tf: Any, run: Callable[[Any, Any], Any]) -> dict[str, Any]:
    with tf.variable_scope("root", initializer=_Fixed(tf)):
        outputs, state = run(tf.constant(_random(3, 6, 4)), tf.constant([2, 6, 0]))
    return _report(tf, outputs, state)


@golden(rtol=1e-4, atol=1e-5)
def dynamic(tf: Any) -> dict[str, Any]:
    cells = tf.nn.rnn_cell
    return _over_time(
        tf, lambda x, _: tf.nn.dynamic_rnn(cells.BasicLSTMCell(5), x, dtype=tf.float32)
    )


@golden(rtol=1e-4, atol=1e-5)
def dynamic_lengths(tf: Any) -> dict[str, Any]:
    cell = tf.nn.rnn_cell.MultiRNNCell(
        [tf.nn.rnn_cell.LSTMCell(5, num_proj=3), tf.nn.rnn_cell.GRUCell(4)]
    )
    return _over_time(
        tf,
        lambda x, n: tf.nn.dynamic_rnn(
            cell, x, sequence_length=n, dtype=tf.float32, swap_memory=True, scope="mine"
        ),
    )


@golden(rtol=1e-4, atol=1e-5)
def dynamic_time_major(tf: Any) -> dict[str, Any]:
    cell = tf.nn.rnn_cell.BasicRNNCell(5)
    start = tf.constant(_random(3, 5, seed=4))
    return _over_time(
        tf,
        lambda x, n: tf.nn.dynamic_rnn(
            cell, tf.transpose(x, [1, 0, 2]), n, initial_state=start, time_major=True
        ),
    )


@golden(rtol=1e-4, atol=1e-5)
def dynamic_unknown_shapes(tf: Any) -> dict[str, Any]:
    x = tf.placeholder(tf.float32, [None, None, 4])
    n = tf.placeholder(tf.int64, [None])
    feed = {x: _random(2, 5, 4), n: [3, 5]}
    with tf.variable_scope("root", initializer=_Fixed(tf)):
        outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(3), x, n, dtype=tf.float32)
    return {name: (value, feed) for name, value in _report(tf, outputs, state).items()}


@golden(rtol=1e-4, atol=1e-5)
def bidirectional(tf: Any) -> dict[str, Any]:
    cells = tf.nn.rnn_cell
    return _over_time(
        tf,
        lambda x, n: tf.nn.bidirectional_dynamic_rnn(
            cells.BasicLSTMCell(5), cells.GRUCell(4), x, sequence_length=n, dtype=tf.float32
        ),
    )


@golden(rtol=1e-4, atol=1e-5)
def static_lengths(tf: Any) -> dict[str, Any]:
    return _over_time(
        tf,
        lambda x, n: tf.nn.static_rnn(
            tf.nn.rnn_cell.BasicLSTMCell(5),
            tf.unstack(x, 6, 1),
            dtype=tf.float32,
            sequence_length=n,
        ),
    )


@golden(rtol=1e-4, atol=1e-5)
def static_bidirectional(tf: Any) -> dict[str, Any]:
    cells = tf.nn.rnn_cell

    def run(x: Any, n: Any) -> Any:
        outputs, fw, bw = tf.nn.static_bidirectional_rnn(
            cells.LSTMCell(5), cells.LSTMCell(4), tf.unstack(x, 6, 1), None, None, tf.float32, n
        )
        return outputs, (fw, bw)

    return _over_time(tf, run)


@golden(rtol=1e-4, atol=1e-5)
def raw(tf: Any) -> dict[str, Any]:
    cell = tf.nn.rnn_cell.LSTMCell(5)
    inputs = tf.constant(_random(6, 3, 4))
    lengths = tf.constant([2, 5, 4])

    def loop_fn(time: Any, output: Any, state: Any, loop_state: Any) -> Any:
        if output is None:
            next_state, loop_state = cell.zero_state(3, tf.float32), tf.constant(1.0)
        else:
            next_state, loop_state = state, loop_state * 2
        ended = time >= lengths
        value = tf.cond(
            tf.reduce_all(ended), lambda: tf.zeros([3, 4]), lambda: tf.gather(inputs, time)
        )
        return ended, value, next_state, output, loop_state

    with tf.variable_scope("root", initializer=_Fixed(tf)):
        arrays, state, loop_state = tf.nn.raw_rnn(cell, loop_fn)
    return _report(tf, arrays.stack(), state) | {"loop_state": loop_state}


@golden
def variational_dropout(tf: Any) -> dict[str, Any]:
    tf.set_random_seed(3)
    cell = tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.BasicLSTMCell(6),
        input_keep_prob=0.5,
        output_keep_prob=0.7,
        state_keep_prob=0.6,
        variational_recurrent=True,
        input_size=4,
        dtype=tf.float32,
        seed=11,
    )
    return _over_time(tf, lambda x, _: tf.nn.dynamic_rnn(cell, x, dtype=tf.float32))


@golden
def dropout_by_seed(tf: Any) -> dict[str, Any]:
    tf.set_random_seed(3)
    cell = tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.GRUCell(6), 0.5, tf.constant(0.7), 0.6, seed=11
    )
    return _over_time(
        tf, lambda x, _: tf.nn.static_rnn(cell, tf.unstack(x, 6, 1), dtype=tf.float32)
    )


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def language_model(tf: Any, session: Any) -> dict[str, Any]:
    """Ten steps of a small language model in the style of the era."""
    words, size, batch, steps = 20, 8, 4, 7
    data = np.random.RandomState(2).randint(0, words, (10, batch, steps + 1))
    ids = tf.placeholder(tf.int32, [batch, steps])
    targets = tf.placeholder(tf.int32, [batch, steps])
    with tf.variable_scope("model", initializer=_Fixed(tf, 0.2)):
        cells = [tf.nn.rnn_cell.BasicLSTMCell(size, forget_bias=0.0) for _ in range(2)]
        cell = tf.nn.rnn_cell.MultiRNNCell(cells)
        embedding = tf.get_variable("embedding", [words, size])
        inputs = tf.nn.embedding_lookup(embedding, ids)
        start = cell.zero_state(batch, tf.float32)
        outputs, final = tf.nn.dynamic_rnn(cell, inputs, initial_state=start)
        weights = tf.get_variable("softmax_w", [size, words])
        logits = tf.matmul(tf.reshape(outputs, [-1, size]), weights)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=logits, labels=tf.reshape(targets, [-1])
        )
    )
    variables = tf.trainable_variables()
    grads, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    train = optimizer.apply_gradients(zip(grads, variables, strict=True))
    session.run(tf.global_variables_initializer())
    losses, state = [], session.run(start)
    for rows in data:
        feed: dict[Any, Any] = {ids: rows[:, :-1], targets: rows[:, 1:]}
        for place, value in zip(start, state, strict=True):
            feed[place.c], feed[place.h] = value.c, value.h
        value, norm_value, state, _ = session.run([loss, norm, final, train], feed)
        losses.append([value, norm_value])
    return {"losses": np.array(losses), "state": np.array(state)}
