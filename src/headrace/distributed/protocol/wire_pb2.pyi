# mypy: ignore-errors
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Encoding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RAW: _ClassVar[Encoding]
    BFLOAT16_TRUNCATED: _ClassVar[Encoding]
    FLOAT16: _ClassVar[Encoding]
    INT8_BLOCKS: _ClassVar[Encoding]
    STRINGS: _ClassVar[Encoding]
    LIST_ITEMS: _ClassVar[Encoding]
    LIST_STACKED: _ClassVar[Encoding]
    LIST_REPEATED: _ClassVar[Encoding]
    HANDLE: _ClassVar[Encoding]
    NONE: _ClassVar[Encoding]
RAW: Encoding
BFLOAT16_TRUNCATED: Encoding
FLOAT16: Encoding
INT8_BLOCKS: Encoding
STRINGS: Encoding
LIST_ITEMS: Encoding
LIST_STACKED: Encoding
LIST_REPEATED: Encoding
HANDLE: Encoding
NONE: Encoding

class TensorMeta(_message.Message):
    __slots__ = ("dtype", "dims", "encoding", "buffers", "items", "list_size", "handle")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    DIMS_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    BUFFERS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    LIST_SIZE_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    dtype: int
    dims: _containers.RepeatedScalarFieldContainer[int]
    encoding: Encoding
    buffers: int
    items: _containers.RepeatedCompositeFieldContainer[TensorMeta]
    list_size: int
    handle: ResourceName
    def __init__(self, dtype: _Optional[int] = ..., dims: _Optional[_Iterable[int]] = ..., encoding: _Optional[_Union[Encoding, str]] = ..., buffers: _Optional[int] = ..., items: _Optional[_Iterable[_Union[TensorMeta, _Mapping]]] = ..., list_size: _Optional[int] = ..., handle: _Optional[_Union[ResourceName, _Mapping]] = ...) -> None: ...

class ResourceName(_message.Message):
    __slots__ = ("kind", "container", "name")
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    kind: str
    container: str
    name: str
    def __init__(self, kind: _Optional[str] = ..., container: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...
