"""What stands out in a profile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from headrace.errors import InvalidArgumentError, suggest
from headrace.profiler import views
from headrace.profiler.nodes import ProfiledNode
from headrace.profiler.options import ProfileOptionBuilder
from headrace.profiler.report import time_text

_TOP = 3
#: Below this share of its time an accelerator waits for the host.
_BUSY = 0.5


def _times(node: ProfiledNode, stats: Any) -> str:
    return (
        f"{node.name}, cpu: {time_text(stats.cpu_micros)}, accelerator: "
        f"{time_text(stats.accelerator_micros)}, total: {time_text(stats.micros)}"
    )


def _expensive(nodes: dict[str, ProfiledNode]) -> list[str]:
    """The types, scopes and lines that take most time."""
    options = ProfileOptionBuilder.time_and_memory(min_bytes=0)
    types = views.type_list(nodes, options)
    if not types:
        return ["No step was traced: pass the RunMetadata of one."]
    whole = types[0].total.micros or 1
    reports = [
        "\n".join(
            f"top {i} operation type: {_times(e, e.own)} ({100 * e.own.micros / whole:.2f}%)"
            for i, e in enumerate(types[:_TOP], 1)
        )
    ]
    for what, tree in (("scope", views.scope_tree), ("line", views.code_tree)):
        shown = views.arrange(tree(nodes), options).shown[:_TOP]
        reports.append(
            "\n".join(f"top {i} {what}: {_times(e, e.total)}" for i, e in enumerate(shown, 1))
        )
    return reports


def _accelerators(nodes: dict[str, ProfiledNode]) -> list[str]:
    """Accelerators that are idle for much of the step."""
    reports = []
    busy: dict[str, int] = {}
    whole = 0
    for node in nodes.values():
        whole += node.own.micros
        for device in node.devices:
            if "CPU" not in device.rpartition("/")[2].upper():
                busy[device] = busy.get(device, 0) + node.own.accelerator_micros
    for device, micros in sorted(busy.items()):
        share = micros / (whole or 1)
        if share < _BUSY:
            reports.append(f"device: {device} low utilization: {share:.2f}")
    return reports


def _operations(nodes: dict[str, ProfiledNode]) -> list[str]:
    """Ops that have a faster form on their device."""
    slow = [
        node.name
        for node in nodes.values()
        if node.own.accelerator_micros
        and node.op is not None
        and node.op.attrs.get("data_format") == "NHWC"
    ]
    if not slow:
        return []
    return [f"Found operations using NHWC data_format on an accelerator: {', '.join(slow[:_TOP])}"]


CHECKERS: dict[str, Callable[[dict[str, ProfiledNode]], list[str]]] = {
    "ExpensiveOperationChecker": _expensive,
    "AcceleratorUtilizationChecker": _accelerators,
    "OperationChecker": _operations,
}


def advice(nodes: dict[str, ProfiledNode], checkers: Iterable[str]) -> Any:
    """Run checkers, print their reports, and answer them as an AdviceProto.

    Raises:
        InvalidArgumentError: if there is no such checker.
    """
    from headrace.graph.proto import AdviceProto

    result = AdviceProto()
    for name in checkers:
        check = CHECKERS.get(name)
        if check is None:
            raise InvalidArgumentError(
                None, None, f"There is no checker {name!r}.{suggest(name, CHECKERS)}"
            )
        reports = check({key: _fresh(node) for key, node in nodes.items()})
        result.checkers[name].reports.extend(reports)
        sys.stdout.write("\n".join(["", f"{name}:", *reports, ""]))
    return result


def _fresh(node: ProfiledNode) -> ProfiledNode:
    """A copy: views count in the nodes they arrange."""
    return ProfiledNode(
        node.name,
        node.op,
        node.own.copy(),
        types=node.types,
        devices=node.devices,
        shape=node.shape,
    )
