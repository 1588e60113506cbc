"""``tf.distribute``: one model over several devices and workers."""

from headrace.distribute.contexts import (
    InputContext,
    InputReplicationMode,
    ReplicaContext,
    experimental_set_strategy,
    get_loss_reduction,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from headrace.distribute.extended import StrategyExtended
from headrace.distribute.local import MirroredStrategy, OneDeviceStrategy
from headrace.distribute.reduce_op import ReduceOp
from headrace.distribute.reductions import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    ReductionToOneDevice,
)
from headrace.distribute.strategy import Strategy
from headrace.distributed.services.server import Server
from headrace.namespaces.lazy import lazy as _lazy

__all__ = [
    "CrossDeviceOps",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputReplicationMode",
    "MirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "Server",
    "Strategy",
    "StrategyExtended",
    "experimental_set_strategy",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]

__getattr__, __dir__ = _lazy(__name__, modules=("cluster_resolver", "experimental"))
