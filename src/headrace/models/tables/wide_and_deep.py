"""Wide and deep: what was seen together is remembered, what is alike is generalised.

Cheng et al., "Wide & deep learning for recommender systems" (DLRS 2016, arXiv:1606.07792), section
3 and Figure 4: a linear model over crossed features, and three dense layers over vectors of
categories and numbers, are added and trained as one. The paper counts no parameters; theirs is the
sum of the two parts:

    wide   a weight a bucket of each cross, and a bias
    deep   32 numbers a category; dense layers of 1,024, 512 and 256 units, and one number
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as tf


def wide_and_deep(
    crosses: tf.Tensor,
    categories: tf.Tensor,
    numbers: tf.Tensor,
    buckets: int,
    sizes: Sequence[int],
    units: Sequence[int] = (1024, 512, 256),
    vector: int = 32,
    scope: str = "wide_and_deep",
) -> tf.Tensor:
    """Logits of two classes.

    Args:
        crosses: integers ``[batch, w]``: buckets of crossed features, see `crossed`.
        categories: integers ``[batch, c]``: the number of the category in each column.
        numbers: float32 ``[batch, d]``: the features that are numbers, of about mean 0 and
            variance 1.
        buckets: how many a cross has.
        sizes: how many categories each of the ``c`` columns has.
        units: of the dense layers.
        vector: numbers that stand for a category.
        scope: of the variables: those of the linear part are in its scope "wide", the others in
            "deep".

    Returns:
        float32 ``[batch]``.

    Raises:
        ValueError: if there is not one size for each column.

    >>> tf.models.wide_and_deep(
    ...     crosses=tf.placeholder(tf.int64, [8, 1]),
    ...     categories=tf.placeholder(tf.int64, [8, 2]),
    ...     numbers=tf.placeholder(tf.float32, [8, 3]),
    ...     buckets=1000,
    ...     sizes=[50, 7],
    ... ).shape.as_list()
    [8]
    """
    columns = int(categories.shape[1])
    if columns != len(sizes):
        raise ValueError(f"There are {columns} columns of categories, and {len(sizes)} sizes.")
    with tf.variable_scope(scope):
        with tf.variable_scope("wide"):
            zeros = tf.zeros_initializer()
            shape = [int(crosses.shape[1]) * buckets]
            weights = tf.get_variable("weights", shape, initializer=zeros)
            bias = tf.get_variable("bias", [], initializer=zeros)
            # Each cross has its own buckets.
            first = tf.range(int(crosses.shape[1]), dtype=crosses.dtype) * buckets
            wide = tf.reduce_sum(tf.gather(weights, crosses + first), axis=1) + bias
        with tf.variable_scope("deep"):
            x = tf.concat([*_vectors(categories, sizes, vector), numbers], axis=1)
            for number, each in enumerate(units, start=1):
                x = tf.layers.dense(x, each, tf.nn.relu, name=f"dense{number}")
            deep = tf.squeeze(tf.layers.dense(x, 1, use_bias=False, name="logit"), 1)
        return wide + deep


def crossed(categories: tf.Tensor, sizes: Sequence[int], buckets: int) -> tf.Tensor:
    """The bucket of the combination of all columns: what the wide part is fed with.

    Args:
        categories: int64 ``[batch, c]``: the columns to be crossed.
        sizes: how many categories each has.
        buckets: how many there are; combinations meet in one when there are more of them.

    Returns:
        int64 ``[batch]``.

    Raises:
        ValueError: if there is not one size for each column.
    """
    columns = int(categories.shape[1])
    if columns != len(sizes):
        raise ValueError(f"There are {columns} columns of categories, and {len(sizes)} sizes.")
    combination = tf.zeros_like(categories[:, 0])
    for column, size in enumerate(sizes):
        combination = combination * size + categories[:, column]
    return tf.string_to_hash_bucket_fast(tf.as_string(combination), buckets)


def wide_and_deep_loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The mean logistic loss.

    Args:
        logits: float32 ``[batch]``.
        labels: float32 ``[batch]``, 0 or 1.

    Returns:
        A float32 scalar.

    Raises:
        ValueError: if the shapes do not fit.
    """
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


def wide_and_deep_step(loss: tf.Tensor, scope: str = "wide_and_deep") -> Any:
    """A step of joint training (section 3.3): FTRL with L1 for the wide part, AdaGrad for the deep.

    Args:
        loss: a float32 scalar, of `wide_and_deep_loss`.
        scope: the one given to `wide_and_deep`.

    Returns:
        The operation.

    Raises:
        ValueError: if there are no variables in that scope.
    """
    trained = tf.GraphKeys.TRAINABLE_VARIABLES
    wide = tf.get_collection(trained, f"{scope}/wide/")
    deep = tf.get_collection(trained, f"{scope}/deep/")
    ftrl = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=1e-4)
    adagrad = tf.train.AdagradOptimizer(0.05)
    return tf.group(
        ftrl.minimize(loss, var_list=wide, global_step=None),
        adagrad.minimize(loss, var_list=deep),
    )


def _vectors(categories: tf.Tensor, sizes: Sequence[int], vector: int) -> list[tf.Tensor]:
    return [
        tf.nn.embedding_lookup(
            tf.get_variable(
                f"vectors{column}",
                [size, vector],
                initializer=tf.random_normal_initializer(stddev=0.1),
            ),
            categories[:, column],
        )
        for column, size in enumerate(sizes)
    ]
