"""Collective operations between tasks: groups, their rings and trees, and what a loss changes.

In: what members of this task ask for, messages of the others, losses of links, time. Out: messages,
and for each operation one result or error. Invariant: an operation ends in all members with bit for
bit the same result, or it is repeated by all who are left.

`routes` says which way tensors go, `exchange` is one operation of one member, `group` its group;
these are state machines without I/O. `collectives` joins them to links and to the steps that wait.

    >>> from headrace.distributed.collective.routes import ring_route
    >>> ring_route(rank=1, size=3, root=0)  # partial sums go 1, 2, 0; results 0, 1, 2
    Route(up_from=(), up_to=2, down_to=(2,))
"""
