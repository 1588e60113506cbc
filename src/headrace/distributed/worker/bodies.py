"""Calls of function bodies that several tasks share: loops and branches across tasks.

The task of the control flow op owns each call and acts as its master: it asks the other tasks to
run their parts of the body as a step of its own, so every iteration has a rendezvous of its own
(white paper 2015, section 4.4: the owner tells the others to start each iteration).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.distributed.links.peers import Peers
from headrace.distributed.steps.steps import RegisteredPlan, StepOptions, Steps
from headrace.distributed.transport.link import Link
from headrace.distributed.wire.failures import cancelled
from headrace.executor.step_context import StepContext

#: Look so long (seconds) for a task that shares a body.
_FIND_SECONDS = 5.0


class BodyCalls:
    """The calls that one worker owns.

    Attributes:
        steps: runs them; set once the task is complete.
    """

    steps: Steps

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def call(
        self,
        context: StepContext,
        addresses: Mapping[str, str],
        plan: RegisteredPlan,
        args: Sequence[Any],
    ) -> list[Any]:
        """Run a body once, for the step of ``context``; ``addresses``: where its tasks are.

        Raises:
            OpError: if a part of it fails, or the step that it belongs to is given up.
        """

        def find(task: str) -> Link:
            return self._peers.link(task, addresses[task], _FIND_SECONDS)

        options = StepOptions(find, context.limit, owner=context, check=context.check_cancelled)
        return plan.assemble(args, self.steps.run(plan, args, options))

    def cancel(self, context: StepContext) -> None:
        """The step that owns calls is given up."""
        self.steps.cancel_of(context, cancelled("The step of the loop or branch has failed."))
