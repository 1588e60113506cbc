"""The pipeline of a step: from fetches and feeds of a graph to a plan that runs them.

What goes in is a `request.PlanRequest` and a `site.Site` (this process, or a master's cluster); out
comes the plan of that site. After every stage the step still has the fetches, feeds and effects
that were asked for. `pipeline.make_plan` is all of it, in five calls; `engine.ProcessEngine` holds
the plans' state in one process.

    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.placeholder(tf.float32, [2], name="x")
    ...     text = session.describe(tf.exp(x) + tf.exp(x), [x])
    >>> text.splitlines()[:5]
    ['prune: 4 nodes', 'place: 1 device of 1',
     'rewrite: 3 nodes left; merge common subexpressions: 1',
     'split: 1 part, 0 transfers', 'lower: 1 part']
"""
