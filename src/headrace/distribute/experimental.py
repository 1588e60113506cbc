"""``tf.distribute.experimental``: strategies whose interface was still to change in 1.15."""

from headrace.distribute.local import CentralStorageStrategy
from headrace.distribute.tpu import TPUStrategy
from headrace.distribute.workers import CollectiveAllReduceStrategy as MultiWorkerMirroredStrategy
from headrace.distribute.workers import CollectiveCommunication, ParameterServerStrategy

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
]
