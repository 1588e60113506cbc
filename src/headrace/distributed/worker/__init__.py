"""Workers: each task's share of the steps of all masters.

In: parts of plans, requests to run them, and tensors from other tasks. Out: the answer of each
part. Invariant: each request is answered once, and a tensor reaches the step that it was sent for
or none. `machine` decides, `worker` does; `bodies` runs loops whose bodies need several tasks.

    >>> from headrace.distributed.worker.machine import WorkerMachine
    >>> worker = WorkerMachine()
    >>> worker.plan_asked(plan=1, session=1, master=("worker", 1), now=0.0)
    >>> worker.plan_ready(1, peers=["ps"])
    True
    >>> worker.tensors_came(step=100, transfer=0, values="w", now=0.0)  # before its step: held
    >>> worker.run_asked(step=100, plan=1, asker="worker", run="its part")
    Start(run='its part', held=[(0, 'w')])
"""
