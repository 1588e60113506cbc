"""What a member of a group asks for, what makes members fit together, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from headrace.errors import InvalidArgumentError, OpError
from headrace.graph.dtypes import DType

__all__ = [
    "FIRST_OWN_KEY",
    "MERGES",
    "Call",
    "Collectives",
    "finish",
    "mismatch",
    "on_host",
    "results",
]

Array = np.ndarray[Any, Any]

#: For each ``merge_op`` the function of two arrays that it stands for.
MERGES: Final[dict[str, Callable[..., Any]]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Min": np.minimum,
    "Max": np.maximum,
}

#: Instance keys from here on are given by the library, in the order in which graphs are built.
FIRST_OWN_KEY: Final = 1 << 24


class Call(NamedTuple):
    """What one member asks for.

    Attributes:
        kind: "reduce", "gather", "scatter" or "broadcast"; "anew": see `CollectiveBeginAnew`.
        group_key, group_size, instance_key: what is equal in all members.
        value: an array, also of JAX; None for who receives a broadcast.
        dtype, shape: of the value, or of what is to be received.
        merge, final: for "reduce" and "scatter".
        device: where the member is; ``name``: of its operation.
        hint: which way it wants: "ring", "nccl" or "auto".
    """

    kind: str
    group_key: int
    group_size: int
    instance_key: int
    value: Array | None
    dtype: DType
    shape: tuple[int, ...]
    merge: str = ""
    final: str = ""
    device: str = ""
    name: str = ""
    hint: str = ""

    def describe(self) -> str:
        """What must be equal in all members; sizes that may differ are question marks."""
        if self.kind == "gather":
            sizes = ["?", *map(str, self.shape[1:])] if self.shape else []
        else:
            sizes = [*map(str, self.shape)]
        how = f" by {self.merge}, {self.final}" if self.merge else ""
        if self.instance_key >= FIRST_OWN_KEY:
            # Graphs that are built alike have the same names; others may happen to fit.
            how += f" {'/'.join(self.name.split('/')[-2:-1])}"
        return f"{self.kind} of {self.dtype.name}[{', '.join(sizes)}]{how} in {self.group_size}"


def on_host(call: Call) -> Call:
    """A call whose value is in host memory."""
    if call.value is None or type(call.value) is np.ndarray:
        return call
    return call._replace(value=np.asarray(call.value))


class Collectives(Protocol):
    """Brings the members of groups together."""

    def run(self, call: Call, step: Any) -> Array:
        """Take part as a member, and wait for the others.

        Args:
            step: what accompanies the step (`executor.step_context.StepContext`), or None.

        Raises:
            InvalidArgumentError: if the members do not fit together.
            CancelledError, DeadlineExceededError: if the step or session ends before.
        """


def mismatch(key: tuple[int, int], texts: Sequence[tuple[str, str]]) -> OpError | None:
    """The error for members that do not fit together, if they do not.

    Args:
        key: of the group and of the instance.
        texts: for each member who it is, and what it asks for (`Call.describe`).
    """
    if len({text for _, text in texts}) == 1:
        return None
    listed = "; ".join(f"{who}: {text}" for who, text in texts)
    return InvalidArgumentError(
        None,
        None,
        f"The members of collective instance {key[1]} of group {key[0]} differ: {listed}. Build "
        "the same graph in all of them, or give different operations different keys.",
    )


def who(call: Call) -> str:
    """A member, for messages."""
    return f"'{call.name}' on {call.device or 'any device'}"


def merged(calls: Sequence[Call]) -> Array:
    """The values of all, merged in the order of the calls."""
    merge = MERGES[calls[0].merge]
    total = np.array(calls[0].value)
    with np.errstate(all="ignore"):
        for call in calls[1:]:
            # Without `out` a scalar would come back as no array.
            merge(total, call.value, out=total)
    return total


def finish(total: Array, call: Call, members: int) -> Array:
    """Apply the final op in place: "Div" divides by the number of members, integers as C does."""
    if call.final == "Div" and members > 1:
        with np.errstate(all="ignore"):
            if total.dtype.kind in "iu":
                quotient = np.abs(total) // members
                np.multiply(np.sign(total), quotient, out=total, casting="unsafe")
            else:
                np.divide(total, np.asarray(members, total.dtype), out=total)
    return total


def part_of(total: Array, call: Call, rank: int, members: int) -> Array:
    """The part of a sum that a member of rank ``rank`` owns.

    Raises:
        InvalidArgumentError: if the first dimension cannot be divided evenly.
    """
    if not call.shape or call.shape[0] % members:
        raise InvalidArgumentError(
            None,
            None,
            f"reduce_scatter divides the first dimension among {members} members, but the tensor "
            f"of {who(call)} has shape {list(call.shape)}: pad it to a multiple.",
        )
    rows = call.shape[0] // members
    return total[rank * rows : (rank + 1) * rows]


def only_sender(calls: Sequence[Call]) -> Call:
    """The member whose value the others get.

    Raises:
        InvalidArgumentError: if there is none, or several.
    """
    senders = [c for c in calls if c.value is not None]
    if len(senders) != 1:
        found = ", ".join(who(c) for c in senders) or "none"
        raise InvalidArgumentError(
            None,
            None,
            f"A broadcast has one sender, but instance {calls[0].instance_key} of group "
            f"{calls[0].group_key} has {len(senders)}: {found}.",
        )
    return senders[0]


def results(calls: Sequence[Call]) -> list[Array]:
    """What each member gets, when all are here.

    Raises:
        InvalidArgumentError: if they do not fit together.
    """
    first = calls[0]
    texts = [(who(c), c.describe()) for c in calls]
    error = mismatch((first.group_key, first.instance_key), texts)
    if error is not None:
        raise error
    if first.kind == "gather":
        return [np.concatenate([np.atleast_1d(np.asarray(c.value)) for c in calls])] * len(calls)
    if first.kind == "broadcast":
        return [np.array(only_sender(calls).value)] * len(calls)
    total = finish(merged(calls), first, len(calls))
    if first.kind == "reduce":
        return [total] * len(calls)
    return [part_of(total, c, rank, len(calls)) for rank, c in enumerate(calls)]
