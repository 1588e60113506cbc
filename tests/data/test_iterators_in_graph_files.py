"""Graph files with iterators: TensorFlow's give here what they gave there, and ours there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace as tf

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import iterator_graphs

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "iterators"
TOOL = ROOT / "tools" / "iterator_graphs.py"
PEERS = {
    "2": Path(os.environ.get("HEADRACE_PEER_PYTHON", ROOT / ".peer-venv" / "bin" / "python")),
    "1.15": Path(os.environ.get("HEADRACE_PEER_115_PYTHON", ROOT / ".peer-115" / "bin" / "python")),
}
NAMES = sorted(path.stem for path in GOLDEN.glob("*.pb"))
#: The order of a shuffle that is repeated is that of TensorFlow 2: 1.15 has another.
OTHER_ORDER = {"tf1_numbers", "tf1_examples"}


def load(path):
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


def check(found, expected, same_order=True):
    if not same_order:
        found, expected = [
            {"all": np.sort(np.concatenate(list(values.values())))} for values in (found, expected)
        ]
    assert sorted(found) == sorted(expected)
    for key, value in expected.items():
        assert found[key].dtype == value.dtype
        np.testing.assert_array_equal(found[key], value, err_msg=key)


def test_there_are_files_of_both():
    cases = len(iterator_graphs.CASES)
    assert len(NAMES) == 2 * cases >= 12


@pytest.mark.parametrize("name", NAMES)
def test_an_iterator_of_tensorflow_runs(name):
    found = iterator_graphs.results(tf, GOLDEN / f"{name}.pb")
    check(found, load(GOLDEN / f"{name}.npz"), name not in OTHER_ORDER)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    iterator_graphs.write(tf, folder, "ours")
    return folder


@pytest.mark.parametrize("case", iterator_graphs.CASES)
def test_ours_give_from_a_file_what_those_of_tensorflow_give(ours, case):
    check(load(ours / f"ours_{case}.npz"), load(GOLDEN / f"tf2_{case}.npz"))


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", iterator_graphs.CASES)
@pytest.mark.parametrize("version", PEERS)
def test_ours_run_in_tensorflow(ours, case, version, tmp_path):
    python = PEERS[version]
    if not python.exists():
        pytest.skip(f"there is no TensorFlow {version} here")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    out = tmp_path / "out.npz"
    subprocess.run(
        [python, TOOL, "run", ours / f"ours_{case}.pb", out],
        check=True,
        env=environment,
        timeout=240,
        capture_output=True,
    )
    same_order = version == "2" or f"tf1_{case}" not in OTHER_ORDER
    check(load(out), load(ours / f"ours_{case}.npz"), same_order)
