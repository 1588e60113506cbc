"""Benchmarks as classes: methods whose names begin with ``benchmark``."""

from __future__ import annotations

import inspect
import os
import re
import sys
import time
from typing import Any

import numpy as np

__all__ = ["Benchmark", "benchmark_config"]

_classes: list[type[Benchmark]] = []


def benchmark_config() -> Any:
    """The ConfigProto for benchmarks: the default one, as there is nothing to switch off."""
    from headrace.graph.proto import ConfigProto

    return ConfigProto()


class Benchmark:
    """Base class of benchmarks; every subclass is known to `tf.test.main`.

    >>> class Product(tf.test.Benchmark):
    ...     def benchmark_product(self):
    ...         self.report_benchmark(iters=100, wall_time=0.25)
    >>> Product.is_abstract(), tf.test.Benchmark.is_abstract()
    (False, True)
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _classes.append(cls)

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether the class has no benchmarks of its own."""
        return not any(name.startswith("benchmark") for name in dir(cls))

    def _get_name(self, overwrite_name: str | None = None) -> str:
        """The class and the method that reports."""
        name = overwrite_name
        for frame in inspect.stack()[2:]:
            if name is None and frame.function.startswith("benchmark"):
                name = frame.function
        if name is None:
            raise ValueError("Unable to determine calling Benchmark class.")
        return f"{type(self).__name__}.{name}"

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: dict[str, Any] | None = None,
        name: str | None = None,
        metrics: list[dict[str, Any]] | None = None,
    ) -> None:
        """Print the result of a benchmark.

        Args:
            iters: how many times it ran.
            cpu_time: seconds of processor time for one run.
            wall_time: seconds for one run.
            throughput: MB/s.
            extras: more values by name.
            name: in the place of the method's name.
            metrics: more values, each with ``name`` and ``value``.
        """
        values = {
            "iters": iters,
            "cpu_time": cpu_time,
            "wall_time": wall_time,
            "throughput": throughput,
            **(extras or {}),
            **{metric["name"]: metric["value"] for metric in metrics or ()},
        }
        shown = ", ".join(f"{key}: {value}" for key, value in values.items() if value is not None)
        print(f"{self._get_name(name)}: {shown}", file=sys.stderr)

    def run_op_benchmark(
        self,
        sess: Any,
        op_or_tensor: Any,
        feed_dict: dict[Any, Any] | None = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: dict[str, Any] | None = None,
        mbs: float = 0,
    ) -> dict[str, Any]:
        """Run an operation repeatedly, report the median and return the figures.

        Args:
            sess: the session.
            op_or_tensor: what to run.
            feed_dict: values to feed.
            burn_iters: runs before the first that counts.
            min_iters: runs that count.
            store_trace: add a step's timeline to the extras (``full_trace_chrome_format``).
            store_memory_usage: accepted; memory is not reported.
            name: in the place of the method's name.
            extras: more values to report.
            mbs: megabytes that one run moves, for the throughput.
        """
        target = getattr(op_or_tensor, "op", op_or_tensor)
        times = []
        for _ in range(burn_iters):
            sess.run(target, feed_dict=feed_dict)
        for _ in range(min_iters):
            begin = time.perf_counter()
            sess.run(target, feed_dict=feed_dict)
            times.append(time.perf_counter() - begin)
        figures = dict(extras or {})
        if store_trace:
            figures["full_trace_chrome_format"] = _trace(sess, target, feed_dict)
        median = float(np.median(times)) if times else -1.0
        results: dict[str, Any] = {
            "iters": min_iters,
            "wall_time": median,
            "extras": {**figures, "wall_time_mean": float(np.mean(times)) if times else -1.0},
            "name": name,
            "throughput": mbs / median if median > 0 else 0.0,
        }
        self.report_benchmark(**results)
        return results

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, in the default session or one of their own."""
        from headrace.session.session import Session, get_default_session

        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with Session() as own:
            return own.run(tensors)


def _trace(session: Any, target: Any, feed_dict: Any) -> str:
    from headrace.graph.proto import RunMetadata, RunOptions
    from headrace.session.timeline import Timeline

    metadata = RunMetadata()
    options = RunOptions(trace_level=RunOptions.FULL_TRACE)
    session.run(target, feed_dict=feed_dict, options=options, run_metadata=metadata)
    return Timeline(metadata.step_stats).generate_chrome_trace_format()


def wanted(argv: list[str]) -> str | None:
    """The pattern of ``--benchmarks=``, in the arguments or the environment; None without one."""
    for argument in argv[1:]:
        name, _, value = argument.lstrip("-").partition("=")
        if name == "benchmarks" and argument.startswith("-"):
            return "." if value in ("", "all") else value
    return os.environ.get("TEST_BENCHMARKS")


def run_benchmarks(argv: list[str]) -> None:
    """Run the benchmarks whose class and method fit the pattern."""
    pattern = wanted(argv) or "."
    for cls in _classes:
        for name in sorted(dir(cls)):
            if name.startswith("benchmark") and re.search(pattern, f"{cls.__name__}.{name}"):
                getattr(cls(), name)()
