# mypy: ignore-errors
from headrace.distributed.protocol import wire_pb2 as _wire_pb2
from headrace.graph.proto import graph_pb2 as _graph_pb2
from headrace.graph.proto import trace_pb2 as _trace_pb2
from headrace.graph.proto import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNUSED: _ClassVar[Kind]
    RUN_PART: _ClassVar[Kind]
    PART_DONE: _ClassVar[Kind]
    TENSORS: _ClassVar[Kind]
    CANCEL_STEP: _ClassVar[Kind]
    REGISTER_PART: _ClassVar[Kind]
    REGISTERED: _ClassVar[Kind]
    DROP_PLANS: _ClassVar[Kind]
    RUN_STEP: _ClassVar[Kind]
    STEP_RESULT: _ClassVar[Kind]
    LINK_LOST: _ClassVar[Kind]
    LINKS: _ClassVar[Kind]
    COLLECTIVE: _ClassVar[Kind]
    FOLLOW: _ClassVar[Kind]
    COPY: _ClassVar[Kind]
    COPY_ROLE: _ClassVar[Kind]
    COPY_KEPT: _ClassVar[Kind]
    MOVE_TOLD: _ClassVar[Kind]
    MOVE_COPY: _ClassVar[Kind]
    MOVE_SAID: _ClassVar[Kind]
    HOLD_STEPS: _ClassVar[Kind]
    STEPS_HELD: _ClassVar[Kind]

class CollectiveKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOIN: _ClassVar[CollectiveKind]
    FORMED: _ClassVar[CollectiveKind]
    PIECE: _ClassVar[CollectiveKind]
    LOST: _ClassVar[CollectiveKind]
    PREPARE: _ClassVar[CollectiveKind]
    STATE: _ClassVar[CollectiveKind]
    COMMIT: _ClassVar[CollectiveKind]
    RESULT: _ClassVar[CollectiveKind]
    REFUSED: _ClassVar[CollectiveKind]
    ANEW: _ClassVar[CollectiveKind]
    LEFT: _ClassVar[CollectiveKind]
UNUSED: Kind
RUN_PART: Kind
PART_DONE: Kind
TENSORS: Kind
CANCEL_STEP: Kind
REGISTER_PART: Kind
REGISTERED: Kind
DROP_PLANS: Kind
RUN_STEP: Kind
STEP_RESULT: Kind
LINK_LOST: Kind
LINKS: Kind
COLLECTIVE: Kind
FOLLOW: Kind
COPY: Kind
COPY_ROLE: Kind
COPY_KEPT: Kind
MOVE_TOLD: Kind
MOVE_COPY: Kind
MOVE_SAID: Kind
HOLD_STEPS: Kind
STEPS_HELD: Kind
JOIN: CollectiveKind
FORMED: CollectiveKind
PIECE: CollectiveKind
LOST: CollectiveKind
PREPARE: CollectiveKind
STATE: CollectiveKind
COMMIT: CollectiveKind
RESULT: CollectiveKind
REFUSED: CollectiveKind
ANEW: CollectiveKind
LEFT: CollectiveKind

class Failure(_message.Message):
    __slots__ = ("code", "message", "op_name", "op_type", "device", "task", "derived")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    OP_NAME_FIELD_NUMBER: _ClassVar[int]
    OP_TYPE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    op_name: str
    op_type: str
    device: str
    task: str
    derived: bool
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., op_name: _Optional[str] = ..., op_type: _Optional[str] = ..., device: _Optional[str] = ..., task: _Optional[str] = ..., derived: bool = ...) -> None: ...

class RunPart(_message.Message):
    __slots__ = ("step", "plan", "feeds", "trace")
    STEP_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    step: int
    plan: int
    feeds: _containers.RepeatedCompositeFieldContainer[_wire_pb2.TensorMeta]
    trace: int
    def __init__(self, step: _Optional[int] = ..., plan: _Optional[int] = ..., feeds: _Optional[_Iterable[_Union[_wire_pb2.TensorMeta, _Mapping]]] = ..., trace: _Optional[int] = ...) -> None: ...

class PartDone(_message.Message):
    __slots__ = ("step", "fetches", "failure", "stats", "began", "ended")
    STEP_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    BEGAN_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    step: int
    fetches: _containers.RepeatedCompositeFieldContainer[_wire_pb2.TensorMeta]
    failure: Failure
    stats: _trace_pb2.StepStats
    began: float
    ended: float
    def __init__(self, step: _Optional[int] = ..., fetches: _Optional[_Iterable[_Union[_wire_pb2.TensorMeta, _Mapping]]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., stats: _Optional[_Union[_trace_pb2.StepStats, _Mapping]] = ..., began: _Optional[float] = ..., ended: _Optional[float] = ...) -> None: ...

class Tensors(_message.Message):
    __slots__ = ("step", "transfer", "values", "done")
    STEP_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    step: int
    transfer: int
    values: _containers.RepeatedCompositeFieldContainer[_wire_pb2.TensorMeta]
    done: bool
    def __init__(self, step: _Optional[int] = ..., transfer: _Optional[int] = ..., values: _Optional[_Iterable[_Union[_wire_pb2.TensorMeta, _Mapping]]] = ..., done: bool = ...) -> None: ...

class LinkLost(_message.Message):
    __slots__ = ("peer", "reason")
    PEER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    peer: str
    reason: str
    def __init__(self, peer: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Links(_message.Message):
    __slots__ = ("number", "upto", "live")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    UPTO_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    number: int
    upto: int
    live: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, number: _Optional[int] = ..., upto: _Optional[int] = ..., live: _Optional[_Iterable[int]] = ...) -> None: ...

class CancelStep(_message.Message):
    __slots__ = ("step", "reason")
    STEP_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    step: int
    reason: str
    def __init__(self, step: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class RegisterPart(_message.Message):
    __slots__ = ("plan", "session", "part", "config", "addresses", "is_ahead")
    class AddressesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PLAN_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    IS_AHEAD_FIELD_NUMBER: _ClassVar[int]
    plan: int
    session: int
    part: PartDef
    config: bytes
    addresses: _containers.ScalarMap[str, str]
    is_ahead: bool
    def __init__(self, plan: _Optional[int] = ..., session: _Optional[int] = ..., part: _Optional[_Union[PartDef, _Mapping]] = ..., config: _Optional[bytes] = ..., addresses: _Optional[_Mapping[str, str]] = ..., is_ahead: bool = ...) -> None: ...

class Registered(_message.Message):
    __slots__ = ("plan", "failure")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    plan: int
    failure: Failure
    def __init__(self, plan: _Optional[int] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class DropPlans(_message.Message):
    __slots__ = ("plans", "session")
    PLANS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    plans: _containers.RepeatedScalarFieldContainer[int]
    session: int
    def __init__(self, plans: _Optional[_Iterable[int]] = ..., session: _Optional[int] = ...) -> None: ...

class MovedDef(_message.Message):
    __slots__ = ("name", "dtype", "shape", "source", "destination", "precision")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    name: str
    dtype: int
    shape: _types_pb2.TensorShapeProto
    source: str
    destination: str
    precision: str
    def __init__(self, name: _Optional[str] = ..., dtype: _Optional[int] = ..., shape: _Optional[_Union[_types_pb2.TensorShapeProto, _Mapping]] = ..., source: _Optional[str] = ..., destination: _Optional[str] = ..., precision: _Optional[str] = ...) -> None: ...

class TransferDef(_message.Message):
    __slots__ = ("number", "source", "destination", "tensors")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    number: int
    source: str
    destination: str
    tensors: _containers.RepeatedCompositeFieldContainer[MovedDef]
    def __init__(self, number: _Optional[int] = ..., source: _Optional[str] = ..., destination: _Optional[str] = ..., tensors: _Optional[_Iterable[_Union[MovedDef, _Mapping]]] = ...) -> None: ...

class PartNode(_message.Message):
    __slots__ = ("name", "op", "input_nodes", "input_indices", "controls", "attr", "device", "stage", "component", "dtypes", "shapes", "value", "transfer", "bodies")
    class AttrEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _graph_pb2.AttrValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_graph_pb2.AttrValue, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    INPUT_NODES_FIELD_NUMBER: _ClassVar[int]
    INPUT_INDICES_FIELD_NUMBER: _ClassVar[int]
    CONTROLS_FIELD_NUMBER: _ClassVar[int]
    ATTR_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    DTYPES_FIELD_NUMBER: _ClassVar[int]
    SHAPES_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    op: str
    input_nodes: _containers.RepeatedScalarFieldContainer[int]
    input_indices: _containers.RepeatedScalarFieldContainer[int]
    controls: _containers.RepeatedScalarFieldContainer[int]
    attr: _containers.MessageMap[str, _graph_pb2.AttrValue]
    device: str
    stage: int
    component: int
    dtypes: _containers.RepeatedScalarFieldContainer[int]
    shapes: _containers.RepeatedCompositeFieldContainer[_types_pb2.TensorShapeProto]
    value: int
    transfer: int
    bodies: _containers.RepeatedCompositeFieldContainer[BodyDef]
    def __init__(self, name: _Optional[str] = ..., op: _Optional[str] = ..., input_nodes: _Optional[_Iterable[int]] = ..., input_indices: _Optional[_Iterable[int]] = ..., controls: _Optional[_Iterable[int]] = ..., attr: _Optional[_Mapping[str, _graph_pb2.AttrValue]] = ..., device: _Optional[str] = ..., stage: _Optional[int] = ..., component: _Optional[int] = ..., dtypes: _Optional[_Iterable[int]] = ..., shapes: _Optional[_Iterable[_Union[_types_pb2.TensorShapeProto, _Mapping]]] = ..., value: _Optional[int] = ..., transfer: _Optional[int] = ..., bodies: _Optional[_Iterable[_Union[BodyDef, _Mapping]]] = ...) -> None: ...

class BodyDef(_message.Message):
    __slots__ = ("call", "name", "plan", "shares", "fed_fetches", "fed_feeds", "constant_fetches", "constants", "size")
    CALL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    FED_FETCHES_FIELD_NUMBER: _ClassVar[int]
    FED_FEEDS_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_FETCHES_FIELD_NUMBER: _ClassVar[int]
    CONSTANTS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    call: int
    name: str
    plan: int
    shares: _containers.RepeatedCompositeFieldContainer[BodyShare]
    fed_fetches: _containers.RepeatedScalarFieldContainer[int]
    fed_feeds: _containers.RepeatedScalarFieldContainer[int]
    constant_fetches: _containers.RepeatedScalarFieldContainer[int]
    constants: _containers.RepeatedScalarFieldContainer[int]
    size: int
    def __init__(self, call: _Optional[int] = ..., name: _Optional[str] = ..., plan: _Optional[int] = ..., shares: _Optional[_Iterable[_Union[BodyShare, _Mapping]]] = ..., fed_fetches: _Optional[_Iterable[int]] = ..., fed_feeds: _Optional[_Iterable[int]] = ..., constant_fetches: _Optional[_Iterable[int]] = ..., constants: _Optional[_Iterable[int]] = ..., size: _Optional[int] = ...) -> None: ...

class BodyShare(_message.Message):
    __slots__ = ("task", "feeds", "fetches")
    TASK_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FIELD_NUMBER: _ClassVar[int]
    task: str
    feeds: _containers.RepeatedScalarFieldContainer[int]
    fetches: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, task: _Optional[str] = ..., feeds: _Optional[_Iterable[int]] = ..., fetches: _Optional[_Iterable[int]] = ...) -> None: ...

class PartDef(_message.Message):
    __slots__ = ("task", "nodes", "feeds", "fetch_nodes", "fetch_indices", "transfers", "library", "values")
    TASK_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    FETCH_NODES_FIELD_NUMBER: _ClassVar[int]
    FETCH_INDICES_FIELD_NUMBER: _ClassVar[int]
    TRANSFERS_FIELD_NUMBER: _ClassVar[int]
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    task: str
    nodes: _containers.RepeatedCompositeFieldContainer[PartNode]
    feeds: _containers.RepeatedScalarFieldContainer[int]
    fetch_nodes: _containers.RepeatedScalarFieldContainer[int]
    fetch_indices: _containers.RepeatedScalarFieldContainer[int]
    transfers: _containers.RepeatedCompositeFieldContainer[TransferDef]
    library: _graph_pb2.FunctionDefLibrary
    values: _containers.RepeatedCompositeFieldContainer[_wire_pb2.TensorMeta]
    def __init__(self, task: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[PartNode, _Mapping]]] = ..., feeds: _Optional[_Iterable[int]] = ..., fetch_nodes: _Optional[_Iterable[int]] = ..., fetch_indices: _Optional[_Iterable[int]] = ..., transfers: _Optional[_Iterable[_Union[TransferDef, _Mapping]]] = ..., library: _Optional[_Union[_graph_pb2.FunctionDefLibrary, _Mapping]] = ..., values: _Optional[_Iterable[_Union[_wire_pb2.TensorMeta, _Mapping]]] = ...) -> None: ...

class RunStep(_message.Message):
    __slots__ = ("request", "session", "plan", "feeds", "options", "metadata")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    request: int
    session: int
    plan: int
    feeds: _containers.RepeatedCompositeFieldContainer[_wire_pb2.TensorMeta]
    options: bytes
    metadata: bool
    def __init__(self, request: _Optional[int] = ..., session: _Optional[int] = ..., plan: _Optional[int] = ..., feeds: _Optional[_Iterable[_Union[_wire_pb2.TensorMeta, _Mapping]]] = ..., options: _Optional[bytes] = ..., metadata: bool = ...) -> None: ...

class StepResult(_message.Message):
    __slots__ = ("request", "fetches", "failure", "metadata")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    request: int
    fetches: _containers.RepeatedCompositeFieldContainer[_wire_pb2.TensorMeta]
    failure: Failure
    metadata: bytes
    def __init__(self, request: _Optional[int] = ..., fetches: _Optional[_Iterable[_Union[_wire_pb2.TensorMeta, _Mapping]]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., metadata: _Optional[bytes] = ...) -> None: ...

class Collective(_message.Message):
    __slots__ = ("kind", "group", "group_size", "epoch", "members", "instance", "sequence", "piece", "root", "up", "text", "counts", "value")
    KIND_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    GROUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PIECE_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    kind: CollectiveKind
    group: int
    group_size: int
    epoch: int
    members: _containers.RepeatedCompositeFieldContainer[CollectiveMember]
    instance: int
    sequence: int
    piece: int
    root: int
    up: bool
    text: str
    counts: _containers.RepeatedCompositeFieldContainer[CollectiveCount]
    value: _wire_pb2.TensorMeta
    def __init__(self, kind: _Optional[_Union[CollectiveKind, str]] = ..., group: _Optional[int] = ..., group_size: _Optional[int] = ..., epoch: _Optional[int] = ..., members: _Optional[_Iterable[_Union[CollectiveMember, _Mapping]]] = ..., instance: _Optional[int] = ..., sequence: _Optional[int] = ..., piece: _Optional[int] = ..., root: _Optional[int] = ..., up: bool = ..., text: _Optional[str] = ..., counts: _Optional[_Iterable[_Union[CollectiveCount, _Mapping]]] = ..., value: _Optional[_Union[_wire_pb2.TensorMeta, _Mapping]] = ...) -> None: ...

class CollectiveMember(_message.Message):
    __slots__ = ("task", "incarnation", "devices", "process")
    TASK_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    task: str
    incarnation: int
    devices: _containers.RepeatedScalarFieldContainer[str]
    process: int
    def __init__(self, task: _Optional[str] = ..., incarnation: _Optional[int] = ..., devices: _Optional[_Iterable[str]] = ..., process: _Optional[int] = ...) -> None: ...

class CollectiveCount(_message.Message):
    __slots__ = ("instance", "sequence", "holder", "behind")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    instance: int
    sequence: int
    holder: str
    behind: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, instance: _Optional[int] = ..., sequence: _Optional[int] = ..., holder: _Optional[str] = ..., behind: _Optional[_Iterable[str]] = ...) -> None: ...

class MemberDef(_message.Message):
    __slots__ = ("task", "incarnation")
    TASK_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    task: str
    incarnation: int
    def __init__(self, task: _Optional[str] = ..., incarnation: _Optional[int] = ...) -> None: ...

class ViewDef(_message.Message):
    __slots__ = ("epoch", "primary", "standby", "witness")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_FIELD_NUMBER: _ClassVar[int]
    STANDBY_FIELD_NUMBER: _ClassVar[int]
    WITNESS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    primary: MemberDef
    standby: MemberDef
    witness: MemberDef
    def __init__(self, epoch: _Optional[int] = ..., primary: _Optional[_Union[MemberDef, _Mapping]] = ..., standby: _Optional[_Union[MemberDef, _Mapping]] = ..., witness: _Optional[_Union[MemberDef, _Mapping]] = ...) -> None: ...

class Follow(_message.Message):
    __slots__ = ("task", "returns", "follower")
    TASK_FIELD_NUMBER: _ClassVar[int]
    RETURNS_FIELD_NUMBER: _ClassVar[int]
    FOLLOWER_FIELD_NUMBER: _ClassVar[int]
    task: str
    returns: bool
    follower: MemberDef
    def __init__(self, task: _Optional[str] = ..., returns: bool = ..., follower: _Optional[_Union[MemberDef, _Mapping]] = ...) -> None: ...

class CopyChange(_message.Message):
    __slots__ = ("container", "name", "tensors", "kind")
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    container: str
    name: str
    tensors: int
    kind: str
    def __init__(self, container: _Optional[str] = ..., name: _Optional[str] = ..., tensors: _Optional[int] = ..., kind: _Optional[str] = ...) -> None: ...

class Copy(_message.Message):
    __slots__ = ("task", "sequence", "is_whole", "changes", "values")
    TASK_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    IS_WHOLE_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    task: str
    sequence: int
    is_whole: bool
    changes: _containers.RepeatedCompositeFieldContainer[CopyChange]
    values: _containers.RepeatedCompositeFieldContainer[_wire_pb2.TensorMeta]
    def __init__(self, task: _Optional[str] = ..., sequence: _Optional[int] = ..., is_whole: bool = ..., changes: _Optional[_Iterable[_Union[CopyChange, _Mapping]]] = ..., values: _Optional[_Iterable[_Union[_wire_pb2.TensorMeta, _Mapping]]] = ...) -> None: ...

class CopyRole(_message.Message):
    __slots__ = ("task", "view", "release", "serve")
    TASK_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    SERVE_FIELD_NUMBER: _ClassVar[int]
    task: str
    view: ViewDef
    release: bool
    serve: bool
    def __init__(self, task: _Optional[str] = ..., view: _Optional[_Union[ViewDef, _Mapping]] = ..., release: bool = ..., serve: bool = ...) -> None: ...

class CopyKept(_message.Message):
    __slots__ = ("task", "sequence", "epoch", "released")
    TASK_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    task: str
    sequence: int
    epoch: int
    released: bool
    def __init__(self, task: _Optional[str] = ..., sequence: _Optional[int] = ..., epoch: _Optional[int] = ..., released: bool = ...) -> None: ...

class MoveTold(_message.Message):
    __slots__ = ("move", "stage", "keys", "task", "committed", "epoch", "moved", "is_target", "renew")
    class Stage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[MoveTold.Stage]
        PREPARE: _ClassVar[MoveTold.Stage]
        HOLD: _ClassVar[MoveTold.Stage]
        END: _ClassVar[MoveTold.Stage]
    NONE: MoveTold.Stage
    PREPARE: MoveTold.Stage
    HOLD: MoveTold.Stage
    END: MoveTold.Stage
    class MovedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MOVE_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    IS_TARGET_FIELD_NUMBER: _ClassVar[int]
    RENEW_FIELD_NUMBER: _ClassVar[int]
    move: int
    stage: MoveTold.Stage
    keys: _containers.RepeatedScalarFieldContainer[str]
    task: str
    committed: bool
    epoch: int
    moved: _containers.ScalarMap[str, str]
    is_target: bool
    renew: bool
    def __init__(self, move: _Optional[int] = ..., stage: _Optional[_Union[MoveTold.Stage, str]] = ..., keys: _Optional[_Iterable[str]] = ..., task: _Optional[str] = ..., committed: bool = ..., epoch: _Optional[int] = ..., moved: _Optional[_Mapping[str, str]] = ..., is_target: bool = ..., renew: bool = ...) -> None: ...

class MoveCopy(_message.Message):
    __slots__ = ("move", "copy", "is_last")
    MOVE_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    IS_LAST_FIELD_NUMBER: _ClassVar[int]
    move: int
    copy: Copy
    is_last: bool
    def __init__(self, move: _Optional[int] = ..., copy: _Optional[_Union[Copy, _Mapping]] = ..., is_last: bool = ...) -> None: ...

class MoveSaid(_message.Message):
    __slots__ = ("move", "stage", "also", "failure", "sequence", "renew")
    MOVE_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    ALSO_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RENEW_FIELD_NUMBER: _ClassVar[int]
    move: int
    stage: MoveTold.Stage
    also: _containers.RepeatedScalarFieldContainer[str]
    failure: Failure
    sequence: int
    renew: bool
    def __init__(self, move: _Optional[int] = ..., stage: _Optional[_Union[MoveTold.Stage, str]] = ..., also: _Optional[_Iterable[str]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., sequence: _Optional[int] = ..., renew: bool = ...) -> None: ...

class HoldSteps(_message.Message):
    __slots__ = ("hold", "keys", "seconds", "release", "renew")
    HOLD_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    RENEW_FIELD_NUMBER: _ClassVar[int]
    hold: int
    keys: _containers.RepeatedScalarFieldContainer[str]
    seconds: float
    release: bool
    renew: bool
    def __init__(self, hold: _Optional[int] = ..., keys: _Optional[_Iterable[str]] = ..., seconds: _Optional[float] = ..., release: bool = ..., renew: bool = ...) -> None: ...

class StepsHeld(_message.Message):
    __slots__ = ("hold", "release", "failure", "renew", "progress")
    HOLD_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    RENEW_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    hold: int
    release: bool
    failure: Failure
    renew: bool
    progress: int
    def __init__(self, hold: _Optional[int] = ..., release: bool = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., renew: bool = ..., progress: _Optional[int] = ...) -> None: ...
