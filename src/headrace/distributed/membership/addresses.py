"""Where the tasks of a cluster are, as far as this task knows: what changes is seen at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping

from headrace.distributed.membership.record import GONE, ClusterRecord
from headrace.errors import UnavailableError

__all__ = ["Addresses"]


class Addresses(Mapping[str, str]):
    """The address of each task, by its full name.

    Args:
        first: those that the description of the cluster has.

    >>> addresses = Addresses({"/job:ps/replica:0/task:0": "ps0:2222"})
    >>> joined = {"/job:ps/replica:0/task:1": "ps1:2222"}
    >>> addresses.learn(ClusterRecord(1, tasks=joined))
    True
    >>> addresses["/job:ps/replica:0/task:1"]
    'ps1:2222'
    >>> addresses.of("/job:ps/replica:0/task:2")
    Traceback (most recent call last):
    ...
    headrace.errors.UnavailableError: /job:ps/replica:0/task:2 is no task of this cluster (epoch 1).
    Its tasks are /job:ps/replica:0/task:0, /job:ps/replica:0/task:1.
    """

    def __init__(self, first: Mapping[str, str]) -> None:
        self._first = dict(first)
        self._known = dict(first)
        self._lock = threading.Lock()
        self.record = ClusterRecord()

    def learn(self, record: ClusterRecord, between: Callable[[], None] = lambda: None) -> bool:
        """A record was agreed on; whether that is news.

        Args:
            between: called when who has come is known, and who has gone is still known: whatever
                is kept of where variables are changes then.
        """
        with self._lock:
            if record.epoch <= self.record.epoch:
                return False
            self.record = record
            known = {**self._first, **record.tasks}
            known = {task: address for task, address in known.items() if address != GONE}
            # Replaced as a whole: others read it without the lock.
            self._known = {**self._known, **known}
            between()
            self._known = known
            return True

    def of(self, task: str) -> str:
        """The address of a task.

        Raises:
            UnavailableError: if there is none: it has left the cluster, or has not joined yet.
        """
        found = self._known.get(task)
        if found is None:
            has_left = task in self.record.tasks
            what = "has left this cluster" if has_left else "is no task of this cluster"
            raise UnavailableError(
                None,
                None,
                f"{task} {what} (epoch {self.record.epoch}). Its tasks are "
                f"{', '.join(sorted(self._known))}.",
            )
        return found

    def is_elsewhere(self, task: str, address: str) -> bool:
        """Whether a task is known to have left an address, or the cluster.

        >>> addresses = Addresses({"/job:ps/replica:0/task:0": "ps0:2222"})
        >>> addresses.learn(ClusterRecord(1, tasks={"/job:ps/replica:0/task:0": GONE}))
        True
        >>> addresses.is_elsewhere("/job:ps/replica:0/task:0", "ps0:2222")
        True
        """
        now = self.record.tasks.get(task)
        return now is not None and now != address

    def everywhere(self) -> set[str]:
        """The addresses at which tasks are, or may be that have left or were replaced."""
        return {*self._first.values(), *self._known.values()}

    def __getitem__(self, task: str) -> str:
        return self._known[task]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
