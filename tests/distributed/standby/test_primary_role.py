"""What a server says of its copy."""

from __future__ import annotations

from typing import Any

from headrace.distributed.standby import primary_role
from headrace.distributed.standby.journal import Journal
from headrace.distributed.standby.primary_role import PrimaryRole
from headrace.distributed.standby.rules import Primary
from headrace.executor.resources import ResourceStore

TASK = "/job:ps/replica:0/task:0"


def test_who_was_told_that_there_is_no_witness_is_told_of_the_first_one(caplog, monkeypatch):
    monkeypatch.setattr(primary_role, "_NOTICE_SECONDS", -1.0)

    def nobody(*args: Any) -> Any:
        raise AssertionError("nobody is asked")

    role = PrimaryRole(
        TASK, Journal(ResourceStore()), Primary((TASK, 3)), list, nobody, nobody, nobody
    )
    try:
        role._follower_at = ("/job:ps/replica:0/task:1", 4853303022474001563), "10.0.0.2:2222"
        for _ in range(2):
            role._say_alone()
            role._say_alone()
            role._say_protected()
    finally:
        role.close()
    alone, protected = (
        "updates do not wait for it yet: who serves is decided by a third task, a worker",
        "updates wait for its copy, /job:ps/replica:0/task:1 at 10.0.0.2:2222",
    )
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 4
    for message, part in zip(said, (alone, protected) * 2, strict=True):
        assert part in message
