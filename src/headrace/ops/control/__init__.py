"""Branches, loops, calls, tensor lists, Python functions, and checks that steps make.

Invariant: a body is a graph function, so control flow is an operation like any other: it is placed,
differentiated and compiled as a whole.

    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     n = tf.while_loop(lambda i: i < 5, lambda i: i + 2, [tf.constant(0)])
    ...     (n.op.type, int(session.run(n)))
    ('StatelessWhile', 6)
"""
