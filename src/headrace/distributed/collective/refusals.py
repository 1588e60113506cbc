"""Why a task, or an operation, has no place in a group any more."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import AbortedError, FailedPreconditionError, OpError

__all__ = ["begun_anew", "cannot_go_on", "given_up", "too_late"]


def too_late(group: str, task: str, members: Sequence[str]) -> OpError:
    """A task comes to a group that does not grow."""
    text = (
        f"{task} cannot join group {group}: its members are {', '.join(members)} since it was "
        "formed. Tasks join that train with the hook of an AllReduceOptimizer that is not sharded; "
        "others when all are started again, from a checkpoint."
    )
    return FailedPreconditionError(None, None, text)


def cannot_go_on(group: str, operation: str, gone: Sequence[str]) -> OpError:
    """A member is lost that had a part of a tensor."""
    who = ", ".join(gone) or "A connection"
    text = (
        f"{who} left group {group}, and with it a part of what '{operation}' divides among its "
        "members. Go on from a checkpoint."
    )
    return FailedPreconditionError(None, None, text)


def given_up(group: str, task: str, grows: bool) -> OpError:
    """The others have gone on without a task that lives: it was stopped, or cut off.

    Into a group that grows it comes again, with a session that is made anew.
    """
    text = f"{task} is no member of group {group} any more: it could not be reached for long"
    if grows:
        return AbortedError(None, None, f"{text}. It joins again.")
    return FailedPreconditionError(None, None, f"{text}. Start it again, with the others.")


def begun_anew(key: int) -> OpError:
    """A task asks for something in a generation of a group that is over."""
    text = (
        f"The session of another member of group {key} was made anew, or one has joined: all begin "
        "anew, with the values of the one that has got furthest."
    )
    return AbortedError(None, None, text)
