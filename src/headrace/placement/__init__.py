"""Where each operation runs.

In: the nodes of a step and the devices that there are. Out: ``node.device``, the full name of one
of them, for every node. Invariant: every constraint of the program holds (under soft placement, as
far as there are such devices), nodes that share a resource share its device, and state stays where
an earlier step of the session has put it.

    >>> from headrace.passes.ir import build_step
    >>> from headrace.placement.devices import DeviceAttributes
    >>> from headrace.placement.placer import place
    >>> a, b = (f"/job:{job}/replica:0/task:0/device:CPU:0" for job in "ab")
    >>> with tf.Graph().as_default(), tf.device("/job:b"):
    ...     step = build_step([tf.exp(tf.constant(1.0), name="y")], [], [])
    >>> place(step.nodes, [DeviceAttributes(d, "CPU") for d in (a, b)], default_device=a)
    {}
    >>> step.fetches[0][0].device
    '/job:b/replica:0/task:0/device:CPU:0'
"""
