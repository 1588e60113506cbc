"""Store the pictures of the README: learning curves and predictions that `headrace demo` draws.

    python tools/make_learning_curves.py

The options are for a quick look: `--steps N` trains so many steps, `--one-process` leaves the
cluster out, `--output FOLDER` writes elsewhere. Needs the extra `demo`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from PIL import Image

from headrace.cli.demo import Demo, run_demo

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"


def main(arguments: list[str] | None = None) -> int:
    """Run the demo, and store its pictures with few colours, which makes small files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int)
    parser.add_argument("--one-process", action="store_true")
    parser.add_argument("--output", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        workers = 0 if options.one_process else 2
        demo = Demo(options.steps, Path(folder), seed=2016, picture=True, workers=workers)
        passed = run_demo(demo)
        options.output.mkdir(parents=True, exist_ok=True)
        for name in ("learning-curves.png", "predictions.png"):
            with Image.open(Path(folder) / name) as picture:
                picture.convert("RGB").quantize(64).save(options.output / name, optimize=True)
    # With fewer steps than the models need, the accuracies are not asked for.
    return 0 if passed or options.steps else 1


if __name__ == "__main__":
    raise SystemExit(main())
