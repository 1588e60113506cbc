"""Ragged tensors: rows of different lengths.

>>> with tf.Graph().as_default(), tf.Session() as session:
...     session.run(tf.ragged.constant([[1], [2, 3]]).row_lengths()).tolist()
[1, 2]
"""

#: Programs of plain tensors never load these: `ragged_tensor` brings them with the first one.
LATE = frozenset(
    {"array", "convert", "dispatch", "elementwise", "factory", "getitem", "map", "math"}
)
