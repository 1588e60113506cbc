"""`headrace certs` from the command line."""

import re
import sys

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.distributed.security.credentials import Security


def _certs(*arguments):
    return CliRunner().invoke(main, ["certs", *map(str, arguments)])


def test_the_printed_settings_work(tmp_path):
    target = tmp_path / "with blank"
    result = _certs("--output-dir", target, "--host", "ps0.example.org", "--host", "10.0.0.7")
    assert result.exit_code == 0, result.output
    _, *sections = re.split(r"^# on (.*):\n", result.output, flags=re.MULTILINE)
    assert sections[::2] == ["ps0.example.org", "10.0.0.7"]
    for host, text in zip(sections[::2], sections[1::2], strict=True):
        pairs = re.findall(r"^export (\w+)='(.*)'$", text, flags=re.MULTILINE)
        security = Security.from_environment(dict(pairs))
        assert host in security.cert_file
        assert security.encrypted
        assert security.token
        security.check_address("0.0.0.0")


def test_a_second_call_needs_force(tmp_path):
    arguments = ("--output-dir", tmp_path, "--host", "ps0")
    assert _certs(*arguments).exit_code == 0
    refused = _certs(*arguments)
    assert refused.exit_code == 1
    assert "holds ca.pem, cluster.token, host-ps0.pem, host-ps0.key already" in refused.output
    assert "--force" in refused.output
    assert _certs(*arguments, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--host", "ps0:2222"), "Invalid value for '--host': 'ps0:2222' is neither"),
        ((), "Missing option '--host'"),
        (("--host", "ps0", "--days", "0"), "Invalid value for '--days'"),
    ],
)
def test_bad_options_are_refused(tmp_path, arguments, message):
    result = _certs("--output-dir", tmp_path / "new", *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = _certs("--output-dir", tmp_path / "file" / "out", "--host", "ps0")
    assert result.exit_code == 1
    assert "cannot write to" in result.output


def test_missing_cryptography_is_reported(tmp_path, monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    result = _certs("--output-dir", tmp_path, "--host", "ps0")
    assert result.exit_code == 1
    assert "pip install 'headrace[security]'" in result.output
