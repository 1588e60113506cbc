"""``tf.contrib.learn.run_n`` and `run_feeds`: some steps of a graph, from a checkpoint."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.train.monitored_session import ChiefSessionCreator, MonitoredSession

__all__ = ["run_feeds", "run_n"]


def run_n(
    output_dict: Mapping[str, Any],
    feed_dict: Mapping[Any, Any] | None = None,
    restore_checkpoint_path: str | None = None,
    n: int = 1,
) -> list[dict[str, Any]]:
    """The values of tensors, of any shapes, in ``n`` steps: a dictionary for each.

    Args:
        output_dict: tensors by name, all of one graph.
        feed_dict: what to feed at each step.
        restore_checkpoint_path: a checkpoint; without it variables have their initial values.

    Raises:
        ValueError: if there are no tensors.
    """
    return run_feeds(output_dict, itertools.repeat(feed_dict, n), restore_checkpoint_path)


def run_feeds(
    output_dict: Mapping[str, Any],
    feed_dicts: Iterable[Any],
    restore_checkpoint_path: str | None = None,
) -> list[dict[str, Any]]:
    """`run_n` with a step for each of several feed dictionaries.

    Raises:
        ValueError: if there are no tensors, which may be of any shapes.
    """
    if not output_dict:
        raise ValueError(f"output_dict is invalid: {output_dict}.")
    graph = next(iter(output_dict.values())).graph
    with graph.as_default():
        found: list[dict[str, Any]] = []
        creator = ChiefSessionCreator(checkpoint_filename_with_path=restore_checkpoint_path)
        with MonitoredSession(creator) as session:
            for feeds in feed_dicts:  # fewer, if the input ends before
                found.append(session.run(dict(output_dict), feed_dict=feeds))
        return found
