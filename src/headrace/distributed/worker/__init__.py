"""Workers: each task's share of the steps of all masters.

In: parts of plans, requests to run them, and tensors from other tasks. Out: the answer of each
part. `machine` decides, `worker` does.
"""
