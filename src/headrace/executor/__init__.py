"""Running a step: units, lowering to XLA, interpretation, resources.

In: a step graph, placed and rewritten. Out: a `LocalPlan`, the units of the step in an order that
may run: regions, which become XLA programs, and host operations between them. Invariant: a step is
interpreted or compiled to the same effect; one that fails in a process changes no variable.

    >>> import numpy as np
    >>> from headrace.step.engine import ProcessEngine
    >>> from headrace.step.request import PlanRequest
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2], name="x")
    ...     y = tf.exp(tf.negative(x, name="n"), name="y")
    ...     plan = ProcessEngine(None).plan(PlanRequest([y], [x]))
    >>> plan.describe_units().splitlines()
    ['0: region region of 2 ops to y: 1 in, 0 static, 1 out',
     '     <n = Neg(x:0:0)>', '     <y = Exp(n:0)>']
    >>> [y.tolist() for y in plan.run([np.float32([0, 0])])]
    [[1.0, 1.0]]
"""
