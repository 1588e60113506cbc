"""The options of `headrace launch`: what cannot be is said before anything is started."""

import pytest
from click.testing import CliRunner

from headrace.cli import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "0", "x.py"], "A cluster needs a worker to train; there are 0"),
        (["--elastic", "3", "x.py"], "'3' is not of the form MIN:MAX, as 2:8 is."),
        (["--elastic", "2:x", "x.py"], "'2:x' is not of the form MIN:MAX"),
        (["--standby", "--ps", "1", "x.py"], "--ps 2 or more, not 1"),
        (["--backup", "1", "--ps", "1", "x.py"], "--backup 1 leaves none of 1 workers"),
        (["--wrokers", "2", "x.py"], "No such option"),
        (["--ps", "two", "x.py"], "'two' is not a valid integer"),
        (["--sync", "--all-reduce", "x.py"], "--sync and --all-reduce contradict each other"),
        (["--hosts", "a", "--on", "ray", "x.py"], "--hosts: not for --on ray"),
        (["--env", "A=1", "x.py"], "--env: only with --hosts."),
        (["--remote-dir", "d", "--remote-python", "p", "x.py"], "--remote-python, --remote-dir:"),
        (["--port", "5000", "x.py"], "--port: not for --on here."),
        (["--ps", "1000000000", "x.py"], "A launch has 10000 tasks at most"),
        ([], "Missing argument 'SCRIPT'"),
        (["no_such.py"], "There is no file 'no_such.py'."),
        (["-m", "no_such_module"], "There is no module 'no_such_module' here or on the path."),
    ],
)
def test_what_cannot_be_launched(arguments, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(main, ["launch", *arguments])
    assert found.exit_code != 0
    assert words in " ".join(found.output.split())
    assert list(tmp_path.iterdir()) == []


def test_a_task_of_a_cluster_launches_no_other(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").write_text("")
    monkeypatch.setenv("TF_CONFIG", "{}")
    found = CliRunner().invoke(main, ["launch", "x.py"])
    assert found.exit_code == 1
    assert "TF_CONFIG is set: this process is a task of a cluster already" in found.output


def test_a_script_whose_name_begins_as_an_option_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-x.py").touch()
    found = CliRunner().invoke(main, ["launch", "-x.py", "--steps", "5"])
    assert found.exit_code == 2
    assert "If you mean the file -x.py, name it as ./-x.py, or write -- in front" in found.output
