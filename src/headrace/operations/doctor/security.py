"""Checks of certificates and of the token of a cluster."""

from __future__ import annotations

import os
import ssl
import stat
import time
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.distributed.security.credentials import (
    CERT_VARIABLE,
    KEY_VARIABLE,
    TOKEN_FILE_VARIABLE,
    Security,
)
from headrace.operations.doctor.findings import Finding, fail, ok, warn

__all__ = ["check_security"]

_DAY = 86400.0
#: A certificate that ends so soon is to be renewed.
_SOON = 7 * _DAY
_NEW = "headrace certs --output-dir DIR --host HOST --force makes new ones; all tasks need them."


def check_security(environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Certificates and token that the variables of the environment name."""
    try:
        security = Security.from_environment(environ)
    except ValueError as error:
        yield fail("security", str(error), "Correct the variable or the file that it names.")
        return
    if security.encrypted:
        yield _certificate(security)
    yield _token(security)
    for variable, path in (
        (KEY_VARIABLE, security.key_file),
        (TOKEN_FILE_VARIABLE, environ.get(TOKEN_FILE_VARIABLE)),
    ):
        if path and stat.S_IMODE(os.stat(path).st_mode) & 0o077:
            text = f"{path} ({variable}) can be read by other users of this machine"
            yield warn("secrets", text, f"chmod 600 {path}")


def _token(security: Security) -> Finding:
    if security.token is not None:
        return ok("token", f"{len(security.token)} bytes")
    if security.insecure:
        mend = "Only on a network that you trust; headrace certs makes certificates and a token."
        return warn("token", "none: HEADRACE_INSECURE=1 opens the cluster to everybody", mend)
    return ok("token", "none: only addresses of loopback are allowed")


def _certificate(security: Security) -> Finding:
    """Whether the certificate, its key and the authority fit: this process talks to itself."""
    where = f"{security.cert_file} ({CERT_VARIABLE})"
    try:
        end = _handshake(security)
    except ssl.SSLCertVerificationError as error:
        text = f"{where} is not accepted by the own authority: {error.verify_message}"
        return fail("certificate", text, _NEW)
    except ssl.SSLError as error:
        return fail("certificate", f"{where}: {error.reason or error}", _NEW)
    left = end - time.time()
    text = f"{where} is valid for {left / _DAY:.0f} more days"
    return ok("certificate", text) if left > _SOON else warn("certificate", text, _NEW)


def _handshake(security: Security) -> float:
    """A handshake without a network, as client and server; when the certificate ends.

    Raises:
        SSLError: if it does not succeed.
    """
    ours, theirs = security.client_context(), security.server_context()
    assert ours is not None
    assert theirs is not None
    # Which hosts it names is between tasks.
    ours.check_hostname = False
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ours.wrap_bio(to_client, to_server)
    server = theirs.wrap_bio(to_server, to_client, server_side=True)
    left: list[ssl.SSLObject] = [client, server]
    while left:
        for side in list(left):
            try:
                side.do_handshake()
                left.remove(side)
            except ssl.SSLWantReadError:
                continue
    found: Any = client.getpeercert()
    return float(ssl.cert_time_to_seconds(found["notAfter"]))
