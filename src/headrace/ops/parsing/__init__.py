"""From serialised messages and text to tensors.

>>> with tf.Graph().as_default(), tf.Session() as session:
...     session.run(tf.decode_raw(tf.constant(b"ab"), tf.uint8)).tolist()
[97, 98]
"""
