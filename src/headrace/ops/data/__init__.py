"""Datasets: descriptions of sequences of elements, and iterators over them.

What goes in: tensors, files, Python functions. What comes out: elements, each a tuple of arrays,
one at a time. A dataset op describes a sequence and computes nothing; its value is a `Source`. An
iterator asks the source at the end of a chain for a `Stream`, which pulls elements through the
streams of those before it.

What holds: a stream gives the same elements however many are asked for at a time; one that is
closed has no thread left.

>>> import headrace as tf
>>> numbers = tf.data.Dataset.range(5).map(lambda x: x * x).batch(2)
>>> next_batch = tf.data.make_one_shot_iterator(numbers).get_next()
>>> with tf.Session() as sess:
...     sess.run(next_batch), sess.run(next_batch), sess.run(next_batch)
(array([0, 1]), array([4, 9]), array([16]))
"""
