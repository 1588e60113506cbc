"""Views as messages, and how a process asks others for them."""

from __future__ import annotations

from collections.abc import Callable

from headrace.distributed.protocol import control_pb2 as cpb
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.standby.rules import Member, View

__all__ = ["AskWitness", "Place", "member_of", "proposal", "shown", "to_message", "view_of"]

#: A process and the address of its control plane.
Place = tuple[Member, str]
#: ``ask(place, task, view, appoint)``: what a witness holds after a proposal; raises OpError if it
#: cannot be reached.
AskWitness = Callable[[Place, str, View, bool], View | None]


def to_message(view: View) -> pb.ViewDef:
    """A view as a message."""
    message = pb.ViewDef(epoch=view.epoch)
    for name in ("primary", "standby", "witness"):
        member = getattr(view, name)
        if member is not None:
            getattr(message, name).task, getattr(message, name).incarnation = member
    return message


def view_of(message: pb.ViewDef) -> View:
    """The view of a message."""
    found = {
        name: member_of(getattr(message, name)) if message.HasField(name) else None
        for name in ("standby", "witness")
    }
    return View(message.epoch, member_of(message.primary), **found)


def member_of(message: pb.MemberDef) -> Member:
    """The process of a message."""
    return message.task, message.incarnation


def shown(place: Place | None) -> str:
    """A process in a message for people.

    >>> shown((("/job:ps/replica:0/task:1", 4853303022474001563), "10.0.0.2:2222"))
    '/job:ps/replica:0/task:1 at 10.0.0.2:2222'
    """
    return "its process" if place is None else f"{place[0][0]} at {place[1]}"


def proposal(task: str, view: View, appoint: bool) -> cpb.ViewRequest:
    """What a witness is asked."""
    return cpb.ViewRequest(task=task, view=to_message(view), appoint=appoint)
