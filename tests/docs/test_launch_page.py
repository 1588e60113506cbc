"""docs/launch.md names options that the command has, and times that the rules have."""

import re
from pathlib import Path

from headrace.cli.launch import launch_command

PAGE = (Path(__file__).parents[2] / "docs" / "launch.md").read_text()


def test_the_options_of_the_page_are_those_of_the_command():
    known = {
        name
        for option in launch_command.params
        for name in (*option.opts, *option.secondary_opts)
        if name.startswith("--")
    }
    shown = set(re.findall(r"--[a-z][a-z-]*", PAGE))
    others = {"--rate", "--ntasks", "--kill-on-bad-exit"}  # of scripts and of srun
    assert shown - known == others


def test_the_times_of_the_page_are_those_of_the_rules():
    from headrace.launch.rules import LaunchTiming

    timing = LaunchTiming()
    assert (timing.first_pause, timing.longest_pause, timing.early) == (0.5, 30.0, 10.0)
    assert (timing.healthy, timing.end, timing.evaluator) == (60.0, 15.0, 300.0)
    for words in ("after half a second", "30 s at most", "first ten seconds", "life of a minute"):
        assert words in PAGE
    for words in ("SIGKILL after 15 s", "up to 5 minutes"):
        assert words in PAGE
