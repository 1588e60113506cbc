"""The links of a process to others: which there are, who is alive, when one is given up.

In: links as they are made and lost, what peers say of theirs, and time. Out: the link to use for a
task. Invariant: no step waits for ever for a message that went with a link. `links` decides,
`peers` does, `liveness` asks a silent task, and `timing` has all waits of a task:

    >>> from headrace.distributed.links.timing import DEFAULT_TIMING as timing
    >>> timing.tick < timing.heartbeat < timing.silence < timing.orphan
    True
"""
