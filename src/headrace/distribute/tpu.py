"""`TPUStrategy`: the TPU cores of this process, as devices of a mirrored model."""

from __future__ import annotations

from typing import Any

from headrace.distribute.cluster_resolver import ClusterResolver
from headrace.distribute.local import MirroredStrategy
from headrace.errors import UnimplementedError
from headrace.placement.devices import local_devices

__all__ = ["TPUStrategy", "initialize_tpu_system"]


class TPUStrategy(MirroredStrategy):
    """A copy of the model on each TPU core of this process.

    Args:
        tpu_cluster_resolver: a resolver of this process (``TPUClusterResolver("local")``).
        steps_per_run: taken for compatibility; device_assignment: has to be None.

    Raises:
        ValueError: if this process has no TPU.
        UnimplementedError: for a TPU of another host, and for a device assignment.

    >>> try:
    ...     tf.distribute.experimental.TPUStrategy()
    ... except ValueError as error:
    ...     print(str(error).partition(":")[0])
    TPUStrategy needs a TPU, but this process has none
    """

    def __init__(
        self,
        tpu_cluster_resolver: ClusterResolver | None = None,
        steps_per_run: int | None = None,
        device_assignment: Any = None,
    ) -> None:
        if tpu_cluster_resolver is not None and tpu_cluster_resolver.master():
            raise UnimplementedError(
                None,
                None,
                f"TPUStrategy uses the TPU cores of this process, not those at "
                f"{tpu_cluster_resolver.master()!r}. Run the program on the TPU's host, with "
                'TPUClusterResolver("local").',
            )
        if device_assignment is not None:
            raise UnimplementedError(
                None, None, "TPUStrategy has one replica on each core: leave out device_assignment."
            )
        cores = [d.name.partition("/task:0")[2] for d in local_devices() if d.device_type == "TPU"]
        if not cores:
            raise ValueError(
                "TPUStrategy needs a TPU, but this process has none: jax.local_devices() lists "
                "what there is. MirroredStrategy takes GPUs or CPU devices."
            )
        super().__init__(cores)
        self._steps_per_run = 1 if steps_per_run is None else steps_per_run

    @property
    def steps_per_run(self) -> int:
        """What was given, 1 by default."""
        return self._steps_per_run


def initialize_tpu_system(cluster_resolver: Any = None) -> None:
    """Nothing: JAX initialises the TPU of its process."""
