"""The scopes that a graph applies to each new operation: names, control inputs, devices."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.graph import devices

if TYPE_CHECKING:
    from headrace.graph.tensor import Operation

_VALID_OP_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_VALID_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


class NameTable:
    """Hands out unique names within one graph; names differ also when case is ignored."""

    __slots__ = ("_uses", "scope")

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}
        self.scope = ""

    def unique(self, name: str, mark_as_used: bool = True) -> str:
        """``name`` under the current scope, with ``_1``, ``_2`` ... appended when taken."""
        if self.scope:
            name = f"{self.scope}/{name}"
        key = name.lower()
        uses = self._uses
        count = uses.get(key, 0)
        if mark_as_used:
            uses[key] = count + 1
        if count == 0:
            return name
        base = key
        while key in uses:
            key = f"{base}_{count}"
            count += 1
        if mark_as_used:
            uses[key] = 1
        return f"{name}_{count - 1}"

    def claim(self, name: str) -> None:
        """Record that ``name`` (full path) is in use."""
        key = name.lower()
        self._uses.setdefault(key, 1)

    @staticmethod
    def check_op_name(name: str) -> None:
        if not _VALID_OP_NAME.match(name):
            raise ValueError(
                f"'{name}' is not a valid operation name. A name starts with a letter, digit or "
                "'.', followed by letters, digits and any of _ . \\ / > -"
            )

    def check_scope_name(self, name: str) -> None:
        valid = _VALID_SCOPE_NAME if self.scope else _VALID_OP_NAME
        if not valid.match(name):
            raise ValueError(
                f"'{name}' is not a valid scope name. A scope name starts with a letter, digit or "
                "'.', followed by letters, digits and any of _ . \\ / > -"
            )


class ControlScope:
    """One ``with control_dependencies(...)`` block."""

    __slots__ = ("made_inside", "ops", "resets")

    def __init__(self, ops: list[Operation], resets: bool) -> None:
        self.ops = ops
        #: ``control_dependencies(None)``: outer blocks do not apply.
        self.resets = resets
        self.made_inside: set[Operation] = set()


class ControlStack:
    """The control-dependency blocks that are open."""

    __slots__ = ("scopes",)

    def __init__(self) -> None:
        self.scopes: list[ControlScope] = []

    def inputs_for(self, input_ops: set[Operation]) -> list[Operation]:
        """Control inputs for a new op; those implied by its data inputs are left out."""
        found: dict[Operation, None] = {}
        for scope in reversed(self.scopes):
            if not (input_ops and not scope.made_inside.isdisjoint(input_ops)):
                for op in scope.ops:
                    if op not in input_ops:
                        found[op] = None
            if scope.resets:
                break
        return list(found)

    def record(self, op: Operation) -> None:
        for scope in self.scopes:
            scope.made_inside.add(op)

    def current(self) -> list[Operation]:
        """All ops that new ops would wait for."""
        return self.inputs_for(set())


DeviceFunction = Callable[[Any], Any]


class DeviceStack:
    """The ``with tf.device(...)`` blocks that are open, outermost first."""

    __slots__ = ("_merged", "base", "entries")

    def __init__(self) -> None:
        #: What decides what no block does, also within ``tf.device(None)``.
        self.base: DeviceFunction | None = None
        self.entries: list[str | DeviceFunction | None] = []
        self._merged: str | None = ""

    def push(self, spec: Any) -> None:
        entry = spec if spec is None or callable(spec) else devices.canonical_name(spec)
        self.entries.append(entry)
        self._merge()

    def pop(self) -> None:
        self.entries.pop()
        self._merge()

    def decide_by(self, base: DeviceFunction | None) -> None:
        """Have a function decide what no block does."""
        self.base = base
        self._merge()

    def _merge(self) -> None:
        """When every open block is a plain string, one merged string serves all new ops."""
        if self.base is not None:
            self._merged = None
            return
        merged = ""
        for entry in self.entries:
            if entry is None:
                merged = ""
            elif callable(entry):
                self._merged = None
                return
            else:
                merged = devices.merge(merged, entry)
        self._merged = merged

    def apply(self, op: Operation) -> None:
        """Give ``op`` its device; inner blocks win over outer ones."""
        if self._merged is not None:
            if self._merged:
                op.device = devices.merge(self._merged, op.device) if op.device else self._merged
            return
        for entry in reversed(self.entries):
            if entry is None:
                break
            chosen = entry(op) if callable(entry) else devices.merge(entry, op.device)
            if chosen is not None:
                op.device = devices.canonical_name(chosen)
        if self.base is not None:
            op.device = devices.canonical_name(self.base(op))
