"""Compare our protocol buffers with TensorFlow's, field by field.

    python tools/gen_protos.py --descriptors /tmp/headrace.pb
    PEER_PYTHON tools/check_protos.py /tmp/headrace.pb
    PEER_PYTHON tools/check_protos.py /tmp/headrace.pb --trees BOOSTED_TREES_LIBRARY

The last line compares the messages of `tf.contrib.boosted_trees` alone: TensorFlow 1.15 keeps their
descriptors in the library of its ops, `contrib/boosted_trees/python/ops/_boosted_trees_ops.so`.

The second line runs under an interpreter that has TensorFlow; nothing of ours is imported. Checked
for each message and enum: fields by number, name, type, label, packing, presence and oneof; enum
values. Fields of TensorFlow that we leave out are listed and fail the check unless they stand in
`LEFT_OUT` (they survive a round trip as unknown fields). Exits with 1 on any difference.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

OURS = "headrace."
PEERS = "tensorflow."
#: Ours that have another name there.
RENAMED = {"headrace.ErrorCode": "tensorflow.error.Code"}
#: Packages that only a library of TensorFlow 1.15 has.
TREES = "headrace.boosted_trees."
#: Messages that are only a part of TensorFlow's, and the fields that are not in ours.
LEFT_OUT: dict[str, set[str]] = {
    "MetaGraphDef": {"object_graph_def"},
    "TensorInfo.CompositeTensor": {"type_spec"},
    "ConfigProto.Experimental": {"coordination_config"},
    "GPUOptions.Experimental": {"stream_merge_options"},
    "RewriterConfig": {"inter_optimizer_verifier_config", "post_optimization_verifier_config"},
    "TrackableObjectGraph.TrackableObject": {"has_checkpoint_values"},
}


def peer_pool():
    """TensorFlow's descriptors: the modules of `tensorflow.core` that hold graph files, loaded."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow
    from google.protobuf import descriptor_pool

    root = Path(tensorflow.__file__).parent  # walked as files: tensorflow.core is no attribute
    for folder in ("framework", "protobuf", "util", "example", "profiler"):
        for path in sorted((root / "core" / folder).glob("*_pb2.py")):
            importlib.import_module(f"tensorflow.core.{folder}.{path.stem}")
    return descriptor_pool.Default()


def library_pool(library: Path):
    """The descriptors of the messages of boosted trees that a library holds, as bytes."""
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    data, pool = library.read_bytes(), descriptor_pool.DescriptorPool()
    for name in ("tree_config", "split_info", "learner", "quantiles"):
        path = f"tensorflow/contrib/boosted_trees/proto/{name}.proto".encode()
        start = data.index(b"\x0a" + bytes([len(path)]) + path + b"\x12")
        for end in range(start, start + 10_000):  # `syntax` comes last
            try:
                file = descriptor_pb2.FileDescriptorProto.FromString(data[start:end])
            except DecodeError:
                continue
            if file.syntax == "proto3":
                pool.Add(file)
                break
    return pool


def our_pool(path: Path):
    from google.protobuf import descriptor_pb2, descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
    for file in files.file:
        pool.Add(file)
    return [pool.FindFileByName(file.name) for file in files.file]


def translated(name: str) -> str:
    if name in RENAMED:
        return RENAMED[name]
    if name.startswith(f"{TREES}quantiles."):
        return name.replace(f"{TREES}quantiles.", "boosted_trees.")
    return PEERS + name.removeprefix(OURS) if name.startswith(OURS) else name


def describe(field, *, ours: bool) -> tuple:
    rename = translated if ours else str
    target = field.message_type or field.enum_type
    repeated = getattr(field, "is_repeated", None)
    if repeated is None:  # protobuf below 6
        repeated = field.label == field.LABEL_REPEATED
    oneof = field.containing_oneof
    if oneof is not None and oneof.name == "_" + field.name:
        oneof = None  # made by the compiler for `optional`
    # The entries of maps have no presence to speak of; proto2 and proto3 declare them differently.
    is_entry = field.containing_type.GetOptions().map_entry
    return (
        ("name", field.name),
        ("type", field.type),
        ("of", rename(target.full_name) if target else None),
        ("repeated", repeated),
        ("packed", field.is_packed),
        ("presence", is_entry or field.has_presence),
        ("oneof", oneof.name if oneof else None),
    )


def compare_enum(mine, theirs) -> list[str]:
    ours = {value.number: value.name for value in mine.values}
    peers = {value.number: value.name for value in theirs.values}
    numbers = sorted(ours.keys() | peers.keys())
    return [
        f"{mine.full_name} = {number}: ours {ours.get(number)}, theirs {peers.get(number)}"
        for number in numbers
        if ours.get(number) != peers.get(number)
    ]


def compare_message(mine, theirs, pool) -> list[str]:
    found = []
    short = mine.full_name.removeprefix(OURS)
    peers = dict(theirs.fields_by_number)
    for number, field in mine.fields_by_number.items():
        peer = peers.pop(number, None)
        if peer is None:
            found.append(f"{short}.{field.name} = {number}: TensorFlow has no such field")
            continue
        pairs = zip(describe(field, ours=True), describe(peer, ours=False), strict=True)
        found += [
            f"{short}.{field.name} = {number}: {aspect} is {a!r}, theirs {b!r}"
            for (aspect, a), (_, b) in pairs
            if a != b
        ]
    found += [
        f"{short}: {field.name} = {number} is missing (type {field.type}, "
        f"{(field.message_type or field.enum_type or field).full_name})"
        for number, field in peers.items()
        if field.name not in LEFT_OUT.get(short, set())
    ]
    for nested in mine.nested_types:
        found += look_up_and_compare(nested, pool)
    for enum in mine.enum_types:
        found += look_up_and_compare(enum, pool)
    return found


def look_up_and_compare(mine, pool) -> list[str]:
    is_enum = hasattr(mine, "values_by_number")
    find = pool.FindEnumTypeByName if is_enum else pool.FindMessageTypeByName
    try:
        theirs = find(translated(mine.full_name))
    except KeyError:
        return [f"{mine.full_name}: TensorFlow has no such type"]
    return compare_enum(mine, theirs) if is_enum else compare_message(mine, theirs, pool)


def main() -> int:
    trees = sys.argv[2:3] == ["--trees"]
    if len(sys.argv) != (4 if trees else 2):
        print(__doc__)
        return 2
    pool = library_pool(Path(sys.argv[3])) if trees else peer_pool()
    found, count = [], 0
    for file in our_pool(Path(sys.argv[1])):
        is_of_trees = file.package.startswith(TREES)
        if not file.package.startswith(OURS.rstrip(".")) or is_of_trees != trees:
            continue
        for mine in [*file.message_types_by_name.values(), *file.enum_types_by_name.values()]:
            count += 1
            found += look_up_and_compare(mine, pool)
    print("\n".join(found) or f"{count} messages and enums are as TensorFlow's")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
