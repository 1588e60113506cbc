"""What programs of the era find of Python 3 and NumPy as they were."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import collections, fractions, inspect, os, threading, time
import xml.etree.cElementTree as ET
import numpy as np
import tensorflow as tf

assert np.zeros(2, np.float).dtype == np.float64 and np.int is int and np.object is object
assert np.array([1, 2], np.int32).tostring() == np.array([1, 2], np.int32).tobytes()
assert np.asscalar(np.array([3])) == 3 and np.math.sqrt(4) == 2 and np.product([2, 3]) == 6
assert np.isnan(np.NaN) and np.Inf == float("inf") and np.float_ is np.float64
assert np.array([True]).dtype == np.bool
assert isinstance([], collections.Sequence) and isinstance({}, collections.Mapping)
assert issubclass(collections.OrderedDict, collections.MutableMapping)
def f(a, b=2, *c, **d): pass
assert inspect.getargspec(f) == (["a", "b"], "c", "d", (2,))
assert fractions.gcd(6, 4) == 2 and os.errno.EEXIST and time.clock() >= 0
assert not threading.Thread(target=f).isAlive()
assert ET.fromstring("<a b='1'/>").get("b") == "1"
print("all there")
"""


@pytest.mark.process
def test_names_that_were_dropped_since(tmp_path):
    (tmp_path / "program.py").write_text(_PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "run", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.stdout == "all there\n", done.stderr


@pytest.mark.process
def test_importing_the_aliases_changes_nothing_else():
    program = (
        "import numpy as np, headrace.compat.tensorflow, collections\n"
        "assert not hasattr(collections, 'Mapping')\n"
        "assert 'float' not in vars(np)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=50)
    assert done.returncode == 0, done.stderr
