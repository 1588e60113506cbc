"""`headrace run`: a program sees what it would see under Python itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.launch.python_2 import python_2_sign

HEADRACE = Path(sys.executable).with_name("headrace")


@pytest.fixture
def run(tmp_path):
    """``run(text, *arguments)`` runs a program of that text in its folder."""

    def start(text, *arguments, command=(sys.executable, "-m", "headrace", "run", "program.py")):
        (tmp_path / "program.py").write_text(text)
        return subprocess.run(
            [*command, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=50
        )

    return start


@pytest.mark.process
def test_arguments_folder_path_and_name(run, tmp_path):
    text = """
import os, sys
import helper
import tensorflow as tf
print([__name__, __file__, sys.argv, sys.path[0] == os.path.dirname(os.path.abspath(__file__))])
print(helper.tf is tf, sys.modules["__main__"].__dict__ is globals())
"""
    (tmp_path / "helper.py").write_text("import tensorflow as tf")
    expected = ["__main__", "program.py", ["program.py", "--help", "-m", "x", "--", "y"], True]
    arguments = ("--help", "-m", "x", "--", "y")
    done = run(text, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(expected), "True True"]
    again = run(text, *arguments, command=(str(HEADRACE), "run", "program.py"))
    assert (again.returncode, again.stdout) == (0, done.stdout)


@pytest.mark.process
def test_a_module_and_a_folder(run, tmp_path):
    text = "import sys, tensorflow; print(sys.argv[1:], __spec__ and __spec__.name); sys.exit(7)"
    done = run(text, "-a", command=(sys.executable, "-m", "headrace", "run", "-m", "program"))
    assert (done.returncode, done.stdout) == (7, "['-a'] program\n"), done.stderr
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "part.py").write_text("value = 3")
    (tmp_path / "folder" / "__main__.py").write_text("import part; print(part.value)")
    done = run("", command=(sys.executable, "-m", "headrace", "run", "folder"))
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("text", "status", "errors"),
    [
        ("import sys; sys.exit('why')", 1, "why\n"),
        ("raise KeyboardInterrupt", 130, None),
        (
            "def f():\n    raise KeyError('x')\nf()",
            1,
            'Traceback (most recent call last):\n  File "program.py", line 3, in <module>\n'
            "    f()\n  File \"program.py\", line 2, in f\n    raise KeyError('x')\n"
            "KeyError: 'x'\n",
        ),
    ],
)
def test_exit_status_and_traceback(run, text, status, errors):
    done = run(text)
    assert done.returncode == status
    if errors is not None:
        marked = done.stderr.splitlines(keepends=True)  # Python 3.13 also marks calls
        assert "".join(line for line in marked if set(line.strip()) - set("~^")) == errors


@pytest.mark.process
def test_a_server_that_goes_on_as_a_worker_when_it_is_stopped_has_ended_well(run):
    text = """
import threading
import tensorflow as tf
server = tf.train.Server.create_local_server()
threading.Thread(target=server.stop).start()
server.join()
with tf.Session(server.target) as sess:
    sess.run(tf.constant(1))
"""
    found = run(text)
    assert (found.returncode, found.stdout) == (0, "")
    assert found.stderr.endswith("headrace: program.py has served until its server was stopped\n")
    assert "Traceback" not in found.stderr


@pytest.mark.process
def test_a_program_for_python_2(run):
    done = run('import sys\nprint "hello"\n')
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert 'this looks like a program for Python 2 (line 2: print "hello")' in done.stderr
    assert "runner" not in done.stderr


@pytest.fixture
def package(tmp_path):
    """A package `pkg` whose module of the same name needs another of its modules."""
    folder = tmp_path / "pkg"
    folder.mkdir()
    (folder / "__init__.py").write_text("import sys\nfrom pkg import layers\nargv0 = sys.argv[0]\n")
    (folder / "layers.py").write_text("import tensorflow as tf\nsize = tf.constant(2)\n")
    (folder / "pkg.py").write_text(
        "import sys\nfrom pkg import argv0, layers\nfrom . import layers as again\n"
        "print(__name__, __package__, __spec__.name, argv0, sys.argv[1:], layers is again)\n"
    )
    return folder


@pytest.mark.process
def test_a_module_of_a_package_of_the_same_name(run, package):
    done = run("", "-x", command=(sys.executable, "-m", "headrace", "run", "-m", "pkg.pkg"))
    assert done.stdout == "__main__ pkg pkg.pkg -m ['-x'] True\n", done.stderr


@pytest.mark.process
def test_a_file_that_hides_its_package_says_how_to_run_it(run, package):
    done = run("", command=(sys.executable, "-m", "headrace", "run", "pkg/pkg.py"))
    assert done.returncode == 1
    assert "/src/headrace/" not in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "headrace: pkg/pkg.py hides the package 'pkg' that it lies in. Run it as a module, from "
        f"the folder above: cd {package.parent} && headrace run -m pkg.pkg"
    )


@pytest.mark.process
@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("absent", "There is no module 'absent' in {folder} or on the path."),
        ("pkg.absent", "There is no module 'pkg.absent' in {folder} or on the path."),
        ("pkg.pkg.absent", "There is no module 'pkg.pkg.absent' in {folder} or on the path."),
        ("pkg", "'pkg' is a package, and has no module __main__ to run."),
        (".pkg", "There is no module '.pkg' in {folder} or on the path."),
    ],
)
def test_no_such_module(run, package, module, message):
    (package / "pkg.py").write_text("")
    done = run("", command=(sys.executable, "-m", "headrace", "run", "-m", module))
    assert done.returncode == 1
    assert done.stderr == f"Error: {message.format(folder=package.parent)}\n"


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("absent.py", "There is no file 'absent.py'."),
        ("", "There is no file ''."),
        ("x" * 300, f"There is no file '{'x' * 300}'."),
        (".", "The folder '.' has no __main__.py to run."),
    ],
)
def test_no_such_program(run, program, message):
    done = run("", command=(sys.executable, "-m", "headrace", "run", program))
    assert done.returncode == 1
    assert done.stderr == f"Error: {message}\n"


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("except ValueError, e:\n  pass", None),
        ("print 'x'", "line 1: print 'x'"),
        ("exec 'x = 1'", "line 1: exec 'x = 1'"),
        ("raise ValueError, 'x'", "line 1: raise ValueError, 'x'"),
        ("x = 0777", "line 1: x = 0777"),
        ("if 1 <> 2: pass", "line 1: if 1 <> 2: pass"),
        ("x = `1`", "line 1: x = `1`"),
        ("if True:\n        a = 1\n\tb = 2", "line 3: b = 2"),
        ("for i in xrange(3): pass", "xrange is a built-in of Python 2"),
        ("import cPickle", "cPickle is a module of Python 2"),
        ("{}.iteritems()", "'dict' object has no attribute 'iteritems'"),
        ("import sys; sys.maxint", "module 'sys' has no attribute 'maxint'"),
        ("{}.keys()[0]", "'dict_keys' object is not subscriptable"),
        ("len(zip([], []))", "object of type 'zip' has no len()"),
        ("x = range(3); x[0] = 1", "'range' object does not support item assignment"),
        ("{}.keys().sort()", "'dict_keys' object has no attribute 'sort'"),
        ("'x'.decode('utf-8')", "'str' object has no attribute 'decode'"),
        ("iter([]).next()", "'list_iterator' object has no attribute 'next'"),
        ("1 + ''", ""),
        ("x = (1", ""),
        ("undefined_name", ""),
        ("import absent_module_of_nobody", ""),
        ("[].nothing", ""),
        ("1 / 0", ""),
    ],
)
def test_signs_of_python_2(text, sign):
    if sign is None:
        text, sign = f"try: pass\n{text}", "line 2: except ValueError, e:"
    with pytest.raises(Exception) as caught:  # noqa: PT011
        exec(compile(text, "program.py", "exec"), {})
    error = caught.value
    if isinstance(error, SyntaxError) and error.text is None:
        error.text = text.splitlines()[(error.lineno or 1) - 1]
    assert python_2_sign(error) == sign


def test_children_find_headrace_first(monkeypatch):
    from headrace.launch import program as module

    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    module._serve_children()
    module._serve_children()
    site, rest = os.environ["PYTHONPATH"].split(os.pathsep)
    assert rest == "elsewhere"
    assert (Path(site) / "tensorflow.py").exists()
