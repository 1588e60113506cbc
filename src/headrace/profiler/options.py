"""What to show of a profile, and how."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

Options = dict[str, Any]

#: The type, for ``account_type_regexes``, of variables that are trained.
TRAINABLE_VARIABLES = "_trainable_variables"

_EVERYTHING: Options = {
    "max_depth": 10000,
    "min_bytes": 0,
    "min_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "min_occurrence": 0,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": True,
    "select": ["micros"],
    "step": -1,
    "output": "stdout",
}


def _options(**changes: Any) -> Options:
    return copy.deepcopy(_EVERYTHING) | changes


class ProfileOptionBuilder:
    """Puts options of ``tf.profiler.profile`` together.

    >>> import headrace as tf
    >>> builder = tf.profiler.ProfileOptionBuilder
    >>> options = builder(builder.float_operation()).with_empty_output().build()
    >>> options["order_by"], options["output"]
    ('float_ops', 'none')

    Args:
        options: what to begin with; by default everything, times only.
    """

    def __init__(self, options: Options | None = None) -> None:
        if options is None:
            options = _options(max_depth=100, account_displayed_op_only=False)
        self._options = copy.deepcopy(options)

    @staticmethod
    def trainable_variables_parameter() -> Options:
        """Options for the sizes of the variables that are trained."""
        return _options(account_type_regexes=[TRAINABLE_VARIABLES], select=["params"])

    @staticmethod
    def float_operation() -> Options:
        """Options for the floating point operations of each op."""
        return _options(min_float_ops=1, order_by="float_ops", select=["float_ops"])

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> Options:
        """Options for the time and memory of ops that took at least as much as is given."""
        return _options(
            min_micros=min_micros,
            min_bytes=min_bytes,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
            order_by="micros",
            select=["micros", "bytes"],
        )

    def build(self) -> Options:
        """The options, as a dictionary."""
        return copy.deepcopy(self._options)

    def _with(self, **changes: Any) -> Self:
        self._options |= copy.deepcopy(changes)
        return self

    def with_max_depth(self, max_depth: int) -> Self:
        """Leave out what is deeper in the tree; in the op view, further down the list."""
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self,
        min_bytes: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> Self:
        """Leave out what takes less memory."""
        return self._with(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> Self:
        """Leave out what takes less time."""
        return self._with(
            min_micros=min_micros,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
        )

    def with_min_parameters(self, min_params: int) -> Self:
        """Leave out variables with fewer elements."""
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> Self:
        """Leave out types of ops that are in the graph less often."""
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> Self:
        """Leave out what does fewer floating point operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: Sequence[str]) -> Self:
        """Count only ops of which a type (op type, device ...) matches one of the patterns."""
        return self._with(account_type_regexes=account_type_regexes)

    def with_node_names(
        self,
        start_name_regexes: Sequence[str] | None = None,
        show_name_regexes: Sequence[str] | None = None,
        hide_name_regexes: Sequence[str] | None = None,
        trim_name_regexes: Sequence[str] | None = None,
    ) -> Self:
        """Choose by name: begin at, show, do not show, or leave out what is below."""
        given = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._with(**{key: value for key, value in given.items() if value is not None})

    def account_displayed_op_only(self, is_true: bool) -> Self:
        """Whether totals leave out what is not shown."""
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self) -> Self:
        """Print nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> Self:
        """Print to the standard output."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> Self:
        """Write the report to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: str) -> Self:
        """Write a trace for ``chrome://tracing`` to ``<timeline_file>_<step>``."""
        return self._with(output=f"timeline:outfile={timeline_file}")

    def with_pprof_output(self, pprof_file: str) -> Self:
        """Ask for a pprof file, which Headrace does not write: profiling will say so."""
        return self._with(output=f"pprof:outfile={pprof_file}")

    def order_by(self, attribute: str) -> Self:
        """Sort by ``name``, or by one of the figures, largest first."""
        return self._with(order_by=attribute)

    def select(self, attributes: Sequence[str]) -> Self:
        """The figures to show: ``micros``, ``bytes``, ``params``, ``float_ops`` ..."""
        return self._with(select=attributes)

    def with_step(self, step: int) -> Self:
        """The step to show, -1 for the mean of all."""
        return self._with(step=step)
