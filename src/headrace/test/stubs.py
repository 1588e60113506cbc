"""Attributes replaced for the time of a test."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

__all__ = ["StubOutForTesting"]

_ABSENT = object()


class StubOutForTesting:
    """Replaces attributes of modules, classes and objects until `CleanUp`.

    with tf.test.StubOutForTesting() as stubs:
        stubs.Set(os.path, "exists", lambda path: True)

    >>> with tf.test.StubOutForTesting() as stubs:
    ...     stubs.Set(tf.gfile, "Exists", lambda path: True)
    ...     tf.gfile.Exists("/no/such/file")
    True
    >>> tf.gfile.Exists("/no/such/file")
    False
    """

    def __init__(self) -> None:
        #: (object, attribute, what its own dictionary held) in the order of replacing.
        self._set: list[tuple[Any, str, Any]] = []
        self._smart: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.CleanUp()

    def CleanUp(self) -> None:
        """Undo every replacement."""
        self.SmartUnsetAll()
        self.UnsetAll()

    def SmartSet(self, obj: Any, attr_name: str, new_attr: Any) -> None:
        """Replace an attribute where it is defined: in the object, its class, or a base class.

        Raises:
            AttributeError: if there is no such attribute.
        """
        owner = obj
        if attr_name not in getattr(obj, "__dict__", {}):
            classes = (obj if isinstance(obj, type) else type(obj)).__mro__
            owner = next((c for c in classes if attr_name in c.__dict__), None)
        if owner is None:
            raise AttributeError(f"{obj!r} has no attribute {attr_name!r}")
        self._replace(self._smart, owner, attr_name, new_attr)

    def SmartUnsetAll(self) -> None:
        """Undo every `SmartSet`."""
        self._restore(self._smart)

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:
        """Replace an attribute of ``parent``.

        Raises:
            AttributeError: if there is no such attribute.
        """
        getattr(parent, child_name)
        self._replace(self._set, parent, child_name, new_child)

    def UnsetAll(self) -> None:
        """Undo every `Set`."""
        self._restore(self._set)

    @staticmethod
    def _replace(done: list[tuple[Any, str, Any]], owner: Any, name: str, new: Any) -> None:
        own = getattr(owner, "__dict__", {})
        done.append((owner, name, own.get(name, _ABSENT)))
        if isinstance(own.get(name), (staticmethod, classmethod)):
            new = type(own[name])(new)
        setattr(owner, name, new)

    @staticmethod
    def _restore(done: list[tuple[Any, str, Any]]) -> None:
        while done:
            owner, name, old = done.pop()
            if old is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, old)
