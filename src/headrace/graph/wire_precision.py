"""The precision in which float tensors travel to other tasks, chosen per operation.

The choice is an attribute of the operations whose outputs travel. It changes nothing within a task
and nothing of the type that the receiver sees.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headrace.errors import suggest
from headrace.graph.graph import get_default_graph

#: The attribute that operations made inside `wire_precision` carry.
ATTRIBUTE: Final = "_wire_precision"
#: What there is; the first is "as it is".
PRECISIONS: Final = ("float32", "bfloat16", "float16", "int8")


def wire_precision(precision: str | None) -> contextlib.AbstractContextManager[None]:
    """A ``with`` block whose operations send their float outputs to other tasks in fewer bits.

    Only float32 and float64 tensors that cross from one task to another are concerned; the receiver
    gets the original type again, with the digits that are left. Inner blocks win over outer ones
    and over the session's ``graph_options.enable_bfloat16_sendrecv``.

    Args:
      precision: "bfloat16" (the upper 16 bits of a float32), "float16" (IEEE half: more digits,
        nothing above 65504), "int8" (8 bits and a scale for each 256 elements), or "float32" or
        None: as it is.

    Raises:
      ValueError: there is no such precision.

    >>> with wire_precision("bfloat16"):
    ...     parameters = tf.constant([1.0, 2.0])
    >>> parameters.op.get_attr("_wire_precision")
    b'bfloat16'
    """
    name = "float32" if precision is None else precision
    if name not in PRECISIONS:
        near = suggest(name, PRECISIONS) if isinstance(name, str) else ""
        known = ", ".join(repr(p) for p in PRECISIONS)
        raise ValueError(f"There is no wire precision {name!r}.{near} There are {known}, or None.")
    return _scope(name)


@contextlib.contextmanager
def _scope(name: str) -> Iterator[None]:
    with get_default_graph()._attr_scope({ATTRIBUTE: name}):
        yield


def carry(source: Mapping[str, Any], attrs: Mapping[str, Any]) -> dict[str, Any]:
    """``attrs`` with the choice of ``source``, for what a pass puts in an operation's place."""
    result = {k: v for k, v in attrs.items() if k != ATTRIBUTE}
    if ATTRIBUTE in source:
        result[ATTRIBUTE] = source[ATTRIBUTE]
    return result


def same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two operations chose alike, so that one may stand for the other."""
    return bool(a.get(ATTRIBUTE) == b.get(ATTRIBUTE))


def chosen(attrs: Mapping[str, Any]) -> str:
    """The precision that an operation's attributes name; "" if they leave it open.

    Raises:
      ValueError: they name one that does not exist (graphs come from files, too).
    """
    value = attrs.get(ATTRIBUTE)
    if value is None:
        return ""
    name = value.decode() if isinstance(value, bytes) else value
    if name not in PRECISIONS:
        raise ValueError(f"Attribute {ATTRIBUTE} is {name!r}; it may be one of {PRECISIONS}.")
    return str(name)
