"""Step traces in the format of Chrome's trace viewer."""

from __future__ import annotations

import json
from typing import Any


class Timeline:
    """Turns the StepStats of a traced step into a Chrome trace.

    Fill the StepStats with ``sess.run(..., options=tf.RunOptions(trace_level=...),
    run_metadata=metadata)``, write the text to a file and open it in ``chrome://tracing``.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._step_stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False
    ) -> str:
        """The trace as JSON text: one process for each device, one slice for each op."""
        events: list[dict[str, Any]] = []
        for pid, device in enumerate(self._step_stats.dev_stats):
            events.append(
                {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": device.device}}
            )
            for node in device.node_stats:
                op_type = node.timeline_label.rpartition(" = ")[2].partition("(")[0]
                events.append(
                    {
                        "ph": "X",
                        "cat": "Op",
                        "name": op_type or node.node_name,
                        "pid": pid,
                        "tid": 0,
                        "ts": node.all_start_micros,
                        "dur": max(1, node.all_end_rel_micros),
                        "args": {"name": node.node_name, "op": op_type},
                    }
                )
        return json.dumps({"traceEvents": events}, indent=1)
