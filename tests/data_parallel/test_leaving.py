"""A worker of a plain script that is to leave its cluster."""

from types import SimpleNamespace

from headrace.data_parallel.hooks import TogetherHook


def test_who_is_to_leave_does_not_wait_for_the_chief(second):
    """The others train on: the chief saves much later."""
    session = SimpleNamespace(_engine=SimpleNamespace(is_leaving=True), run=None)
    TogetherHook(second).wait_for_chief(session)
