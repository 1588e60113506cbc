"""Masters: a client's graph, cut into parts that run on workers.

In: the graph of a session, and requests for steps. Out: their fetches. Invariant: all steps of a
session see the same start of each task, so a variable that went with its task is an error and never
a fresh one. `machine` decides that; `site` is the cluster as the pipeline of `step` sees it.

    >>> from headrace.harness.cluster import with_cluster
    >>> with tf.Graph().as_default(), with_cluster(ps=1, worker=1) as cluster:
    ...     with tf.device("/job:ps"):
    ...         w = tf.Variable([1.0, 2.0])
    ...     with tf.device("/job:worker"):
    ...         y = tf.exp(w * 2.0)
    ...     with tf.Session(cluster.target("worker")) as session:
    ...         session.describe(y).splitlines()[3]
    'split: 2 parts, 1 transfer'
"""
