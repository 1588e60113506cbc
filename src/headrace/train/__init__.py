"""Optimisers, schedules, averages, checkpoints: the functions of ``tf.train``."""

from headrace.distributed.cluster.cluster_spec import ClusterSpec as ClusterSpec
from headrace.graph_files.graph_util import write_graph as write_graph
from headrace.namespaces.lazy import lazy as _lazy
from headrace.train import queue_runner as queue_runner
from headrace.train.all_reduce_optimizer import *  # noqa: F403
from headrace.train.basic_session_run_hooks import *  # noqa: F403
from headrace.train.checkpoint_state import *  # noqa: F403
from headrace.train.checkpoint_utils import *  # noqa: F403
from headrace.train.coordinator import *  # noqa: F403
from headrace.train.device_setter import replica_device_setter as replica_device_setter
from headrace.train.global_step import *  # noqa: F403
from headrace.train.input import *  # noqa: F403
from headrace.train.input_batch import *  # noqa: F403
from headrace.train.learning_rate_decay import *  # noqa: F403
from headrace.train.meta_graph import export_meta_graph as export_meta_graph
from headrace.train.meta_graph import import_meta_graph as import_meta_graph
from headrace.train.monitored_session import *  # noqa: F403
from headrace.train.moving_averages import *  # noqa: F403
from headrace.train.optimizer import Optimizer as Optimizer
from headrace.train.optimizers import *  # noqa: F403
from headrace.train.queue_runner import *  # noqa: F403
from headrace.train.saveable import SaveableObject as SaveableObject
from headrace.train.saveable import SaveSpec as SaveSpec
from headrace.train.saver import Saver as Saver
from headrace.train.saving_hooks import *  # noqa: F403
from headrace.train.session_manager import *  # noqa: F403
from headrace.train.session_run_hook import *  # noqa: F403
from headrace.train.shrinking_optimizers import *  # noqa: F403
from headrace.train.summary_io import *  # noqa: F403
from headrace.train.supervisor import *  # noqa: F403
from headrace.train.sync_replicas import *  # noqa: F403
from headrace.train.table_hooks import *  # noqa: F403
from headrace.train.warm_starting_util import *  # noqa: F403

#: Messages, and the server, which brings the network: imported when first asked for.
__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.graph.proto": (
            *("BytesList", "Example", "Feature", "FeatureList", "FeatureLists", "Features"),
            *("FloatList", "Int64List", "SequenceExample", "SaverDef"),
            *("ClusterDef", "JobDef", "ServerDef"),
        ),
        "headrace.distributed.services.server": ("Server",),
    },
    ("experimental",),
)
