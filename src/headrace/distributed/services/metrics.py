"""Metrics of a task for Prometheus, by the names that its conventions ask for.

`METRICS` is the table of them; the same stands in docs/operations.md. Values are read when somebody
asks: nothing is counted for metrics alone but events.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from headrace.distributed.cluster.cluster_spec import join_address
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.security.credentials import Security
from headrace.distributed.services.metrics_http import PageServer
from headrace.errors import UnavailableError
from headrace.settings import flags
from headrace.structured_logs import counts, short_task

__all__ = ["METRICS", "MetricsServer", "TaskMetric", "metrics_port_of"]

_log = logging.getLogger("headrace.distributed")

#: Labels beside the task, and a value.
Sample = tuple[tuple[str, ...], float]


class TaskMetric(NamedTuple):
    """One metric.

    Attributes:
        name: as the page has it: that of a counter ends in ``_total``.
        kind: a counter only grows while the process lives.
        labels: beside ``task``.
        help: what it is.
        samples: its values, from the status of a task.
    """

    name: str
    kind: Literal["counter", "gauge"]
    labels: tuple[str, ...]
    help: str
    samples: Callable[[pb.TaskStatus], Iterable[Sample]]


def _one(read: Callable[[pb.TaskStatus], float]) -> Callable[[pb.TaskStatus], Iterable[Sample]]:
    return lambda status: [((), read(status))]


def _summed(pairs: Iterable[Sample]) -> list[Sample]:
    found: dict[tuple[str, ...], float] = {}
    for labels, value in pairs:
        found[labels] = found.get(labels, 0) + value
    return sorted(found.items())


def _links(read: Callable[[Any], float]) -> Callable[[pb.TaskStatus], Iterable[Sample]]:
    def samples(status: pb.TaskStatus) -> Iterable[Sample]:
        # Clients have names that never come again.
        tasks = (link for link in status.links if link.peer.startswith("/job:"))
        return _summed(((short_task(li.peer), li.transport), read(li)) for li in tasks)

    return samples


def _outcomes(status: pb.TaskStatus) -> Iterable[Sample]:
    failed = status.steps_failed
    ok = status.steps_ended - failed
    return [(("ok",), ok), (("failed",), failed), (("given_up",), status.steps_given_up)]


_LINK = ("peer", "transport")

METRICS: tuple[TaskMetric, ...] = (
    TaskMetric(
        "headrace_task_info",
        "gauge",
        ("address", "version"),
        "1; what the task is.",
        lambda s: [((s.address, s.package_version), 1)],
    ),
    TaskMetric(
        "headrace_start_time_seconds",
        "gauge",
        (),
        "When the server began, in seconds since the epoch.",
        _one(lambda s: time.time() - s.uptime_seconds),
    ),
    TaskMetric(
        "headrace_resident_memory_bytes",
        "gauge",
        (),
        "Memory of the process.",
        _one(lambda s: s.memory_bytes),
    ),
    TaskMetric(
        "headrace_cpu_seconds_total",
        "counter",
        (),
        "Time of processors that the process has used.",
        _one(lambda s: s.cpu_seconds),
    ),
    TaskMetric(
        "headrace_steps_total",
        "counter",
        ("outcome",),
        "Steps of the sessions of this task that have ended: ok, failed, or given_up (by their own "
        "deadline, or with their session).",
        _outcomes,
    ),
    TaskMetric(
        "headrace_step_seconds_total",
        "counter",
        (),
        "What those that are ok or failed took together.",
        _one(lambda s: s.step_seconds),
    ),
    TaskMetric(
        "headrace_parts_total",
        "counter",
        (),
        "Parts of steps, of any session of the cluster, that this task has run.",
        _one(lambda s: s.steps_run),
    ),
    TaskMetric(
        "headrace_steps_running",
        "gauge",
        (),
        "Steps of the sessions of this task that run now.",
        _one(lambda s: len(s.steps)),
    ),
    TaskMetric(
        "headrace_longest_step_seconds",
        "gauge",
        (),
        "How long the oldest of these runs.",
        _one(lambda s: max((step.seconds for step in s.steps), default=0.0)),
    ),
    TaskMetric(
        "headrace_sessions", "gauge", (), "Sessions of this task.", _one(lambda s: len(s.sessions))
    ),
    TaskMetric(
        "headrace_variables",
        "gauge",
        ("kind",),
        "Variables and other resources here.",
        lambda s: _summed(((v.kind,), 1) for v in s.variables),
    ),
    TaskMetric(
        "headrace_variable_bytes",
        "gauge",
        ("kind",),
        "Their bytes.",
        lambda s: _summed(((v.kind,), v.bytes) for v in s.variables),
    ),
    TaskMetric(
        "headrace_link_receive_bytes_total",
        "counter",
        _LINK,
        "Bytes that came from another task; begins anew with the connection.",
        _links(lambda li: li.bytes_in),
    ),
    TaskMetric(
        "headrace_link_transmit_bytes_total",
        "counter",
        _LINK,
        "Bytes that went to another task.",
        _links(lambda li: li.bytes_out),
    ),
    TaskMetric(
        "headrace_link_receive_frames_total",
        "counter",
        _LINK,
        "Messages that came from another task.",
        _links(lambda li: li.frames_in),
    ),
    TaskMetric(
        "headrace_link_transmit_frames_total",
        "counter",
        _LINK,
        "Messages that went to another task.",
        _links(lambda li: li.frames_out),
    ),
    TaskMetric(
        "headrace_cluster_epoch",
        "gauge",
        (),
        "Of the record of the cluster that the task knows.",
        _one(lambda s: s.epoch),
    ),
    TaskMetric(
        "headrace_events_total",
        "counter",
        ("event",),
        "What has happened in this process, by the names of structured logs.",
        lambda s: [((event,), count) for event, count in counts().items()],
    ),
)


def metrics_port_of(asked: int | None) -> int | None:
    """Where a server offers metrics: as it was asked to, or as the settings say; None: nowhere."""
    if asked is not None:
        return asked
    return int(flags.metrics_port) if flags.metrics_port else None


class _Collector:
    """Makes what `prometheus_client` writes, each time somebody asks."""

    def __init__(self, status: Callable[[], Iterable[pb.TaskStatus]]) -> None:
        self._status = status

    def collect(self) -> Iterator[Any]:
        """The metrics with their values now, those of copies that this process serves, too."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        tasks = list(self._status())
        for metric in METRICS:
            make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = make(metric.name, metric.help, labels=("task", *metric.labels))
            for task in tasks:
                for labels, value in metric.samples(task):
                    family.add_metric((short_task(task.task), *labels), value)
            yield family


class MetricsServer:
    """Offers the metrics of a server over HTTP, at ``/metrics``.

    With TLS in the cluster it speaks TLS, too, and asks for a certificate of the same authority.

    Args:
        host, port: where; port 0 takes a free one.
        status: the state of the tasks that the process serves.

    Raises:
        ImportError: without the package ``prometheus-client``; says how to get it.
        UnavailableError: if the port is taken.
    """

    def __init__(
        self,
        host: str,
        port: int,
        security: Security,
        status: Callable[[], Iterable[pb.TaskStatus]],
    ) -> None:
        try:
            from prometheus_client import CollectorRegistry, make_wsgi_app
        except ImportError:
            raise ImportError(
                "Metrics for Prometheus need the package prometheus-client: "
                "pip install 'headrace[metrics]', or set no port for them."
            ) from None
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(status))
        try:
            app = make_wsgi_app(registry)
            self._server = PageServer(host, port, app, security.server_context())
        except (OSError, OverflowError) as error:
            where, why = join_address(host, port), getattr(error, "strerror", None) or error
            raise UnavailableError(
                None,
                None,
                f"Cannot offer metrics at {where}: {why}. Give another port, or "
                "0 for any that is free.",
            ) from None
        #: ``host:port``.
        self.address = join_address(host, self._server.server_port)
        _log.info("Metrics are at %s", self.address)

    def stop(self) -> None:
        """Take no more calls; then the port is free."""
        self._server.stop()
