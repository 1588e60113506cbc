"""``tf.contrib.cluster_resolver``: where a TPU's server is."""

from __future__ import annotations

from typing import Any

from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.errors import UnimplementedError

__all__ = ["TPUClusterResolver"]


class TPUClusterResolver:
    """The server of a TPU, given by its address.

    Args:
        tpu: ``"grpc://host:port"``; ``"local"`` or ``""`` for this process.
        job_name: the job of the server in ``cluster_spec``.

    The other arguments say how to ask a cloud for the address of a TPU that is known by name.

    Raises:
        UnimplementedError: if ``tpu`` is a name: Headrace asks no cloud.

    >>> tf.contrib.cluster_resolver.TPUClusterResolver("grpc://10.0.0.2:8470").master()
    'grpc://10.0.0.2:8470'
    """

    def __init__(
        self,
        tpu: Any = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        coordinator_name: str | None = None,
        coordinator_address: str | None = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: str | None = None,
    ) -> None:
        if isinstance(tpu, (list, tuple)):
            if len(tpu) != 1:
                raise NotImplementedError(
                    f"A session has one TPU server, got {len(tpu)}: {', '.join(map(str, tpu))}."
                )
            (tpu,) = tpu
        text = tpu.decode() if isinstance(tpu, bytes) else tpu
        if text not in ("", "local") and not (text or "").startswith("grpc://"):
            raise UnimplementedError(
                None,
                None,
                f"TPUClusterResolver got the name {text!r}: Headrace does not ask a cloud where a "
                'TPU is. Give its address, "grpc://host:port", or "local" for this process.',
            )
        self._target: str = text
        self._job_name = job_name
        self._coordinator = (coordinator_name or "coordinator", coordinator_address)

    def master(self, task_type: Any = None, task_id: Any = None, rpc_layer: Any = None) -> str:
        """What a session takes as its target."""
        return self._target

    def get_master(self) -> str:
        """The same as ``master()``."""
        return self._target

    def get_job_name(self) -> str:
        """The job of the TPU's server."""
        return self._job_name

    def cluster_spec(self) -> ClusterSpec | None:
        """The cluster of the server and its coordinator, if any; None for this process."""
        if not self._target.startswith("grpc://"):
            return None
        jobs = {self._job_name: [self._target.removeprefix("grpc://")]}
        name, address = self._coordinator
        if address:
            jobs[name] = [address]
        return ClusterSpec(jobs)
