"""Traces of steps for programs that make them by `tensorflow.python.client.timeline`."""

from __future__ import annotations

from typing import Any

from headrace.session.step_trace import chrome_trace, task_slices


class Timeline:
    """Turns the StepStats of a traced step into a Chrome trace.

    Fill the StepStats with ``sess.run(..., options=tf.RunOptions(trace_level=...),
    run_metadata=metadata)``, write the text to a file and open it in ``chrome://tracing`` or
    Perfetto. It is the file that `headrace trace` writes, of a step of one's own.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._step_stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False
    ) -> str:
        """The trace as JSON text.

        One process for each task, in it rows of slices for each device and each direction of each
        link. Times begin with the step.

        Args:
            show_dataflow: arrows join what made a value with what took it, and both ends of
                transfers.
            show_memory: a counter for each device shows the bytes of the values that lie between
                regions and ops.
        """
        slices = task_slices(self._step_stats)
        return chrome_trace(
            slices, arrows=show_dataflow, dataflow=show_dataflow, memory=show_memory
        )
