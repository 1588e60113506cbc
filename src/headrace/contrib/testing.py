"""``tf.contrib.testing``: what event files hold, and a summary writer that writes none."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from headrace.contrib.folders import Folder as _Folder
from headrace.files.paths import as_path
from headrace.summary import writer as _writer
from headrace.train.summary_io import summary_iterator

__all__ = [
    "FakeSummaryWriter",
    "assert_summary",
    "latest_event_file",
    "latest_events",
    "latest_summaries",
    "simple_values_from_events",
    "to_summary_proto",
]


def to_summary_proto(summary_str: bytes) -> Any:
    """A Summary message from its bytes.

    Raises:
        TypeError: if they are no bytes.
        google.protobuf.message.DecodeError: if they are no Summary.
    """
    from headrace.graph.proto import Summary  # loaded on first use

    return Summary.FromString(summary_str)


def assert_summary(
    expected_tags: Iterable[str], expected_simple_values: dict[str, float], summary_proto: Any
) -> None:
    """Check the tags of a Summary, and the values of some.

    Raises:
        AssertionError: if they differ.
    """
    found = {v.tag: v.simple_value for v in summary_proto.value}
    assert set(expected_tags) == set(found), f"expected {set(expected_tags)}, found {set(found)}"
    for tag, value in expected_simple_values.items():
        assert found[tag] == value, f"{tag}: expected {value}, found {found[tag]}"


def latest_event_file(base_dir: str) -> str | None:
    """The newest event file of a folder; None if there is none, or no such folder.

    Raises:
        TypeError: if ``base_dir`` is no path.
    """
    paths = sorted(str(path) for path in Path(as_path(base_dir)).glob("events.*"))
    return paths[-1] if paths else None


def latest_events(base_dir: str) -> Iterable[Any]:
    """The events of the newest event file of a folder; none if there is no file.

    Raises:
        TypeError: if ``base_dir`` is no path.
    """
    path = latest_event_file(base_dir)
    return [] if path is None else summary_iterator(path)


def latest_summaries(base_dir: str) -> list[Any]:
    """The events with summaries of the newest event file of a folder; none if there is no file.

    Raises:
        TypeError: if ``base_dir`` is no path.
    """
    return [event for event in latest_events(base_dir) if event.HasField("summary")]


def simple_values_from_events(events: Iterable[Any], tags: Iterable[str]) -> dict[str, float]:
    """The last value of each tag: a number, by tag.

    Raises:
        ValueError: if a summary of a tag is no number.
    """
    wanted = set(tags)
    found: dict[str, tuple[int, float]] = {}
    for event in events:
        if not event.HasField("summary"):
            continue
        for value in event.summary.value:
            if value.tag not in wanted:
                continue
            if not value.HasField("simple_value"):
                raise ValueError(f"Summary for {value.tag} is not a simple_value.")
            if value.tag not in found or event.step > found[value.tag][0]:
                found[value.tag] = (event.step, value.simple_value)
    return {tag: number for tag, (_, number) in found.items()}


class FakeSummaryWriter:
    """Keeps in memory what a `FileWriter` would write.

    >>> writer = tf.contrib.testing.FakeSummaryWriter("logs")
    >>> value = tf.Summary.Value(tag="loss", simple_value=0.5)
    >>> writer.add_summary(tf.Summary(value=[value]), 7)
    >>> list(writer.summaries)
    [7]
    """

    _replaced_summary_writer: ClassVar[Any] = None

    def __init__(self, logdir: str, graph: Any = None, *args: Any, **kwargs: Any) -> None:
        self._logdir = logdir
        self._graph = graph
        self._summaries: dict[Any, list[Any]] = {}
        self._graphs: list[Any] = []
        self._meta_graphs: list[Any] = []
        self._session_logs: list[Any] = []
        self._run_metadata: dict[str, Any] = {}

    @classmethod
    def install(cls) -> None:
        """Let FileWriterCache give such writers. Raises ValueError if it does so already."""
        if cls._replaced_summary_writer is not None:
            raise ValueError("FakeSummaryWriter already installed.")
        cls._replaced_summary_writer = _writer.FileWriter
        _writer.FileWriter = cls  # type: ignore[assignment,misc]
        _writer.FileWriterCache.clear()

    @classmethod
    def uninstall(cls) -> None:
        """Undo `install`. Raises ValueError if there was none."""
        if cls._replaced_summary_writer is None:
            raise ValueError("FakeSummaryWriter not installed.")
        _writer.FileWriter = cls._replaced_summary_writer  # type: ignore[misc]
        _writer.FileWriterCache.clear()
        cls._replaced_summary_writer = None

    @property
    def summaries(self) -> dict[Any, list[Any]]:
        """The summaries by step."""
        return self._summaries

    def get_logdir(self) -> str:
        """The folder that it was made for."""
        return self._logdir

    def add_summary(self, summ: Any, current_global_step: Any) -> None:
        """Keep a summary (a message or its bytes) of a step."""
        message = to_summary_proto(summ) if isinstance(summ, bytes) else summ
        self._summaries.setdefault(current_global_step, []).append(message)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Keep a graph."""
        if graph_def is not None:
            raise ValueError("Unexpected graph_def.")
        self._graphs.append(graph)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Keep a MetaGraphDef."""
        self._meta_graphs.append(meta_graph_def)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Keep a SessionLog."""
        self._session_logs.append(session_log)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Keep the metadata of a run."""
        self._run_metadata[tag] = run_metadata

    def flush(self) -> None:
        """Nothing to do."""

    def reopen(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""

    def assert_summaries(
        self,
        test_case: Any,
        expected_logdir: str | None = None,
        expected_graph: Any = None,
        expected_summaries: dict[Any, dict[str, float]] | None = None,
        expected_added_graphs: Any = None,
        expected_added_meta_graphs: Any = None,
        expected_session_logs: Any = None,
    ) -> None:
        """Check what was kept; None checks nothing. Raises AssertionError if it differs."""
        for what, expected, kept in (
            ("logdir", expected_logdir, self._logdir),
            ("graphs", expected_added_graphs, self._graphs),
            ("meta graphs", expected_added_meta_graphs, self._meta_graphs),
            ("session logs", expected_session_logs, self._session_logs),
        ):
            assert expected is None or expected == kept, f"{what}: {kept}, expected {expected}"
        assert expected_graph is None or expected_graph is self._graph, "another graph"
        for step, values in (expected_summaries or {}).items():
            assert step in self._summaries, f"missing step {step}: found {sorted(self._summaries)}"
            found = {v.tag: v.simple_value for s in self._summaries[step] for v in s.value}
            for tag, value in values.items():
                assert tag in found, f"step {step} has no {tag}: found {sorted(found)}"
                assert abs(value - found[tag]) < 5e-5, f"{tag}: {found[tag]}, expected {value}"


#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")
