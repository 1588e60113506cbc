"""State that a run uses for longer than a moment, without a lock that others would wait for.

The lock of a store is held for moments only: to read and replace values, and to hand a program to
XLA that returns at once. Nothing is awaited, compiled or interpreted under it. A run that takes a
while *holds* its state instead:

- what it writes is *claimed*: other writers wait until it ends, while readers get the old value.
  A claim of a step that was given up is void, where that step asks before it writes;
- what it reads is *lent* to it: a program that would change such an array in place changes a copy.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from headrace.executor.resources import ResourceStore

__all__ = ["Claims", "held", "replacing"]

#: A thread, and what tells whether its step was given up: then it writes nothing any more.
_Claim = tuple[int, Callable[[], bool]]
#: Who waits for a writer looks so often whether that was given up; seconds.
_LOOK = 0.05
#: Arrays of fewer bytes are copied at once if others read them.
_WORTH_WAITING = 1 << 20
#: So many bytes of memory nobody has used yet are copied in a second.
_COPIED_PER_SECOND = 3e9


def _never() -> bool:
    return False


class Claims:
    """Who holds which state of a store; all of it is used with the store's lock held.

    Attributes:
        writers: key -> the claims on it: the thread, and what tells whether it was given up.
        lent: identity of an array -> the array, and the threads that read it.
        freed: notified when something is given back, or the store is closed.
        waiting: how many threads wait for that.
    """

    def __init__(self, lock: Any) -> None:
        self.freed = threading.Condition(lock)
        self.waiting = 0
        self.writers: dict[Hashable, list[_Claim]] = {}
        #: Keys whose arrays a program is being given that changes them in place: who reads waits.
        self.replaced: set[Hashable] = set()
        # The array is kept beside its identity, so that no other object gets that meanwhile.
        self.lent: dict[int, tuple[Any, list[int]]] = {}

    def are_free(self, keys: Iterable[Hashable]) -> bool:
        """Whether no other thread that may still write has claimed any of the keys."""
        own = threading.get_ident()
        for key in keys:
            for thread, is_given_up in self.writers.get(key, ()):
                # Own claims are of the blocks around this one. A step that was given up counts as
                # long as its program takes the array: there is no way back from that.
                if thread != own and (key in self.replaced or not is_given_up()):
                    return False
        return True

    def wait_until_free(self, keys: Sequence[Hashable], check: Callable[[], float | None]) -> None:
        """Wait for other writers.

        Args:
            check: raises when the step is given up; tells for how many seconds to wait at most.
        """
        while not self.are_free(keys):
            self.waiting += 1
            try:
                left = check()
                # A step that is given up notifies nobody: so this looks again now and then.
                self.freed.wait(_LOOK if left is None else min(left, _LOOK))
            finally:
                self.waiting -= 1

    def wait_until_there(self, keys: Iterable[Hashable], check: Callable[[], float | None]) -> None:
        """Wait until no value of these is being replaced; ``check`` as above."""
        wanted = set(keys)
        while not self.replaced.isdisjoint(wanted):
            self.waiting += 1
            try:
                self.freed.wait(check())
            finally:
                self.waiting -= 1

    def end_replacing(self, keys: Iterable[Hashable]) -> None:
        """Their new values are there."""
        self.replaced.difference_update(keys)
        if self.waiting:
            self.freed.notify_all()

    def claim(self, keys: Iterable[Hashable], is_given_up: Callable[[], bool]) -> None:
        """This thread will write these keys, unless ``is_given_up()`` by then."""
        claim = (threading.get_ident(), is_given_up)
        for key in keys:
            self.writers.setdefault(key, []).append(claim)

    def release(self, keys: Iterable[Hashable]) -> None:
        """This thread has written these keys, or will not."""
        own = threading.get_ident()
        for key in keys:
            owners = self.writers[key]
            # The last one: blocks of one thread lie in each other, and the inner one ends first.
            del owners[max(i for i, (thread, _) in enumerate(owners) if thread == own)]
            if not owners:
                del self.writers[key]
        if self.waiting:
            self.freed.notify_all()

    def lend(self, arrays: Iterable[Any]) -> None:
        """This thread reads these arrays."""
        own = threading.get_ident()
        for array in arrays:
            self.lent.setdefault(id(array), (array, []))[1].append(own)

    def give_back(self, arrays: Iterable[Any]) -> None:
        """It does not read them any more."""
        own = threading.get_ident()
        for array in arrays:
            readers = self.lent[id(array)][1]
            readers.remove(own)
            if not readers:
                del self.lent[id(array)]
        if self.waiting:
            self.freed.notify_all()

    def _bytes_read(self, arrays: Iterable[Any]) -> int:
        """How much of these other threads read."""
        own, total = threading.get_ident(), 0
        for array in arrays:
            lent = self.lent.get(id(array))
            if lent is not None and any(thread != own for thread in lent[1]):
                total += array.nbytes
        return total

    def wait_for_readers(
        self,
        arrays: Callable[[], Sequence[Any]],
        keys: Sequence[Hashable],
        check: Callable[[], float | None],
    ) -> None:
        """Wait until nobody else reads large arrays, for as long as to copy them would take.

        Readers mostly look at a few rows. Who comes meanwhile reads what is written next.

        Args:
            arrays: gives those that are to be changed, which others may replace meanwhile.
            keys: of these.
            check: see `wait_until_free`.
        """
        size = self._bytes_read(arrays())
        if size < _WORTH_WAITING:
            return
        end = time.monotonic() + size / _COPIED_PER_SECOND
        added = set(keys) - self.replaced
        self.replaced |= added
        self.waiting += 1
        try:
            while self._bytes_read(arrays()) >= _WORTH_WAITING:
                left = end - time.monotonic()
                if left <= 0:
                    return
                check()
                self.freed.wait(left)
        finally:
            self.waiting -= 1
            self.end_replacing(added)

    def to_donate(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays, with copies of those that others read."""
        own = threading.get_ident()
        found = [self.lent.get(id(a)) for a in arrays]
        # What only this thread was lent it may give away: it has it among its arguments.
        return [
            a if lent is None or all(t == own for t in lent[1]) else a.copy()
            for a, lent in zip(arrays, found, strict=True)
        ]


@contextlib.contextmanager
def replacing(
    store: ResourceStore,
    writes: Sequence[Any],
    check: Callable[[], Any],
    wait: Callable[[], Any],
    begin: Callable[[], Any],
) -> Iterator[None]:
    """Around the call of a program that changes state in place: who reads that waits for the call.

    Args:
        check: raises when the step is given up; after it there is no way back.
        wait: what is waited for before, with the lock held.
        begin: what is done at the same moment.
    """
    keys = [store.claim_key(k) for k in writes]
    with store.lock:
        wait()
        check()
        begin()
        store.claims.replaced.update(keys)
    try:
        yield
    finally:
        with store.lock:
            store.claims.end_replacing(keys)


class held:
    """Hold state within the block, which gets the values of what it reads; later ones are not its.

    A class, since each small step comes through here: a generator would take twice as long.

    Args:
        check: see `Claims.wait_until_free`.
        is_given_up: whether the step writes nothing any more: for who asks with the lock of the
            store held before each write.
    """

    __slots__ = ("_arrays", "_check", "_is_given_up", "_keys", "_reads", "_store", "_writes")

    def __init__(
        self,
        store: ResourceStore,
        reads: Sequence[Any],
        writes: Sequence[Any],
        check: Callable[[], float | None],
        is_given_up: Callable[[], bool] = _never,
    ) -> None:
        self._store = store
        self._is_given_up = is_given_up
        self._reads = reads
        self._writes = writes
        self._check = check

    def __enter__(self) -> dict[Any, Any]:
        store, reads, writes = self._store, self._reads, self._writes
        if not (reads or writes):
            return {}
        claims = store.claims
        self._keys = keys = [store.claim_key(k) for k in writes]
        with store.lock:
            if keys:
                # All keys at once, so that two steps never wait for each other's.
                claims.wait_until_free(keys, self._check)
                claims.claim(keys, self._is_given_up)
            try:
                if claims.replaced:
                    claims.wait_until_there(map(store.claim_key, reads), self._check)
                values = dict(zip(reads, store.get_all(reads), strict=True))
                self._arrays = arrays = [a for a in values.values() if isinstance(a, jax.Array)]
                claims.lend(arrays)
            except BaseException:  # also an interrupt: without this others would wait for ever
                if keys:
                    claims.release(keys)
                raise
        return values

    def __exit__(self, *_: object) -> None:
        if self._reads or self._writes:
            claims = self._store.claims
            with self._store.lock:
                claims.give_back(self._arrays)
                if self._keys:
                    claims.release(self._keys)
