"""An object store that speaks S3, in a process of its own on loopback.

It is Moto's server: requests, signatures, multipart uploads and errors come over HTTP, as from any
other such store; what it holds is in its memory, and ends with the tests.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

_SERVE = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()  # until the tests end, however they do
server.stop()
"""


class ObjectStore:
    """A running store."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.address = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    @property
    def environ(self) -> dict[str, str]:
        """What a program needs to know to reach it."""
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": "/nowhere",
            "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "1",
        }

    def check_credentials_after(self, requests: float) -> None:
        """From so many requests on, only users of the store are let in, and there are none."""
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=30)
        connection.request("POST", "/moto-api/reset-auth", body=str(requests))
        assert connection.getresponse().status == 200
        connection.close()

    def stop(self) -> None:
        """The end of the store and of what it holds."""
        self._process.communicate(timeout=30)


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """A store for all tests of a process."""
    store = ObjectStore()
    yield store
    store.stop()


@pytest.fixture
def s3_environ(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """This process and those that it starts use the store."""
    import s3fs

    for name, value in object_store.environ.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    yield object_store.environ
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(s3_environ: dict[str, str]) -> str:
    """The URL of a new bucket."""
    import fsspec

    name = f"test-{uuid.uuid4().hex}"
    fsspec.filesystem("s3").mkdir(name)
    return f"s3://{name}"
