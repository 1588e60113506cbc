"""Send and Recv: the two ends of a transfer between tasks (OSDI 2016 paper, section 3.3).

They are no operations that programs can make: ``headrace.partition`` puts them into the parts of a
step. A Send is a host op that hands values to the step; a Recv is completed from outside, when its
values arrive.
"""

from __future__ import annotations

from typing import Any

from headrace.ops.registry import Effects, OpDef

_MOVES = Effects(external=True)


def _send(context: Any, *values: Any) -> tuple[Any, ...]:
    """Hand values to whoever runs the step."""
    context.step.send(context.node.attrs["transfer"], values)
    return ()


#: Takes what one unit made for one task; attribute ``transfer`` tells the Transfer.
SEND = OpDef("_Send", (), (), {}, host=_send, effects=_MOVES)
#: Puts out what the Send of the same ``transfer`` takes.
RECV = OpDef("_Recv", (), (), {}, effects=_MOVES)
