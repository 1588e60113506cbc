"""``tf.nn``: what neural networks are made of."""

from importlib import import_module as _import_module
from typing import Any as _Any

from headrace.errors import suggest as _suggest
from headrace.ops.math.cumulative import top_k
from headrace.ops.math.elementwise import sigmoid, tanh
from headrace.ops.math.norms import zero_fraction
from headrace.ops.nn.activations import (
    bias_add,
    crelu,
    elu,
    leaky_relu,
    relu,
    relu6,
    relu_layer,
    selu,
    softplus,
    softsign,
    swish,
    xw_plus_b,
)
from headrace.ops.nn.conv_api import (
    atrous_conv2d,
    atrous_conv2d_transpose,
    conv1d,
    conv2d,
    conv2d_backprop_filter,
    conv2d_backprop_input,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    convolution,
    depthwise_conv2d,
    depthwise_conv2d_native,
    depthwise_conv2d_native_backprop_filter,
    depthwise_conv2d_native_backprop_input,
    dilation2d,
    erosion2d,
    separable_conv2d,
)
from headrace.ops.nn.ctc_api import (
    ctc_beam_search_decoder,
    ctc_beam_search_decoder_v2,
    ctc_greedy_decoder,
    ctc_loss,
    ctc_loss_v2,
)
from headrace.ops.nn.embedding import dropout, embedding_lookup, in_top_k
from headrace.ops.nn.embedding_sparse import embedding_lookup_sparse, safe_embedding_lookup_sparse
from headrace.ops.nn.normalization_api import (
    batch_norm_with_global_normalization,
    batch_normalization,
    fused_batch_norm,
    l2_normalize,
    local_response_normalization,
    log_poisson_loss,
    lrn,
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
)
from headrace.ops.nn.pool_api import (
    avg_pool,
    avg_pool3d,
    max_pool,
    max_pool3d,
    max_pool_with_argmax,
    pool,
    with_space_to_batch,
)
from headrace.ops.nn.quantized_nn import (
    quantized_avg_pool,
    quantized_conv2d,
    quantized_max_pool,
    quantized_relu_x,
)
from headrace.ops.nn.sampling_api import (
    all_candidate_sampler,
    compute_accidental_hits,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    nce_loss,
    sampled_softmax_loss,
    uniform_candidate_sampler,
)
from headrace.ops.nn.softmax import (
    l2_loss,
    log_softmax,
    sigmoid_cross_entropy_with_logits,
    softmax,
    softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)

__all__ = [
    "all_candidate_sampler",
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool3d",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "compute_accidental_hits",
    "conv1d",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "convolution",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_loss_v2",
    "depthwise_conv2d",
    "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
    "dilation2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "fixed_unigram_candidate_sampler",
    "fused_batch_norm",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "learned_unigram_candidate_sampler",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "log_uniform_candidate_sampler",
    "lrn",
    "max_pool",
    "max_pool3d",
    "max_pool_with_argmax",
    "moments",
    "nce_loss",
    "normalize_moments",
    "pool",
    "quantized_avg_pool",
    "quantized_conv2d",
    "quantized_max_pool",
    "quantized_relu_x",
    "relu",
    "relu6",
    "relu_layer",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "uniform_candidate_sampler",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "with_space_to_batch",
    "xw_plus_b",
    "zero_fraction",
]

#: Names that higher layers provide, loaded when first asked for: their modules and names there.
_ELSEWHERE = {
    "bidirectional_dynamic_rnn": ("rnn.dynamic", "bidirectional_dynamic_rnn"),
    "bidirectional_rnn": ("rnn.static", "static_bidirectional_rnn"),
    "dynamic_rnn": ("rnn.dynamic", "dynamic_rnn"),
    "raw_rnn": ("rnn.raw", "raw_rnn"),
    "rnn": ("rnn.static", "static_rnn"),
    "rnn_cell": ("rnn.rnn_cell", ""),
    "seq2seq": ("contrib.legacy_seq2seq", ""),
    "state_saving_rnn": ("rnn.static", "static_state_saving_rnn"),
    "static_bidirectional_rnn": ("rnn.static", "static_bidirectional_rnn"),
    "static_rnn": ("rnn.static", "static_rnn"),
    "static_state_saving_rnn": ("rnn.static", "static_state_saving_rnn"),
}


def __getattr__(name: str) -> _Any:
    if name in _ELSEWHERE:
        place, attribute = _ELSEWHERE[name]
        module = _import_module(f"headrace.{place}")
        found = globals()[name] = getattr(module, attribute) if attribute else module
        return found
    message = f"module 'headrace.nn' has no attribute {name!r}."
    raise AttributeError(message + _suggest(name, __dir__()))


def __dir__() -> list[str]:
    return sorted({*globals(), *_ELSEWHERE})
