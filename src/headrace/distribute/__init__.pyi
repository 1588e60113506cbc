# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.distribute.contexts import InputContext as InputContext
from headrace.distribute.contexts import InputReplicationMode as InputReplicationMode
from headrace.distribute.contexts import ReplicaContext as ReplicaContext
from headrace.distribute.contexts import experimental_set_strategy as experimental_set_strategy
from headrace.distribute.contexts import get_loss_reduction as get_loss_reduction
from headrace.distribute.contexts import get_replica_context as get_replica_context
from headrace.distribute.contexts import get_strategy as get_strategy
from headrace.distribute.contexts import has_strategy as has_strategy
from headrace.distribute.contexts import in_cross_replica_context as in_cross_replica_context
from headrace.distribute.extended import StrategyExtended as StrategyExtended
from headrace.distribute.local import MirroredStrategy as MirroredStrategy
from headrace.distribute.local import OneDeviceStrategy as OneDeviceStrategy
from headrace.distribute.reduce_op import ReduceOp as ReduceOp
from headrace.distribute.reductions import CrossDeviceOps as CrossDeviceOps
from headrace.distribute.reductions import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from headrace.distribute.reductions import NcclAllReduce as NcclAllReduce
from headrace.distribute.reductions import ReductionToOneDevice as ReductionToOneDevice
from headrace.distribute.strategy import Strategy as Strategy
from headrace.distributed.services.server import Server as Server
__all__ = ['CrossDeviceOps', 'HierarchicalCopyAllReduce', 'InputContext', 'InputReplicationMode', 'MirroredStrategy', 'NcclAllReduce', 'OneDeviceStrategy', 'ReduceOp', 'ReductionToOneDevice', 'ReplicaContext', 'Server', 'Strategy', 'StrategyExtended', 'experimental_set_strategy', 'get_loss_reduction', 'get_replica_context', 'get_strategy', 'has_strategy', 'in_cross_replica_context']
from headrace.distribute import cluster_resolver as cluster_resolver
from headrace.distribute import experimental as experimental
