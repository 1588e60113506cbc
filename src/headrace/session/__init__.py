"""Sessions: feeds, fetches, plans and traces.

In: what ``Session.run`` is given: nested fetches, a dictionary of feeds. Out: values in the
structure of the fetches. Invariant: what is planned once for a kind of step, that is for what is
fetched and fed, is kept for the next.

    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.placeholder(tf.float32, [], name="x")
    ...     found = session.run({"twice": 2 * x, "both": [x, -x]}, {x: 3.0})
    >>> float(found["twice"]), [float(v) for v in found["both"]]
    (6.0, [3.0, -3.0])
"""
