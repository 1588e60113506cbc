"""Variables that go from one task to another while steps run.

In: the keys of variables, and the task that is to have them. Out: they are there, with every update
that was acknowledged, and plans use them there; or nothing has changed. Invariant: at each moment
at most one task takes updates of a variable. `rules` says who may do what, without clocks or
messages; `followed` knows what of the variables has changed while a copy is made.

>>> from headrace.distributed.moving.rules import Giver
>>> source = Giver()
>>> source.prepare([("worker 0", 1), ("worker 1", 2)])
>>> source.prepared(("worker 0", 1))
>>> source.lost(("worker 1", 2))  # it is left out
>>> source.stage
'prepared'
"""
