"""Devices of made-up clusters, and placing a step on them."""

from __future__ import annotations

from headrace.graph.tensor import Tensor
from headrace.passes.ir import build_step
from headrace.placement.devices import DeviceAttributes
from headrace.placement.placer import place

CPU = "/device:CPU:0"


def task(job, index=0, cpus=1, gpus=0, gpu_memory=0, nulls=0):
    name = f"/job:{job}/replica:0/task:{index}"
    return [
        DeviceAttributes(f"{name}/device:{kind}:{i}", kind, limit)
        for kind, count, limit in (("CPU", cpus, 0), ("GPU", gpus, gpu_memory), ("NULL", nulls, 0))
        for i in range(count)
    ]


def tasks(job, count, **kwargs):
    return [d for i in range(count) for d in task(job, i, **kwargs)]


MASTER = "/job:master/replica:0/task:0/device:CPU:0"
CLUSTER = [*task("master"), *tasks("worker", 3), *tasks("ps", 2)]


def worker(i, device=CPU):
    return f"/job:worker/replica:0/task:{i}{device}"


def ps(i, device=CPU):
    return f"/job:ps/replica:0/task:{i}{device}"


def step_of(fetches, feeds=()):
    tensors = [f for f in fetches if isinstance(f, Tensor)]
    targets = [f for f in fetches if not isinstance(f, Tensor)]
    return build_step(tensors, list(feeds), targets)


def placed(fetches, available=CLUSTER, default=MASTER, feeds=(), **kwargs):
    """(device of each node by its name, new decisions)."""
    step = step_of(fetches, feeds)
    decided = place(step.nodes, available, default_device=default, **kwargs)
    return {n.name: n.device for n in step.nodes}, decided
