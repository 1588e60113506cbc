"""Graphs in files: reading TensorFlow's GraphDefs, old control flow in them, and writing.

In: a GraphDef, of this library or of TensorFlow. Out: operations of a `Graph`, or the message of
one. Invariant: what is written and read again computes the same; loops and branches that a file
writes as Switch, Merge and Enter become functional ones.

    >>> with tf.Graph().as_default() as graph:
    ...     _ = tf.square(tf.constant(3.0, name="x"), name="y")
    >>> message = graph.as_graph_def()
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     (y,) = tf.import_graph_def(message, return_elements=["y:0"])
    ...     float(session.run(y))
    9.0
"""
