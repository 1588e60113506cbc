"""Segments: operations that the program wants run as units of their own.

A step merges what runs on one device into as few programs as it can, which is fastest where the
device has nothing else to do. A pipeline wants the opposite: the work for one part of a batch is to
end, and its result to travel, before the work for the next part begins. Operations of different
segments are never in one program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation

#: The attribute that operations made inside `segment` carry.
ATTRIBUTE: Final = "_segment"


@contextlib.contextmanager
def segment(name: str) -> Iterator[None]:
    """A ``with`` block whose operations run apart from all others of their device.

    What they compute stays the same. Inner blocks win over outer ones. Blocks of one name in a
    graph are one segment.

    Args:
      name: any text but "".

    Raises:
      ValueError: ``name`` is empty or no text.

    >>> with segment("first"):
    ...     a = tf.constant([1.0, 2.0])
    >>> a.op.get_attr("_segment")
    b'first'
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"The name of a segment is a text that is not empty, but it is {name!r}.")
    with get_default_graph()._attr_scope({ATTRIBUTE: name}):
        yield


def put_in_segment(end: Operation, among: set[Operation], name: str) -> None:
    """Puts an operation, and those that lead to it, into a segment, unless they are in one.

    Args:
      end: the last operation of the segment.
      among: the operations that may go there; those that have been looked at are taken out.
      name: the segment's.
    """
    stack = [end]
    while stack:
        op = stack.pop()
        if op not in among:
            continue
        among.discard(op)
        if not op.attrs.get(ATTRIBUTE):
            op._set_attr(ATTRIBUTE, name)
        stack += [t.op for t in op.inputs]
        stack += op.control_inputs


def segment_of(attrs: Mapping[str, Any]) -> str:
    """The segment that an operation's attributes name; "" if they name none."""
    value = attrs.get(ATTRIBUTE, "")
    return value.decode() if isinstance(value, bytes) else str(value)
