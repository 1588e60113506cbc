"""The worked models of `examples/` train in each of their modes, as processes, alike."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from example_cases import EXAMPLES, measured

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(120)]

#: What the small language model reaches in one process; with word frequencies alone it is 4.719.
LANGUAGE_LOSS = 4.817

#: And the ranking model: what it has learned of what can be, and the loss.
LEARNED, RANKING_LOSS = 0.774, 0.4926


def run(program: str, *arguments: str) -> str:
    """What it prints. Its processes end with it, whatever happens."""
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / f"{program}.py"), "--small", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        start_new_session=True,
    )
    try:
        out, errors = process.communicate(timeout=110)
    finally:
        with contextlib.suppress(ProcessLookupError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors[-4000:]
    return out


@pytest.mark.parametrize(
    "mode", ["local", "all-reduce", "mirrored", "sharded", "split", "pipeline"]
)
def test_language_model_is_the_same(mode):
    assert measured(run("language_model", "--mode", mode), "loss") == pytest.approx(
        LANGUAGE_LOSS, abs=2e-3
    )


@pytest.mark.parametrize("workers", ["2", "4"])
@pytest.mark.parametrize("mode", ["async", "sync", "sync-backup"])
def test_language_model_learns_on_servers(mode, workers):
    """Other updates than those of one process: of parts of batches, or without the last part."""
    printed = run("language_model", "--mode", mode, "--workers", workers)
    updates = measured(printed, "updates")
    if mode == "async":
        assert 150 * int(workers) <= updates < 150 * int(workers) + 3 * int(workers)
        assert measured(printed, "loss") < LANGUAGE_LOSS
    else:
        assert updates == 150
        assert measured(printed, "loss") == pytest.approx(LANGUAGE_LOSS, abs=0.15)


@pytest.mark.parametrize("servers", ["1", "4"])
@pytest.mark.parametrize("softmax", ["full", "sampled"])
def test_language_model_has_any_number_of_servers(softmax, servers):
    printed = run("language_model", "--mode=async", f"--softmax={softmax}", f"--servers={servers}")
    assert measured(printed, "loss") < 4.95


@pytest.mark.parametrize("mode", ["split", "pipeline", "all-reduce"])
def test_samples_learn_in_any_mode(mode):
    """Which classes are drawn differs from mode to mode."""
    printed = run("language_model", "--softmax=sampled", "--mode", mode, "--layers=2")
    assert measured(printed, "loss") < 5.3


def test_any_text_is_read(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the wheel turns the mill . " * 2000)
    assert measured(run("language_model", f"--text={path}"), "loss") < 0.6


@pytest.mark.parametrize("mode", ["local", "all-reduce", "mirrored", "sharded"])
def test_ranking_is_the_same(mode):
    printed = run("ranking", "--mode", mode)
    assert measured(printed, "loss") == pytest.approx(RANKING_LOSS, abs=5e-4)
    assert measured(printed, "learned") == pytest.approx(LEARNED, abs=3e-3)


@pytest.mark.parametrize("mode", ["async", "sync", "sync-backup", "growing"])
def test_ranking_learns_on_servers(mode):
    printed = run("ranking", "--mode", mode, "--workers=3")
    assert measured(printed, "loss") < RANKING_LOSS + 0.01
    assert measured(printed, "best_loss") < measured(printed, "loss")
    assert measured(printed, "auc") < measured(printed, "best_auc")


def test_ranking_comes_nearer_to_the_best():
    """With four times the lines."""
    assert measured(run("ranking", "--steps=1600"), "learned") > LEARNED + 0.05
