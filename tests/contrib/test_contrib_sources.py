"""What implements a published algorithm names the paper, with its year, and the place in it."""

from __future__ import annotations

import inspect
import re

import pytest

import headrace as tf

_YEAR = re.compile(r"\b(19|20)\d\d\b")
_PLACE = re.compile(r"\bsections?\b|\bappendix\b|\bchapter\b")

#: By namespace of ``tf.contrib``: functions and classes that follow a paper.
_FROM_PAPERS = {
    "crf": """
        CrfDecodeBackwardRnnCell CrfDecodeForwardRnnCell CrfForwardRnnCell crf_decode
        crf_log_likelihood crf_log_norm crf_sequence_score viterbi_decode""",
    "gan": "acgan_model cyclegan_loss cyclegan_model gan_model infogan_model stargan_loss",
    "gan.features": """
        VBN clip_discriminator_weights compute_spectral_norm spectral_norm_regularizer
        spectral_normalize tensor_pool""",
    "gan.losses": """
        acgan_discriminator_loss acgan_generator_loss least_squares_discriminator_loss
        least_squares_generator_loss minimax_discriminator_loss minimax_generator_loss
        modified_discriminator_loss modified_generator_loss mutual_information_penalty
        wasserstein_discriminator_loss wasserstein_generator_loss wasserstein_gradient_penalty""",
    "gan.losses.wargs": """
        acgan_discriminator_loss acgan_generator_loss cycle_consistency_loss
        least_squares_discriminator_loss least_squares_generator_loss minimax_discriminator_loss
        minimax_generator_loss modified_discriminator_loss modified_generator_loss
        mutual_information_penalty wasserstein_discriminator_loss wasserstein_generator_loss
        wasserstein_gradient_penalty""",
    "layers": """
        adaptive_clipping_fn batch_norm conv2d_transpose dropout group_norm instance_norm
        l1_l2_regularizer layer_norm maxout poincare_normalize separable_conv2d
        variance_scaling_initializer xavier_initializer""",
    "legacy_seq2seq": """
        attention_decoder basic_rnn_seq2seq embedding_attention_seq2seq one2many_rnn_seq2seq""",
    "rnn": """
        ConvLSTMCell GLSTMCell GRUBlockCell HighwayWrapper IndRNNCell IndyGRUCell LSTMBlockCell
        LSTMBlockFusedCell NASCell stack_bidirectional_rnn""",
    "seq2seq": """
        AttentionWrapper BahdanauAttention BahdanauMonotonicAttention LuongAttention
        LuongMonotonicAttention ScheduledEmbeddingTrainingHelper ScheduledOutputTrainingHelper
        monotonic_attention""",
    "slim.nets": """
        alexnet.alexnet_v2 inception.inception_v1 inception.inception_v2 inception.inception_v3
        overfeat.overfeat resnet_v1.resnet_v1 resnet_v1.resnet_v1_50 resnet_v2.resnet_v2
        resnet_v2.resnet_v2_101 vgg.vgg_16""",
}


@pytest.mark.parametrize("namespace", _FROM_PAPERS)
def test_algorithms_name_their_paper_and_the_place_in_it(namespace):
    for name in _FROM_PAPERS[namespace].split():
        found = tf.contrib
        for part in f"{namespace}.{name}".split("."):
            found = getattr(found, part)
        text = inspect.getdoc(found)
        assert _YEAR.search(text), name
        assert _PLACE.search(text), name
