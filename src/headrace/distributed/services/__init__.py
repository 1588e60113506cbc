"""Processes of a cluster: the server, its control plane, and the clients that talk to it.

In: a ClusterSpec and which of its tasks this process is. Out: a server, whose target sessions use.
Invariant: calls of the control plane (gRPC) set up, ask and end; what a step costs goes over links.

    >>> server = tf.train.Server.create_local_server()
    >>> with tf.Graph().as_default(), tf.Session(server.target) as session:
    ...     float(session.run(tf.constant(2.0) * 3.0))
    6.0
    >>> server.stop()
"""
