"""Frames: one byte that says what a message is, the message, and the values it describes."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from headrace.distributed.protocol import step_pb2 as pb
from headrace.errors import DataLossError

_CLASSES: dict[int, Any] = {
    pb.RUN_PART: pb.RunPart,
    pb.PART_DONE: pb.PartDone,
    pb.TENSORS: pb.Tensors,
    pb.CANCEL_STEP: pb.CancelStep,
    pb.REGISTER_PART: pb.RegisterPart,
    pb.REGISTERED: pb.Registered,
    pb.DROP_PLANS: pb.DropPlans,
    pb.RUN_STEP: pb.RunStep,
    pb.STEP_RESULT: pb.StepResult,
    pb.LINK_LOST: pb.LinkLost,
    pb.LINKS: pb.Links,
    pb.COLLECTIVE: pb.Collective,
    pb.FOLLOW: pb.Follow,
    pb.COPY: pb.Copy,
    pb.COPY_ROLE: pb.CopyRole,
    pb.COPY_KEPT: pb.CopyKept,
    pb.MOVE_TOLD: pb.MoveTold,
    pb.MOVE_COPY: pb.MoveCopy,
    pb.MOVE_SAID: pb.MoveSaid,
    pb.HOLD_STEPS: pb.HoldSteps,
    pb.STEPS_HELD: pb.StepsHeld,
}
_PREFIX = {c: bytes([k]) for k, c in _CLASSES.items()}


def pack(message: Any) -> bytes:
    """The head of a frame."""
    content: bytes = message.SerializeToString()
    return _PREFIX[message.__class__] + content


def unpack(head: bytes) -> Any:
    """The message in the head of a frame.

    Raises:
        DataLossError: if it is none of ours.
    """
    kind = _CLASSES.get(head[0]) if head else None
    if kind is None:
        raise DataLossError(None, None, f"A frame of unknown kind {head[:1]!r} arrived.")
    try:
        return kind.FromString(head[1:])
    except DecodeError as error:
        raise DataLossError(None, None, f"A frame of kind {head[0]} is torn: {error}") from None
