"""Freed memory stays with the process, and the user can have it otherwise."""

from __future__ import annotations

import pytest

from headrace.executor import memory
from headrace.settings import flags


@pytest.fixture
def undecided(monkeypatch):
    """As if no session had been made, in a process that sets nothing; counts calls of mallopt."""
    calls = []

    class Library:
        @staticmethod
        def mallopt(parameter, value):
            calls.append((parameter, value))
            return 1

    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: Library)
    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(flags, "keep_memory", True)
    for name in ("GLIBC_TUNABLES", *memory._OVERRIDES):
        monkeypatch.delenv(name, raising=False)
    return calls


decide = memory.keep_freed_memory.__wrapped__


def test_malloc_is_told_two_things(undecided):
    assert decide()
    assert undecided == [(-3, memory.KEPT_BYTES), (-1, memory.KEPT_BYTES)]


@pytest.mark.parametrize(
    ("name", "value"),
    [(n, "1") for n in memory._OVERRIDES] + [("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")],
)
def test_settings_of_the_user_stand(undecided, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert not decide()
    assert undecided == []


def test_the_flag_turns_it_off(undecided, monkeypatch):
    monkeypatch.setattr(flags, "keep_memory", False)
    assert not decide()
    assert undecided == []


def test_other_systems_and_libraries_are_left_alone(undecided, monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    assert not decide()
    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    assert not decide()
