"""Arithmetic, reductions, segments, linear algebra, Fourier transforms, quantisation.

>>> with tf.Graph().as_default(), tf.Session() as session:
...     session.run(tf.reduce_sum(tf.constant([[1, 2], [3, 4]]), 0)).tolist()
[4, 6]
"""
