"""What a cluster is: its jobs, tasks and addresses, and how a process learns of them.

In: a dict, a ClusterDef, or the environment's ``TF_CONFIG``. Out: a ClusterSpec. Invariant: a task
has one address, and none is written twice.

    >>> cluster = tf.train.ClusterSpec({"ps": ["ps0:2222"], "worker": ["w0:2222", "w1:2222"]})
    >>> cluster.jobs, cluster.num_tasks("worker")
    (['ps', 'worker'], 2)
    >>> cluster.task_address("worker", 1)
    'w1:2222'
"""
