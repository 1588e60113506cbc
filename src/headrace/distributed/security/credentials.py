"""Who may talk to a cluster: mutual TLS, and a token that every task and client knows.

On loopback everything is open by default. On any other address a cluster needs both: the
certificates say that a machine belongs to it (and that nobody reads along), the token says that a
process does. Whoever has neither must say aloud that the cluster is open: `HEADRACE_INSECURE=1`.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.errors import PermissionDeniedError

if TYPE_CHECKING:
    import grpc

__all__ = [
    "CA_VARIABLE",
    "CERT_VARIABLE",
    "INSECURE_VARIABLE",
    "KEY_VARIABLE",
    "TOKEN_FILE_VARIABLE",
    "TOKEN_VARIABLE",
    "Security",
    "is_loopback",
]

CA_VARIABLE = "HEADRACE_TLS_CA"
CERT_VARIABLE = "HEADRACE_TLS_CERT"
KEY_VARIABLE = "HEADRACE_TLS_KEY"
TOKEN_VARIABLE = "HEADRACE_CLUSTER_TOKEN"
TOKEN_FILE_VARIABLE = "HEADRACE_CLUSTER_TOKEN_FILE"
INSECURE_VARIABLE = "HEADRACE_INSECURE"

#: Bytes of a token, a certificate or a key.
_MOST_SECRET = 1 << 20
_UNIX_PREFIXES = ("unix:", "unix-abstract:")


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine can reach, or be, `host`.

    True for 127.0.0.0/8, ::1, "localhost" and unix sockets ("unix", "unix:PATH"). Wildcards
    (0.0.0.0, ::, "") listen on every network, so they are not loopback; neither is any other
    name, whatever it may resolve to.

    >>> [is_loopback(host) for host in ("127.0.0.1", "[::1]", "0.0.0.0", "ps0.example.org")]
    [True, True, False, False]
    """
    name = host.strip().lower()
    if name == "unix" or name.startswith(_UNIX_PREFIXES):
        return True
    if name.rstrip(".") == "localhost":
        return True
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


@dataclass(frozen=True)
class Security:
    """What a process shows to the others of its cluster, and what it asks of them.

    Attributes:
        ca_file: certificates (PEM) of the authority that signs for the cluster.
        cert_file: this machine's certificate (PEM), with its chain if it has one.
        key_file: the private key of `cert_file` (PEM, not encrypted).
        token: the secret that all processes of the cluster share.
        insecure: the user accepts an open cluster on an open network.

    Raises:
        ValueError: some of the three files are given, but not all; or the token is empty.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    token: bytes | None = field(default=None, repr=False)
    insecure: bool = False

    def __post_init__(self) -> None:
        settings = self._files()
        missing = [variable for variable, path in settings.items() if not path]
        if 0 < len(missing) < len(settings):
            given = ", ".join(f"{v}={path!r}" for v, path in settings.items() if path)
            raise ValueError(
                f"TLS needs the authority, a certificate and its key: {given} given, but "
                f"{' and '.join(missing)} not set. `headrace certs` makes all three."
            )
        if self.token is not None and not self.token:
            raise ValueError(
                f"The cluster token is empty: set {TOKEN_VARIABLE} to a secret, or leave it unset."
            )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Security:
        """The settings of this process, with all files checked.

        Variables: HEADRACE_TLS_CA, HEADRACE_TLS_CERT, HEADRACE_TLS_KEY (files),
        HEADRACE_CLUSTER_TOKEN or HEADRACE_CLUSTER_TOKEN_FILE, HEADRACE_INSECURE=1.

        Raises:
            ValueError: a setting is incomplete, contradicts another, or names a file that is
                unreadable or does not hold what it should; the message names variable and file.
        """
        made = cls(
            ca_file=environ.get(CA_VARIABLE) or None,
            cert_file=environ.get(CERT_VARIABLE) or None,
            key_file=environ.get(KEY_VARIABLE) or None,
            token=_token_from(environ),
            insecure=_flag_from(environ, INSECURE_VARIABLE),
        )
        made.server_context()
        return made

    @property
    def encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.ca_file is not None

    def check_address(self, host: str) -> None:
        """Refuses to listen on, or to dial, an open network without TLS and a token.

        Raises:
            PermissionDeniedError: `host` is not loopback, something is missing, and the user did
                not say `insecure`; the message says what to do.
        """
        if self.insecure or is_loopback(host):
            return
        missing = []
        if not self.encrypted:
            missing.append(f"TLS certificates ({CA_VARIABLE}, {CERT_VARIABLE}, {KEY_VARIABLE})")
        if self.token is None:
            missing.append(f"a cluster token ({TOKEN_VARIABLE} or {TOKEN_FILE_VARIABLE})")
        if not missing:
            return
        raise PermissionDeniedError(
            None,
            None,
            f"Address {host!r} is not loopback: others on the network could read tensors and run "
            f"graphs there. Missing: {' and '.join(missing)}. `headrace certs --output-dir DIR "
            f"--host HOST` makes both for a test; {INSECURE_VARIABLE}=1 accepts an open cluster "
            "on a network that you trust.",
        )

    def server_context(self) -> ssl.SSLContext | None:
        """The TLS settings of a side that accepts connections; None without TLS.

        The files are read anew at each call, so renewed certificates count for new connections.
        The other side must show a certificate of the cluster's authority.

        Raises:
            ValueError: a file is unreadable or does not hold what it should.
        """
        if not self.encrypted:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # A session ticket would lie unread at a peer that only writes; when it closes, the unread
        # bytes reset the connection and what is still under way to us would be lost.
        context.num_tickets = 0
        return self._loaded(context)

    def client_context(self) -> ssl.SSLContext | None:
        """The TLS settings of a side that dials; None without TLS.

        `wrap_socket` needs `server_hostname=` the dialled host: the server's certificate must
        name it, as a DNS name or an IP address.

        Raises:
            ValueError: a file is unreadable or does not hold what it should.
        """
        if not self.encrypted:
            return None
        return self._loaded(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def server_credentials(self) -> grpc.ServerCredentials | None:
        """The same as `server_context`, for a gRPC server; None without TLS.

        Raises:
            ValueError: as `server_context`.
        """
        if self.server_context() is None:
            return None
        import grpc

        ca, cert, key = (_read(variable, path) for variable, path in self._files().items())
        return grpc.ssl_server_credentials(
            [(key, cert)], root_certificates=ca, require_client_auth=True
        )

    def channel_credentials(self) -> grpc.ChannelCredentials | None:
        """The same as `client_context`, for a gRPC channel; None without TLS.

        Raises:
            ValueError: as `client_context`.
        """
        if self.client_context() is None:
            return None
        import grpc

        ca, cert, key = (_read(variable, path) for variable, path in self._files().items())
        return grpc.ssl_channel_credentials(ca, key, cert)

    def seal(self, role: bytes, *parts: bytes) -> bytes:
        """Shows whoever has the same token that these parts come from one who has it, unchanged.

        33 bytes: whether there is a token, and an HMAC-SHA256. Without a token the key is empty,
        and the seal no more than a checksum. `role` says which side speaks, so that a seal cannot
        be sent back to the one who made it. What is sealed once can be shown twice: a part must
        be a fresh challenge of the one who checks.
        """
        # The lengths keep rows of parts apart that are equal when joined.
        message = b"".join(len(part).to_bytes(8, "big") + part for part in (role, *parts))
        return self._kind() + hmac.new(self.token or b"", message, hashlib.sha256).digest()

    def check_seal(self, seal: bytes, role: bytes, *parts: bytes) -> bool:
        """Whether `seal` is what a process with the same token (or also none) makes of these.

        Takes as long for a wrong seal as for a right one.
        """
        return hmac.compare_digest(self.seal(role, *parts), seal)

    def is_like(self, seal: bytes) -> bool:
        """Whether the maker of a seal has a token, if we have one, or has none either."""
        return seal[:1] == self._kind()

    def _kind(self) -> bytes:
        return b"\0" if self.token is None else b"\1"

    def _files(self) -> dict[str, str | None]:
        return {
            CA_VARIABLE: self.ca_file,
            CERT_VARIABLE: self.cert_file,
            KEY_VARIABLE: self.key_file,
        }

    def _loaded(self, context: ssl.SSLContext) -> ssl.SSLContext:
        assert self.cert_file is not None
        assert self.key_file is not None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.verify_mode = ssl.CERT_REQUIRED
        # OpenSSL's own messages name no file.
        for variable, path in self._files().items():
            _read(variable, path)
        try:
            context.load_verify_locations(cafile=self.ca_file)
        except ssl.SSLError as error:
            raise ValueError(
                f"{CA_VARIABLE} names {self.ca_file!r}, which holds no certificate in PEM form "
                f"({_reason(error)})."
            ) from None
        try:
            context.load_cert_chain(self.cert_file, self.key_file, password=_no_password)
        except ssl.SSLError as error:
            raise ValueError(_pair_message(self.cert_file, self.key_file, error)) from None
        except _EncryptedKey:
            raise ValueError(
                f"{KEY_VARIABLE} names {self.key_file!r}, which is encrypted: a server has nobody "
                "to ask for the password. Give a key without one, readable by its user alone."
            ) from None
        return context


class _EncryptedKey(Exception):
    pass


def _no_password() -> str:
    # Without this OpenSSL asks on the terminal, and the server would hang there.
    raise _EncryptedKey


def _pair_message(cert_file: str, key_file: str, error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return (
            f"{KEY_VARIABLE} names {key_file!r}, which is not the key of the certificate "
            f"{cert_file!r} that {CERT_VARIABLE} names."
        )
    return (
        f"{CERT_VARIABLE} names {cert_file!r} and {KEY_VARIABLE} names {key_file!r}, which are "
        f"no certificate and key in PEM form ({_reason(error)})."
    )


def _reason(error: ssl.SSLError) -> str:
    return str(error.reason or error.strerror or error)


def _read(variable: str, path: str | None) -> bytes:
    assert path is not None
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_SECRET + 1)  # it may be a pipe, and pipes may have no end
    except OSError as error:
        raise ValueError(
            f"{variable} names {path!r}, which cannot be read: {error.strerror or error}."
        ) from None
    if len(content) > _MOST_SECRET:
        raise ValueError(
            f"{variable} names {path!r}, which has more than {_MOST_SECRET} bytes: it is no token, "
            "certificate or key."
        )
    return content


def _token_from(environ: Mapping[str, str]) -> bytes | None:
    text, path = environ.get(TOKEN_VARIABLE), environ.get(TOKEN_FILE_VARIABLE)
    if text and path:
        raise ValueError(f"Both {TOKEN_VARIABLE} and {TOKEN_FILE_VARIABLE} are set: give one.")
    if path:
        token = _read(TOKEN_FILE_VARIABLE, path).strip()
        if not token:
            raise ValueError(f"{TOKEN_FILE_VARIABLE} names {path!r}, which is empty.")
        return token
    if text:
        # An empty result is refused by the class: a token of blanks is a mistake.
        return text.strip().encode()
    return None


def _flag_from(environ: Mapping[str, str], variable: str) -> bool:
    text = environ.get(variable, "")
    if text not in ("", "0", "1"):
        raise ValueError(f"{variable}={text!r} is neither 1 nor 0.")
    return text == "1"
