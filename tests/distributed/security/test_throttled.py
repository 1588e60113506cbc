"""Log lines that strangers can cause."""

from __future__ import annotations

import logging

from headrace.distributed.security import throttled
from headrace.distributed.security.throttled import Throttled, one_line_each


def test_what_is_alike_is_said_once_a_minute(caplog):
    now = [0.0]
    log = Throttled(logging.getLogger("test.throttled"), lambda: now[0])
    for number in range(5):
        log.warning("kind", "It was %d", number)
        log.warning("other", "Other")
    now[0] = 61.0
    log.warning("kind", "It was %d", 9)
    expected = ["It was 0", "Other", "It was 9 (and 4 more like it since)"]
    assert caplog.messages == expected


def test_kinds_have_a_limit(caplog):
    now = [0.0]
    log = Throttled(logging.getLogger("test.throttled"), lambda: now[0])
    for number in range(1000):
        log.warning(number, "Kind %d", number)
    assert len(caplog.messages) == throttled._MOST_KINDS + 1
    now[0] = 61.0
    log.warning(2000, "Kind 2000")
    assert caplog.messages[-1] == "Kind 2000"


def test_a_library_has_one_line_without_a_traceback(caplog):
    log = logging.getLogger("test.library")
    one_line_each(log)
    one_line_each(log)
    for number in range(3):
        try:
            raise ValueError("in the library")
        except ValueError:
            log.exception("Invalid encoding on %s", number)
    (record,) = caplog.records
    assert (record.getMessage(), record.exc_info) == ("Invalid encoding on 0", None)
