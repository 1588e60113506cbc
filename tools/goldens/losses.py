"""`tf.losses`: values, gradients, reductions, weights, collections; and `tf.make_template`."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldens import golden

Outputs = dict[str, Any]

_RNG = np.random.RandomState(4)
LABELS = _RNG.rand(4, 3).astype(np.float32)
PREDICTIONS = _RNG.rand(4, 3).astype(np.float32)
LOGITS = _RNG.standard_normal((4, 3)).astype(np.float32) * 3
CLASSES = np.array([0, 2, 1, 2])
WEIGHTS = np.array([[0.5], [0.0], [2.0], [1.0]], np.float32)
REDUCTIONS = (
    "NONE",
    "SUM",
    "MEAN",
    "SUM_OVER_BATCH_SIZE",
    "SUM_BY_NONZERO_WEIGHTS",
    "SUM_OVER_NONZERO_WEIGHTS",
)
SAME_SHAPE = (
    "absolute_difference",
    "mean_squared_error",
    "huber_loss",
    "hinge_loss",
    "log_loss",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "mean_pairwise_squared_error",
)


@golden(needs=("losses",))
def values_and_gradients(tf: Any) -> Outputs:
    outputs: Outputs = {}
    for name in SAME_SHAPE:
        function = getattr(tf.losses, name)
        for case, weights in {"": 1.0, "_weighted": WEIGHTS, "_zero": 0.0}.items():
            if name == "softmax_cross_entropy" and case == "_weighted":
                weights = WEIGHTS[:, 0]
            x = tf.constant(LOGITS if "entropy" in name or "hinge" in name else PREDICTIONS)
            loss = function(tf.constant(LABELS), x, weights)
            outputs[name + case] = loss
            outputs[f"d_{name}{case}"] = tf.gradients(loss, x)[0]
    return outputs


@golden(needs=("losses",))
def reductions(tf: Any) -> Outputs:
    outputs: Outputs = {}
    for name in REDUCTIONS:
        kind = getattr(tf.losses.Reduction, name)
        for case, weights in {"": 1.0, "_weighted": WEIGHTS}.items():
            outputs[name + case] = tf.losses.mean_squared_error(
                LABELS, PREDICTIONS, weights, reduction=kind
            )
    outputs["all"] = tf.constant(sorted(tf.losses.Reduction.all()))
    return outputs


@golden(needs=("losses",))
def classes(tf: Any) -> Outputs:
    entropy = tf.losses.sparse_softmax_cross_entropy
    unknown = tf.placeholder(tf.int64, None)
    logits = tf.placeholder(tf.float32, [None, 3])
    feed = {unknown: CLASSES, logits: LOGITS}
    x = tf.constant(LOGITS)
    loss = entropy(CLASSES, x)
    return {
        "plain": loss,
        "gradient": tf.gradients(loss, x)[0],
        "column": entropy(CLASSES[:, np.newaxis], LOGITS),
        "weighted": entropy(CLASSES, LOGITS, WEIGHTS),
        "unknown": (entropy(unknown, logits), feed),
        "smoothed": tf.losses.softmax_cross_entropy(np.eye(3)[CLASSES], LOGITS, 2.0, 0.1),
        "sigmoid_smoothed": tf.losses.sigmoid_cross_entropy(LABELS, LOGITS, WEIGHTS, 0.2),
        "cosine": tf.losses.cosine_distance(LABELS, PREDICTIONS, axis=1, weights=WEIGHTS),
        "cosine_old": tf.losses.cosine_distance(LABELS, PREDICTIONS, dim=0),
        "huber": tf.losses.huber_loss(LABELS * 4, PREDICTIONS, delta=0.7),
        "double": tf.losses.compute_weighted_loss(PREDICTIONS.astype(np.float64), WEIGHTS),
    }


@golden(needs=("losses",))
def collections(tf: Any) -> Outputs:
    with tf.variable_scope("a"):
        tf.losses.mean_squared_error(LABELS, PREDICTIONS)
    tf.losses.log_loss(LABELS, PREDICTIONS)
    tf.losses.hinge_loss(LABELS, LOGITS, loss_collection=None)
    tf.losses.absolute_difference(LABELS, PREDICTIONS, loss_collection="mine")
    none = tf.losses.get_regularization_loss()
    tf.get_variable("w", initializer=LABELS, regularizer=tf.nn.l2_loss)
    return {
        "names": tf.constant([loss.op.name for loss in tf.losses.get_losses()]),
        "in_scope": tf.constant(len(tf.losses.get_losses("a"))),
        "mine": tf.add_n(tf.losses.get_losses(loss_collection="mine")),
        "none": none,
        "regularization": tf.losses.get_regularization_loss(),
        "total": tf.losses.get_total_loss(),
        "without": tf.losses.get_total_loss(add_regularization_losses=False),
    }


@golden(needs=("make_template",))
def templates(tf: Any) -> Outputs:
    def line(x: Any, power: int) -> Any:
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(3.0))
        return w * x**power

    later = tf.make_template("line", line, power=2)
    a, b = later(tf.constant(2.0)), later(tf.constant(3.0))
    with tf.variable_scope("outer"):
        now = tf.make_template("line", line, create_scope_now_=True, power=1)
        again = tf.make_template("line", line, power=1)
    with tf.variable_scope("other"):
        c, d = now(tf.constant(5.0)), again(tf.constant(7.0))
    return {
        "values": tf.stack([a, b, c, d]),
        "names": tf.constant([v.name for v in tf.global_variables()]),
        "ops": tf.constant([t.name for t in (a, b, c, d)]),
        "own": tf.constant([v.name for v in later.trainable_variables]),
    }
