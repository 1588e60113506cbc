"""Whether the sides of a sweep do the same work: each case once, its results set side by side."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from counterparts import difference, has
from run import Bench, Side


def check(bench: Bench, titles: dict[str, str]) -> int:
    """Print where a side makes something else than Headrace; 1 if one does, or fails.

    Args:
        titles: of the workloads, by name.
    """
    sides = {name: bench.start(name) for name in bench.pythons}
    differ = compared = 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, title in titles.items():
                ours = _made(sides, "headrace", name, Path(folder))
                for side in [s for s in sides if s != "headrace" and has(s, name)]:
                    theirs = _made(sides, side, name, Path(folder))
                    compared += 1
                    failed = next((text for text in (ours, theirs) if isinstance(text, str)), None)
                    text = failed or difference(name, list(ours), list(theirs))
                    if text is not None:
                        differ += 1
                        print(f"{title}: {side}: {text}", flush=True)
                for dead in [s for s in sides if sides[s].ended]:
                    sides[dead] = bench.start(dead)
    finally:
        for side in sides.values():
            side.close()
    print(f"{compared} results compared to Headrace's, {differ} differ")
    return int(differ > 0 or compared == 0)


def _made(sides: dict[str, Side], name: str, workload: str, folder: Path) -> list[np.ndarray] | str:
    """What a step made, or what went wrong."""
    path = folder / f"{name}.npz"
    try:
        sides[name].keep(workload, path)
    except (RuntimeError, OSError) as error:
        return f"{name} failed: {error}"
    with np.load(path) as held:
        return [held[key] for key in held.files]
