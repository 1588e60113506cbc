# mypy: ignore-errors
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Direction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BOTH_WAYS: _ClassVar[Direction]
    TO_LISTENER: _ClassVar[Direction]
    FROM_LISTENER: _ClassVar[Direction]
BOTH_WAYS: Direction
TO_LISTENER: Direction
FROM_LISTENER: Direction

class Hello(_message.Message):
    __slots__ = ("task", "incarnation", "address", "wanted_task", "wanted_incarnation", "nonce", "shared_memory", "direction", "pair", "rdma", "checksums")
    TASK_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    WANTED_TASK_FIELD_NUMBER: _ClassVar[int]
    WANTED_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    SHARED_MEMORY_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    PAIR_FIELD_NUMBER: _ClassVar[int]
    RDMA_FIELD_NUMBER: _ClassVar[int]
    CHECKSUMS_FIELD_NUMBER: _ClassVar[int]
    task: str
    incarnation: int
    address: str
    wanted_task: str
    wanted_incarnation: int
    nonce: bytes
    shared_memory: bool
    direction: Direction
    pair: bytes
    rdma: bool
    checksums: bool
    def __init__(self, task: _Optional[str] = ..., incarnation: _Optional[int] = ..., address: _Optional[str] = ..., wanted_task: _Optional[str] = ..., wanted_incarnation: _Optional[int] = ..., nonce: _Optional[bytes] = ..., shared_memory: bool = ..., direction: _Optional[_Union[Direction, str]] = ..., pair: _Optional[bytes] = ..., rdma: bool = ..., checksums: bool = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("code", "reason")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: str
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Greeting(_message.Message):
    __slots__ = ("hello", "proof", "refusal", "accepted")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    proof: bytes
    refusal: Refusal
    accepted: bool
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., proof: _Optional[bytes] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ..., accepted: bool = ...) -> None: ...
