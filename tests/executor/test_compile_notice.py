"""What a person at a terminal sees while a program compiles for long."""

from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console
from rich.progress import Progress

from headrace.executor.compile_notice import told_at_terminal


def _terminal(width: int = 100) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width)


def _text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_what_is_compiled_and_since_when():
    console = _terminal()
    with told_at_terminal("region of 7 ops to loss", console, after=0.01) as shown:
        assert shown.wait(60)
    assert "Compiling region of 7 ops to loss" in _text(console)
    assert "0:00:00" in _text(console)


@pytest.mark.parametrize("width", [80, 40])
def test_a_long_name_leaves_room_for_the_time(width):
    console = _terminal(width)
    label = "region of 1013 ops to gradients/sparse_softmax_cross_entropy_loss/value"
    with told_at_terminal(label, console, after=0.01) as shown:
        assert shown.wait(60)
    assert "0:00:00" in _text(console)
    assert "Compiling region" in _text(console)


def test_the_line_goes_at_the_end():
    console = _terminal()
    with told_at_terminal("it", console, after=0.01) as shown:
        assert shown.wait(60)
    # The cursor goes up and the line is erased.
    assert _text(console).rstrip("\n").endswith("\x1b[2K")


def test_nothing_is_said_of_what_is_fast_or_where_nobody_reads():
    console = _terminal()
    with told_at_terminal("it", console, after=60.0) as shown:
        pass
    assert not shown.is_set()
    plain = Console(file=io.StringIO(), force_terminal=False)
    before = threading.active_count()
    with told_at_terminal("it", plain, after=0.0) as shown:
        assert threading.active_count() == before
    assert not shown.is_set()
    assert _text(console) == _text(plain) == ""


def test_a_display_of_the_program_itself_goes_on():
    console = _terminal()
    with Progress(console=console) as progress:
        task = progress.add_task("mine", total=2)
        with told_at_terminal("it", console, after=0.0):
            progress.update(task, advance=1)
        progress.update(task, advance=1)
    assert "100%" in _text(console)
