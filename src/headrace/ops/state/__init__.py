"""Variables: their operations, scopes, initial values, and updates by optimisers.

Invariant: the graph has a handle, which names the state; the value is the session's.

    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     v = tf.Variable(1, name="v")
    ...     session.run(v.initializer)
    ...     (v.handle.dtype, int(session.run(tf.assign_add(v, 2))), int(session.run(v)))
    (tf.resource, 3, 3)
"""
