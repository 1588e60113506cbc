"""What a failed TLS handshake means: settings that do not fit, or bytes that were damaged.

The first stays as it is until somebody changes a setting, so whoever waits for the task is told at
once; after the second the next connection does better.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from typing import Final

from headrace.distributed.cluster.cluster_spec import split_address
from headrace.distributed.security.credentials import (
    CA_VARIABLE,
    CERT_VARIABLE,
    KEY_VARIABLE,
    Security,
)
from headrace.errors import OpError, UnauthenticatedError, UnavailableError

__all__ = ["diagnose", "problem"]

#: A diagnosis takes so many seconds at most.
_SECONDS: Final = 2.0
#: What HTTP/2 begins with, and empty settings: what listens there answers with its own.
_HTTP2: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
#: What OpenSSL makes of bytes that are no TLS.
_NO_TLS: Final = frozenset(
    ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
)
#: What the peer says of our certificate.
_OUR_CERTIFICATE: Final = frozenset(
    (
        "TLSV1_ALERT_UNKNOWN_CA",
        "TLSV1_ALERT_ACCESS_DENIED",
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "SSLV3_ALERT_CERTIFICATE_REVOKED",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    )
)
_SETTINGS: Final = f"{CA_VARIABLE}, {CERT_VARIABLE} and {KEY_VARIABLE}"


def problem(error: ssl.SSLError, place: str, security: Security) -> OpError:
    """The error for a handshake with ``place`` that failed.

    Returns:
        UnauthenticatedError, that says what to change, if settings do not fit; else
        UnavailableError: bytes were damaged or did not come, and trying again may help.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.rstrip(".")
        text = (
            f"The certificate of {place} is not accepted: {reason}. It must be "
            f"signed by the authority in {CA_VARIABLE}={security.ca_file} and name that host; "
            "`headrace certs` makes certificates of one authority for all hosts."
        )
        return UnauthenticatedError(None, None, text)
    reason = str(error.reason or error)
    if reason in _OUR_CERTIFICATE:
        return _refused(place, reason, security)
    if reason in _NO_TLS:
        text = (
            f"{place} answers without TLS, and this process has certificates: set {_SETTINGS} "
            "there, too, or nowhere."
        )
        return UnauthenticatedError(None, None, text)
    return UnavailableError(None, None, f"TLS with {place} failed: {reason}")


def _refused(place: str, reason: str, security: Security) -> OpError:
    text = (
        f"{place} does not accept the certificate of this process ({reason}), "
        f"{CERT_VARIABLE}={security.cert_file}: it must be signed by the authority that the "
        f"task there has in {CA_VARIABLE}, and be valid now."
    )
    return UnauthenticatedError(None, None, text)


def diagnose(address: str, security: Security, seconds: float) -> OpError | None:
    """Why a control plane at ``host:port`` that takes connections does not answer in them.

    Returns:
        An UnauthenticatedError if the TLS settings of the two sides do not fit; None if nothing is
        wrong with them, or nobody listens there.
    """
    deadline = time.monotonic() + min(seconds, _SECONDS)
    look = _look_with_tls if security.encrypted else _look_without
    found = None
    for _ in range(2):  # a second look: the first may have met damage
        found = look(address, security, deadline)
        if found is None:
            break
    return found


def _look_with_tls(address: str, security: Security, deadline: float) -> OpError | None:
    context = security.client_context()
    assert context is not None
    context.set_alpn_protocols(["h2"])
    try:
        with _connected(address, deadline) as raw:
            host = split_address(address)[0]
            with context.wrap_socket(raw, server_hostname=host) as sock:
                return _look_after_handshake(sock, address, security)
    except ssl.SSLError as error:
        found = problem(error, address, security)
        return found if isinstance(found, UnauthenticatedError) else None
    except (OSError, ValueError):
        return None


def _look_after_handshake(sock: ssl.SSLSocket, address: str, security: Security) -> OpError | None:
    """A refusal of our certificate comes after the handshake: as an alert, or as an end."""
    try:
        sock.sendall(_HTTP2)
        if sock.recv(1):
            return None
    except (ssl.SSLEOFError, ConnectionError):
        pass
    return _refused(address, "it ends the connection", security)


def _look_without(address: str, security: Security, deadline: float) -> OpError | None:
    try:
        with _connected(address, deadline) as sock:
            sock.sendall(_HTTP2)
            with contextlib.suppress(ConnectionError):
                if sock.recv(9)[3:4] == b"\4":
                    return None  # settings, as HTTP/2 answers in clear
        # Whoever is asked nothing but this proves nothing either: no name is checked, no secret
        # is sent.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        with _connected(address, deadline) as raw, context.wrap_socket(raw):
            pass
    except ssl.SSLError as error:
        if error.reason not in _OUR_CERTIFICATE:
            return None
    except (OSError, ValueError):
        return None
    text = (
        f"{address} speaks TLS, and this process has no certificates: set {_SETTINGS} here, too. "
        "`headrace certs` makes certificates for all hosts of a cluster."
    )
    return UnauthenticatedError(None, None, text)


def _connected(address: str, deadline: float) -> socket.socket:
    sock = socket.create_connection(split_address(address), max(0.05, deadline - time.monotonic()))
    sock.settimeout(max(0.05, deadline - time.monotonic()))
    return sock
