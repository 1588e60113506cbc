"""What HEADRACE_DATA_PARALLEL says."""

import pytest

from headrace.data_parallel.mode import ParallelMode


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("async", ParallelMode("async")),
        ("sync", ParallelMode("sync")),
        ("sync:2", ParallelMode("sync", 2)),
        ("all-reduce", ParallelMode("all-reduce")),
    ],
)
def test_modes(text, mode):
    assert ParallelMode.parse(text) == mode


@pytest.mark.parametrize("text", ["sink", "sync:", "sync:x", "async:1", "1", "sync:²"])
def test_other_words_are_refused(text):
    with pytest.raises(
        ValueError, match=r"HEADRACE_DATA_PARALLEL can be async, sync, sync:BACKUPS"
    ):
        ParallelMode.parse(text)
