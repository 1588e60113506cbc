"""Write ``tests/golden/examples.json``: the first losses of the examples under TensorFlow 1.15.

    OLD_PEER_PYTHON tools/make_example_goldens.py [name ...]

The programs run unchanged, with the arguments that the tests give them.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "programs"))

from example_cases import CASES, EXAMPLES, losses  # noqa: E402

OUT = ROOT / "tests" / "golden" / "examples.json"


def run(name):
    """The losses of one program."""
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / (name + ".py"))]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command + CASES[name].arguments,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return losses(done.stdout)


def main():
    stored = json.loads(OUT.read_text()) if OUT.exists() else {}
    wanted = [name for name, case in CASES.items() if case.golden is True]
    for name in sys.argv[1:] or wanted:
        stored[name] = run(name)
        print(name, stored[name][:3])
    stored = {name: stored[name] for name in sorted(wanted) if name in stored}
    OUT.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
