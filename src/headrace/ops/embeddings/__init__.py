"""Tables of embeddings that grow: rows by keys of 64 bits, made when a key is first seen.

What goes in: int64 keys, gradients of their rows. What comes out: rows. A table lives on the host,
beside the variables; lookups, updates and evictions of a batch are a few passes of NumPy over all
of its keys.

What holds: a key has one row, or none; a row's first value depends on the seed of the table and on
the key alone, so it does not matter when, in which batch or on which server a key is seen first.

>>> import headrace as tf
>>> table = tf.EmbeddingTable(2, initializer=tf.ones_initializer())
>>> rows = tf.nn.embedding_lookup(table, [7, -1, 7])
>>> train = tf.train.GradientDescentOptimizer(0.25).minimize(tf.reduce_sum(rows))
>>> with tf.Session() as sess:
...     sess.run(train)
...     sess.run(rows).tolist(), int(sess.run(table.size()))
([[0.5, 0.5], [0.75, 0.75], [0.5, 0.5]], 2)
"""
