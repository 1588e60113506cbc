"""Connectionist temporal classification: losses, gradients and decoders."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

STEPS, BATCH, CLASSES = 12, 5, 6
LENGTHS = [12, 9, 12, 5, 7]
LABELS = [[0, 1, 1, 4], [2], [3, 3, 3], [4, 0, 4], [0, 1, 2, 2, 1]]


def _logits(seed: int = 0, scale: float = 1.0) -> np.ndarray:
    shape = (STEPS, BATCH, CLASSES)
    return (np.random.RandomState(seed).standard_normal(shape) * scale).astype(np.float32)


def _sparse(tf: Any, rows: list[list[int]] = LABELS) -> Any:
    indices = [[b, t] for b, row in enumerate(rows) for t in range(len(row))]
    values = np.array([v for row in rows for v in row], np.int32)
    shape = [len(rows), max(map(len, rows))]
    return tf.SparseTensor(np.array(indices, np.int64), values, np.array(shape, np.int64))


def _loss(tf: Any, labels: Any = None, **options: Any) -> dict[str, Any]:
    x = tf.constant(_logits(scale=2.0))
    loss = tf.nn.ctc_loss(_sparse(tf) if labels is None else labels, x, LENGTHS, **options)
    weights = tf.constant([1.0, 2.0, -1.0, 0.5, 1.5])
    return {"loss": loss, "gradient": tf.gradients(tf.reduce_sum(loss * weights), x)[0]}


@golden
def loss(tf: Any) -> dict[str, Any]:
    return _loss(tf)


@golden
def loss_without_merging(tf: Any) -> dict[str, Any]:
    return _loss(tf, ctc_merge_repeated=False)


@golden
def loss_of_collapsed_labels(tf: Any) -> dict[str, Any]:
    return _loss(tf, preprocess_collapse_repeated=True)


@golden
def loss_of_long_labels(tf: Any) -> dict[str, Any]:
    rows = [[0, 1], [2] * 10, [1, 2, 3], [0, 1, 2, 3, 0, 1], [3]]
    return _loss(tf, _sparse(tf, rows), ignore_longer_outputs_than_inputs=True)


@golden
def loss_without_a_path(tf: Any) -> dict[str, Any]:
    rows = [[0], [1, 1], [2], [3, 3, 3, 3, 3], [4]]
    return _loss(tf, _sparse(tf, rows))


@golden(rtol=1e-7)  # TensorFlow's kernel is single precision in parts
def loss_batch_major(tf: Any) -> dict[str, Any]:
    x = tf.constant(_logits(3).transpose(1, 0, 2).astype(np.float64))
    loss = tf.nn.ctc_loss(_sparse(tf), logits=x, sequence_length=LENGTHS, time_major=False)
    return {"loss": loss, "gradient": tf.gradients(loss, x)[0]}


@golden(rtol=1e-4, atol=1e-5)
def loss_of_dense_labels(tf: Any) -> dict[str, Any]:
    dense = np.zeros((BATCH, 5), np.int32)
    for row, label in zip(dense, LABELS, strict=True):
        row[: len(label)] = np.add(label, 1)
    sizes = np.int32([len(label) for label in LABELS])
    results = {}
    for name, blank, labels in (
        ("first", None, dense),
        ("inner", 2, np.where(dense == 2, 1, dense)),
    ):
        x = tf.constant(_logits(scale=2.0).transpose(1, 0, 2))
        loss = tf.nn.ctc_loss_v2(
            labels, x, sizes, LENGTHS, logits_time_major=False, blank_index=blank
        )
        results |= {f"{name}_loss": loss, f"{name}_gradient": tf.gradients(loss, x)[0]}
    return results


def _decoded(tf: Any, found: Any) -> dict[str, Any]:
    sparse, scores = found
    results = {"scores": scores}
    for i, s in enumerate(sparse):
        results |= {f"indices_{i}": s.indices, f"values_{i}": s.values, f"shape_{i}": s.dense_shape}
    return results


@golden
def greedy(tf: Any) -> dict[str, Any]:
    return _decoded(tf, tf.nn.ctc_greedy_decoder(_logits(1), LENGTHS))


@golden
def greedy_without_merging(tf: Any) -> dict[str, Any]:
    return _decoded(tf, tf.nn.ctc_greedy_decoder(_logits(1), LENGTHS, merge_repeated=False))


@golden
def beam(tf: Any) -> dict[str, Any]:
    return _decoded(tf, tf.nn.ctc_beam_search_decoder(_logits(1), LENGTHS))


@golden
def beam_of_three_paths(tf: Any) -> dict[str, Any]:
    x = _logits(2, scale=2.0)
    return _decoded(
        tf, tf.nn.ctc_beam_search_decoder(x, LENGTHS, 9, top_paths=3, merge_repeated=False)
    )


@golden
def narrow_beam(tf: Any) -> dict[str, Any]:
    return _decoded(tf, tf.nn.ctc_beam_search_decoder(_logits(4, 3.0), [12, 0, 1, 5, 7], 2))


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def training(tf: Any, session: Any) -> dict[str, Any]:
    """Ten steps of a recogniser whose labels and lengths change from step to step."""
    rng = np.random.RandomState(7)
    x = tf.placeholder(tf.float32, [None, None, 4])
    lengths = tf.placeholder(tf.int32, [None])
    labels = tf.sparse_placeholder(tf.int32)
    w = tf.get_variable("w", initializer=rng.standard_normal((4, 5)).astype(np.float32))
    b = tf.get_variable("b", initializer=tf.zeros([5]))
    logits = tf.tensordot(x, w, [[2], [0]]) + b
    logits.set_shape([None, None, 5])
    loss = tf.reduce_mean(tf.nn.ctc_loss(labels, tf.transpose(logits, [1, 0, 2]), lengths))
    train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    session.run(tf.global_variables_initializer())
    losses = []
    for _ in range(10):
        steps = rng.randint(6, 9)
        rows = [rng.randint(0, 4, rng.randint(1, 4)).tolist() for _ in range(3)]
        indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
        fed = (np.array(indices), np.concatenate(rows), np.array([3, 3]))
        feed = {
            x: rng.standard_normal((3, steps, 4)),
            lengths: rng.randint(6, steps + 1, 3),
            labels: tf.SparseTensorValue(*fed),
        }
        losses.append(session.run([loss, train], feed)[0])
    return {"losses": np.array(losses)}
