# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.framework import *
from headrace.contrib.framework import variables as variables
from headrace.contrib.framework.arg_scope import arg_scope_func_key as arg_scope_func_key
from headrace.contrib.framework.deprecation import *
from headrace.contrib.framework.variables import *
from headrace.contrib.layers import apply_regularization as apply_regularization
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
from headrace.contrib.layers import batch_norm as batch_norm
from headrace.contrib.layers import bias_add as bias_add
from headrace.contrib.layers import bow_encoder as bow_encoder
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
from headrace.contrib.layers import conv2d_in_plane as conv2d_in_plane
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
from headrace.contrib.layers import convolution as convolution
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
from headrace.contrib.layers import convolution2d_in_plane as convolution2d_in_plane
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
from headrace.contrib.layers import dense_to_sparse as dense_to_sparse
from headrace.contrib.layers import dropout as dropout
from headrace.contrib.layers import elu as elu
from headrace.contrib.layers import embed_sequence as embed_sequence
from headrace.contrib.layers import embedding_lookup_unique as embedding_lookup_unique
from headrace.contrib.layers import flatten as flatten
from headrace.contrib.layers import fully_connected as fully_connected
from headrace.contrib.layers import group_norm as group_norm
from headrace.contrib.layers import initializers as initializers
from headrace.contrib.layers import instance_norm as instance_norm
from headrace.contrib.layers import l1_l2_regularizer as l1_l2_regularizer
from headrace.contrib.layers import l1_regularizer as l1_regularizer
from headrace.contrib.layers import l2_regularizer as l2_regularizer
from headrace.contrib.layers import layer_norm as layer_norm
from headrace.contrib.layers import legacy_fully_connected as legacy_fully_connected
from headrace.contrib.layers import legacy_linear as legacy_linear
from headrace.contrib.layers import legacy_relu as legacy_relu
from headrace.contrib.layers import linear as linear
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
from headrace.contrib.layers import maxout as maxout
from headrace.contrib.layers import one_hot_encoding as one_hot_encoding
from headrace.contrib.layers import poincare_normalize as poincare_normalize
from headrace.contrib.layers import pool as pool
from headrace.contrib.layers import regularizers as regularizers
from headrace.contrib.layers import relu as relu
from headrace.contrib.layers import relu6 as relu6
from headrace.contrib.layers import repeat as repeat
from headrace.contrib.layers import scale_gradient as scale_gradient
from headrace.contrib.layers import separable_conv2d as separable_conv2d
from headrace.contrib.layers import separable_convolution2d as separable_convolution2d
from headrace.contrib.layers import softmax as softmax
from headrace.contrib.layers import stack as stack
from headrace.contrib.layers import sum_regularizer as sum_regularizer
from headrace.contrib.layers import unit_norm as unit_norm
from headrace.contrib.layers import utils as utils
from headrace.contrib.layers import variance_scaling_initializer as variance_scaling_initializer
from headrace.contrib.layers import xavier_initializer as xavier_initializer
from headrace.contrib.layers import xavier_initializer_conv2d as xavier_initializer_conv2d
from headrace.contrib.layers import summaries as summaries
from headrace.contrib.layers import OPTIMIZER_CLS_NAMES as OPTIMIZER_CLS_NAMES
from headrace.contrib.layers import OPTIMIZER_SUMMARIES as OPTIMIZER_SUMMARIES
from headrace.contrib.layers import SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY as SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY
from headrace.contrib.layers import adaptive_clipping_fn as adaptive_clipping_fn
from headrace.contrib.layers import bucketized_column as bucketized_column
from headrace.contrib.layers import check_feature_columns as check_feature_columns
from headrace.contrib.layers import create_feature_spec_for_parsing as create_feature_spec_for_parsing
from headrace.contrib.layers import crossed_column as crossed_column
from headrace.contrib.layers import embedding_column as embedding_column
from headrace.contrib.layers import feature_columns as feature_columns
from headrace.contrib.layers import infer_real_valued_columns as infer_real_valued_columns
from headrace.contrib.layers import input_from_feature_columns as input_from_feature_columns
from headrace.contrib.layers import joint_weighted_sum_from_feature_columns as joint_weighted_sum_from_feature_columns
from headrace.contrib.layers import make_place_holder_tensors_for_base_features as make_place_holder_tensors_for_base_features
from headrace.contrib.layers import one_hot_column as one_hot_column
from headrace.contrib.layers import optimize_loss as optimize_loss
from headrace.contrib.layers import optimizers as optimizers
from headrace.contrib.layers import parse_feature_columns_from_examples as parse_feature_columns_from_examples
from headrace.contrib.layers import parse_feature_columns_from_sequence_examples as parse_feature_columns_from_sequence_examples
from headrace.contrib.layers import real_valued_column as real_valued_column
from headrace.contrib.layers import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
from headrace.contrib.layers import scattered_embedding_column as scattered_embedding_column
from headrace.contrib.layers import sequence_input_from_feature_columns as sequence_input_from_feature_columns
from headrace.contrib.layers import shared_embedding_columns as shared_embedding_columns
from headrace.contrib.layers import sparse_column_with_hash_bucket as sparse_column_with_hash_bucket
from headrace.contrib.layers import sparse_column_with_integerized_feature as sparse_column_with_integerized_feature
from headrace.contrib.layers import sparse_column_with_keys as sparse_column_with_keys
from headrace.contrib.layers import sparse_column_with_vocabulary_file as sparse_column_with_vocabulary_file
from headrace.contrib.layers import summarize_activation as summarize_activation
from headrace.contrib.layers import summarize_activations as summarize_activations
from headrace.contrib.layers import summarize_biases as summarize_biases
from headrace.contrib.layers import summarize_collection as summarize_collection
from headrace.contrib.layers import summarize_tensor as summarize_tensor
from headrace.contrib.layers import summarize_tensors as summarize_tensors
from headrace.contrib.layers import summarize_variables as summarize_variables
from headrace.contrib.layers import summarize_weights as summarize_weights
from headrace.contrib.layers import transform_features as transform_features
from headrace.contrib.layers import weighted_sparse_column as weighted_sparse_column
from headrace.contrib.layers import weighted_sum_from_feature_columns as weighted_sum_from_feature_columns
from headrace.contrib import losses as losses
from headrace.contrib import metrics as metrics
from headrace.contrib.slim import evaluation as evaluation
from headrace.contrib.slim import learning as learning
from headrace.contrib.slim import model_analyzer as model_analyzer
from headrace.contrib.slim import nets as nets
from headrace.contrib.slim import prefetch_queue as prefetch_queue
from headrace.contrib.slim import queues as queues
from headrace.train.global_step import create_global_step as create_global_step
from headrace.train.global_step import get_global_step as get_global_step
from headrace.train.global_step import get_or_create_global_step as get_or_create_global_step
