"""Every switch of the library in one place, read from the environment at import."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass
class Flags:
    """Settings for the whole process.

    Attributes:
        interpret: ``auto`` interprets the first run of a small plan and compiles it when it runs
            again; ``always`` and ``never`` are for tests.
        interpret_limit: a plan that costs more floating point operations is compiled at once.
        verify: check the step graph around every pass.
        dump_passes: print what each pass changed.
        compile_cache: directory of compiled programs kept between processes; empty turns it off.
    """

    interpret: str = "auto"
    interpret_limit: float = 2e7
    verify: bool = False
    dump_passes: bool = False
    compile_cache: str = ""


def _from_environment() -> Flags:
    env = os.environ
    default_cache = os.path.join(
        env.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "headrace"
    )
    return Flags(
        interpret=env.get("HEADRACE_INTERPRET", "auto"),
        interpret_limit=float(env.get("HEADRACE_INTERPRET_LIMIT", "2e7")),
        verify=env.get("HEADRACE_VERIFY", "0") == "1",
        dump_passes=env.get("HEADRACE_DUMP_PASSES", "0") == "1",
        compile_cache=env.get("HEADRACE_COMPILE_CACHE", default_cache),
    )


flags = _from_environment()
