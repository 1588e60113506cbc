"""Who keeps a copy and is to serve it: the copy is there until that has begun."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.distributed.standby import standby_role
from headrace.distributed.standby.standby_role import StandbyRole
from headrace.errors import UnavailableError
from headrace.executor.resources import ResourceHandle

TASK = "/job:ps/replica:0/task:0"
V = ResourceHandle("variable", "", "v")


class Host:
    """Serves a copy when it has failed so many times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.served: list[tuple[dict[ResourceHandle, Any], int]] = []

    def serve(self, values: dict[ResourceHandle, Any], epoch: int) -> None:
        if self.failures:
            self.failures -= 1
            raise UnavailableError(None, None, "no port is free")
        self.served.append((dict(values), epoch))
        values.clear()


def _role(host: Host) -> StandbyRole:
    def nobody(*args: Any) -> Any:
        raise UnavailableError(None, None, "nobody is there")

    role = StandbyRole(
        TASK, ("/job:ps/replica:0/task:1", 5), nobody, nobody, nobody, nobody, nobody, host.serve
    )
    role.values.put(V, np.arange(3.0))
    return role


def test_a_copy_that_cannot_be_served_at_once_is_served_later(caplog, monkeypatch) -> None:
    monkeypatch.setattr(standby_role, "_PAUSE", 0.001)
    host = Host(2)
    _role(host)._begin_serving(7)
    ((values, epoch),) = host.served
    assert epoch == 7
    assert values[V].tolist() == [0.0, 1.0, 2.0]
    assert caplog.text.count("task:0 cannot be served yet; this is tried again") == 2


def test_nobody_waits_for_ever_for_a_copy_that_cannot_be_served(monkeypatch) -> None:
    monkeypatch.setattr(standby_role, "_PAUSE", 0.001)
    monkeypatch.setattr(standby_role, "_PATIENCE", 0.01)
    role = _role(Host(1 << 30))
    with pytest.raises(UnavailableError, match="no port is free"):
        role._begin_serving(7)
    assert not role.holds


def test_what_has_been_taken_is_not_served_again(monkeypatch) -> None:
    host = Host(0)

    def fail(values: dict[ResourceHandle, Any], epoch: int) -> None:
        host.serve(values, epoch)
        raise UnavailableError(None, None, "it has stopped")

    role = _role(host)
    monkeypatch.setattr(role, "_serve", fail)
    with pytest.raises(UnavailableError, match="it has stopped"):
        role._begin_serving(7)
    assert len(host.served) == 1
