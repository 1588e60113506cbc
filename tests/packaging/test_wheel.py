"""The wheel has what it should, and works in clean environments, with each extra."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
RELEASES = ["3.11", "3.12", "3.13"]

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.timeout(900)]

_SMOKE = """
import headrace as tf
assert "site-packages" in tf.__file__, tf.__file__
x = tf.placeholder(tf.float32, [None, 2])
with tf.Session() as session:
    print(session.run(tf.reduce_sum(tf.nn.relu(x)), {x: [[1.0, -2.0], [3.0, 4.0]]}))
"""

# What each extra is for, done once.
_USES = {
    "keras": """
import h5py, headrace as tf
x = tf.placeholder(tf.float32, [None, 3])
assert tf.keras.layers.Dense(4)(x).shape.as_list() == [None, 4]
""",
    "kubernetes": """
from headrace.launch import LaunchJob
from headrace.launch.kubernetes import KubernetesOptions, as_yaml, manifests
options = KubernetesOptions("an/image", "train", insecure=True)
assert "kind: StatefulSet" in as_yaml(manifests(LaunchJob("train.py", ps=1), options))
""",
    "lmdb": """
import lmdb, headrace as tf
with lmdb.open("base") as base, base.begin(write=True) as change:
    change.put(b"key", b"value")
queue = tf.FIFOQueue(1, tf.string)
value = tf.LMDBReader().read(queue)[1]
with tf.Session() as session:
    session.run(queue.enqueue("base"))
    assert session.run(value) == b"value"
""",
    "rdma": """
from headrace.distributed.transport import ucx_ffi
ucx_ffi.library()
""",
    "s3": """
import os, headrace as tf
os.environ |= {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1",
    "AWS_ACCESS_KEY_ID": "no", "AWS_SECRET_ACCESS_KEY": "no",
}
try:
    tf.gfile.Exists("s3://bucket/name")
except tf.errors.DeadlineExceededError:
    print("nobody is there")
""",
    "tensorboard": """
import headrace as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
with tf.Session() as session:
    writer = tf.summary.FileWriter("events")
    writer.add_summary(session.run(tf.summary.scalar("loss", 0.5)), 7)
    writer.close()
events = EventAccumulator("events").Reload()
assert events.Tags()["scalars"] == ["loss"]
""",
    "docs": """
import furo, jupytext, myst_parser, sphinx, sphinxcontrib.mermaid
""",
}


def _run(*command: object, cwd: Path, timeout: float = 300) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _interpreter(release: str) -> str | None:
    """A Python of this release, on the path or among pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{release}")]
    candidates += map(str, sorted(pyenv.glob(f"{release}.*/bin/python")))
    for candidate in filter(None, candidates):
        asked = "import sys; print('%d.%d' % sys.version_info[:2])"
        said = subprocess.run([candidate, "-c", asked], capture_output=True, text=True)
        if said.stdout.strip() == release:
            return candidate
    return None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    pytest.importorskip("hatchling", reason="the wheel is built with hatchling (extra `dev`)")
    folder = tmp_path_factory.mktemp("wheel")
    _run(
        *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"),
        *("-w", folder, ROOT),
        cwd=folder,
    )
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("index")
    pip = (sys.executable, "-m", "pip", "--retries=0", "--timeout=10")
    asked = subprocess.run(
        [*pip, "download", "--no-deps", "-d", folder, "six"], capture_output=True, text=True
    )
    if asked.returncode != 0:
        pytest.skip("no package index can be reached")


@pytest.fixture(scope="module", params=RELEASES)
def clean(request, index, wheel, tmp_path_factory) -> Path:
    """The interpreter of an environment that has the wheel and its core dependencies only."""
    interpreter = _interpreter(request.param)
    if interpreter is None:
        pytest.skip(f"no Python {request.param} on this machine")
    folder = tmp_path_factory.mktemp(f"clean-{request.param}")
    _run(interpreter, "-m", "venv", folder, cwd=folder)
    python = folder / "bin" / "python"
    _run(python, "-m", "pip", "install", "-q", wheel, cwd=folder)
    return python


def test_contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(
            next(name for name in names if name.endswith("dist-info/METADATA"))
        ).decode()
    source = ROOT / "src"
    expected = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    inside = {name for name in names if name.startswith("headrace/")}
    assert inside == expected
    assert {
        "headrace/py.typed",
        "headrace/__init__.pyi",
        "headrace/demo_data/digits.npz",
        "headrace/namespaces/known_names.txt",
        "headrace/graph/proto/graph.proto",
    } <= inside
    outside = {name.split("/")[0] for name in names} - {"headrace"}
    assert len(outside) == 1, "nothing but the package and its metadata"
    assert any(name.endswith("licenses/NOTICE") for name in names)
    assert "Project-URL: Repository, https://" in metadata
    assert "](docs/" not in metadata, "links of the README are absolute"


def test_core_install(clean, tmp_path):
    _run(clean, "-m", "pip", "check", cwd=tmp_path)
    assert _run(clean, "-c", _SMOKE, cwd=tmp_path).split() == ["8.0"]
    script = clean.parent / "headrace"
    demo = _run(*(script, "demo", "--one-process", "--output-dir", tmp_path / "demo"), cwd=tmp_path)
    assert "reached 0.95" in demo
    assert "pip install 'headrace[demo]'" in demo
    _run(clean, "-c", "import importlib.util as u; assert not u.find_spec('pytest')", cwd=tmp_path)


def test_the_cluster_of_the_demo(clean, tmp_path):
    script = clean.parent / "headrace"
    output = _run(script, "demo", "--no-picture", "--output-dir", tmp_path, cwd=tmp_path)
    assert output.count("matches") == 2


def test_commands_of_the_readme(clean, tmp_path):
    text = (ROOT / "README.md").read_text()
    (tmp_path / "digits.py").write_text(text.split("```python\n")[1].split("```")[0])
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    assert float(_run(clean, "digits.py", cwd=tmp_path)) > 0.85
    script = clean.parent / "headrace"
    program = ROOT / "examples" / "seq2seq_attention.py"
    assert _run(script, "run", program, "--steps=3", cwd=tmp_path)


EXTRAS = ["demo", "keras", "lmdb", "security", "rdma", "tensorboard", "docs"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_extra(clean, wheel, extra, tmp_path):
    if extra == "rdma" and sys.platform != "linux":
        pytest.skip("the extra rdma is for Linux")
    folder = tmp_path / "environment"
    # The core comes from the clean environment, the extra goes into one above it.
    _run(clean, "-m", "venv", folder, cwd=tmp_path)
    site = next((clean.parent.parent / "lib").glob("python*/site-packages"))
    own = next((folder / "lib").glob("python*/site-packages"))
    (own / "core.pth").write_text(f"{site}\n")
    python = folder / "bin" / "python"
    _run(python, "-m", "pip", "install", "-q", f"{wheel}[{extra}]", cwd=tmp_path)
    if extra == "demo":
        _run(python, "-m", "headrace", "demo", "--one-process", cwd=tmp_path)
        assert (tmp_path / "headrace-demo" / "learning-curves.png").stat().st_size > 10_000
    elif extra == "security":
        options = ("--output-dir", "certs", "--host", "127.0.0.1")
        _run(python, "-m", "headrace", "certs", *options, cwd=tmp_path)
        assert (tmp_path / "certs").is_dir()
    else:
        _run(python, "-c", _USES[extra], cwd=tmp_path)


def test_install_from_the_repository(index, tmp_path):
    """`pip install .`, which builds in an environment of its own."""
    folder = tmp_path / "environment"
    _run(sys.executable, "-m", "venv", folder, cwd=tmp_path)
    python = folder / "bin" / "python"
    _run(python, "-m", "pip", "install", "-q", ROOT, cwd=tmp_path)
    assert _run(python, "-c", _SMOKE, cwd=tmp_path).split() == ["8.0"]
