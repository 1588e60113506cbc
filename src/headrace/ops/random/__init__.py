"""Random operations: TensorFlow's numbers for the same seeds.

Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3): a
draw is a function of key and counter, so that parts of it can be made anywhere. Invariant: the same
seeds give the same numbers, interpreted or compiled.

    >>> with tf.Graph().as_default():
    ...     x = tf.random_uniform([3], seed=1)
    ...     with tf.Session() as one, tf.Session() as other:
    ...         one.run(x).tolist() == other.run(x).tolist()
    True
"""
