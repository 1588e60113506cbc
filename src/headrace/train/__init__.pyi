# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.distributed.cluster.cluster_spec import ClusterSpec as ClusterSpec
from headrace.graph_files.graph_util import write_graph as write_graph
from headrace.train import queue_runner as queue_runner
from headrace.train.all_reduce_optimizer import *
from headrace.train.basic_session_run_hooks import *
from headrace.train.checkpoint_state import *
from headrace.train.checkpoint_utils import *
from headrace.train.coordinator import *
from headrace.train.device_setter import replica_device_setter as replica_device_setter
from headrace.train.global_step import *
from headrace.train.input import *
from headrace.train.input_batch import *
from headrace.train.learning_rate_decay import *
from headrace.train.meta_graph import export_meta_graph as export_meta_graph
from headrace.train.meta_graph import import_meta_graph as import_meta_graph
from headrace.train.monitored_session import *
from headrace.train.moving_averages import *
from headrace.train.optimizer import Optimizer as Optimizer
from headrace.train.optimizers import *
from headrace.train.queue_runner import *
from headrace.train.saveable import SaveableObject as SaveableObject
from headrace.train.saveable import SaveSpec as SaveSpec
from headrace.train.saver import Saver as Saver
from headrace.train.saving_hooks import *
from headrace.train.session_manager import *
from headrace.train.session_run_hook import *
from headrace.train.shrinking_optimizers import *
from headrace.train.summary_io import *
from headrace.train.supervisor import *
from headrace.train.sync_replicas import *
from headrace.train.table_hooks import *
from headrace.train.warm_starting_util import *
from headrace.distributed.services.server import Server as Server
from headrace.graph.proto import BytesList as BytesList
from headrace.graph.proto import ClusterDef as ClusterDef
from headrace.graph.proto import Example as Example
from headrace.graph.proto import Feature as Feature
from headrace.graph.proto import FeatureList as FeatureList
from headrace.graph.proto import FeatureLists as FeatureLists
from headrace.graph.proto import Features as Features
from headrace.graph.proto import FloatList as FloatList
from headrace.graph.proto import Int64List as Int64List
from headrace.graph.proto import JobDef as JobDef
from headrace.graph.proto import SaverDef as SaverDef
from headrace.graph.proto import SequenceExample as SequenceExample
from headrace.graph.proto import ServerDef as ServerDef
from headrace.train import experimental as experimental
