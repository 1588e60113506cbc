"""Cutting a placed step into one part for each task.

In: a placed step graph. Out: a `Partition`, one `Part` for each task, joined by transfers.
Invariant: a node takes only from its own task; each value crosses once to each task that needs it;
no unit of a part waits for itself through another task.

    >>> from headrace.partition.parts import cut_at_tasks
    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = tf.random_uniform([2], name="x")
    ...     step = build_step([tf.exp(x, name="y")], [], [])
    >>> for node in step.nodes:
    ...     node.device = f"/job:{'b' if node.name == 'y' else 'a'}/replica:0/task:0/device:CPU:0"
    >>> for part in cut_at_tasks(step).parts.values():
    ...     part.task, part.nodes[-1]
    ('/job:a/replica:0/task:0', <send_0 = _Send(x:0)>)
    ('/job:b/replica:0/task:0', <y = Exp(recv_0:0)>)
"""
