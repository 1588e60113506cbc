"""The made files carry real TLS connections, and only those of their own cluster."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import stat
from concurrent import futures

import grpc
import pytest
from cryptography import x509

from headrace.distributed.security.certs import make_cluster_files

HOST = "ps0.example.org"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_cluster_files(
        tmp_path_factory.mktemp("certs"), [HOST, "10.0.0.7", "*.w.example.org"]
    )


def _talk(server_security, client_security, server_hostname):
    """One message each way over a pair of sockets; gives (server's view, client's view)."""
    ends = socket.socketpair()
    for end in ends:
        end.settimeout(20)

    def serve():
        with server_security.server_context().wrap_socket(ends[0], server_side=True) as tls:
            message = tls.recv(16)
            tls.sendall(message)
            return message

    def dial():
        context = client_security.client_context()
        with context.wrap_socket(ends[1], server_hostname=server_hostname) as tls:
            tls.sendall(b"hello")
            return tls.recv(16)

    with futures.ThreadPoolExecutor(2) as pool:
        return pool.submit(serve), pool.submit(dial)


def test_two_hosts_of_a_cluster_talk(made):
    served, dialled = _talk(made.security(HOST), made.security("10.0.0.7"), HOST)
    assert served.result() == dialled.result() == b"hello"


@pytest.mark.parametrize(
    ("owner", "dialled_as"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("*.w.example.org", "w3.w.example.org"),
        (HOST, "localhost"),
        (HOST, "127.0.0.1"),
        (HOST, "::1"),
    ],
)
def test_names_of_a_certificate(made, owner, dialled_as):
    _, dialled = _talk(made.security(owner), made.security(HOST), dialled_as)
    assert dialled.result() == b"hello"


@pytest.mark.parametrize("dialled_as", ["ps1.example.org", "10.0.0.8", "10.0.0.7"])
def test_a_host_that_the_certificate_does_not_name_is_refused(made, dialled_as):
    served, dialled = _talk(made.security(HOST), made.security(HOST), dialled_as)
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate is not valid for"):
        dialled.result()
    with pytest.raises(ssl.SSLError, match="ALERT"):
        served.result()


def test_another_authority_is_refused_by_both_sides(made, tmp_path):
    stranger = make_cluster_files(tmp_path, [HOST]).security(HOST)
    _, dialled = _talk(stranger, made.security(HOST), HOST)
    with pytest.raises(
        ssl.SSLCertVerificationError,
        match=r"certificate verify failed: (self-signed|unable to get local issuer)",
    ):
        dialled.result()
    ours = made.security(HOST)
    # It trusts our authority, but has no certificate of it.
    intruder = type(ours)(ours.ca_file, stranger.cert_file, stranger.key_file)
    served, _ = _talk(ours, intruder, HOST)
    with pytest.raises(
        ssl.SSLCertVerificationError,
        match=r"certificate verify failed: (self-signed|unable to get local issuer)",
    ):
        served.result()


def test_a_client_without_a_certificate_is_refused(made):
    ours = made.security(HOST)

    class Bare:
        def client_context(self):
            return ssl.create_default_context(cafile=ours.ca_file)

    served, _ = _talk(ours, Bare(), HOST)
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        served.result()


def test_expired_certificates_are_refused(tmp_path):
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=31)
    old = make_cluster_files(tmp_path, [HOST], days=30, now=past).security(HOST)
    _, dialled = _talk(old, old, HOST)
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
        dialled.result()


def test_grpc_uses_the_same_files(made, tmp_path):
    class Echo(grpc.GenericRpcHandler):
        def service(self, call):
            return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[Echo()])
    ours = made.security(HOST)
    port = server.add_secure_port("127.0.0.1:0", ours.server_credentials())
    server.start()
    try:
        target = f"127.0.0.1:{port}"
        with grpc.secure_channel(target, ours.channel_credentials()) as channel:
            assert channel.unary_unary("/t.T/Echo")(b"hello", timeout=10) == b"hello"
        stranger = make_cluster_files(tmp_path, [HOST]).security(HOST)
        mixed = type(ours)(ours.ca_file, stranger.cert_file, stranger.key_file)
        for refused in (stranger, mixed):
            with (
                grpc.secure_channel(target, refused.channel_credentials()) as channel,
                pytest.raises(grpc.RpcError) as failure,
            ):
                channel.unary_unary("/t.T/Echo")(b"hello", timeout=10)
            assert failure.value.code() == grpc.StatusCode.UNAVAILABLE
    finally:
        server.stop(None).wait()


def test_modes_and_contents(made):
    for files in made.hosts.values():
        assert stat.S_IMODE(files.key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.token_file.stat().st_mode) == 0o600
    assert len(made.security(HOST).token) == 64
    authority = x509.load_pem_x509_certificate(made.ca_file.read_bytes())
    certificate = x509.load_pem_x509_certificate(made.hosts["10.0.0.7"].cert_file.read_bytes())
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = names.get_values_for_type(x509.IPAddress)
    assert ipaddress.ip_address("10.0.0.7") in addresses
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert life == datetime.timedelta(days=30, hours=1)


def test_files_are_replaced_only_by_force(tmp_path):
    first = make_cluster_files(tmp_path, [HOST]).security(HOST)
    with pytest.raises(FileExistsError, match=r"holds ca\.pem, cluster\.token already"):
        make_cluster_files(tmp_path, ["ps1.example.org"])
    assert not list(tmp_path.glob("host-ps1*")), "a refusal writes nothing"
    second = make_cluster_files(tmp_path, [HOST], force=True).security(HOST)
    assert second.token != first.token
    assert _talk(second, second, HOST)[1].result() == b"hello"


def test_a_new_key_does_not_inherit_the_mode_of_an_old_one(tmp_path):
    key = make_cluster_files(tmp_path, [HOST]).hosts[HOST].key_file
    key.chmod(0o644)
    make_cluster_files(tmp_path, [HOST], force=True)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("ps0:2222", "give it without the port"),
        ("10.0.0", "neither a DNS name nor an IP address"),
        ("a b", "neither a DNS name nor an IP address"),
        ("../x", "neither a DNS name nor an IP address"),
        ("", "neither a DNS name nor an IP address"),
        ("0.0.0.0", "stands for all addresses"),
        ("::", "stands for all addresses"),
    ],
)
def test_hosts_that_nobody_can_dial(tmp_path, host, message):
    with pytest.raises(ValueError, match=message):
        make_cluster_files(tmp_path, [host])
    assert not list(tmp_path.iterdir())


def test_no_host(tmp_path):
    with pytest.raises(ValueError, match="at least one host"):
        make_cluster_files(tmp_path, [])


def test_long_names_and_repeated_hosts(tmp_path):
    long = "a" * 60 + ".example.org"
    made = make_cluster_files(tmp_path, [long, long.upper(), "[2001:db8::1]"])
    assert list(made.hosts) == [long, "2001:db8::1"]
    assert _talk(made.security(long), made.security(long), long)[1].result() == b"hello"
