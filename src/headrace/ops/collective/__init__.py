"""Collective operations: each member of a group gives a tensor, and gets what all of them make.

What goes in: one tensor for each member of a group, a key of the group and one of the operation.
What comes out: the sum (product, least, greatest), all tensors behind each other, a part of the
sum, or the tensor of one member. Members are operations of one step, steps of one process, or tasks
of a cluster; who brings them together is a `Collectives`.

What holds: all members of a group get bit for bit the same, and a group's sums are made in an order
that does not depend on time.

>>> import headrace as tf
>>> ones = [tf.ones([2]), 2 * tf.ones([2])]
>>> sums = [tf.collective.all_reduce(t, group_size=2, group_key=1, instance_key=1) for t in ones]
>>> with tf.Session() as sess:
...     sess.run(sums)
[array([3., 3.], dtype=float32), array([3., 3.], dtype=float32)]
"""
