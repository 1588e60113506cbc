"""`headrace chaos`: a cluster of processes trains while its tasks are killed, stopped and cut off.

In: a seed, how long, and a mode of training. Out: a report of what was lost, how long training
stood still, and whether what was acknowledged can be accounted for. Invariant: every step that a
worker was told is done is in the counters of the servers, or was lost with a server that went back
to a checkpoint, and is counted as such.

What happens when follows from the seed alone:

>>> from headrace.chaos.schedule import Cluster, make_schedule
>>> for fault in make_schedule(7, seconds=9.0, cluster=Cluster(2, 4)):
...     print(str(fault).strip())
3.3 s: cut ps/0
5.4 s: delay ps/1 for 1.9 s
"""
