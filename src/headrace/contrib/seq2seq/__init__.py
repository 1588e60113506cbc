"""``tf.contrib.seq2seq``: decoders that run in loops, attention, beam search."""

from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.seq2seq.attention import (
    AttentionMechanism,
    BahdanauAttention,
    BahdanauMonotonicAttention,
    LuongAttention,
    LuongMonotonicAttention,
    _BaseAttentionMechanism,  # noqa: F401 (the base of mechanisms that programs make)
    hardmax,
    monotonic_attention,
    safe_cumprod,
)
from headrace.contrib.seq2seq.attention_wrapper import (
    AttentionWrapper,
    AttentionWrapperState,
    _compute_attention,  # noqa: F401
)
from headrace.contrib.seq2seq.beam_search import (
    BeamSearchDecoder,
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
    tile_batch,
)
from headrace.contrib.seq2seq.decoder import (
    BasicDecoder,
    BasicDecoderOutput,
    Decoder,
    dynamic_decode,
)
from headrace.contrib.seq2seq.helpers import (
    CustomHelper,
    GreedyEmbeddingHelper,
    Helper,
    InferenceHelper,
    SampleEmbeddingHelper,
    TrainingHelper,
)
from headrace.contrib.seq2seq.loss import sequence_loss
from headrace.contrib.seq2seq.scheduled import (
    ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper,
)
from headrace.ops.nn.beam_search import gather_tree
from headrace.rnn.dynamic import transpose_batch_time as _transpose_batch_time  # noqa: F401

__all__ = [
    "AttentionMechanism",
    "AttentionWrapper",
    "AttentionWrapperState",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "BasicDecoder",
    "BasicDecoderOutput",
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "CustomHelper",
    "Decoder",
    "FinalBeamSearchDecoderOutput",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "LuongAttention",
    "LuongMonotonicAttention",
    "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper",
    "ScheduledOutputTrainingHelper",
    "TrainingHelper",
    "dynamic_decode",
    "gather_tree",
    "hardmax",
    "monotonic_attention",
    "safe_cumprod",
    "sequence_loss",
    "tile_batch",
]


#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")
