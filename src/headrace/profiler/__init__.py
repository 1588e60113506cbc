"""Where parameters, time and memory go: ``tf.profiler``."""

from typing import Any as _Any

from headrace.profiler.analyzer import Profiler, advise, profile, write_op_log
from headrace.profiler.options import ProfileOptionBuilder

_MESSAGES = ("AdviceProto", "GraphNodeProto", "MultiGraphNodeProto", "OpLogProto")

__all__ = [
    "ProfileOptionBuilder",
    "Profiler",
    "advise",
    "profile",
    "write_op_log",
]


def __getattr__(name: str) -> _Any:
    if name in _MESSAGES:
        from headrace.graph import proto

        return getattr(proto, name)
    raise AttributeError(f"module 'headrace.profiler' has no attribute {name!r}.")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MESSAGES})
