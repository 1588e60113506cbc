"""`headrace demo` from end to end."""

import sys

import pytest
from click.testing import CliRunner

from headrace.cli import demo, main


@pytest.mark.slow
def test_a_short_demo_misses_its_targets_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    options = ["--steps", "2", "--one-process", "--output-dir", tmp_path.name]
    result = CliRunner().invoke(main, ["demo", *options])
    assert result.exit_code == 1, result.output
    assert "missed" in result.output
    assert str(tmp_path / "learning-curves.png") in result.output
    assert (tmp_path / "learning-curves.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "predictions.png").read_bytes().startswith(b"\x89PNG")
    (export,) = tmp_path.glob("estimator-*/export/*/saved_model.pb")
    assert f"Exported model: {export.parent}" in result.output
    assert f"tensorboard --logdir {export.parents[2]}" in result.output
    assert list(export.parents[2].glob("events.out.tfevents.*"))
    for model in ("softmax", "convnet"):
        assert list(tmp_path.glob(f"{model}-2*"))
        # The whole path, as of the models of the cluster: it is to be pasted elsewhere.
        assert f"Checkpoint of {model}, one process: {tmp_path / model}-2" in result.output


@pytest.mark.slow
def test_the_demo_after_a_core_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    result = CliRunner().invoke(main, ["demo", "--one-process", "--output-dir", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "pip install 'headrace[demo]'" in result.output
    assert list(tmp_path.glob("convnet-*"))


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_demo_reaches_its_targets(tmp_path):
    result = CliRunner().invoke(main, ["demo", "--output-dir", str(tmp_path), "--no-picture"])
    assert result.exit_code == 0, result.output
    assert result.output.count("reached") == 2
    assert result.output.count("matches") == 2
    assert "as the trained one" in result.output
