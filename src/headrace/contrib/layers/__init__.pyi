# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.layers import initializers as initializers
from headrace.contrib.layers import regularizers as regularizers
from headrace.contrib.layers import utils as utils
from typing import Any as _Any
from builtins import str as _str
from headrace.graph.tensor import Tensor as _Tensor
def avg_pool2d(
    inputs: _Any,
    kernel_size: _Any,
    stride: _Any = 2,
    padding: _str = 'VALID',
    data_format: _str = 'NHWC',
    outputs_collections: _Any = None,
    scope: _Any = None,
) -> _Tensor: ...
def avg_pool3d(
    inputs: _Any,
    kernel_size: _Any,
    stride: _Any = 2,
    padding: _str = 'VALID',
    data_format: _str = 'NDHWC',
    outputs_collections: _Any = None,
    scope: _Any = None,
) -> _Tensor: ...
from builtins import int as _int
from builtins import bool as _bool
def conv1d(
    inputs: _Any,
    num_outputs: _int,
    kernel_size: _Any,
    stride: _Any = 1,
    padding: _str = 'SAME',
    data_format: _str | None = None,
    rate: _Any = 1,
    activation_fn: _Any = ...,
    normalizer_fn: _Any = None,
    normalizer_params: _Any = None,
    weights_initializer: _Any = ...,
    weights_regularizer: _Any = None,
    biases_initializer: _Any = ...,
    biases_regularizer: _Any = None,
    reuse: _Any = None,
    variables_collections: _Any = None,
    outputs_collections: _Any = None,
    trainable: _bool = True,
    scope: _Any = None,
) -> _Tensor: ...
def conv2d(
    inputs: _Any,
    num_outputs: _int,
    kernel_size: _Any,
    stride: _Any = 1,
    padding: _str = 'SAME',
    data_format: _str | None = None,
    rate: _Any = 1,
    activation_fn: _Any = ...,
    normalizer_fn: _Any = None,
    normalizer_params: _Any = None,
    weights_initializer: _Any = ...,
    weights_regularizer: _Any = None,
    biases_initializer: _Any = ...,
    biases_regularizer: _Any = None,
    reuse: _Any = None,
    variables_collections: _Any = None,
    outputs_collections: _Any = None,
    trainable: _bool = True,
    scope: _Any = None,
) -> _Tensor: ...
from headrace.contrib.layers.convolution import conv2d_in_plane as conv2d_in_plane
def conv2d_transpose(
    inputs: _Any,
    num_outputs: _int,
    kernel_size: _Any,
    stride: _Any = 1,
    padding: _str = 'SAME',
    data_format: _str = 'NHWC',
    activation_fn: _Any = ...,
    normalizer_fn: _Any = None,
    normalizer_params: _Any = None,
    weights_initializer: _Any = ...,
    weights_regularizer: _Any = None,
    biases_initializer: _Any = ...,
    biases_regularizer: _Any = None,
    reuse: _Any = None,
    variables_collections: _Any = None,
    outputs_collections: _Any = None,
    trainable: _bool = True,
    scope: _Any = None,
) -> _Tensor: ...
def conv3d(
    inputs: _Any,
    num_outputs: _int,
    kernel_size: _Any,
    stride: _Any = 1,
    padding: _str = 'SAME',
    data_format: _str | None = None,
    rate: _Any = 1,
    activation_fn: _Any = ...,
    normalizer_fn: _Any = None,
    normalizer_params: _Any = None,
    weights_initializer: _Any = ...,
    weights_regularizer: _Any = None,
    biases_initializer: _Any = ...,
    biases_regularizer: _Any = None,
    reuse: _Any = None,
    variables_collections: _Any = None,
    outputs_collections: _Any = None,
    trainable: _bool = True,
    scope: _Any = None,
) -> _Tensor: ...
def conv3d_transpose(
    inputs: _Any,
    num_outputs: _int,
    kernel_size: _Any,
    stride: _Any = 1,
    padding: _str = 'SAME',
    data_format: _str = 'NDHWC',
    activation_fn: _Any = ...,
    normalizer_fn: _Any = None,
    normalizer_params: _Any = None,
    weights_initializer: _Any = ...,
    weights_regularizer: _Any = None,
    biases_initializer: _Any = ...,
    biases_regularizer: _Any = None,
    reuse: _Any = None,
    variables_collections: _Any = None,
    outputs_collections: _Any = None,
    trainable: _bool = True,
    scope: _Any = None,
) -> _Tensor: ...
from headrace.contrib.layers.convolution import convolution as convolution
def convolution1d(
    inputs: _Any,
    num_outputs: _int,
    kernel_size: _Any,
    stride: _Any = 1,
    padding: _str = 'SAME',
    data_format: _str | None = None,
    rate: _Any = 1,
    activation_fn: _Any = ...,
    normalizer_fn: _Any = None,
    normalizer_params: _Any = None,
    weights_initializer: _Any = ...,
    weights_regularizer: _Any = None,
    biases_initializer: _Any = ...,
    biases_regularizer: _Any = None,
    reuse: _Any = None,
    variables_collections: _Any = None,
    outputs_collections: _Any = None,
    trainable: _bool = True,
    scope: _Any = None,
) -> _Tensor: ...
def convolution2d(
    inputs: _Any,
    num_outputs: _int,
    kernel_size: _Any,
    stride: _Any = 1,
    padding: _str = 'SAME',
    data_format: _str | None = None,
    rate: _Any = 1,
    activation_fn: _Any = ...,
    normalizer_fn: _Any = None,
    normalizer_params: _Any = None,
    weights_initializer: _Any = ...,
    weights_regularizer: _Any = None,
    biases_initializer: _Any = ...,
    biases_regularizer: _Any = None,
    reuse: _Any = None,
    variables_collections: _Any = None,
    outputs_collections: _Any = None,
    trainable: _bool = True,
    scope: _Any = None,
) -> _Tensor: ...
from headrace.contrib.layers.convolution import convolution2d_in_plane as convolution2d_in_plane
def convolution2d_transpose(
    inputs: _Any,
    num_outputs: _int,
    kernel_size: _Any,
    stride: _Any = 1,
    padding: _str = 'SAME',
    data_format: _str = 'NHWC',
    activation_fn: _Any = ...,
    normalizer_fn: _Any = None,
    normalizer_params: _Any = None,
    weights_initializer: _Any = ...,
    weights_regularizer: _Any = None,
    biases_initializer: _Any = ...,
    biases_regularizer: _Any = None,
    reuse: _Any = None,
    variables_collections: _Any = None,
    outputs_collections: _Any = None,
    trainable: _bool = True,
    scope: _Any = None,
) -> _Tensor: ...
def convolution3d(
    inputs: _Any,
    num_outputs: _int,
    kernel_size: _Any,
    stride: _Any = 1,
    padding: _str = 'SAME',
    data_format: _str | None = None,
    rate: _Any = 1,
    activation_fn: _Any = ...,
    normalizer_fn: _Any = None,
    normalizer_params: _Any = None,
    weights_initializer: _Any = ...,
    weights_regularizer: _Any = None,
    biases_initializer: _Any = ...,
    biases_regularizer: _Any = None,
    reuse: _Any = None,
    variables_collections: _Any = None,
    outputs_collections: _Any = None,
    trainable: _bool = True,
    scope: _Any = None,
) -> _Tensor: ...
def convolution3d_transpose(
    inputs: _Any,
    num_outputs: _int,
    kernel_size: _Any,
    stride: _Any = 1,
    padding: _str = 'SAME',
    data_format: _str = 'NDHWC',
    activation_fn: _Any = ...,
    normalizer_fn: _Any = None,
    normalizer_params: _Any = None,
    weights_initializer: _Any = ...,
    weights_regularizer: _Any = None,
    biases_initializer: _Any = ...,
    biases_regularizer: _Any = None,
    reuse: _Any = None,
    variables_collections: _Any = None,
    outputs_collections: _Any = None,
    trainable: _bool = True,
    scope: _Any = None,
) -> _Tensor: ...
def max_pool2d(
    inputs: _Any,
    kernel_size: _Any,
    stride: _Any = 2,
    padding: _str = 'VALID',
    data_format: _str = 'NHWC',
    outputs_collections: _Any = None,
    scope: _Any = None,
) -> _Tensor: ...
def max_pool3d(
    inputs: _Any,
    kernel_size: _Any,
    stride: _Any = 2,
    padding: _str = 'VALID',
    data_format: _str = 'NDHWC',
    outputs_collections: _Any = None,
    scope: _Any = None,
) -> _Tensor: ...
from headrace.contrib.layers.convolution import pool as pool
from headrace.contrib.layers.convolution import separable_conv2d as separable_conv2d
from headrace.contrib.layers.convolution import separable_convolution2d as separable_convolution2d
from headrace.contrib.layers.core import *
from headrace.contrib.layers.embedding import *
from headrace.contrib.layers.initializers import *
from headrace.contrib.layers.normalization import *
from headrace.contrib.layers.regularizers import *
from headrace.contrib.layers.feature_column_makers import bucketized_column as bucketized_column
from headrace.contrib.layers.feature_column_makers import crossed_column as crossed_column
from headrace.contrib.layers.feature_column_makers import embedding_column as embedding_column
from headrace.contrib.layers.feature_column_makers import one_hot_column as one_hot_column
from headrace.contrib.layers.feature_column_makers import real_valued_column as real_valued_column
from headrace.contrib.layers.feature_column_makers import shared_embedding_columns as shared_embedding_columns
from headrace.contrib.layers.feature_column_makers import sparse_column_with_hash_bucket as sparse_column_with_hash_bucket
from headrace.contrib.layers.feature_column_makers import sparse_column_with_integerized_feature as sparse_column_with_integerized_feature
from headrace.contrib.layers.feature_column_makers import sparse_column_with_keys as sparse_column_with_keys
from headrace.contrib.layers.feature_column_makers import sparse_column_with_vocabulary_file as sparse_column_with_vocabulary_file
from headrace.contrib.layers.feature_column_makers import weighted_sparse_column as weighted_sparse_column
from headrace.contrib.layers.feature_column_ops import check_feature_columns as check_feature_columns
from headrace.contrib.layers.feature_column_ops import create_feature_spec_for_parsing as create_feature_spec_for_parsing
from headrace.contrib.layers.feature_column_ops import infer_real_valued_columns as infer_real_valued_columns
from headrace.contrib.layers.feature_column_ops import input_from_feature_columns as input_from_feature_columns
from headrace.contrib.layers.feature_column_ops import joint_weighted_sum_from_feature_columns as joint_weighted_sum_from_feature_columns
from headrace.contrib.layers.feature_column_ops import make_place_holder_tensors_for_base_features as make_place_holder_tensors_for_base_features
from headrace.contrib.layers.feature_column_ops import parse_feature_columns_from_examples as parse_feature_columns_from_examples
from headrace.contrib.layers.feature_column_ops import parse_feature_columns_from_sequence_examples as parse_feature_columns_from_sequence_examples
from headrace.contrib.layers.feature_column_ops import sequence_input_from_feature_columns as sequence_input_from_feature_columns
from headrace.contrib.layers.feature_column_ops import transform_features as transform_features
from headrace.contrib.layers.feature_column_ops import weighted_sum_from_feature_columns as weighted_sum_from_feature_columns
from headrace.contrib.layers import feature_columns as feature_columns
from headrace.contrib.layers import optimizers as optimizers
from headrace.contrib.layers.optimizers import OPTIMIZER_CLS_NAMES as OPTIMIZER_CLS_NAMES
from headrace.contrib.layers.optimizers import OPTIMIZER_SUMMARIES as OPTIMIZER_SUMMARIES
from headrace.contrib.layers.optimizers import adaptive_clipping_fn as adaptive_clipping_fn
from headrace.contrib.layers.optimizers import optimize_loss as optimize_loss
from headrace.contrib.layers.scattered_column import SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY as SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY
from headrace.contrib.layers.scattered_column import scattered_embedding_column as scattered_embedding_column
from headrace.contrib.layers import summaries as summaries
from headrace.contrib.layers.summaries import summarize_activation as summarize_activation
from headrace.contrib.layers.summaries import summarize_activations as summarize_activations
from headrace.contrib.layers.summaries import summarize_biases as summarize_biases
from headrace.contrib.layers.summaries import summarize_collection as summarize_collection
from headrace.contrib.layers.summaries import summarize_tensor as summarize_tensor
from headrace.contrib.layers.summaries import summarize_tensors as summarize_tensors
from headrace.contrib.layers.summaries import summarize_variables as summarize_variables
from headrace.contrib.layers.summaries import summarize_weights as summarize_weights
from headrace.ops.nn.embedding_sparse import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
