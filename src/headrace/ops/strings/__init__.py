"""Operations on tensors of strings.

>>> with tf.Graph().as_default(), tf.Session() as session:
...     session.run(tf.strings.length(tf.constant(["a", "bcd"]))).tolist()
[1, 3]
"""
