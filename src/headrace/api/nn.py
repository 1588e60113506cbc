"""``tf.nn``: what neural networks are made of."""

from headrace.namespaces.lazy import lazy as _lazy
from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)

#: Names that higher layers provide.
__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.rnn.dynamic": ("bidirectional_dynamic_rnn", "dynamic_rnn"),
        "headrace.rnn.raw": ("raw_rnn",),
        "headrace.rnn.static": (
            "static_bidirectional_rnn",
            "static_rnn",
            "static_state_saving_rnn",
        ),
    },
    modules={"rnn_cell": "headrace.rnn.rnn_cell"},
)
