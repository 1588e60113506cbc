"""The protocol buffers of graph files; the bytes are TensorFlow's, the package name is ours.

Each file is loaded when one of its names is first asked for: the protobuf runtime takes longer to
import than a small graph takes to run. `tools/gen_protos.py` regenerates the ``_pb2`` modules and
`tools/check_protos.py` compares them with TensorFlow's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headrace.namespaces.lazy import lazy

if TYPE_CHECKING:
    from headrace.graph.proto.config_pb2 import *  # noqa: F403
    from headrace.graph.proto.event_pb2 import *  # noqa: F403
    from headrace.graph.proto.example_pb2 import *  # noqa: F403
    from headrace.graph.proto.graph_pb2 import *  # noqa: F403
    from headrace.graph.proto.meta_pb2 import *  # noqa: F403
    from headrace.graph.proto.profile_pb2 import *  # noqa: F403
    from headrace.graph.proto.trace_pb2 import *  # noqa: F403
    from headrace.graph.proto.types_pb2 import *  # noqa: F403

#: The messages and enums of each file. Their values and nested types are attributes of them.
_NAMES: Final = {
    "types_pb2": (
        "DataType ResourceHandleProto TensorProto TensorShapeProto TensorSliceProto "
        "VariantTensorDataProto VersionDef"
    ),
    "graph_pb2": (
        "AttrValue CondContextDef ControlFlowContextDef ErrorCode FullTypeDef FullTypeId "
        "FunctionDef FunctionDefLibrary GradientDef GraphDebugInfo GraphDef NameAttrList "
        "NodeDef OpDef OpDeprecation OpList QueueRunnerDef ReaderBaseState RegisteredGradient "
        "SaveSliceInfoDef ValuesDef VariableAggregation VariableDef VariableSynchronization "
        "WhileContextDef"
    ),
    "meta_pb2": (
        "AssetFileDef BundleEntryProto BundleHeaderProto CheckpointState CollectionDef "
        "MetaGraphDef RegisteredSaver SavedModel SavedSlice SavedSliceMeta SavedTensorSliceMeta "
        "SavedTensorSlices SaverDef SignatureDef TensorInfo "
        "TrackableObjectGraph"
    ),
    "config_pb2": (
        "AutoParallelOptions CallableOptions ClusterDef ClusterDeviceFilters ConfigProto "
        "DebugOptions DebugTensorWatch DeviceAttributes DeviceLocality GPUOptions "
        "GraphOptions InterconnectLink JobDef JobDeviceFilters LocalLinks OptimizerOptions "
        "RPCOptions RewriterConfig RunMetadata RunOptions ScopedAllocatorOptions ServerDef "
        "SessionMetadata TaskDeviceFilters TensorConnection ThreadPoolOptionProto"
    ),
    "trace_pb2": (
        "AllocationDescription AllocationRecord AllocatorMemoryUsed CostGraphDef "
        "DeviceStepStats MemoryStats NodeExecStats NodeOutput StepStats TensorDescription"
    ),
    "profile_pb2": (
        "AdviceProto CodeDef GraphNodeProto MultiGraphNodeProto OpLogEntry OpLogProto "
        "TFProfTensorProto"
    ),
    "event_pb2": (
        "DataClass Event HistogramProto LogMessage SessionLog SourceMetadata Summary "
        "SummaryDescription SummaryMetadata TaggedRunMetadata"
    ),
    "example_pb2": (
        "BytesList Example Feature FeatureList FeatureLists Features FloatList Int64List "
        "SequenceExample"
    ),
}
__all__ = sorted(name for names in _NAMES.values() for name in names.split())


_message, __dir__ = lazy(
    __name__, {f"{__name__}.{file}": names.split() for file, names in _NAMES.items()}
)


def __getattr__(name: str) -> Any:
    from headrace.graph.proto.descriptions import describe

    return describe(name, _message(name))
