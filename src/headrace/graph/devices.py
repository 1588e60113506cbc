"""Device names, whole and partial: `/job:worker/replica:0/task:17/device:GPU:3`.

A partial name is a constraint: it says something about job, replica, task, device type and index,
and leaves the rest open. Constraints are ordered by what they say; nested scopes merge field by
field and the inner one wins. The engine passes names as canonical strings; the functions on
strings are cached, since a graph of many operations has few distinct devices.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

_EXAMPLES = (
    "valid ones are '/cpu:0', '/device:GPU:1', '/job:ps/task:3' and "
    "'/job:worker/replica:0/task:17/device:GPU:*'"
)
# The types that may stand without "device:" in front, in any case.
_SHORT_TYPES = frozenset({"CPU", "GPU", "TPU", "NULL"})
_JOB = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[0-9]+")
_CACHE_SIZE = 8192


class _Fields(NamedTuple):
    """A parsed name; None where the name leaves the field open."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None


def _malformed(spec: str, component: str, why: str) -> ValueError:
    return ValueError(
        f"Malformed device name {spec!r}: component {component!r} {why}; {_EXAMPLES}."
    )


def _number(spec: str, component: str, text: str) -> int | None:
    if text == "*":
        return None
    if not _NUMBER.fullmatch(text):
        raise _malformed(spec, component, f"needs a whole number or '*' in place of {text!r}")
    return int(text)


def _parse_device(spec: str, component: str, words: list[str]) -> tuple[str | None, int | None]:
    """Type and index of `device:TYPE[:INDEX]`, given the words after `device`."""
    if not 1 <= len(words) <= 2:
        raise _malformed(spec, component, "should be a device type and at most one index")
    if words[0] == "*":
        kind = None
    elif _TYPE.fullmatch(words[0]):
        kind = words[0].upper()
    else:
        raise _malformed(spec, component, f"has no valid device type, but {words[0]!r}")
    return kind, _number(spec, component, words[1]) if len(words) == 2 else None


@lru_cache(maxsize=_CACHE_SIZE)
def _parse(spec: str) -> _Fields:
    found: dict[str, Any] = {}
    for component in spec.split("/"):
        if not component:
            continue
        key, *words = component.split(":")
        update: dict[str, Any]
        if key == "device":
            kind, index = _parse_device(spec, component, words)
            update = {"device_type": kind, "device_index": index}
        elif key.upper() in _SHORT_TYPES:
            kind, index = _parse_device(spec, component, [key, *words])
            update = {"device_type": kind, "device_index": index}
        elif key == "job":
            if len(words) != 1 or not (words[0] == "*" or _JOB.fullmatch(words[0])):
                raise _malformed(spec, component, "should be 'job:' and a name")
            update = {"job": None if words[0] == "*" else words[0]}
        elif key in ("replica", "task"):
            if len(words) != 1:
                raise _malformed(spec, component, f"should be '{key}:' and a number")
            update = {key: _number(spec, component, words[0])}
        else:
            raise _malformed(spec, component, "is no part of a device name")
        if found.keys() & update.keys():
            raise _malformed(spec, component, "names again what an earlier component named")
        found.update(update)
    return _Fields(**found)


def _format(fields: _Fields) -> str:
    job, replica, task, kind, index = fields
    text = ""
    if job is not None:
        text += f"/job:{job}"
    if replica is not None:
        text += f"/replica:{replica}"
    if task is not None:
        text += f"/task:{task}"
    if kind is not None or index is not None:
        text += f"/device:{kind or '*'}:{'*' if index is None else index}"
    return text


def _overlay(outer: _Fields, inner: _Fields) -> _Fields:
    return _Fields._make(o if i is None else i for o, i in zip(outer, inner, strict=True))


def _covers(constraint: _Fields, device: _Fields) -> bool:
    return all(c is None or c == d for c, d in zip(constraint, device, strict=True))


def _agree(a: _Fields, b: _Fields) -> bool:
    return all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


class DeviceSpec:
    """A device name in parts, each None where it is left open.

    Fields can be set, as in TensorFlow 1.x, so a spec is not hashable; use `to_string()` as a
    key. Two specs are equal when all their fields are.

    >>> spec = tf.DeviceSpec(job="ps", task=1)
    >>> spec.to_string()
    '/job:ps/task:1'
    >>> spec.merge_from(tf.DeviceSpec.from_string("/device:GPU:0"))
    >>> spec.to_string()
    '/job:ps/task:1/device:GPU:0'
    """

    __slots__ = ("_fields",)

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        kind = None if device_type is None else str(device_type).upper()
        self._fields = _checked(_Fields(job, replica, task, kind, device_index))

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """The spec of a name such as "/job:ps/task:3" or "/gpu:0".

        Raises:
          ValueError: the name is malformed; the message shows the component that is.
        """
        return cls._of(_parse(spec))

    @classmethod
    def _of(cls, fields: _Fields) -> DeviceSpec:
        made = cls.__new__(cls)
        made._fields = fields
        return made

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Replaces all fields by those of a name and returns this spec.

        Raises:
          ValueError: the name is malformed; the fields are unchanged then.
        """
        self._fields = _parse(spec)
        return self

    def _set(self, **changes: Any) -> None:
        self._fields = _checked(self._fields._replace(**changes))

    @property
    def job(self) -> str | None:
        """The name of the job, such as "worker"."""
        return self._fields.job

    @job.setter
    def job(self, job: str | None) -> None:
        self._set(job=job)

    @property
    def replica(self) -> int | None:
        """The number of the replica of the job."""
        return self._fields.replica

    @replica.setter
    def replica(self, replica: int | None) -> None:
        self._set(replica=replica)

    @property
    def task(self) -> int | None:
        """The number of the task in the job."""
        return self._fields.task

    @task.setter
    def task(self, task: int | None) -> None:
        self._set(task=task)

    @property
    def device_type(self) -> str | None:
        """The kind of device in capitals, such as "CPU" or "GPU"."""
        return self._fields.device_type

    @device_type.setter
    def device_type(self, device_type: str | None) -> None:
        self._set(device_type=None if device_type is None else str(device_type).upper())

    @property
    def device_index(self) -> int | None:
        """The number of the device among those of its type in the task."""
        return self._fields.device_index

    @device_index.setter
    def device_index(self, device_index: int | None) -> None:
        self._set(device_index=device_index)

    def to_string(self) -> str:
        """The canonical name; fields left open are absent, an open device index is "*"."""
        return _format(self._fields)

    def merge_from(self, dev: DeviceSpec) -> None:
        """Takes each field that `dev` sets, in place; the others stay."""
        self._fields = _overlay(self._fields, dev._fields)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """A new spec with the fields that `dev` sets, and this one's for the others."""
        return DeviceSpec._of(_overlay(self._fields, dev._fields))

    def replace(self, **fields: Any) -> DeviceSpec:
        """A new spec with the named fields changed."""
        return DeviceSpec(**{**self._fields._asdict(), **fields})

    def covers(self, device: DeviceSpec) -> bool:
        """Whether `device` satisfies this constraint: it has every field that this one sets."""
        return _covers(self._fields, device._fields)

    def is_compatible(self, other: DeviceSpec) -> bool:
        """Whether some device satisfies both: no field is set to different values."""
        return _agree(self._fields, other._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._fields == other._fields

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"DeviceSpec({self.to_string()!r})"

    def __copy__(self) -> DeviceSpec:
        return DeviceSpec._of(self._fields)


def _checked(fields: _Fields) -> _Fields:
    """Refuses what would not read back: a job that is no name, a negative number."""
    if fields.job is not None and not _JOB.fullmatch(str(fields.job)):
        raise ValueError(f"Invalid job name {fields.job!r} in a device; {_EXAMPLES}.")
    if fields.device_type is not None and not _TYPE.fullmatch(fields.device_type):
        raise ValueError(f"Invalid device type {fields.device_type!r}; {_EXAMPLES}.")
    numbers: dict[str, Any] = {}
    for name in ("replica", "task", "device_index"):
        value = getattr(fields, name)
        if value is not None:
            numbers[name] = int(value)
            if numbers[name] < 0:
                raise ValueError(f"Invalid {name} {value!r} in a device: must be >= 0.")
    return fields._replace(**numbers)


@lru_cache(maxsize=_CACHE_SIZE)
def _canonical(name: str) -> str:
    return _format(_parse(name))


def canonical_name(device: str | DeviceSpec | None) -> str:
    """The one spelling of a device name: "/gpu:0" becomes "/device:GPU:0"; None becomes "".

    Raises:
      ValueError: the name is malformed.
      TypeError: `device` is neither a name nor a DeviceSpec nor None.
    """
    if device is None:
        return ""
    if isinstance(device, str):
        return _canonical(device)
    if isinstance(device, DeviceSpec):
        return device.to_string()
    raise TypeError(
        f"A device must be a string, a DeviceSpec or None, not {device!r} "
        f"of type {type(device).__name__}."
    )


@lru_cache(maxsize=_CACHE_SIZE)
def merge(outer: str, inner: str) -> str:
    """The canonical name of `inner` inside `outer`: each field that `inner` sets wins.

    Associative, with "" as its neutral element. Raises ValueError for a malformed name.
    """
    return _format(_overlay(_parse(outer), _parse(inner)))


@lru_cache(maxsize=_CACHE_SIZE)
def matches(constraint: str, device: str) -> bool:
    """Whether `device` satisfies `constraint`; a partial order. Raises ValueError as `merge`."""
    return _covers(_parse(constraint), _parse(device))


@lru_cache(maxsize=_CACHE_SIZE)
def is_compatible(a: str, b: str) -> bool:
    """Whether some device satisfies both names. Symmetric. Raises ValueError as `merge`."""
    return _agree(_parse(a), _parse(b))


def merge_device(spec: str | DeviceSpec | None) -> Callable[[Any], str]:
    """A device function that fills in `spec` where an operation's own device leaves a field open.

    The function takes anything with a `.device` (an Operation or a NodeDef) and returns the
    merged canonical name.

    Raises:
      ValueError: `spec` is malformed.
    """
    outer = canonical_name(spec)

    def device_function(op: Any) -> str:
        return merge(outer, op.device or "")

    return device_function
