"""Step traces in the format of Chrome's trace viewer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

#: "name = type(detail)"
_LABEL = re.compile(r"(?P<name>.*) = (?P<type>\w+)\((?P<detail>.*)\)", re.DOTALL)
#: What the detail of a Send or Recv says.
_TRANSFER = re.compile(r"(?P<bytes>\d+) bytes (?P<way>to|from) (?P<peer>.+)")


class Timeline:
    """Turns the StepStats of a traced step into a Chrome trace.

    Fill the StepStats with ``sess.run(..., options=tf.RunOptions(trace_level=...),
    run_metadata=metadata)``, write the text to a file and open it in ``chrome://tracing``. The
    devices of a cluster are on one clock, that of the master.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._step_stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False
    ) -> str:
        """The trace as JSON text.

        One process for each device, in it one slice for each compiled region and op, on as many
        lines as run at once. Transfers between tasks tell their bytes; the slice of a Recv is the
        wait for it, from the begin of the step.

        Args:
            show_dataflow: arrows join what made a value with what took it, and both ends of
                transfers.
            show_memory: a counter for each device shows the bytes of the values that lie between
                regions and ops: from the end of what made a value to the end of the last that took
                it. What a program needs within itself, and variables, are not in it.
        """
        pids: dict[str, int] = {}
        slices: list[dict[str, Any]] = []
        for device in self._step_stats.dev_stats:
            pid = pids.setdefault(device.device, len(pids))
            slices += [slice_of(node, pid, device.device) for node in device.node_stats]
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": device}}
            for device, pid in pids.items()
        ]
        _give_lines(slices)
        events += [{k: v for k, v in s.items() if not k.startswith("_")} for s in slices]
        if show_dataflow:
            events += _arrows(slices)
            events += _flows(slices, len(events))
        if show_memory:
            for pid in pids.values():
                events += _memory([s for s in slices if s["pid"] == pid])
        return json.dumps({"traceEvents": events}, indent=1)


def slice_of(node: Any, pid: int, device: str) -> dict[str, Any]:
    """What a device did, from its NodeExecStats: a complete event of the process ``pid``."""
    label = _LABEL.fullmatch(node.timeline_label)
    op_type = label["type"] if label else ""
    args: dict[str, Any] = {"name": node.node_name, "op": op_type}
    transfer = _TRANSFER.fullmatch(label["detail"]) if label else None
    if transfer is not None:
        task = device.rpartition("/device:")[0]
        here, there = (
            ("source", "destination")
            if transfer["way"] == "to"
            else (
                "destination",
                "source",
            )
        )
        args |= {"bytes": int(transfer["bytes"]), here: task, there: transfer["peer"]}
    takes = label["detail"].split(", ") if label and label["detail"] and transfer is None else []
    return {
        "_takes": takes,
        "_bytes": sum(m.total_bytes for m in node.memory),
        "ph": "X",
        "cat": "Op" if transfer is None else "Transfer",
        "name": op_type or node.node_name,
        "pid": pid,
        "tid": 0,
        "ts": node.all_start_micros,
        "dur": max(1, node.all_end_rel_micros),
        "args": args,
    }


def _give_lines(slices: list[dict[str, Any]]) -> None:
    """Slices of one process that overlap get lines of their own (``tid``)."""
    ends: dict[int, list[int]] = {}
    for one in sorted(slices, key=lambda s: (s["ts"], -s["dur"])):
        lines = ends.setdefault(one["pid"], [])
        free = (i for i, end in enumerate(lines) if end <= one["ts"])
        line = next(free, len(lines))
        if line == len(lines):
            lines.append(0)
        lines[line] = one["ts"] + one["dur"]
        one["tid"] = line


def _arrows(slices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """From the begin of each Send to the end of its Recv."""
    ends: dict[Any, dict[str, dict[str, Any]]] = {}
    for one in slices:
        if one["cat"] == "Transfer":
            args = one["args"]
            key = (args["name"], args["source"], args["destination"])
            ends.setdefault(key, {})[one["name"]] = one
    events = []
    for number, both in enumerate(e for e in ends.values() if len(e) == 2):
        send, recv = both["Send"], both["Recv"]
        common = {"cat": "Transfer", "name": "transfer", "id": number}
        arrived = recv["ts"] + recv["dur"]
        events.append(common | {"ph": "s"} | {k: send[k] for k in ("pid", "tid", "ts")})
        events.append(
            common | {"ph": "t"} | {"pid": recv["pid"], "tid": recv["tid"], "ts": arrived}
        )
    return events


def _makers(slices: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of slices: one made a value that the other took."""
    latest: dict[str, dict[str, Any]] = {}
    for one in sorted(slices, key=lambda s: s["ts"]):
        for name in one["_takes"]:
            if name in latest:
                yield latest[name], one
        if one["args"]["op"] != "Compile":
            latest[one["args"]["name"]] = one


def _flows(slices: list[dict[str, Any]], first: int) -> list[dict[str, Any]]:
    """Arrows from what made a value to what took it, numbered from ``first``."""
    events = []
    for number, (maker, taker) in enumerate(_makers(slices), first):
        common = {"cat": "DataFlow", "name": maker["args"]["name"], "id": number}
        for phase, end in (("s", maker), ("t", taker)):
            events.append(common | {"ph": phase} | {k: end[k] for k in ("pid", "tid", "ts")})
    return events


def _memory(slices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A counter of the bytes of values on one device."""
    until: dict[int, int] = {}
    for maker, taker in _makers(slices):
        until[id(maker)] = max(until.get(id(maker), 0), taker["ts"] + taker["dur"])
    last = max((s["ts"] + s["dur"] for s in slices), default=0)
    changes: dict[int, int] = {}
    for one in slices:
        made = one["ts"] + one["dur"]
        gone = until.get(id(one), last)
        changes[made] = changes.get(made, 0) + one["_bytes"]
        changes[gone] = changes.get(gone, 0) - one["_bytes"]
    events, live = [], 0
    for at in sorted(changes):
        live += changes[at]
        if at < last or live == 0:
            events.append(
                {
                    "ph": "C",
                    "cat": "Memory",
                    "name": "tensors",
                    "pid": slices[0]["pid"],
                    "ts": at,
                    "args": {"bytes": live},
                }
            )
    return events
