"""Rewrites of the pruned step graph.

In: a placed `StepGraph`, the part of a graph that one step needs. Out: the same with less to
compute. Invariant, for each pass: fetches, feeds, effects and the order that control edges ask for
are as they were; the user's graph is never touched.

    >>> from headrace.passes.ir import build_step
    >>> from headrace.passes.pipeline import optimize
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2], name="x")
    ...     step = build_step([tf.multiply(tf.exp(x, name="e"), 1.0, name="y")], [x], [])
    >>> changed = optimize(step)
    >>> step.nodes
    [<x:0 = _Feed()>, <e = Exp(x:0:0)>]
"""
