"""Operation definitions: one record for each op, one room for each family.

>>> from headrace.ops.core.build import raw
>>> with tf.Graph().as_default():
...     raw.MatMul(tf.ones([2, 3]), tf.ones([3, 4])).shape.as_list()  # the shape rule's answer
[2, 4]
"""
