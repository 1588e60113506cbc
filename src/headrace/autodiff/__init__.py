"""Gradients as graph operations.

In: tensors ys and xs of a graph. Out: for each x the derivative of the sum of the ys, as further
tensors of the same graph (2015 white paper, section 4.1). Invariant: existing operations stay as
they are; a gradient has the dtype and shape of its x.

    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.placeholder(tf.float32, [3], name="x")
    ...     (gradient,) = tf.gradients(tf.square(x, name="y"), x)
    >>> [op.name for op in graph.get_operations()][:3], gradient.shape
    (['x', 'y', 'gradients/OnesLike'], TensorShape([Dimension(3)]))
"""
