"""The distributed runtime: servers, masters, workers and what carries tensors between them.

In: a partition of a step. Out: its parts, run by the workers of their tasks, and the values of its
fetches. Invariant: a step ends once for who asked, with its values or with one error. What decides
(`worker.machine`, `master.machine`, `links`, `tracker`) does no I/O.

    >>> from headrace.harness.cluster import with_cluster
    >>> with tf.Graph().as_default(), with_cluster(ps=1, worker=1) as cluster:
    ...     with tf.device("/job:ps"):
    ...         w = tf.constant(2.0) * 3.0
    ...     with tf.Session(cluster.target("worker")) as session:
    ...         float(session.run(w))
    6.0
"""

import os

# Before gRPC is imported: by default it writes a line to stderr for each connection whose TLS
# fails, and anybody can make connections.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
