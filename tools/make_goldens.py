"""Write `tests/golden/<family>.npz`: the results of every golden program under TensorFlow.

Run with the peer's interpreter (see `tools/peer/README.md`):

    .peer-venv/bin/python tools/make_goldens.py [family ...] [--check]

Under TensorFlow 1.15 it makes the families that use `tf.contrib`, under 2.x the others.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # Keras 3 has no `tf.layers`
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import goldens  # noqa: E402

OUT = ROOT / "tests" / "golden"
LIMIT_BYTES = 200_000


def peer() -> Any:
    """TensorFlow's 1.x module, with resource variables and functional control flow.

    Both are what Headrace has; results differ from reference variables only where those are racy.
    """
    import tensorflow  # type: ignore[import-not-found,unused-ignore]

    if is_old(tensorflow):
        tf = tensorflow
    else:
        import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,unused-ignore]

        tf.disable_v2_behavior()
    tf.enable_resource_variables()
    tf.enable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.FATAL)
    return tf


def is_old(tf: Any) -> bool:
    """Whether this is TensorFlow 1.x, which has `tf.contrib`."""
    return str(tf.__version__).startswith("1.")


def storable(results: goldens.Results) -> dict[str, np.ndarray]:
    """bfloat16 is no dtype of the npz format: its bits are stored, and the key says so."""
    return {
        f"{name}@bfloat16" if value.dtype.name == "bfloat16" else name: (
            value.view(np.uint16) if value.dtype.name == "bfloat16" else value
        )
        for name, value in results.items()
    }


def make_family(tf: Any, family: str) -> dict[str, np.ndarray]:
    """Results of all programs of a family; keys are `<program>/<output>`."""
    arrays: dict[str, np.ndarray] = {}
    for program in goldens.programs(family).values():
        try:
            results = goldens.run(program, tf)
        except Exception as error:
            raise RuntimeError(f"in golden program {family}/{program.name}") from error
        arrays.update({f"{program.name}/{k}": v for k, v in storable(results).items()})
    return arrays


def differences(path: Path, arrays: dict[str, np.ndarray]) -> list[str]:
    """Names whose stored value is absent, stale or not bit-equal to the new one."""
    if not path.exists():
        return sorted(arrays)
    with np.load(path) as stored:
        same = {
            key
            for key in stored.files
            if key in arrays
            and stored[key].dtype == arrays[key].dtype
            and stored[key].shape == arrays[key].shape
            and stored[key].tobytes() == arrays[key].tobytes()
        }
        return sorted((set(arrays) | set(stored.files)) - same)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("families", nargs="*", help="all of this release if left out")
    parser.add_argument("--check", action="store_true", help="write nothing; list what changed")
    options = parser.parse_args()
    tf = peer()
    known = goldens.CONTRIB_FAMILIES if is_old(tf) else goldens.FAMILIES
    strangers = sorted(set(options.families) - set(known))
    if strangers:
        parser.error(f"TensorFlow {tf.__version__} does not make {', '.join(strangers)}")
    OUT.mkdir(parents=True, exist_ok=True)
    changed = 0
    for family in options.families or known:
        arrays = make_family(tf, family)
        path = OUT / f"{family}.npz"
        names = differences(path, arrays)
        changed += len(names)
        if not options.check:
            np.savez_compressed(path, **arrays)  # type: ignore[arg-type,unused-ignore]
            if path.stat().st_size > LIMIT_BYTES:
                raise SystemExit(f"{path}: {path.stat().st_size} bytes, over {LIMIT_BYTES}")
        print(f"{family}: {len(arrays)} outputs, {len(names)} changed")
        for name in names if options.check else ():
            print(f"  {name}")
    return int(options.check and changed > 0)


if __name__ == "__main__":
    sys.exit(main())
