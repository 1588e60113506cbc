"""``tf.feature_column``: how a model takes features.

A column names a feature and says what becomes of it. `input_layer` puts what dense columns make
of a batch side by side, `linear_model` adds up weights; `DenseFeatures` and `LinearModel` are the
same as layers.

>>> age = tf.feature_column.numeric_column("age")
>>> city = tf.feature_column.categorical_column_with_vocabulary_list("city", ["Oslo", "Rome"])
>>> columns = [age, tf.feature_column.indicator_column(city)]
>>> layer = tf.feature_column.input_layer({"age": [20.0, 30.0], "city": ["Rome", ""]}, columns)
>>> with tf.Session() as session:
...     session.run(tf.tables_initializer())
...     session.run(layer).tolist()
[[20.0, 0.0, 1.0], [30.0, 0.0, 0.0]]
"""

from headrace.feature_column.categorical import (
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
)
from headrace.feature_column.dense import embedding_column, indicator_column
from headrace.feature_column.derived import crossed_column, weighted_categorical_column
from headrace.feature_column.feature_layers import DenseFeatures
from headrace.feature_column.growing import (
    categorical_column_with_keys,
    growing_embedding_column,
)
from headrace.feature_column.input_layers import input_layer, make_parse_example_spec
from headrace.feature_column.linear import LinearModel, linear_model
from headrace.feature_column.numeric import bucketized_column, numeric_column
from headrace.feature_column.sequence import (
    SequenceFeatures,
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
)
from headrace.feature_column.shared import shared_embedding_columns, shared_embeddings

__all__ = [
    "DenseFeatures",
    "LinearModel",
    "SequenceFeatures",
    "bucketized_column",
    "categorical_column_with_hash_bucket",
    "categorical_column_with_identity",
    "categorical_column_with_keys",
    "categorical_column_with_vocabulary_file",
    "categorical_column_with_vocabulary_list",
    "crossed_column",
    "embedding_column",
    "growing_embedding_column",
    "indicator_column",
    "input_layer",
    "linear_model",
    "make_parse_example_spec",
    "numeric_column",
    "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
    "sequence_numeric_column",
    "shared_embedding_columns",
    "shared_embeddings",
    "weighted_categorical_column",
]
