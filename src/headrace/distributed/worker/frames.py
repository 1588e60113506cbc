"""The messages of masters and other workers as calls of a worker; its answers as messages."""

from __future__ import annotations

import contextlib
from typing import Any

from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.steps import part_def
from headrace.distributed.steps.results import PartResult
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire import codec
from headrace.distributed.wire.failures import to_failure
from headrace.distributed.wire.messages import pack
from headrace.distributed.worker.worker import Worker, as_op_error, may_wait, reading
from headrace.errors import AbortedError, OpError
from headrace.executor.threads import step_threads
from headrace.graph.proto import ConfigProto

__all__ = ["WorkerFrames"]


class WorkerFrames:
    """What is done about each message that is for a worker."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def run_part(self, link: Link, message: pb.RunPart, buffers: list[Any]) -> None:
        feeds = codec.decode_many(message.feeds, buffers)

        def reply(result: PartResult) -> None:
            _send_result(link, message.step, result, self.worker.task)

        with reading():
            self.worker.run_part(
                message.step, message.plan, feeds, link.peer.task, reply, message.trace, link=link
            )

    def tensors(self, link: Link, message: pb.Tensors, buffers: list[Any]) -> None:
        values = codec.decode_many(message.values, buffers)
        with reading():
            self.worker.tensors_came(message.step, message.transfer, values)

    def cancel_step(self, link: Link, message: pb.CancelStep, buffers: list[Any]) -> None:
        self.worker.cancel(message.step, message.reason)

    def register_part(self, link: Link, message: pb.RegisterPart, buffers: list[Any]) -> None:
        master = (link.peer.task, link.peer.incarnation)
        self.worker.expect(message.plan, message.session, master)
        # Making a plan takes long: the thread that reads the link must go on reading.
        step_threads.submit(self._register, link, message, buffers)

    def _register(self, link: Link, message: pb.RegisterPart, buffers: list[Any]) -> None:
        answer = pb.Registered(plan=message.plan)
        try:
            config = ConfigProto.FromString(message.config)
            part = part_def.from_message(message.part, buffers)
            addresses = dict(message.addresses)
            self.worker.register(
                message.plan, message.session, part, config, addresses, message.is_ahead
            )
        except Exception as error:
            if isinstance(error, AbortedError):  # the master does not know where variables are
                self.worker.on_refuse(link)
            answer.failure.CopyFrom(to_failure(error, self.worker.task))
        _answer(link, pack(answer), [])

    def drop_plans(self, link: Link, message: pb.DropPlans, buffers: list[Any]) -> None:
        self.worker.drop(list(message.plans), message.session)


def _send_result(link: Link, step: int, result: PartResult, task: str) -> None:
    try:
        _send(link, step, result, task)
    except ValueError as error:  # over a limit of the link, and not sent
        result.error, result.last = result.error or as_op_error(error, task), None
        _send(link, step, result, task)


def _send(link: Link, step: int, result: PartResult, task: str) -> None:
    if result.last is not None:
        message, contents = result.last
        message.done = result.error is None
        # A part that has failed may end in a thread that never waits, as the one of heartbeats.
        _answer(link, pack(message), contents, message.done and may_wait())
        if message.done:
            return
    done = pb.PartDone(step=step)
    buffers: list[Any] = []
    if result.error is None:
        try:
            metas, buffers = codec.encode_many(result.fetches)
            done.fetches.extend(metas)
        except OpError as error:
            result.error = error
    if result.error is not None:
        done.failure.CopyFrom(to_failure(result.error, task))
    if result.stats is not None:
        done.stats.CopyFrom(result.stats)
        done.began, done.ended = result.began, result.ended
    _answer(link, pack(done), buffers)


def _answer(link: Link, head: bytes, buffers: list[Any], block: bool = False) -> None:
    """Send an answer to whoever asked, unless it is gone."""
    with contextlib.suppress(PipeBroken):  # its loss is noticed elsewhere
        link.send(head, buffers, block)
