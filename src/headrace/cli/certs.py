"""`headrace certs`: the files with which a test cluster may leave loopback."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from headrace.distributed.security import credentials
from headrace.distributed.security.certs import ClusterFiles, make_cluster_files


def run_certs(output_dir: Path, hosts: Sequence[str], days: int, force: bool) -> None:
    """Makes the files and prints, for each host, the settings that use them.

    Raises:
        click.ClickException: a package is missing, a host is no host, files are there already or
            cannot be written.
    """
    try:
        files = make_cluster_files(output_dir, hosts, days=days, force=force)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "cryptography":
            raise
        raise click.ClickException(
            "certificates are made with the package cryptography; install it with "
            "pip install 'headrace[security]'"
        ) from None
    except FileExistsError as error:
        raise click.ClickException(f"{error} --force makes all of them anew.") from None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--host'") from None
    except OSError as error:
        raise click.ClickException(f"cannot write to '{output_dir}': {error.strerror}") from None
    click.echo(_settings(files, days))


def _settings(files: ClusterFiles, days: int) -> str:
    """Lines for a shell; all but the settings are comments."""
    lines = [
        f"# Certificates for {days} days. Each machine needs ca.pem, cluster.token and the two",
        "# files of its own; nothing else, and nobody else the token or a key.",
    ]
    for host, own in files.hosts.items():
        settings = {
            credentials.CA_VARIABLE: files.ca_file,
            credentials.CERT_VARIABLE: own.cert_file,
            credentials.KEY_VARIABLE: own.key_file,
            credentials.TOKEN_FILE_VARIABLE: files.token_file,
        }
        lines += ["", f"# on {host}:"]
        lines += [
            f"export {variable}={shlex.quote(str(path.absolute()))}"
            for variable, path in settings.items()
        ]
    return "\n".join(lines)
