"""The steps that clients in other processes ask for."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from headrace.distributed.master.traces import run_traced
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire import codec
from headrace.distributed.wire.failures import to_failure
from headrace.distributed.wire.messages import pack
from headrace.executor.threads import step_threads
from headrace.graph.proto import RunMetadata, RunOptions

if TYPE_CHECKING:
    from headrace.distributed.master.master import Master


class ClientFrames:
    """Turns the messages of clients into steps of their sessions."""

    def __init__(self, master: Master) -> None:
        self.master = master

    def run_step(self, link: Link, message: pb.RunStep, buffers: list[Any]) -> None:
        """A client asks for a step. It waits in a thread of its own."""
        feeds = codec.decode_many(message.feeds, buffers)
        step_threads.submit(self._run_step, link, message, feeds)

    def _run_step(self, link: Link, message: pb.RunStep, feeds: list[Any]) -> None:
        result = pb.StepResult(request=message.request)
        buffers: list[Any] = []
        try:
            plan = self.master.session(message.session).plan_of(message.plan)
            options = RunOptions.FromString(message.options)
            metadata = RunMetadata() if message.metadata else None
            values = run_traced(plan, feeds, options, metadata)
            metas, buffers = codec.encode_many(values)
            result.fetches.extend(metas)
            if metadata is not None:
                result.metadata = metadata.SerializeToString()
        except Exception as error:
            result.failure.CopyFrom(to_failure(error, getattr(error, "task", self.master.task)))
        with contextlib.suppress(PipeBroken):  # the client is gone, and nobody wants the result
            link.send(pack(result), buffers)
