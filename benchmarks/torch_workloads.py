"""The accelerator rows in PyTorch: eager steps, as most of its programs run them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from workloads import Step, digits

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def _wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def _training(
    model: nn.Module, make: Callable[..., Any], batch: tuple[np.ndarray, ...], half: bool = False
) -> Step:
    """A step copies its batch, and waits for its end, as a session's step does."""
    model = model.to(DEVICE)
    optimizer, loss_of = make(model.parameters()), nn.CrossEntropyLoss()

    def run() -> None:
        x, y = (torch.from_numpy(array).to(DEVICE) for array in batch)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=half):
            loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        _wait()

    return Step(run)


def mlp() -> Step:
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    return _training(nn.Sequential(*layers), partial(torch.optim.Adam, lr=1e-4), digits(100))


def alexnet(batch: int, half: bool = False) -> Step:
    def convolve(inputs: int, out: int, size: int, stride: int, margin: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, out, size, stride, margin), nn.ReLU()]

    model = nn.Sequential(
        *convolve(3, 64, 11, 4, 2),
        nn.MaxPool2d(3, 2),
        *convolve(64, 192, 5, 1, 2),
        nn.MaxPool2d(3, 2),
        *convolve(192, 384, 3, 1, 1),
        *convolve(384, 256, 3, 1, 1),
        *convolve(256, 256, 3, 1, 1),
        nn.MaxPool2d(3, 2),
        nn.Flatten(),
        nn.Linear(6 * 6 * 256, 4096),
        nn.ReLU(),
        nn.Linear(4096, 4096),
        nn.ReLU(),
        nn.Linear(4096, 1000),
    )
    rng = np.random.RandomState(3)
    images = rng.random_sample((batch, 3, 224, 224)).astype(np.float32)
    data = (images, rng.randint(1000, size=batch))
    return _training(model, partial(torch.optim.SGD, lr=1e-4), data, half)


def product(size: int, dtype: str) -> Step:
    x = torch.randn(size, size, device=DEVICE).to(getattr(torch, dtype))
    held = [x]

    def run() -> None:
        held[0] = (held[0] @ x) / size**0.5

    return Step(run, _wait)


def feed(megabytes: int) -> Step:
    array = np.ones(megabytes << 18, np.float32)

    def run() -> None:
        torch.from_numpy(array).to(DEVICE).sum().item()

    return Step(run)


def fetch(megabytes: int) -> Step:
    x = torch.ones(megabytes << 18, device=DEVICE)

    def run() -> None:
        (x + 1).cpu().numpy()

    return Step(run)


WORKLOADS: dict[str, Callable[[], Step]] = {
    "mlp": mlp,
    "alexnet_128": partial(alexnet, 128),
    "alexnet_128_bfloat16": partial(alexnet, 128, half=True),
    "product_float32": partial(product, 4096, "float32"),
    "product_bfloat16": partial(product, 8192, "bfloat16"),
    "feed_64mb": partial(feed, 64),
    "fetch_64mb": partial(fetch, 64),
}
