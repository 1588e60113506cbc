"""State that outlives a step: variables, random streams and other resources of one session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol
from weakref import WeakValueDictionary

import numpy as np

from headrace.errors import CancelledError, FailedPreconditionError
from headrace.executor.borrowed import Borrowed
from headrace.executor.claims import Claims
from headrace.ops.core.copied import CopiedResource
from headrace.ops.core.registry import HostResource

#: Begins the kind of resources that each session has for itself.
_PRIVATE = "private "


class ResourceHandle:
    """What a resource tensor holds: the name of some state.

    Equal handles are one object, so that looking up a variable costs a step next to nothing.
    """

    __slots__ = ("__weakref__", "container", "kind", "name")

    kind: str
    container: str
    name: str
    #: A handle is a scalar to ops that hand on any value.
    shape: ClassVar[tuple[int, ...]] = ()
    ndim: ClassVar[int] = 0

    _all: ClassVar[WeakValueDictionary[tuple[str, str, str], Any]] = WeakValueDictionary()
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __new__(cls, kind: str, container: str, name: str) -> ResourceHandle:
        # Weakly kept: handles of graphs that are gone go with them.
        key = (kind, container, name)
        with cls._lock:
            handle = cls._all.get(key)
            if handle is None:
                handle = cls._all[key] = super().__new__(cls)
                handle.kind, handle.container, handle.name = key
            return handle

    @property
    def is_private(self) -> bool:
        """Whether each session has such a resource of its own."""
        return self.kind.startswith(_PRIVATE)

    def __reduce__(self) -> Any:
        return ResourceHandle, (self.kind, self.container, self.name)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.container + '/' if self.container else ''}{self.name}>"


@dataclass(frozen=True, slots=True)
class RandomStream:
    """Key of the Philox state of one random op."""

    op_name: str


StateKey = ResourceHandle | RandomStream

#: Which rows of a value have changed: lists of their indices; None for all of it.
Rows = Sequence[Any] | None
_ALL: Mapping[Any, Rows] = MappingProxyType({})


class ChangeLog(Protocol):
    """Who wants to know what of a store changes. Called with the lock of the store held."""

    def note(self, key: Hashable, rows: Rows = None) -> None:
        """A value is another one in these rows, or there is none any more."""

    def made(self, key: Hashable, value: Any) -> None:
        """There is an object where there was none, or only its copy."""


class _Logs:
    """Several who want to know."""

    def __init__(self, logs: tuple[ChangeLog, ...]) -> None:
        self.logs = logs

    def note(self, key: Hashable, rows: Rows = None) -> None:
        for log in self.logs:
            log.note(key, rows)

    def made(self, key: Hashable, value: Any) -> None:
        for log in self.logs:
            log.made(key, value)


class ResourceStore:
    """The state of a session on one device. ``lock`` is held for moments, while values are read and
    replaced; see `executor.claims` for runs that take longer.

    Variables hold immutable arrays (NumPy or JAX); an update stores a new array, so a reader never
    sees half of one.

    Attributes:
        changes: hears of each change, where a standby keeps a copy or variables move.
    """

    _is_closed = False
    changes: ChangeLog | None = None
    #: What there is of objects that no step has asked for yet: copies of those of a server whose
    #: place this one has taken. What they are in full only the step's graph says.
    _kept: Mapping[Hashable, CopiedResource] = MappingProxyType({})

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.claims = Claims(self.lock)
        self._values: dict[Hashable, Any] = {}

    def listen(self, log: ChangeLog, is_on: bool = True) -> None:
        """Tell of each change from now on, or no more."""
        with self.lock:
            now = self.changes
            logs = now.logs if isinstance(now, _Logs) else (now,) if now is not None else ()
            logs = tuple(known for known in logs if known is not log)
            logs = (*logs, log) if is_on else logs
            self.changes = _Logs(logs) if len(logs) > 1 else logs[0] if logs else None

    def claim_key(self, key: StateKey) -> Hashable:
        """By what the claims know a key."""
        return key

    def check_open(self) -> None:
        """Raise CancelledError if the store is closed."""
        if self._is_closed:
            raise CancelledError(None, None, "The session has been closed.")

    def get(self, key: StateKey) -> Any:
        """The value, or None when there is none yet."""
        return self._values.get(key)

    def get_all(self, keys: Sequence[StateKey]) -> list[Any]:
        """The values of several keys."""
        return list(map(self._values.get, keys))

    def put(self, key: StateKey, value: Any, rows: Rows = None) -> None:
        """Replace a value, by one that differs in some rows only if these are given."""
        self._values[key] = value
        if self.changes is not None:
            self._note((key,), {key: rows})

    def put_all(
        self,
        keys: Sequence[StateKey],
        values: Sequence[Any],
        rows: Mapping[Any, Rows] = _ALL,
    ) -> None:
        """Replace several values; ``rows`` has those of the keys of which only some change."""
        self._values.update(zip(keys, values, strict=True))
        if self.changes is not None:
            self._note(keys, rows)

    def drop(self, key: StateKey) -> bool:
        """Forget a value; tells whether there was one."""
        found = self._values.pop(key, None) is not None
        if key in self._kept:
            self._kept = {k: v for k, v in self._kept.items() if k != key}
            found = True
        if self.changes is not None:
            self._note((key,), _ALL)
        return found

    def _note(self, keys: Sequence[Hashable], rows: Mapping[Any, Rows]) -> None:
        with self.lock:
            if self.changes is not None:
                for key in keys:
                    self.changes.note(key, rows.get(key))

    def object(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A host resource (queue, table ...), made on first use.

        Raises:
            CancelledError: if the store is closed.
        """
        with self.lock:
            self.check_open()
            if key not in self._values:
                made = make()
                if key in self._kept:
                    made.adopt_copy(self._kept[key])
                    self._kept = {k: v for k, v in self._kept.items() if k != key}
                self._values[key] = made
                if self.changes is not None:
                    self.changes.made(key, made)
            return self._values[key]

    def take_over(self, values: Mapping[Any, Any]) -> None:
        """Begin with variables, and copies of objects, that another process has kept."""
        with self.lock:
            copies = {k: v for k, v in values.items() if isinstance(v, CopiedResource)}
            self._kept = copies
            self._values.update((k, v) for k, v in values.items() if k not in copies)

    def take_in(self, values: Mapping[Any, Any]) -> None:
        """Have variables, and what copies of objects have, that come from another process."""
        with self.lock:
            for key, value in values.items():
                if not isinstance(value, CopiedResource):
                    self.put(key, value)
                elif key in self._values:  # a plan that was made ahead has asked for it
                    self._values[key].adopt_copy(value)
                else:
                    self._kept = {**self._kept, key: value}

    def all_known(self) -> dict[Hashable, Any]:
        """All values, and copies of objects that no step has asked for yet."""
        with self.lock:
            return {**self._kept, **self._values}

    def known(self, key: Hashable) -> Any:
        """The value, or the copy of an object that no step has asked for yet."""
        found = self._values.get(key)
        return self._kept.get(key) if found is None else found

    def items(self) -> list[tuple[Hashable, Any]]:
        """Everything there is, for those who only look."""
        return list(self._values.items())

    def clear(self, containers: set[str] | None = None) -> None:
        """Forget all state, or that of some containers; who waits there is cancelled."""
        with self.lock:
            dropped_keys = [
                key
                for key in self.all_known()
                if containers is None or getattr(key, "container", "") in containers
            ]
            if self._kept:
                self._kept = {k: v for k, v in self._kept.items() if k not in dropped_keys}
            dropped = [self._values.pop(key, None) for key in dropped_keys]
            if self.changes is not None:
                self._note(dropped_keys, _ALL)
        for value in dropped:
            if isinstance(value, HostResource):
                value.abandon()

    def close(self) -> None:
        """Forget all state for good; steps that use it end."""
        with self.lock:
            self._is_closed = True
            self.claims.freed.notify_all()
        self.clear()


class _LayeredStore(ResourceStore):
    """A store in front of another one, which looks at each key by itself."""

    def put_all(
        self,
        keys: Sequence[StateKey],
        values: Sequence[Any],
        rows: Mapping[Any, Rows] = _ALL,
    ) -> None:
        for key, value in zip(keys, values, strict=True):
            self.put(key, value, rows.get(key))


class Transaction(_LayeredStore):
    """Writes of a part of a step, which reach the store only when all of it has succeeded.

    Args:
        values: what keys had when it began; it sees no later values of these.
    """

    def __init__(
        self, base: ResourceStore, values: Mapping[Any, Any] = MappingProxyType({})
    ) -> None:
        self.lock = base.lock
        self.claims = base.claims
        self._base = base
        self._begin = values
        #: New values; None for what was dropped.
        self._values = {}
        #: What of them differs from the old ones.
        self._rows: dict[Any, Rows] = {}

    def claim_key(self, key: StateKey) -> Hashable:
        return self._base.claim_key(key)

    def check_open(self) -> None:
        self._base.check_open()

    def get(self, key: StateKey) -> Any:
        if key in self._values:
            return self._values[key]
        # Own writes first, then what was there at the begin, then what the store has.
        value = self._begin.get(key)
        return self._base.get(key) if value is None else value

    def get_all(self, keys: Sequence[StateKey]) -> list[Any]:
        return [self.get(k) for k in keys]

    def put(self, key: StateKey, value: Any, rows: Rows = None) -> None:
        self._values[key] = value
        before = self._rows.get(key, ())
        self._rows[key] = None if rows is None or before is None else [*before, *rows]

    def drop(self, key: StateKey) -> bool:
        found = self.get(key) is not None
        self._values[key] = self._rows[key] = None
        return found

    def object(self, key: Hashable, make: Callable[[], Any]) -> Any:
        return self._base.object(key, make)

    def commit(
        self, check: Callable[[], Any] | None = None, rows: Mapping[Any, Rows] = _ALL
    ) -> None:
        """Hand everything to the store, unless ``check()`` raises: the step is given up.

        Without a check for what has begun to change arrays in place. ``rows``: of the keys of which
        the whole transaction changes only some.
        """
        if not self._values:
            return
        with self.lock:
            # Asked under the lock, right before the writes.
            if check is not None:
                check()
            for key, value in self._values.items():
                if value is None:
                    self._base.drop(key)  # type: ignore[arg-type]
                else:
                    changed = rows.get(key, self._rows.get(key))
                    self._base.put(key, value, changed)  # type: ignore[arg-type]


class SessionStore(_LayeredStore):
    """The state of a server as one session sees it: shared, but for what is private to it."""

    def __init__(self, shared: ResourceStore) -> None:
        self.lock = shared.lock
        self.claims = shared.claims
        self._shared = shared
        #: Random streams, and host resources without a shared name.
        self._values = {}

    def claim_key(self, key: StateKey) -> Hashable:
        return (id(self), key) if self._of(key) is self else key

    def get(self, key: StateKey) -> Any:
        return self._of(key)._values.get(key)

    def get_all(self, keys: Sequence[StateKey]) -> list[Any]:
        if not self._values:
            return self._shared.get_all(keys)
        return [self.get(k) for k in keys]

    def put(self, key: StateKey, value: Any, rows: Rows = None) -> None:
        store = self._of(key)
        if store is self:
            super().put(key, value)
        else:
            store.put(key, value, rows)

    def drop(self, key: StateKey) -> bool:
        store = self._of(key)
        return super().drop(key) if store is self else store.drop(key)

    def object(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if isinstance(key, ResourceHandle) and key.is_private:
            return super().object(key, make)
        return self._shared.object(key, make)

    def _of(self, key: StateKey) -> ResourceStore:
        own = isinstance(key, RandomStream) or key.is_private
        return self if own else self._shared


def uninitialized(handle: ResourceHandle) -> FailedPreconditionError:
    """The error for reading a variable that has no value."""
    return FailedPreconditionError(
        None,
        None,
        f"Attempting to use uninitialized value {handle.name}. Run its initializer first, e.g. "
        "`sess.run(tf.global_variables_initializer())`, or restore it with tf.train.Saver.",
    )


def handle_for(node: Any) -> ResourceHandle:
    """The handle that a handle-making node stands for.

    A variable, or a table that asks for it, is named by its node if by nothing else; other
    resources without a shared name are private to their session.
    """
    attrs = node.attrs
    kind, shared = node.op_def.makes_handle, attrs.get("shared_name")
    if not shared and kind != "variable" and not attrs.get("use_node_name_sharing"):
        kind = _PRIVATE + kind
    return ResourceHandle(kind, attrs.get("container") or "", shared or node.name)


def owned(value: Any) -> Any:
    """``value`` if nobody else can change an array's memory or take it back, else a copy."""
    if not isinstance(value, np.ndarray):
        return value
    root: Any = value
    while isinstance(root, np.ndarray) and root.base is not None:
        if root.flags.writeable:
            break
        root = root.base
    # A read-only array that has its memory itself: its owner may make it writeable again.
    return value.copy() if isinstance(root, (np.ndarray, Borrowed)) else value
