"""Send and Recv: the two ends of a transfer between tasks (OSDI 2016 paper, section 3.3).

They are no operations that programs can make: ``headrace.partition`` puts them into the parts of a
step. For a Send the plan hands values to the context of the step; a Recv is completed from outside,
when its values arrive.
"""

from __future__ import annotations

from headrace.ops.core.registry import Effects, OpDef

_MOVES = Effects(external=True)


#: Takes what one unit made for one task; attribute ``transfer`` tells the Transfer.
SEND = OpDef("_Send", (), (), {}, effects=_MOVES)
#: Puts out what the Send of the same ``transfer`` takes.
RECV = OpDef("_Recv", (), (), {}, effects=_MOVES)
