"""``tf.contrib.legacy_seq2seq``: sequence-to-sequence models unrolled over lists of inputs.

Releases before 1.0 had it as ``tf.nn.seq2seq``.
"""

from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.legacy_seq2seq.decoders import (
    argmax_and_embed as _extract_argmax_and_embed,  # noqa: F401 (programs use it)
)
from headrace.contrib.legacy_seq2seq.decoders import (
    attention_decoder,
    embedding_attention_decoder,
    embedding_rnn_decoder,
    rnn_decoder,
)
from headrace.contrib.legacy_seq2seq.losses import (
    model_with_buckets,
    sequence_loss,
    sequence_loss_by_example,
)
from headrace.contrib.legacy_seq2seq.models import (
    basic_rnn_seq2seq,
    embedding_attention_seq2seq,
    embedding_rnn_seq2seq,
    embedding_tied_rnn_seq2seq,
    one2many_rnn_seq2seq,
    tied_rnn_seq2seq,
)

__all__ = [
    "attention_decoder",
    "basic_rnn_seq2seq",
    "embedding_attention_decoder",
    "embedding_attention_seq2seq",
    "embedding_rnn_decoder",
    "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq",
    "model_with_buckets",
    "one2many_rnn_seq2seq",
    "rnn_decoder",
    "sequence_loss",
    "sequence_loss_by_example",
    "tied_rnn_seq2seq",
]


#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")
