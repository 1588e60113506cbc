# Written by tools/make_stubs.py from nn.py; do not edit.
__all__ = ['all_candidate_sampler', 'atrous_conv2d', 'atrous_conv2d_transpose', 'avg_pool', 'avg_pool3d', 'batch_norm_with_global_normalization', 'batch_normalization', 'bias_add', 'compute_accidental_hits', 'conv1d', 'conv2d', 'conv2d_backprop_filter', 'conv2d_backprop_input', 'conv2d_transpose', 'conv3d', 'conv3d_transpose', 'convolution', 'crelu', 'ctc_beam_search_decoder', 'ctc_beam_search_decoder_v2', 'ctc_greedy_decoder', 'ctc_loss', 'ctc_loss_v2', 'depthwise_conv2d', 'depthwise_conv2d_native', 'depthwise_conv2d_native_backprop_filter', 'depthwise_conv2d_native_backprop_input', 'dilation2d', 'dropout', 'elu', 'embedding_lookup', 'embedding_lookup_sparse', 'erosion2d', 'fixed_unigram_candidate_sampler', 'fused_batch_norm', 'in_top_k', 'l2_loss', 'l2_normalize', 'leaky_relu', 'learned_unigram_candidate_sampler', 'local_response_normalization', 'log_poisson_loss', 'log_softmax', 'log_uniform_candidate_sampler', 'lrn', 'max_pool', 'max_pool3d', 'max_pool_with_argmax', 'moments', 'nce_loss', 'normalize_moments', 'pool', 'quantized_avg_pool', 'quantized_conv2d', 'quantized_max_pool', 'quantized_relu_x', 'relu', 'relu6', 'relu_layer', 'safe_embedding_lookup_sparse', 'sampled_softmax_loss', 'selu', 'separable_conv2d', 'sigmoid', 'sigmoid_cross_entropy_with_logits', 'softmax', 'softmax_cross_entropy_with_logits', 'softmax_cross_entropy_with_logits_v2', 'softplus', 'softsign', 'sparse_softmax_cross_entropy_with_logits', 'sufficient_statistics', 'swish', 'tanh', 'top_k', 'uniform_candidate_sampler', 'weighted_cross_entropy_with_logits', 'weighted_moments', 'with_space_to_batch', 'xw_plus_b', 'zero_fraction']
from headrace.ops.math.cumulative import top_k as top_k
from typing import Any as _Any
from builtins import str as _str
from headrace.graph.tensor import Tensor as _Tensor
def sigmoid(x: _Any, name: _str | None = None) -> _Tensor: ...
def tanh(x: _Any, name: _str | None = None) -> _Tensor: ...
from headrace.ops.math.norms import zero_fraction as zero_fraction
from headrace.ops.nn.activations import bias_add as bias_add
from headrace.ops.nn.activations import crelu as crelu
from headrace.ops.nn.activations import elu as elu
from headrace.ops.nn.activations import leaky_relu as leaky_relu
from headrace.ops.nn.activations import relu as relu
from headrace.ops.nn.activations import relu6 as relu6
from headrace.ops.nn.activations import relu_layer as relu_layer
from headrace.ops.nn.activations import selu as selu
from headrace.ops.nn.activations import softplus as softplus
from headrace.ops.nn.activations import softsign as softsign
from headrace.ops.nn.activations import swish as swish
from headrace.ops.nn.activations import xw_plus_b as xw_plus_b
from headrace.ops.nn.conv_api import atrous_conv2d as atrous_conv2d
from headrace.ops.nn.conv_api import atrous_conv2d_transpose as atrous_conv2d_transpose
from headrace.ops.nn.conv_api import conv1d as conv1d
from headrace.ops.nn.conv_api import conv2d as conv2d
from headrace.ops.nn.conv_api import conv2d_backprop_filter as conv2d_backprop_filter
from headrace.ops.nn.conv_api import conv2d_backprop_input as conv2d_backprop_input
from headrace.ops.nn.conv_api import conv2d_transpose as conv2d_transpose
from headrace.ops.nn.conv_api import conv3d as conv3d
from headrace.ops.nn.conv_api import conv3d_transpose as conv3d_transpose
from headrace.ops.nn.conv_api import convolution as convolution
from headrace.ops.nn.conv_api import depthwise_conv2d as depthwise_conv2d
from headrace.ops.nn.conv_api import depthwise_conv2d_native as depthwise_conv2d_native
from headrace.ops.nn.conv_api import depthwise_conv2d_native_backprop_filter as depthwise_conv2d_native_backprop_filter
from headrace.ops.nn.conv_api import depthwise_conv2d_native_backprop_input as depthwise_conv2d_native_backprop_input
from headrace.ops.nn.conv_api import separable_conv2d as separable_conv2d
from headrace.ops.nn.ctc_api import ctc_beam_search_decoder as ctc_beam_search_decoder
from headrace.ops.nn.ctc_api import ctc_beam_search_decoder_v2 as ctc_beam_search_decoder_v2
from headrace.ops.nn.ctc_api import ctc_greedy_decoder as ctc_greedy_decoder
from headrace.ops.nn.ctc_api import ctc_loss as ctc_loss
from headrace.ops.nn.ctc_api import ctc_loss_v2 as ctc_loss_v2
from headrace.ops.nn.embedding import dropout as dropout
from headrace.ops.nn.embedding import embedding_lookup as embedding_lookup
from headrace.ops.nn.embedding import in_top_k as in_top_k
from headrace.ops.nn.embedding_sparse import embedding_lookup_sparse as embedding_lookup_sparse
from headrace.ops.nn.embedding_sparse import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
from headrace.ops.nn.morphology_api import dilation2d as dilation2d
from headrace.ops.nn.morphology_api import erosion2d as erosion2d
from headrace.ops.nn.normalization_api import batch_norm_with_global_normalization as batch_norm_with_global_normalization
from headrace.ops.nn.normalization_api import batch_normalization as batch_normalization
from headrace.ops.nn.normalization_api import fused_batch_norm as fused_batch_norm
from headrace.ops.nn.normalization_api import l2_normalize as l2_normalize
from headrace.ops.nn.normalization_api import local_response_normalization as local_response_normalization
from headrace.ops.nn.normalization_api import log_poisson_loss as log_poisson_loss
from builtins import int as _int
from builtins import float as _float
def lrn(
    input: _Any,
    depth_radius: _int = 5,
    bias: _float = 1,
    alpha: _float = 1,
    beta: _float = 0.5,
    name: _str | None = None,
) -> _Tensor: ...
from headrace.ops.nn.normalization_api import moments as moments
from headrace.ops.nn.normalization_api import normalize_moments as normalize_moments
from headrace.ops.nn.normalization_api import sufficient_statistics as sufficient_statistics
from headrace.ops.nn.normalization_api import weighted_moments as weighted_moments
from headrace.ops.nn.pool_api import avg_pool as avg_pool
from headrace.ops.nn.pool_api import avg_pool3d as avg_pool3d
from headrace.ops.nn.pool_api import max_pool as max_pool
from headrace.ops.nn.pool_api import max_pool3d as max_pool3d
from headrace.ops.nn.pool_api import max_pool_with_argmax as max_pool_with_argmax
from headrace.ops.nn.pool_api import pool as pool
from headrace.ops.nn.pool_api import with_space_to_batch as with_space_to_batch
from headrace.ops.nn.quantized_nn import quantized_avg_pool as quantized_avg_pool
from headrace.ops.nn.quantized_nn import quantized_conv2d as quantized_conv2d
from headrace.ops.nn.quantized_nn import quantized_max_pool as quantized_max_pool
from headrace.ops.nn.quantized_nn import quantized_relu_x as quantized_relu_x
from headrace.ops.nn.sampling_api import all_candidate_sampler as all_candidate_sampler
from headrace.ops.nn.sampling_api import compute_accidental_hits as compute_accidental_hits
from headrace.ops.nn.sampling_api import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from headrace.ops.nn.sampling_api import learned_unigram_candidate_sampler as learned_unigram_candidate_sampler
from headrace.ops.nn.sampling_api import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from headrace.ops.nn.sampling_api import nce_loss as nce_loss
from headrace.ops.nn.sampling_api import sampled_softmax_loss as sampled_softmax_loss
from headrace.ops.nn.sampling_api import uniform_candidate_sampler as uniform_candidate_sampler
from headrace.ops.nn.softmax import l2_loss as l2_loss
from headrace.ops.nn.softmax import log_softmax as log_softmax
from headrace.ops.nn.softmax import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from headrace.ops.nn.softmax import softmax as softmax
from headrace.ops.nn.softmax import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from headrace.ops.nn.softmax import softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2
from headrace.ops.nn.softmax import sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits
from headrace.ops.nn.softmax import weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits
from headrace.rnn.dynamic import bidirectional_dynamic_rnn as bidirectional_dynamic_rnn
from headrace.rnn.dynamic import dynamic_rnn as dynamic_rnn
from headrace.rnn.raw import raw_rnn as raw_rnn
from headrace.rnn import rnn_cell as rnn_cell
from headrace.rnn.static import static_bidirectional_rnn as static_bidirectional_rnn
from headrace.rnn.static import static_rnn as static_rnn
from headrace.rnn.static import static_state_saving_rnn as static_state_saving_rnn
