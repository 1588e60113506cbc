# mypy: ignore-errors
from headrace.distributed.protocol import step_pb2 as _step_pb2
from headrace.graph.proto import config_pb2 as _config_pb2
from headrace.graph.proto import graph_pb2 as _graph_pb2
from headrace.graph.proto import trace_pb2 as _trace_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EndpointRequest(_message.Message):
    __slots__ = ("version", "task", "incarnation", "address", "epoch")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    version: int
    task: str
    incarnation: int
    address: str
    epoch: int
    def __init__(self, version: _Optional[int] = ..., task: _Optional[str] = ..., incarnation: _Optional[int] = ..., address: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class EndpointResponse(_message.Message):
    __slots__ = ("version", "task", "incarnation", "host", "port", "unix_name", "host_id", "devices", "package_version", "epoch")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    UNIX_NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    PACKAGE_VERSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    version: int
    task: str
    incarnation: int
    host: str
    port: int
    unix_name: str
    host_id: str
    devices: _containers.RepeatedCompositeFieldContainer[_config_pb2.DeviceAttributes]
    package_version: str
    epoch: int
    def __init__(self, version: _Optional[int] = ..., task: _Optional[str] = ..., incarnation: _Optional[int] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., unix_name: _Optional[str] = ..., host_id: _Optional[str] = ..., devices: _Optional[_Iterable[_Union[_config_pb2.DeviceAttributes, _Mapping]]] = ..., package_version: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class CreateSessionRequest(_message.Message):
    __slots__ = ("config", "client")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    config: _config_pb2.ConfigProto
    client: str
    def __init__(self, config: _Optional[_Union[_config_pb2.ConfigProto, _Mapping]] = ..., client: _Optional[str] = ...) -> None: ...

class CreateSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: int
    def __init__(self, session: _Optional[int] = ...) -> None: ...

class ExtendGraphRequest(_message.Message):
    __slots__ = ("session", "from_version", "graph", "more")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    session: int
    from_version: int
    graph: _graph_pb2.GraphDef
    more: bool
    def __init__(self, session: _Optional[int] = ..., from_version: _Optional[int] = ..., graph: _Optional[_Union[_graph_pb2.GraphDef, _Mapping]] = ..., more: bool = ...) -> None: ...

class ExtendGraphResponse(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class MakePlanRequest(_message.Message):
    __slots__ = ("session", "fetches", "feeds", "targets", "timeout", "last")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    session: int
    fetches: _containers.RepeatedScalarFieldContainer[str]
    feeds: _containers.RepeatedScalarFieldContainer[str]
    targets: _containers.RepeatedScalarFieldContainer[str]
    timeout: float
    last: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, session: _Optional[int] = ..., fetches: _Optional[_Iterable[str]] = ..., feeds: _Optional[_Iterable[str]] = ..., targets: _Optional[_Iterable[str]] = ..., timeout: _Optional[float] = ..., last: _Optional[_Iterable[int]] = ...) -> None: ...

class MakePlanResponse(_message.Message):
    __slots__ = ("plan", "description")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    plan: int
    description: str
    def __init__(self, plan: _Optional[int] = ..., description: _Optional[str] = ...) -> None: ...

class CloseSessionRequest(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: int
    def __init__(self, session: _Optional[int] = ...) -> None: ...

class CloseSessionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResetRequest(_message.Message):
    __slots__ = ("containers", "device_filters", "only_here")
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FILTERS_FIELD_NUMBER: _ClassVar[int]
    ONLY_HERE_FIELD_NUMBER: _ClassVar[int]
    containers: _containers.RepeatedScalarFieldContainer[str]
    device_filters: _containers.RepeatedScalarFieldContainer[str]
    only_here: bool
    def __init__(self, containers: _Optional[_Iterable[str]] = ..., device_filters: _Optional[_Iterable[str]] = ..., only_here: bool = ...) -> None: ...

class ResetResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListDevicesRequest(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: int
    def __init__(self, session: _Optional[int] = ...) -> None: ...

class ListDevicesResponse(_message.Message):
    __slots__ = ("devices",)
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[_config_pb2.DeviceAttributes]
    def __init__(self, devices: _Optional[_Iterable[_Union[_config_pb2.DeviceAttributes, _Mapping]]] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ("cluster", "parts", "stacks")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    STACKS_FIELD_NUMBER: _ClassVar[int]
    cluster: bool
    parts: bool
    stacks: bool
    def __init__(self, cluster: bool = ..., parts: bool = ..., stacks: bool = ...) -> None: ...

class VariableStatus(_message.Message):
    __slots__ = ("container", "name", "kind", "dtype", "dims", "bytes")
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    DIMS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    container: str
    name: str
    kind: str
    dtype: str
    dims: _containers.RepeatedScalarFieldContainer[int]
    bytes: int
    def __init__(self, container: _Optional[str] = ..., name: _Optional[str] = ..., kind: _Optional[str] = ..., dtype: _Optional[str] = ..., dims: _Optional[_Iterable[int]] = ..., bytes: _Optional[int] = ...) -> None: ...

class LinkStatus(_message.Message):
    __slots__ = ("peer", "transport", "bytes_in", "bytes_out", "frames_in", "frames_out")
    PEER_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    BYTES_IN_FIELD_NUMBER: _ClassVar[int]
    BYTES_OUT_FIELD_NUMBER: _ClassVar[int]
    FRAMES_IN_FIELD_NUMBER: _ClassVar[int]
    FRAMES_OUT_FIELD_NUMBER: _ClassVar[int]
    peer: str
    transport: str
    bytes_in: int
    bytes_out: int
    frames_in: int
    frames_out: int
    def __init__(self, peer: _Optional[str] = ..., transport: _Optional[str] = ..., bytes_in: _Optional[int] = ..., bytes_out: _Optional[int] = ..., frames_in: _Optional[int] = ..., frames_out: _Optional[int] = ...) -> None: ...

class StepStatus(_message.Message):
    __slots__ = ("step", "seconds", "waiting_for")
    STEP_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    step: int
    seconds: float
    waiting_for: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, step: _Optional[int] = ..., seconds: _Optional[float] = ..., waiting_for: _Optional[_Iterable[str]] = ...) -> None: ...

class PartStatus(_message.Message):
    __slots__ = ("step", "seconds", "running", "awaited")
    STEP_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    AWAITED_FIELD_NUMBER: _ClassVar[int]
    step: int
    seconds: float
    running: _containers.RepeatedScalarFieldContainer[str]
    awaited: _containers.RepeatedCompositeFieldContainer[AwaitedTensors]
    def __init__(self, step: _Optional[int] = ..., seconds: _Optional[float] = ..., running: _Optional[_Iterable[str]] = ..., awaited: _Optional[_Iterable[_Union[AwaitedTensors, _Mapping]]] = ...) -> None: ...

class AwaitedTensors(_message.Message):
    __slots__ = ("source", "names")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    source: str
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, source: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class ThreadStatus(_message.Message):
    __slots__ = ("name", "stack")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    name: str
    stack: str
    def __init__(self, name: _Optional[str] = ..., stack: _Optional[str] = ...) -> None: ...

class SessionStatus(_message.Message):
    __slots__ = ("session", "client", "steps", "plans")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    PLANS_FIELD_NUMBER: _ClassVar[int]
    session: int
    client: str
    steps: int
    plans: int
    def __init__(self, session: _Optional[int] = ..., client: _Optional[str] = ..., steps: _Optional[int] = ..., plans: _Optional[int] = ...) -> None: ...

class TaskStatus(_message.Message):
    __slots__ = ("task", "address", "problem", "incarnation", "uptime_seconds", "memory_bytes", "sessions", "steps", "variables", "links", "steps_run", "package_version", "parts", "threads", "copy", "membership", "steps_ended", "steps_failed", "step_seconds", "cpu_seconds", "epoch", "metrics_address", "steps_given_up", "loop_steps", "loop_seconds", "awaited_groups")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    UPTIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    STEPS_RUN_FIELD_NUMBER: _ClassVar[int]
    PACKAGE_VERSION_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    STEPS_ENDED_FIELD_NUMBER: _ClassVar[int]
    STEPS_FAILED_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    METRICS_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    STEPS_GIVEN_UP_FIELD_NUMBER: _ClassVar[int]
    LOOP_STEPS_FIELD_NUMBER: _ClassVar[int]
    LOOP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    AWAITED_GROUPS_FIELD_NUMBER: _ClassVar[int]
    task: str
    address: str
    problem: str
    incarnation: int
    uptime_seconds: float
    memory_bytes: int
    sessions: _containers.RepeatedCompositeFieldContainer[SessionStatus]
    steps: _containers.RepeatedCompositeFieldContainer[StepStatus]
    variables: _containers.RepeatedCompositeFieldContainer[VariableStatus]
    links: _containers.RepeatedCompositeFieldContainer[LinkStatus]
    steps_run: int
    package_version: str
    parts: _containers.RepeatedCompositeFieldContainer[PartStatus]
    threads: _containers.RepeatedCompositeFieldContainer[ThreadStatus]
    copy: str
    membership: str
    steps_ended: int
    steps_failed: int
    step_seconds: float
    cpu_seconds: float
    epoch: int
    metrics_address: str
    steps_given_up: int
    loop_steps: int
    loop_seconds: float
    awaited_groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task: _Optional[str] = ..., address: _Optional[str] = ..., problem: _Optional[str] = ..., incarnation: _Optional[int] = ..., uptime_seconds: _Optional[float] = ..., memory_bytes: _Optional[int] = ..., sessions: _Optional[_Iterable[_Union[SessionStatus, _Mapping]]] = ..., steps: _Optional[_Iterable[_Union[StepStatus, _Mapping]]] = ..., variables: _Optional[_Iterable[_Union[VariableStatus, _Mapping]]] = ..., links: _Optional[_Iterable[_Union[LinkStatus, _Mapping]]] = ..., steps_run: _Optional[int] = ..., package_version: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[PartStatus, _Mapping]]] = ..., threads: _Optional[_Iterable[_Union[ThreadStatus, _Mapping]]] = ..., copy: _Optional[str] = ..., membership: _Optional[str] = ..., steps_ended: _Optional[int] = ..., steps_failed: _Optional[int] = ..., step_seconds: _Optional[float] = ..., cpu_seconds: _Optional[float] = ..., epoch: _Optional[int] = ..., metrics_address: _Optional[str] = ..., steps_given_up: _Optional[int] = ..., loop_steps: _Optional[int] = ..., loop_seconds: _Optional[float] = ..., awaited_groups: _Optional[_Iterable[str]] = ...) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[TaskStatus]
    def __init__(self, tasks: _Optional[_Iterable[_Union[TaskStatus, _Mapping]]] = ...) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ("cluster",)
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    cluster: bool
    def __init__(self, cluster: bool = ...) -> None: ...

class ShutdownResponse(_message.Message):
    __slots__ = ("stopped", "missing")
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    stopped: _containers.RepeatedScalarFieldContainer[str]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, stopped: _Optional[_Iterable[str]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class ViewRequest(_message.Message):
    __slots__ = ("task", "view", "appoint")
    TASK_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    APPOINT_FIELD_NUMBER: _ClassVar[int]
    task: str
    view: _step_pb2.ViewDef
    appoint: bool
    def __init__(self, task: _Optional[str] = ..., view: _Optional[_Union[_step_pb2.ViewDef, _Mapping]] = ..., appoint: bool = ...) -> None: ...

class ViewResponse(_message.Message):
    __slots__ = ("process", "view", "address", "is_held")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    IS_HELD_FIELD_NUMBER: _ClassVar[int]
    process: _step_pb2.MemberDef
    view: _step_pb2.ViewDef
    address: str
    is_held: bool
    def __init__(self, process: _Optional[_Union[_step_pb2.MemberDef, _Mapping]] = ..., view: _Optional[_Union[_step_pb2.ViewDef, _Mapping]] = ..., address: _Optional[str] = ..., is_held: bool = ...) -> None: ...

class RecordDef(_message.Message):
    __slots__ = ("epoch", "voters", "tasks", "wanted", "moved", "is_sharing")
    class VotersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class TasksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class WantedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class MovedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    IS_SHARING_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    voters: _containers.ScalarMap[str, int]
    tasks: _containers.ScalarMap[str, str]
    wanted: _containers.ScalarMap[str, int]
    moved: _containers.ScalarMap[str, str]
    is_sharing: bool
    def __init__(self, epoch: _Optional[int] = ..., voters: _Optional[_Mapping[str, int]] = ..., tasks: _Optional[_Mapping[str, str]] = ..., wanted: _Optional[_Mapping[str, int]] = ..., moved: _Optional[_Mapping[str, str]] = ..., is_sharing: bool = ...) -> None: ...

class BallotDef(_message.Message):
    __slots__ = ("number", "task", "incarnation")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    number: int
    task: str
    incarnation: int
    def __init__(self, number: _Optional[int] = ..., task: _Optional[str] = ..., incarnation: _Optional[int] = ...) -> None: ...

class AcceptedDef(_message.Message):
    __slots__ = ("ballot", "record")
    BALLOT_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    ballot: BallotDef
    record: RecordDef
    def __init__(self, ballot: _Optional[_Union[BallotDef, _Mapping]] = ..., record: _Optional[_Union[RecordDef, _Mapping]] = ...) -> None: ...

class MembersRequest(_message.Message):
    __slots__ = ("kind", "proposed", "incarnation")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        READ: _ClassVar[MembersRequest.Kind]
        PREPARE: _ClassVar[MembersRequest.Kind]
        ACCEPT: _ClassVar[MembersRequest.Kind]
        LEARN: _ClassVar[MembersRequest.Kind]
    READ: MembersRequest.Kind
    PREPARE: MembersRequest.Kind
    ACCEPT: MembersRequest.Kind
    LEARN: MembersRequest.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    kind: MembersRequest.Kind
    proposed: AcceptedDef
    incarnation: int
    def __init__(self, kind: _Optional[_Union[MembersRequest.Kind, str]] = ..., proposed: _Optional[_Union[AcceptedDef, _Mapping]] = ..., incarnation: _Optional[int] = ...) -> None: ...

class MembersResponse(_message.Message):
    __slots__ = ("agrees", "incarnation", "highest", "accepted", "chosen")
    AGREES_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_FIELD_NUMBER: _ClassVar[int]
    agrees: bool
    incarnation: int
    highest: BallotDef
    accepted: AcceptedDef
    chosen: AcceptedDef
    def __init__(self, agrees: bool = ..., incarnation: _Optional[int] = ..., highest: _Optional[_Union[BallotDef, _Mapping]] = ..., accepted: _Optional[_Union[AcceptedDef, _Mapping]] = ..., chosen: _Optional[_Union[AcceptedDef, _Mapping]] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("job", "index", "address", "package_version")
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PACKAGE_VERSION_FIELD_NUMBER: _ClassVar[int]
    job: str
    index: int
    address: str
    package_version: str
    def __init__(self, job: _Optional[str] = ..., index: _Optional[int] = ..., address: _Optional[str] = ..., package_version: _Optional[str] = ...) -> None: ...

class JoinResponse(_message.Message):
    __slots__ = ("task", "chosen", "cluster")
    TASK_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    task: str
    chosen: AcceptedDef
    cluster: _config_pb2.ClusterDef
    def __init__(self, task: _Optional[str] = ..., chosen: _Optional[_Union[AcceptedDef, _Mapping]] = ..., cluster: _Optional[_Union[_config_pb2.ClusterDef, _Mapping]] = ...) -> None: ...

class ResizeRequest(_message.Message):
    __slots__ = ("wanted",)
    class WantedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    WANTED_FIELD_NUMBER: _ClassVar[int]
    wanted: _containers.ScalarMap[str, int]
    def __init__(self, wanted: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ResizeResponse(_message.Message):
    __slots__ = ("record", "leaving", "missing")
    class MissingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    RECORD_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    record: RecordDef
    leaving: _containers.RepeatedScalarFieldContainer[str]
    missing: _containers.ScalarMap[str, int]
    def __init__(self, record: _Optional[_Union[RecordDef, _Mapping]] = ..., leaving: _Optional[_Iterable[str]] = ..., missing: _Optional[_Mapping[str, int]] = ...) -> None: ...

class MoveRequest(_message.Message):
    __slots__ = ("variables", "task", "timeout")
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    variables: _containers.RepeatedScalarFieldContainer[str]
    task: str
    timeout: float
    def __init__(self, variables: _Optional[_Iterable[str]] = ..., task: _Optional[str] = ..., timeout: _Optional[float] = ...) -> None: ...

class MoveResponse(_message.Message):
    __slots__ = ("moved", "bytes", "seconds", "held_seconds", "attempts")
    MOVED_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    HELD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    moved: _containers.RepeatedScalarFieldContainer[str]
    bytes: int
    seconds: float
    held_seconds: float
    attempts: int
    def __init__(self, moved: _Optional[_Iterable[str]] = ..., bytes: _Optional[int] = ..., seconds: _Optional[float] = ..., held_seconds: _Optional[float] = ..., attempts: _Optional[int] = ...) -> None: ...

class SharesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GroupDef(_message.Message):
    __slots__ = ("keys", "bytes", "traffic")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    bytes: int
    traffic: float
    def __init__(self, keys: _Optional[_Iterable[str]] = ..., bytes: _Optional[int] = ..., traffic: _Optional[float] = ...) -> None: ...

class SharesResponse(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[GroupDef]
    def __init__(self, groups: _Optional[_Iterable[_Union[GroupDef, _Mapping]]] = ...) -> None: ...

class JoinedRequest(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, keys: _Optional[_Iterable[str]] = ...) -> None: ...

class JoinedResponse(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[GroupDef]
    def __init__(self, groups: _Optional[_Iterable[_Union[GroupDef, _Mapping]]] = ...) -> None: ...

class TraceRequest(_message.Message):
    __slots__ = ("timeout", "least_tasks")
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LEAST_TASKS_FIELD_NUMBER: _ClassVar[int]
    timeout: float
    least_tasks: int
    def __init__(self, timeout: _Optional[float] = ..., least_tasks: _Optional[int] = ...) -> None: ...

class TraceResponse(_message.Message):
    __slots__ = ("stats", "clocks")
    class ClocksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    STATS_FIELD_NUMBER: _ClassVar[int]
    CLOCKS_FIELD_NUMBER: _ClassVar[int]
    stats: _trace_pb2.StepStats
    clocks: _containers.ScalarMap[str, float]
    def __init__(self, stats: _Optional[_Union[_trace_pb2.StepStats, _Mapping]] = ..., clocks: _Optional[_Mapping[str, float]] = ...) -> None: ...

class DiagnoseRequest(_message.Message):
    __slots__ = ("folder", "nonce")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    folder: str
    nonce: str
    def __init__(self, folder: _Optional[str] = ..., nonce: _Optional[str] = ...) -> None: ...

class DiagnoseResponse(_message.Message):
    __slots__ = ("task", "host", "clock", "releases", "cores", "memory_bytes", "storage_problem")
    class ReleasesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TASK_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    STORAGE_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    task: str
    host: str
    clock: float
    releases: _containers.ScalarMap[str, str]
    cores: float
    memory_bytes: int
    storage_problem: str
    def __init__(self, task: _Optional[str] = ..., host: _Optional[str] = ..., clock: _Optional[float] = ..., releases: _Optional[_Mapping[str, str]] = ..., cores: _Optional[float] = ..., memory_bytes: _Optional[int] = ..., storage_problem: _Optional[str] = ...) -> None: ...
