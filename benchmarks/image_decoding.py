"""Time `tf.image` reading image files against Pillow alone, over threads, and print the table.

    python benchmarks/image_decoding.py [--threads N] [--seconds S] [--json FILE]

Each thread runs a session's step that decodes one file (the pixels stay in the graph, where the
rest of an input pipeline would take them), or opens it with Pillow and makes an array of its
pixels. The two take turns, and the best of the turns counts: what else the machine does can
only slow them down.
"""

from __future__ import annotations

import argparse
import io
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

import headrace as tf

#: Height, width, format and options of each kind of file.
KINDS = {
    "JPEG 375 x 500": (375, 500, "JPEG", {"quality": 90}),
    "JPEG 1080 x 1920": (1080, 1920, "JPEG", {"quality": 90}),
    "PNG 375 x 500": (375, 500, "PNG", {}),
    "PNG 28 x 28": (28, 28, "PNG", {}),
}
TURNS = 4


def picture(height: int, width: int) -> np.ndarray:
    """Waves with a little noise: about as hard to pack as a photograph."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / (9 + k)) + np.cos(y / (13 - k)) + np.sin((x + y) / 31) for k in range(3)]
    noise = np.random.default_rng(0).normal(0, 0.05, (height, width, 3))
    return ((np.stack(waves, axis=-1) / 6 + 0.5 + noise) * 255).clip(0, 255).astype(np.uint8)


def rate(work: Callable[[], object], threads: int, seconds: float) -> float:
    """Calls per second of ``work`` on several threads."""
    work()
    counts = [0] * threads
    start = threading.Barrier(threads)
    took = [0.0] * threads

    def repeat(own: int) -> None:
        start.wait()
        begin = time.perf_counter()
        while (passed := time.perf_counter() - begin) < seconds:
            work()
            counts[own] += 1
        took[own] = passed

    running = [threading.Thread(target=repeat, args=(i,)) for i in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(c / t for c, t in zip(counts, took, strict=True))


def compare(data: bytes, threads: int, seconds: float) -> tuple[float, float]:
    """Images per second: Headrace's, and Pillow's."""
    with tf.Graph().as_default():
        contents = tf.placeholder(tf.string, [])
        image = tf.image.decode_image(contents, channels=3)
        session = tf.Session()
        step = session.make_callable(image.op, [contents])
        ours = theirs = 0.0
        for _ in range(TURNS):
            ours = max(ours, rate(lambda: step(data), threads, seconds))
            theirs = max(theirs, rate(lambda: by_pillow(data), threads, seconds))
    return ours, theirs


def by_pillow(data: bytes) -> np.ndarray:
    """What a program without any framework does."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table = Table("file", "Headrace images/s", "Pillow images/s", "ratio")
    found = {}
    for name, (height, width, kind, how) in KINDS.items():
        file = io.BytesIO()
        Image.fromarray(picture(height, width)).save(file, kind, **how)
        ours, theirs = compare(file.getvalue(), options.threads, options.seconds)
        table.add_row(name, f"{ours:.0f}", f"{theirs:.0f}", f"{ours / theirs:.2f}")
        found[name] = {"headrace": ours, "pillow": theirs}
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, "rates": found}, indent=2))


if __name__ == "__main__":
    main()
