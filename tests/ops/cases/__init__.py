"""The op cases of all families: every module here lists its own in ``CASES``.

A module may also have ``COVERED``: ops that a table row cannot test (random, host, stateful and
control-flow ops), each with the test file that does. ``HEADRACE_CASES=math,array`` limits the
families, for work on one of them.
"""

from __future__ import annotations

import importlib
import os
import pkgutil

from headrace.harness.op_cases import OpCase

_only = os.environ.get("HEADRACE_CASES", "")
IS_PARTIAL = bool(_only)
FAMILIES = _only.split(",") if _only else [m.name for m in pkgutil.iter_modules(__path__)]
CASES: list[OpCase] = []
COVERED: dict[str, str] = {}
for _family in FAMILIES:
    _module = importlib.import_module(f"{__name__}.{_family}")
    CASES.extend(getattr(_module, "CASES", []))
    COVERED.update(getattr(_module, "COVERED", {}))
