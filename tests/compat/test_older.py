"""What programs of the era find of Python 3, NumPy, Pillow and SciPy as they were."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from headrace.compat import older_numpy, older_python

_PROGRAM = """
import collections, fractions, inspect, json, os, random, threading, time
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
assert random.sample({4}, 1) == [4]
assert json.loads("[1]", encoding="utf-8") == [1] and open(__file__, "rU").readline() == "\\n"
order = [1, 2, 3]
random.shuffle(order, lambda: 0.0)
assert order == [2, 3, 1]
random.seed(np.int64(7))
drawn = random.random()
random.seed(7)
assert drawn == random.random() == random.Random(7).random()
random.seed(time.gmtime())
print("all there")
"""

_NUMPY = """
import numpy as np
import tensorflow as tf

one = np.array([2.5])
assert float(one) == 2.5 and int(np.array([[3]])) == 3 and "%d %.1f" % (one, one) == "2 2.5"
row = np.zeros(2)
row[0] = one
assert row.tolist() == [2.5, 0.0]
for refused in (np.zeros(2), np.zeros(0)):
    try:
        float(refused)
    except TypeError:
        continue
    raise AssertionError(refused)
batch = np.array([([1, 2, 3], [0, 1]), ([4, 5, 6], [1, 0])])
assert batch.shape == (2, 2) and batch.dtype == object
assert np.asarray([[1, 2], [3]]).shape == (2,)
assert np.array(np.arange(2), dtype=np.float32, copy=False).dtype == np.float32
assert np.fromstring(b"\\1\\2", dtype=np.uint8).tolist() == [1, 2]
assert np.fromstring("1 2", sep=" ").tolist() == [1.0, 2.0]
assert np.vstack(map(np.ones, (2, 2))).shape == (2, 2)
np.set_printoptions(threshold=np.nan)
assert "..." not in str(np.zeros(2000))
assert str([np.float32(1.5), np.int64(3), np.array([0.5])]) == "[1.5, 3, array([0.5])]"
bits = np.arange(4)
bits.itemset(1, 9)
bits.itemset((2,), 7)
assert bits.tolist() == [0, 9, 7, 3] and bits.ptp() == 9
try:
    tf.constant([[1, 2], [3]])
except ValueError as error:
    assert "inhomogeneous" not in str(error), error
else:
    raise AssertionError
print("all there")
"""

_ROWS = """
import numpy as np
import tensorflow as tf

rows = [[1, 2], [3]]
assert np.reshape([1, 2, 3, 4], newshape=(2, 2)).shape == np.reshape([1, 2, 3, 4], (2, 2)).shape
assert np.shape(rows) == (2,) and np.size(rows) == 2 and np.ndim(rows) == 1
assert np.max(rows) == [3] and np.sum(rows) == [1, 2, 3] and np.argsort(rows).tolist() == [0, 1]
assert np.concatenate([rows, rows]).tolist() == np.hstack([rows, rows]).tolist() == rows + rows
assert np.stack([rows, rows]).shape == np.vstack((rows, rows)).shape == (2, 2)
assert np.append(rows, [[4]]).tolist() == [[1, 2], [3], 4]
assert np.delete(rows, 0).tolist() == np.take(rows, [1]).tolist() == [[3]]
assert [part.tolist() for part in np.array_split(rows, 2)] == [[[1, 2]], [[3]]]
assert sorted(np.random.permutation(rows).tolist()) == rows and np.random.choice(rows) in rows
np.save("rows.npy", rows)
assert np.load("rows.npy", allow_pickle=True).tolist() == rows
try:
    np.concatenate([np.zeros((2, 3)), np.zeros((3, 2))])
except ValueError as error:
    assert "inhomogeneous" not in str(error)
else:
    raise AssertionError
print("all there")
"""

_SKLEARN = """
import tensorflow as tf
from sklearn.cross_validation import train_test_split
from sklearn.externals import joblib
from sklearn.linear_model import SGDClassifier
from sklearn.manifold import TSNE

assert len(train_test_split([1, 2, 3, 4], test_size=0.5)[0]) == 2 and joblib.dump
assert TSNE(n_iter=250).get_params()["max_iter"] == TSNE(max_iter=250).max_iter == 250
assert SGDClassifier(n_iter=7).max_iter == 7
print("all there")
"""

_PYTHON_2 = """
import cPickle as pickle, Queue, StringIO, sys, string, urllib, urllib2
from itertools import izip
import tensorflow as tf
import helper

def add(first, second, long=None):
    return first + second

table = {1: 2}
assert [i for i in xrange(2)] == [0, 1] and reduce(add, [1, 2]) == 3 and add(1, 2, long=3) == 3
assert list(table.iteritems()) == [(1, 2)] and table.has_key(1) and list(izip([1], [2])) == [(1, 2)]
assert isinstance(unicode("x"), basestring) and cmp(1, 2) == -1 and unichr(65) == "A"
assert sys.maxint > 2**31 and string.letters.startswith("abc") and urllib.quote("a b") == "a%20b"
assert pickle.loads(pickle.dumps(table)) == table and urllib2.HTTPError and Queue.Queue
assert StringIO.StringIO("x").read() == "x"
assert helper.sum_of(3) == 3 and not helper.of_python_2
print("all there")
"""

_PYTHON_2_HELPER = """
def sum_of(n):
    return sum(xrange(n))

try:
    basestring
    of_python_2 = True
except NameError:
    of_python_2 = False
"""

_IMAGES = """
import sys
assert "PIL" not in sys.modules
import tensorflow as tf
import numpy as np
import scipy.misc
from scipy.misc import imread, imsave, imresize
from PIL import Image, ImageDraw, ImageFont

assert not any(name.startswith("scipy.special") for name in sys.modules)
pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
imsave("a.png", pixels)
assert (imread("a.png") == pixels).all()
assert imread("a.png", mode="L").shape == (4, 4) and imread("a.png", flatten=True).dtype == "f4"
assert imresize(pixels, (2, 8)).shape == (2, 8, 3) and imresize(pixels, 50).shape == (2, 2, 3)
assert imresize(pixels, 0.5, interp="nearest").tolist() == pixels[1::2, 1::2].tolist()
assert scipy.misc.bytescale([0.0, 0.5, 1.0]).tolist() == [0, 128, 255]
assert scipy.misc.toimage(np.array([[0.0, 2.0]]), cmin=0.0, cmax=4.0).getpixel((1, 0)) == 128
assert scipy.misc.toimage(np.zeros((3, 4, 5))).size == (5, 4)
try:
    scipy.misc.toimage(np.zeros((2, 5, 7)))
except ValueError as error:
    assert "(2, 5, 7)" in str(error)
else:
    raise AssertionError
assert scipy.misc.logsumexp([0.0, 0.0]) > 0.69 and not hasattr(scipy.misc, "imfilter")
assert Image.fromarray(pixels).resize((2, 2), Image.ANTIALIAS).size == (2, 2)
draw = ImageDraw.Draw(Image.new("L", (20, 20)))
assert draw.textsize("ab")[0] > 0 and ImageFont.load_default().getsize("ab")[1] > 0
print("all there")
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(_PROGRAM, id="names"),
        pytest.param(_NUMPY, id="numpy"),
        pytest.param(_ROWS, id="rows"),
        pytest.param(_IMAGES, id="images"),
        pytest.param(_SKLEARN, id="sklearn"),
        pytest.param(_PYTHON_2, id="python-2"),
    ],
)
def test_what_was_dropped_since(program, tmp_path):
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "helper.py").write_text(_PYTHON_2_HELPER)
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "run", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.stdout == "all there\n", done.stderr


@pytest.mark.process
def test_importing_the_aliases_changes_nothing_else():
    program = (
        "import numpy as np, headrace.compat.tensorflow, collections\n"
        "assert not hasattr(collections, 'Mapping')\n"
        "assert 'float' not in vars(np)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=110)
    assert done.returncode == 0, done.stderr


def test_a_method_set_in_a_class_written_in_c_reaches_its_subclasses():
    class Mine(np.ndarray):
        pass

    was = np.ndarray.__int__
    older_numpy.set_method(np.ndarray, "__int__", lambda array: 42)
    try:
        assert int(np.zeros(3)) == int(np.zeros(2).view(Mine)) == 42
        with pytest.raises(TypeError, match="immutable type"):
            np.ndarray.__int__ = was
    finally:
        older_numpy.set_method(np.ndarray, "__int__", was)
    assert int(np.array(3)) == 3


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("xrange(3)", {"xrange"}),
        ("def f():\n    return [unicode(c) for c in raw_input()]", {"unicode", "raw_input"}),
        ("from six.moves import xrange\nxrange(3)", set()),
        ("try:\n    unicode\nexcept NameError:\n    unicode = str", set()),
        ("try:\n    PY2 = bool(unicode)\nexcept NameError:\n    PY2 = False", set()),
        ("try:\n    PY2 = bool(unicode)\nexcept:\n    PY2 = False", set()),
        ("try:\n    xrange(3)\nexcept ValueError:\n    pass", {"xrange"}),
        ("import builtins\nPY2 = hasattr(builtins, 'unicode')\nif PY2: x = unicode('')", set()),
        ("lambda cmp: cmp(1, 2)", set()),
        ("print 'x'; xrange(3)", set()),
        ("x = 'xrange'", set()),
    ],
)
def test_names_of_python_2_are_given_to_files_that_use_them_and_do_not_ask(source, names):
    assert set(older_python.names_for(source)) == names


def test_modules_of_python_2_that_a_file_tries_to_import_stay_away(monkeypatch):
    monkeypatch.delitem(sys.modules, "cPickle", raising=False)
    older_python.names_for("try:\n    import cPickle\nexcept ImportError:\n    import pickle")
    assert "cPickle" not in sys.modules
    older_python.names_for("import cPickle")
    assert sys.modules.pop("cPickle").dumps
