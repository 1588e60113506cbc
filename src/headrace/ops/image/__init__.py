"""Operations on images: files, colours, boxes, resizing.

>>> with tf.Graph().as_default(), tf.Session() as session:
...     session.run(tf.image.rgb_to_grayscale(tf.ones([1, 1, 3], tf.uint8))).tolist()
[[[1]]]
"""
