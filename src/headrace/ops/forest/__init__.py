"""Random forests and boosted trees.

They grow and predict on the host: their state is a tree, not an array.

    >>> from headrace.ops.core.registry import get_op_def
    >>> growing = get_op_def("GrowTreeEnsemble")
    >>> growing.host is not None, growing.effects.pure
    (True, False)
"""
