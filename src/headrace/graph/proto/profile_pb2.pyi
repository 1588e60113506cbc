# mypy: ignore-errors
from headrace.graph.proto import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TFProfTensorProto(_message.Message):
    __slots__ = ("dtype", "value_double", "value_int64", "value_str")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    VALUE_DOUBLE_FIELD_NUMBER: _ClassVar[int]
    VALUE_INT64_FIELD_NUMBER: _ClassVar[int]
    VALUE_STR_FIELD_NUMBER: _ClassVar[int]
    dtype: _types_pb2.DataType
    value_double: _containers.RepeatedScalarFieldContainer[float]
    value_int64: _containers.RepeatedScalarFieldContainer[int]
    value_str: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, dtype: _Optional[_Union[_types_pb2.DataType, str]] = ..., value_double: _Optional[_Iterable[float]] = ..., value_int64: _Optional[_Iterable[int]] = ..., value_str: _Optional[_Iterable[str]] = ...) -> None: ...

class GraphNodeProto(_message.Message):
    __slots__ = ("name", "exec_micros", "requested_bytes", "parameters", "total_exec_micros", "total_requested_bytes", "total_parameters", "devices", "shapes", "children", "float_ops", "total_float_ops", "tensor_value", "input_shapes", "accelerator_exec_micros", "cpu_exec_micros", "total_accelerator_exec_micros", "total_cpu_exec_micros", "run_count", "total_run_count", "total_definition_count", "peak_bytes", "residual_bytes", "output_bytes", "total_peak_bytes", "total_residual_bytes", "total_output_bytes")
    class InputShapesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: _types_pb2.TensorShapeProto
        def __init__(self, key: _Optional[int] = ..., value: _Optional[_Union[_types_pb2.TensorShapeProto, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_REQUESTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    SHAPES_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    FLOAT_OPS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FLOAT_OPS_FIELD_NUMBER: _ClassVar[int]
    TENSOR_VALUE_FIELD_NUMBER: _ClassVar[int]
    INPUT_SHAPES_FIELD_NUMBER: _ClassVar[int]
    ACCELERATOR_EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    CPU_EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_ACCELERATOR_EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CPU_EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    RUN_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_RUN_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_DEFINITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_RESIDUAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    exec_micros: int
    requested_bytes: int
    parameters: int
    total_exec_micros: int
    total_requested_bytes: int
    total_parameters: int
    devices: _containers.RepeatedScalarFieldContainer[str]
    shapes: _containers.RepeatedCompositeFieldContainer[_types_pb2.TensorShapeProto]
    children: _containers.RepeatedCompositeFieldContainer[GraphNodeProto]
    float_ops: int
    total_float_ops: int
    tensor_value: TFProfTensorProto
    input_shapes: _containers.MessageMap[int, _types_pb2.TensorShapeProto]
    accelerator_exec_micros: int
    cpu_exec_micros: int
    total_accelerator_exec_micros: int
    total_cpu_exec_micros: int
    run_count: int
    total_run_count: int
    total_definition_count: int
    peak_bytes: int
    residual_bytes: int
    output_bytes: int
    total_peak_bytes: int
    total_residual_bytes: int
    total_output_bytes: int
    def __init__(self, name: _Optional[str] = ..., exec_micros: _Optional[int] = ..., requested_bytes: _Optional[int] = ..., parameters: _Optional[int] = ..., total_exec_micros: _Optional[int] = ..., total_requested_bytes: _Optional[int] = ..., total_parameters: _Optional[int] = ..., devices: _Optional[_Iterable[str]] = ..., shapes: _Optional[_Iterable[_Union[_types_pb2.TensorShapeProto, _Mapping]]] = ..., children: _Optional[_Iterable[_Union[GraphNodeProto, _Mapping]]] = ..., float_ops: _Optional[int] = ..., total_float_ops: _Optional[int] = ..., tensor_value: _Optional[_Union[TFProfTensorProto, _Mapping]] = ..., input_shapes: _Optional[_Mapping[int, _types_pb2.TensorShapeProto]] = ..., accelerator_exec_micros: _Optional[int] = ..., cpu_exec_micros: _Optional[int] = ..., total_accelerator_exec_micros: _Optional[int] = ..., total_cpu_exec_micros: _Optional[int] = ..., run_count: _Optional[int] = ..., total_run_count: _Optional[int] = ..., total_definition_count: _Optional[int] = ..., peak_bytes: _Optional[int] = ..., residual_bytes: _Optional[int] = ..., output_bytes: _Optional[int] = ..., total_peak_bytes: _Optional[int] = ..., total_residual_bytes: _Optional[int] = ..., total_output_bytes: _Optional[int] = ...) -> None: ...

class MultiGraphNodeProto(_message.Message):
    __slots__ = ("name", "exec_micros", "requested_bytes", "parameters", "float_ops", "total_exec_micros", "total_requested_bytes", "total_parameters", "total_float_ops", "graph_nodes", "children", "accelerator_exec_micros", "cpu_exec_micros", "total_accelerator_exec_micros", "total_cpu_exec_micros", "peak_bytes", "residual_bytes", "output_bytes", "total_peak_bytes", "total_residual_bytes", "total_output_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    FLOAT_OPS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_REQUESTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FLOAT_OPS_FIELD_NUMBER: _ClassVar[int]
    GRAPH_NODES_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    ACCELERATOR_EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    CPU_EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_ACCELERATOR_EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CPU_EXEC_MICROS_FIELD_NUMBER: _ClassVar[int]
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_RESIDUAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    exec_micros: int
    requested_bytes: int
    parameters: int
    float_ops: int
    total_exec_micros: int
    total_requested_bytes: int
    total_parameters: int
    total_float_ops: int
    graph_nodes: _containers.RepeatedCompositeFieldContainer[GraphNodeProto]
    children: _containers.RepeatedCompositeFieldContainer[MultiGraphNodeProto]
    accelerator_exec_micros: int
    cpu_exec_micros: int
    total_accelerator_exec_micros: int
    total_cpu_exec_micros: int
    peak_bytes: int
    residual_bytes: int
    output_bytes: int
    total_peak_bytes: int
    total_residual_bytes: int
    total_output_bytes: int
    def __init__(self, name: _Optional[str] = ..., exec_micros: _Optional[int] = ..., requested_bytes: _Optional[int] = ..., parameters: _Optional[int] = ..., float_ops: _Optional[int] = ..., total_exec_micros: _Optional[int] = ..., total_requested_bytes: _Optional[int] = ..., total_parameters: _Optional[int] = ..., total_float_ops: _Optional[int] = ..., graph_nodes: _Optional[_Iterable[_Union[GraphNodeProto, _Mapping]]] = ..., children: _Optional[_Iterable[_Union[MultiGraphNodeProto, _Mapping]]] = ..., accelerator_exec_micros: _Optional[int] = ..., cpu_exec_micros: _Optional[int] = ..., total_accelerator_exec_micros: _Optional[int] = ..., total_cpu_exec_micros: _Optional[int] = ..., peak_bytes: _Optional[int] = ..., residual_bytes: _Optional[int] = ..., output_bytes: _Optional[int] = ..., total_peak_bytes: _Optional[int] = ..., total_residual_bytes: _Optional[int] = ..., total_output_bytes: _Optional[int] = ...) -> None: ...

class AdviceProto(_message.Message):
    __slots__ = ("checkers",)
    class Checker(_message.Message):
        __slots__ = ("reports",)
        REPORTS_FIELD_NUMBER: _ClassVar[int]
        reports: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, reports: _Optional[_Iterable[str]] = ...) -> None: ...
    class CheckersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: AdviceProto.Checker
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[AdviceProto.Checker, _Mapping]] = ...) -> None: ...
    CHECKERS_FIELD_NUMBER: _ClassVar[int]
    checkers: _containers.MessageMap[str, AdviceProto.Checker]
    def __init__(self, checkers: _Optional[_Mapping[str, AdviceProto.Checker]] = ...) -> None: ...

class OpLogProto(_message.Message):
    __slots__ = ("log_entries", "id_to_string")
    class IdToStringEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: str
        def __init__(self, key: _Optional[int] = ..., value: _Optional[str] = ...) -> None: ...
    LOG_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    ID_TO_STRING_FIELD_NUMBER: _ClassVar[int]
    log_entries: _containers.RepeatedCompositeFieldContainer[OpLogEntry]
    id_to_string: _containers.ScalarMap[int, str]
    def __init__(self, log_entries: _Optional[_Iterable[_Union[OpLogEntry, _Mapping]]] = ..., id_to_string: _Optional[_Mapping[int, str]] = ...) -> None: ...

class OpLogEntry(_message.Message):
    __slots__ = ("name", "float_ops", "types", "code_def")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FLOAT_OPS_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    CODE_DEF_FIELD_NUMBER: _ClassVar[int]
    name: str
    float_ops: int
    types: _containers.RepeatedScalarFieldContainer[str]
    code_def: CodeDef
    def __init__(self, name: _Optional[str] = ..., float_ops: _Optional[int] = ..., types: _Optional[_Iterable[str]] = ..., code_def: _Optional[_Union[CodeDef, _Mapping]] = ...) -> None: ...

class CodeDef(_message.Message):
    __slots__ = ("traces",)
    class Trace(_message.Message):
        __slots__ = ("lineno", "func_start_line", "file_id", "function_id", "line_id")
        LINENO_FIELD_NUMBER: _ClassVar[int]
        FUNC_START_LINE_FIELD_NUMBER: _ClassVar[int]
        FILE_ID_FIELD_NUMBER: _ClassVar[int]
        FUNCTION_ID_FIELD_NUMBER: _ClassVar[int]
        LINE_ID_FIELD_NUMBER: _ClassVar[int]
        lineno: int
        func_start_line: int
        file_id: int
        function_id: int
        line_id: int
        def __init__(self, lineno: _Optional[int] = ..., func_start_line: _Optional[int] = ..., file_id: _Optional[int] = ..., function_id: _Optional[int] = ..., line_id: _Optional[int] = ...) -> None: ...
    TRACES_FIELD_NUMBER: _ClassVar[int]
    traces: _containers.RepeatedCompositeFieldContainer[CodeDef.Trace]
    def __init__(self, traces: _Optional[_Iterable[_Union[CodeDef.Trace, _Mapping]]] = ...) -> None: ...
