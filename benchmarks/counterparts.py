"""The sweeps' work in PyTorch and NumPy, and whether two sides made the same of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import convolution_cases
import convolution_torch
import numpy as np
import operation_numpy
import operation_torch
from convolution_torch import in_tensorflow
from operation_cases import PREFIX, Body, Operation, randoms
from workloads import Step

#: By side: what stands for the body of a case.
BODIES = {"torch": operation_torch.BODIES, "numpy": operation_numpy.BODIES}
#: By the bytes of a floating type: how far results may be apart, relative to their size.
TOLERANCES = {2: 2e-2, 4: 1e-3, 8: 1e-6}
RANDOM = {case.name for case in randoms()}


def has(side: str, name: str) -> bool:
    """Whether a side runs a workload of the sweeps."""
    if side not in BODIES:
        return True
    if name.startswith(convolution_cases.PREFIX):
        return side == "torch"
    operation = Operation.named(name)
    return operation.case in BODIES[side] and (side == "torch" or operation.part == "value")


def build(side: str, module: ModuleType, name: str) -> Step:
    """A step of a workload that the side has."""
    if name.startswith(convolution_cases.PREFIX):
        case = convolution_cases.Convolution.named(name)
        step = convolution_torch.step_of(module, case)
        return Step(_without_result(step), values=lambda: in_tensorflow(case, arrays(step())))
    operation = Operation.named(name)
    body = BODIES[side][operation.case]
    inputs = [a.astype(np.int64) if a.dtype.kind == "i" else a for a in operation.arrays()]
    if side == "torch":
        step = _in_torch(module, body, inputs, operation.part)
    else:
        step = partial(body, module, *inputs)
    return Step(_without_result(step), values=step)


def _without_result(step: Callable[[], Any]) -> Callable[[], None]:
    """Steps that answer a number of seconds are believed, so these answer nothing."""

    def run() -> None:
        step()

    return run


def _in_torch(
    torch: ModuleType, body: Body, inputs: list[np.ndarray], part: str
) -> Callable[[], Any]:
    tensors = [torch.from_numpy(array) for array in inputs]
    if part == "value":

        def value() -> Any:
            with torch.inference_mode():
                return body(torch, *tensors)

        return value
    sources = [tensor.requires_grad_() for tensor in tensors if tensor.is_floating_point()]
    ones = torch.ones_like(body(torch, *tensors))

    def gradient() -> Any:
        made = torch.autograd.grad(body(torch, *tensors), sources, ones, allow_unused=True)
        return [each for each in made if each is not None]

    return gradient


def arrays(result: Any) -> list[np.ndarray]:
    """What a step made, one array after the other; rows of a gradient where they belong."""
    if hasattr(result, "dense_shape"):
        dense = np.zeros(result.dense_shape, result.values.dtype)
        np.add.at(dense, result.indices, result.values)
        return [dense]
    if isinstance(result, list | tuple):
        return [array for part in result for array in arrays(part)]
    return [np.asarray(result.to_dense() if hasattr(result, "to_dense") else result)]


def difference(name: str, ours: list[np.ndarray], theirs: list[np.ndarray]) -> str | None:
    """How two sides' results of a workload differ, or None. Of draws the moments are compared."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results and {len(theirs)}"
    random = name.startswith(PREFIX) and Operation.named(name).case in RANDOM
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape:
            return f"shapes {a.shape} and {b.shape}"
        if (a.dtype.kind == "f") != (b.dtype.kind == "f"):
            return f"types {a.dtype} and {b.dtype}"
        if random:
            moments = [(x.mean(), x.std()) for x in (a, b)]
            if not np.allclose(*moments, rtol=0.1, atol=0.05):
                return f"mean and deviation {moments[0]} and {moments[1]}"
        elif a.dtype.kind != "f":
            if not np.array_equal(a, b):
                return f"{np.mean(a != b):.2%} of the integers"
        elif text := _apart(a, b):
            return text
    return None


def _apart(a: np.ndarray, b: np.ndarray) -> str | None:
    tolerance = TOLERANCES[min(a.dtype.itemsize, b.dtype.itemsize)]
    finite = a[np.isfinite(a)]
    size = float(np.abs(finite).mean(dtype=np.float64)) if finite.size else 0.0
    close = np.isclose(a, b, tolerance, tolerance * max(1.0, size), equal_nan=True)
    if close.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"{np.mean(~close):.2%} of the numbers, {a[place]} and {b[place]} at {place}"
