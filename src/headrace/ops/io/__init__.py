"""Operations on what lives on the host: queues, readers, tables, files, summaries.

Invariant: these run between XLA programs; one that waits (for an element of a queue) holds no lock.

    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     queue = tf.FIFOQueue(2, [tf.int32], [[]])
    ...     session.run(queue.enqueue(5))
    ...     (int(session.run(queue.size())), int(session.run(queue.dequeue())))
    (1, 5)
"""
