"""Sparse tensors: the class, and the operations on them.

>>> with tf.Graph().as_default(), tf.Session() as session:
...     session.run(tf.sparse_tensor_to_dense(tf.SparseTensor([[1]], [5], [3]))).tolist()
[0, 5, 0]
"""
