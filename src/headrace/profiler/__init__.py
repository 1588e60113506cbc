"""Where parameters, time and memory go: ``tf.profiler``."""

from headrace.namespaces.lazy import lazy as _lazy
from headrace.profiler.analyzer import Profiler, advise, profile, write_op_log
from headrace.profiler.options import ProfileOptionBuilder

__all__ = [
    "ProfileOptionBuilder",
    "Profiler",
    "advise",
    "profile",
    "write_op_log",
]


__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.graph.proto": (
            *("AdviceProto", "GraphNodeProto", "MultiGraphNodeProto", "OpLogProto"),
        )
    },
)
