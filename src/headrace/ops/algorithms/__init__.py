"""Kernels of algorithms that are no gradient descent: clustering, mixtures, factors, dual ascent.

Each works through its rows in blocks, so that what it keeps for a row and a cluster, say, never
stands in memory for all rows at once. Invariant: a block is a loop of the same XLA program, so
that a step of training is one program, and shards of the rows on several tasks give sums that add
up to those of all rows. Public classes and functions are in `headrace.estimator.canned` and
`headrace.contrib`.

    >>> from headrace.ops.core.build import raw
    >>> points, centers = tf.constant([[0.0], [1.0], [9.0]]), tf.constant([[0.0], [8.0]])
    >>> indices, distances, moves, counts = raw.HeadraceNearestCenters(points, centers)
    >>> with tf.Session() as sess:
    ...     print(sess.run(indices), sess.run(moves).ravel(), sess.run(counts))
    [0 0 1] [1. 1.] [2 1]
"""
