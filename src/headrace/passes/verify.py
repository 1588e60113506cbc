"""Checks that a step graph is well formed.

In: a step graph. Out: nothing, or an AssertionError that lists all that is wrong.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2], name="x")
    ...     step = build_step([tf.exp(x, name="y")], [x], [])
    >>> step.nodes.reverse()
    >>> verify_step(step, "turned round")
    Traceback (most recent call last):
        ...
    AssertionError: Step graph is broken (turned round):
      <y = Exp(x:0:0)> takes x:0:0, which is not before it
"""

from __future__ import annotations

from headrace.passes.ir import FEED, StepGraph


def verify_step(step: StepGraph, after: str) -> None:
    """Raise AssertionError, with everything found, if the graph is not well formed."""
    found: list[str] = []
    position = {n: i for i, n in enumerate(step.nodes)}
    for node in step.nodes:
        for source, index in node.inputs:
            if position.get(source, len(position)) >= position[node]:
                found.append(f"{node!r} takes {source.name}:{index}, which is not before it")
            elif index >= len(source.dtypes):
                found.append(f"{node!r} takes output {index} of {source!r}, which has none such")
        for source in node.control:
            if position.get(source, len(position)) >= position[node]:
                found.append(f"{node!r} waits for {source.name}, which is not before it")
        if node.op_def is FEED and node not in step.feeds:
            found.append(f"{node!r} is fed, but not one of the feeds")
    for source, index in step.fetches:
        if source not in position:
            found.append(f"fetch {source.name}:{index} is not in the graph")
    for node in step.targets:
        if node not in position:
            found.append(f"target {node.name} is not in the graph")
    if found:
        raise AssertionError(f"Step graph is broken ({after}):\n  " + "\n  ".join(found))
