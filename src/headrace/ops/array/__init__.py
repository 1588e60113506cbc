"""Operations that shape, join, cut, fill and pick from tensors.

>>> with tf.Graph().as_default(), tf.Session() as session:
...     session.run(tf.reshape(tf.constant([[1, 2], [3, 4]]), [4])).tolist()
[1, 2, 3, 4]
"""
