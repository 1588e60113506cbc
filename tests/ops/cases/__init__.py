"""The op cases of all families: every module here lists its own in ``CASES``.

Ops that a table row cannot test (random, host, stateful and control-flow ops) have tests elsewhere;
which ops the whole suite executes is recorded (`tests/op_record.py`).
"""

from __future__ import annotations

import importlib
import pkgutil

from headrace.harness.op_cases import OpCase

CASES: list[OpCase] = []
for _found in pkgutil.iter_modules(__path__):
    CASES.extend(importlib.import_module(f"{__name__}.{_found.name}").CASES)
