"""Settings from the environment, addresses that need them, and proofs of the token."""

from __future__ import annotations

import shutil
import ssl

import pytest
from cryptography.hazmat.primitives import serialization

from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.security.credentials import Security, is_loopback
from headrace.errors import PermissionDeniedError

HOST = "ps0.example.org"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_cluster_files(tmp_path_factory.mktemp("certs"), [HOST])


@pytest.fixture
def environ(made):
    own = made.hosts[HOST]
    return {
        "HEADRACE_TLS_CA": str(made.ca_file),
        "HEADRACE_TLS_CERT": str(own.cert_file),
        "HEADRACE_TLS_KEY": str(own.key_file),
        "HEADRACE_CLUSTER_TOKEN_FILE": str(made.token_file),
    }


def test_nothing_set_is_open():
    security = Security.from_environment({})
    assert security == Security()
    assert not security.encrypted
    assert security.server_context() is None
    assert security.client_context() is None
    assert security.server_credentials() is None
    assert security.channel_credentials() is None


def test_everything_set(environ, made):
    security = Security.from_environment(environ)
    assert security == made.security(HOST)
    assert security.encrypted
    for host in ("0.0.0.0", HOST, "10.1.2.3"):
        security.check_address(host)
    assert security.server_credentials() is not None
    assert security.channel_credentials() is not None


def test_contexts_ask_for_certificates_and_check_names(made):
    security = made.security(HOST)
    for context in (security.server_context(), security.client_context()):
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2
        assert len(context.get_ca_certs()) == 1, "only the cluster's authority is trusted"
    assert security.client_context().check_hostname
    assert security.server_context().num_tickets == 0


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.255.0.3", "::1", "[::1]", "::ffff:127.0.0.1", "localhost"),
        *("LOCALHOST", "localhost.", "unix", "unix:/tmp/s", "unix-abstract:s"),
    ],
)
def test_loopback_needs_nothing(host):
    assert is_loopback(host)
    Security().check_address(host)


@pytest.mark.parametrize(
    "host",
    [
        *("0.0.0.0", "::", "", "[::]", "10.0.0.1", "169.254.0.1", "2001:db8::1", "worker0"),
        *("::ffff:10.0.0.1", "localhost.example.org", "127.0.0.1.example.org", "128.0.0.1"),
    ],
)
def test_other_addresses_need_tls_and_a_token(host, made):
    assert not is_loopback(host)
    with pytest.raises(PermissionDeniedError, match="headrace certs") as refused:
        Security().check_address(host)
    assert repr(host) in refused.value.message
    assert "HEADRACE_TLS_CA" in refused.value.message
    assert "HEADRACE_CLUSTER_TOKEN" in refused.value.message
    Security(insecure=True).check_address(host)
    made.security(HOST).check_address(host)


def test_one_of_the_two_is_not_enough(made):
    with pytest.raises(PermissionDeniedError, match=r"Missing: TLS certificates \([^)]*\)\. "):
        Security(token=b"secret").check_address(HOST)
    full = made.security(HOST)
    no_token = Security(full.ca_file, full.cert_file, full.key_file)
    with pytest.raises(PermissionDeniedError, match="Missing: a cluster token"):
        no_token.check_address(HOST)


@pytest.mark.parametrize("left_out", ["HEADRACE_TLS_CA", "HEADRACE_TLS_CERT", "HEADRACE_TLS_KEY"])
def test_two_of_three_files_are_refused(environ, left_out):
    path = environ.pop(left_out)
    with pytest.raises(ValueError, match=f"but {left_out} not set") as refused:
        Security.from_environment(environ)
    assert path not in str(refused.value)
    assert environ.get("HEADRACE_TLS_CA", "HEADRACE_TLS_CERT") in str(refused.value)


@pytest.mark.parametrize(
    "variable",
    [
        *("HEADRACE_TLS_CA", "HEADRACE_TLS_CERT", "HEADRACE_TLS_KEY"),
        "HEADRACE_CLUSTER_TOKEN_FILE",
    ],
)
def test_an_absent_file_is_named(environ, variable):
    environ[variable] = "/absent/file"
    with pytest.raises(ValueError, match=f"{variable} names '/absent/file', .*No such file"):
        Security.from_environment(environ)


@pytest.mark.parametrize("variable", ["HEADRACE_TLS_CA", "HEADRACE_TLS_CERT", "HEADRACE_TLS_KEY"])
def test_a_file_of_another_kind_is_named(environ, variable, tmp_path):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate\n")
    environ[variable] = str(wrong)
    with pytest.raises(ValueError, match=f"{variable} names '{wrong}'.* in PEM form"):
        Security.from_environment(environ)


def test_the_key_of_another_certificate_is_refused(environ, tmp_path):
    other = make_cluster_files(tmp_path, [HOST]).hosts[HOST].key_file
    environ["HEADRACE_TLS_KEY"] = str(other)
    with pytest.raises(ValueError, match="is not the key of the certificate") as refused:
        Security.from_environment(environ)
    assert str(other) in str(refused.value)
    assert environ["HEADRACE_TLS_CERT"] in str(refused.value)


def test_an_encrypted_key_is_refused_without_asking(environ, tmp_path):
    with open(environ["HEADRACE_TLS_KEY"], "rb") as file:
        key = serialization.load_pem_private_key(file.read(), None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
    )
    environ["HEADRACE_TLS_KEY"] = str(locked)
    with pytest.raises(ValueError, match=f"'{locked}', which is encrypted"):
        Security.from_environment(environ)


def test_a_file_that_goes_away_later_is_named(environ, tmp_path):
    copy = tmp_path / "ca.pem"
    shutil.copy(environ["HEADRACE_TLS_CA"], copy)
    security = Security.from_environment({**environ, "HEADRACE_TLS_CA": str(copy)})
    copy.unlink()
    with pytest.raises(ValueError, match=r"HEADRACE_TLS_CA names .* cannot be read"):
        security.channel_credentials()


def test_token_from_variable_or_file(tmp_path):
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    from_file = Security.from_environment({"HEADRACE_CLUSTER_TOKEN_FILE": str(file)})
    assert from_file == Security.from_environment({"HEADRACE_CLUSTER_TOKEN": "s3cret"})
    assert from_file.token == b"s3cret"
    assert "s3cret" not in repr(from_file)
    both = {"HEADRACE_CLUSTER_TOKEN": "a", "HEADRACE_CLUSTER_TOKEN_FILE": str(file)}
    with pytest.raises(ValueError, match=r"Both HEADRACE_CLUSTER_TOKEN and .*_FILE are set"):
        Security.from_environment(both)


def test_empty_tokens_are_refused(tmp_path):
    file = tmp_path / "token"
    file.write_text(" \n")
    with pytest.raises(ValueError, match=r"HEADRACE_CLUSTER_TOKEN_FILE names .*, which is empty"):
        Security.from_environment({"HEADRACE_CLUSTER_TOKEN_FILE": str(file)})
    with pytest.raises(ValueError, match="token is empty"):
        Security.from_environment({"HEADRACE_CLUSTER_TOKEN": "  "})


def test_insecure_is_said_with_a_one():
    assert Security.from_environment({"HEADRACE_INSECURE": "1"}).insecure
    assert not Security.from_environment({"HEADRACE_INSECURE": "0"}).insecure
    with pytest.raises(ValueError, match="HEADRACE_INSECURE='yes' is neither 1 nor 0"):
        Security.from_environment({"HEADRACE_INSECURE": "yes"})


def test_seals_depend_on_token_role_and_every_part():
    ours, theirs = Security(token=b"one"), Security(token=b"two")
    seal = ours.seal(b"server", b"nonce", b"body")
    assert len(seal) == 33
    assert Security(token=b"one").check_seal(seal, b"server", b"nonce", b"body")
    assert not theirs.check_seal(seal, b"server", b"nonce", b"body")
    assert not ours.check_seal(seal, b"server", b"other", b"body")
    assert not ours.check_seal(seal, b"client", b"nonce", b"body")
    assert not ours.check_seal(seal, b"serve", b"rnonce", b"body")
    assert not ours.check_seal(seal, b"server", b"nonceb", b"ody")
    assert not ours.check_seal(seal, b"server", b"noncebody")
    assert not ours.check_seal(b"", b"server", b"nonce", b"body")
    assert not ours.check_seal(seal[:16], b"server", b"nonce", b"body")
    assert ours.is_like(theirs.seal(b"server"))


def test_without_a_token_only_those_without_one_are_let_in():
    nobody, somebody = Security(), Security(token=b"t")
    seal = nobody.seal(b"server", b"nonce")
    assert nobody.check_seal(seal, b"server", b"nonce")
    assert not nobody.check_seal(b"", b"server", b"nonce")
    assert not nobody.check_seal(seal, b"server", b"nonc")
    assert not nobody.check_seal(somebody.seal(b"server", b"nonce"), b"server", b"nonce")
    assert not somebody.check_seal(seal, b"server", b"nonce")
    assert not somebody.is_like(seal)
    assert not somebody.is_like(b"")


def test_a_token_is_in_no_text_of_it():
    secured = Security(token=b"the-secret")
    assert "the-secret" not in repr(secured)
    assert b"the-secret" not in secured.seal(b"role", b"part")
