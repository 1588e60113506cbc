"""Random calls of public functions: real TensorFlow's results are stored, Headrace is held to them.

    .peer-venv/bin/python tools/fuzz_ops.py record [NAME ...]   # writes tests/golden/fuzz_ops.npz
    .venv/bin/python tools/fuzz_ops.py check [NAME ...]         # prints what differs

Arguments (dtypes, shapes with zero sizes, broadcasting, NaN, infinities, extremes, broken rules;
fed with or without static shape, or constants) follow from the name of the function and the number
of the call. Headrace runs each call twice, interpreted and compiled. `docs/differences.md` names
where it is meant to differ (`tools/fuzzing/differences.py`).

`record --first 100000 --calls 20 --out FILE` records other calls, from number 200000 on with
nothing known of any shape, and `check --out FILE` holds Headrace to them. What such a run finds is
stored with the others once its number stands in `tools/fuzzing/table.py` (`FOUND`).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=("record", "check"))
    parser.add_argument("names", nargs="*", help="functions; all by default")
    parser.add_argument("--out", type=Path, help="another file for the results")
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--calls", type=int, help="how many of each; those stored by default")
    arguments = parser.parse_args()
    if arguments.calls is not None and arguments.out is None:
        parser.error("--calls needs --out: other calls than those of the table are not stored")
    if arguments.action == "record":
        return _record(arguments)
    return _check(arguments)


def _record(arguments: argparse.Namespace) -> int:
    from fuzzing import store

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    # With oneDNN, convolutions of no elements give wrong shapes and uninitialised memory.
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    from fuzzing.record import record_all
    from make_goldens import peer

    results = record_all(peer(), arguments.names, arguments.first, arguments.calls)
    path = arguments.out or store.PATH
    if arguments.names and path.exists():  # the others keep what they have
        chosen = set(arguments.names)
        results = [r for r in store.load(path) if r.name not in chosen] + results
    store.save(results, path)
    print(f"{len(results)} calls of {len({r.name for r in results})} functions, {path}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from fuzzing import store
    from fuzzing.differences import known_difference
    from fuzzing.replay import disagreements

    import headrace as tf

    chosen = [
        r
        for r in store.load(arguments.out or store.PATH)
        if not arguments.names or r.name in arguments.names
    ]
    found = [d for d in disagreements(chosen, tf) if known_difference(d) is None]
    for one in found:
        print(one)
    print(f"{len(found)} of {len(chosen)} calls disagree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
