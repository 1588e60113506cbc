"""`tf.feature_column`: from features of all kinds to the numbers that a model takes.

What goes in: descriptions of features (numbers, categories, vocabularies, crosses) and a batch of
tensors by key. What comes out: one tensor [batch, numbers], or a linear model's [batch, units].
What holds: columns are values; they are sorted by name, so that their order does not matter.

>>> import headrace as tf
>>> age = tf.feature_column.numeric_column("age")
>>> groups = tf.feature_column.bucketized_column(age, [18, 65])
>>> net = tf.feature_column.input_layer({"age": [30.0, 70.0]}, [age, groups])
>>> with tf.Session() as sess:
...     sess.run(net)
array([[30.,  0.,  1.,  0.],
       [70.,  0.,  0.,  1.]], dtype=float32)
"""

from headrace.feature_column.columns import *  # noqa: F403
from headrace.feature_column.layers import input_layer as input_layer
from headrace.feature_column.layers import linear_model as linear_model
from headrace.feature_column.layers import make_parse_example_spec as make_parse_example_spec
from headrace.feature_column.sequence import *  # noqa: F403
