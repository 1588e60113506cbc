"""Rewrites of graphs that a program asks for once, for the sessions that it opens afterwards."""

from __future__ import annotations

from typing import Any

__all__ = ["MixedPrecision", "mixed_precision", "with_rewrites"]

#: RewriterConfig.OFF
_OFF = 2


class MixedPrecision:
    """Whether sessions compute in half precision where they can.

    Attributes:
        is_enabled: for sessions from now on.
        has_other_sessions: whether one was opened before, without it.

    >>> mixed_precision.is_enabled
    False
    """

    def __init__(self) -> None:
        self.is_enabled = False
        self.has_other_sessions = False


mixed_precision = MixedPrecision()


def with_rewrites(config: Any) -> Any:
    """The ConfigProto of a new session (None: the default one), with what the program asked for.

    A session whose own ``auto_mixed_precision`` is OFF stays without.
    """
    options = None if config is None else config.graph_options.rewrite_options
    if not mixed_precision.is_enabled or (options and options.auto_mixed_precision == _OFF):
        mixed_precision.has_other_sessions = True
        return config
    from headrace.graph.proto import ConfigProto

    changed = ConfigProto()
    if config is not None:
        changed.CopyFrom(config)
    rewrites = changed.graph_options.rewrite_options
    rewrites.auto_mixed_precision = rewrites.ON
    return changed
