"""Steps cut into parts without a cluster."""

from __future__ import annotations

from headrace.partition.describe import describe
from headrace.partition.functions import cut_bodies
from headrace.partition.parts import cut_at_tasks
from headrace.partition.reads import read_before_loops
from headrace.passes.ir import build_step
from headrace.placement.devices import DeviceAttributes
from headrace.placement.placer import place

#: Short names of the tasks; the first is the master.
TASKS = {
    name: f"/job:{name[:-1]}/replica:0/task:{name[-1]}"
    for name in ("worker0", "worker1", "ps0", "ps1")
}
DEVICES = [DeviceAttributes(f"{t}/device:CPU:0", "CPU", 0, None, 0) for t in TASKS.values()]


def cut(fetches, feeds=(), targets=()):
    """The partition of a step over two workers and two parameter servers."""
    step = build_step(fetches, list(feeds), list(targets))

    def place_on(nodes, device, function=""):
        place(nodes, DEVICES, default_device=device)

    place_on(step.nodes, DEVICES[0].name)
    read_before_loops(step)
    bodies = cut_bodies(step, place_on)
    return cut_at_tasks(step, bodies=bodies)


def text(partition):
    """`describe` with short task names, and without devices: each task has one."""
    found = describe(partition)
    for short, full in TASKS.items():
        found = found.replace(f" on {full}/device:CPU:0", "").replace(full, short)
    return "\n" + found + "\n"
