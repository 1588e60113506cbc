"""A certificate authority for one test cluster: certificates, keys and a token, as files.

The authority's own key is used once and forgotten, so nobody can let another machine in later;
a cluster that grows gets new files. The package `cryptography` is imported on first use.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.distributed.security.credentials import Security

if TYPE_CHECKING:
    from cryptography import x509

__all__ = ["ClusterFiles", "HostFiles", "make_cluster_files"]

# Every machine talks to itself as well.
_OWN_NAMES = ("localhost", "127.0.0.1", "::1")
# Clocks of machines differ a little: a new certificate must not come from the future.
_CLOCK_SKEW = datetime.timedelta(hours=1)
_DNS_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
# Not all digits at the end: that would be a misspelt address.
_DNS_NAME = re.compile(rf"(\*\.)?({_DNS_LABEL}\.)*(?!\d+$){_DNS_LABEL}")
_TOKEN_BYTES = 32


@dataclass(frozen=True)
class HostFiles:
    """The certificate of one machine and its private key."""

    cert_file: Path
    key_file: Path


@dataclass(frozen=True)
class ClusterFiles:
    """All files of a cluster.

    Attributes:
        ca_file: the authority's certificate; every machine needs it.
        token_file: the cluster's token; every machine needs it, nobody else may have it.
        hosts: certificate and key of each machine, in the order in which they were named.
    """

    ca_file: Path
    token_file: Path
    hosts: dict[str, HostFiles]

    def security(self, host: str) -> Security:
        """What a process on `host` uses; raises KeyError for a host without a certificate."""
        own = self.hosts[host]
        return Security(
            ca_file=str(self.ca_file),
            cert_file=str(own.cert_file),
            key_file=str(own.key_file),
            token=self.token_file.read_bytes().strip(),
        )

    def _paths(self) -> list[Path]:
        own = [p for files in self.hosts.values() for p in (files.cert_file, files.key_file)]
        return [self.ca_file, self.token_file, *own]


def make_cluster_files(
    directory: str | os.PathLike[str],
    hosts: Sequence[str],
    days: int = 30,
    force: bool = False,
    now: datetime.datetime | None = None,
) -> ClusterFiles:
    """Makes an authority, a certificate and key for each host, and a token.

    Each certificate is for its host and for the names of loopback, and serves both a server and
    a client. Keys and token are readable by their owner only.

    Args:
        directory: where the files go; made when absent.
        hosts: DNS names (also "*.example.org") and IP addresses, without ports.
        days: how long the certificates are valid.
        force: replace files that are there.
        now: when the certificates begin to be valid (an aware time); the present by default.

    Raises:
        ModuleNotFoundError: the package `cryptography` is not installed.
        ValueError: no host, or one that is no name or address that others can dial.
        FileExistsError: there are such files, and `force` is not set; nothing was written.
        OSError: the files cannot be written.
    """
    names = list(dict.fromkeys(_checked_host(host) for host in hosts))
    if not names:
        raise ValueError("A cluster needs at least one host.")
    files = _file_names(Path(directory), names)
    present = [path.name for path in files._paths() if path.exists()]
    if present and not force:
        raise FileExistsError(
            f"{os.fspath(directory)!r} holds {', '.join(present)} already: a running cluster may "
            "depend on them."
        )
    start = now or datetime.datetime.now(datetime.UTC)
    authority = _Authority(start - _CLOCK_SKEW, start + datetime.timedelta(days=days))
    made = {name: authority.issue(name) for name in names}
    files.ca_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(files.ca_file, authority.certificate, 0o644)
    for name, (cert, key) in made.items():
        _write(files.hosts[name].cert_file, cert, 0o644)
        _write(files.hosts[name].key_file, key, 0o600)
    _write(files.token_file, secrets.token_hex(_TOKEN_BYTES).encode() + b"\n", 0o600)
    return files


def _checked_host(host: str) -> str:
    name = host.strip().lower().removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        if _DNS_NAME.fullmatch(name) and len(name) <= 253:
            return name
        hint = " (give it without the port)" if re.search(r":\d+$", name) else ""
        raise ValueError(f"{host!r} is neither a DNS name nor an IP address{hint}.") from None
    if address.is_unspecified:
        raise ValueError(
            f"{host!r} stands for all addresses of a machine: name those that others dial."
        )
    return str(address)


def _file_names(directory: Path, hosts: Sequence[str]) -> ClusterFiles:
    own = {}
    for host in hosts:
        # A prefix keeps a host called "ca" or "cluster" apart from the files of the cluster.
        stem = "host-" + host.replace(":", "_").replace("*", "any")
        own[host] = HostFiles(directory / f"{stem}.pem", directory / f"{stem}.key")
    return ClusterFiles(directory / "ca.pem", directory / "cluster.token", own)


def _write(path: Path, content: bytes, mode: int) -> None:
    # A new file, never an old one's mode: the secret is at no moment readable by others.
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


class _Authority:
    """Signs certificates; its key lives as long as this object."""

    def __init__(self, start: datetime.datetime, end: datetime.datetime) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        self._start, self._end = start, end
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(f"Headrace test authority {secrets.token_hex(4)}")
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        builder = builder.add_extension(_key_usage("key_cert_sign", "crl_sign"), True)
        self.certificate = self._signed(builder)

    def issue(self, host: str) -> tuple[bytes, bytes]:
        """Certificate and private key of a host, both as PEM."""
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        # A common name holds 64 characters; who checks hosts looks at the alternative names alone.
        builder = self._builder(_subject(host[:64]), key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(_key_usage("digital_signature"), True)
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), False)
        names = [_alternative_name(n) for n in dict.fromkeys((host, *_OWN_NAMES))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return self._signed(builder), secret

    def _builder(self, subject: x509.Name, public_key: Any) -> x509.CertificateBuilder:
        from cryptography import x509

        builder = x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=public_key,
            serial_number=x509.random_serial_number(),
            not_valid_before=self._start,
            not_valid_after=self._end,
        )
        own = x509.SubjectKeyIdentifier.from_public_key(public_key)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return builder.add_extension(own, False).add_extension(issuer, False)

    def _signed(self, builder: x509.CertificateBuilder) -> bytes:
        from cryptography.hazmat.primitives import hashes, serialization

        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _subject(common_name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*allowed: str) -> x509.KeyUsage:
    from cryptography import x509

    usages = (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
        *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    )
    return x509.KeyUsage(**{usage: usage in allowed for usage in usages})
