"""A step as the one who asks for it sees it: parts, who still runs, and how it ends.

In: the plan of a step, registered with its tasks, and the feeds. Out: the fetches, or one error.
Invariant: nothing of a step happens after its end, which every task that was asked has confirmed or
has been given up. `tracker` decides that and does no I/O; `steps` does it. `part_def` is a part as
a message.

    >>> from headrace.distributed.steps.tracker import StepTracker
    >>> step = StepTracker(7, ["ps", "worker"], now=0.0, on_end=lambda s: print("over:", s.error))
    >>> step.failed("worker", tf.errors.OutOfRangeError(None, None, "no more"), now=1.0)  # stop:
    ['ps']
    >>> step.done("ps", None)
    over: no more
"""
