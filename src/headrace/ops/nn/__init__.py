"""Operations of neural networks: convolutions, pooling, normalisation, losses, samplers.

>>> with tf.Graph().as_default(), tf.Session() as session:
...     session.run(tf.nn.relu(tf.constant([-1.0, 2.0]))).tolist()
[0.0, 2.0]
"""
