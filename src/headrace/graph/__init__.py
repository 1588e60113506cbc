"""The graph as plain data: operations, tensors, types, shapes, devices and their files.

In: calls of a program. Out: a `Graph` of operations, each with typed attributes, whose tensors
have inferred dtypes and static shapes. Invariant: an operation's inputs exist before it does, so
the order in which operations were made is one in which they may run; nothing is computed here.

    >>> with tf.Graph().as_default() as graph:
    ...     y = tf.add(tf.placeholder(tf.float32, [None, 2], name="x"), 1.0, name="y")
    >>> [(op.name, op.type) for op in graph.get_operations()]
    [('x', 'Placeholder'), ('y/y', 'Const'), ('y', 'Add')]
    >>> y
    <tf.Tensor 'y:0' shape=(?, 2) dtype=float32>
"""
