"""Damaged files for every reader: what the readers are, how files are damaged, what may happen."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import headrace as tf
from headrace.train.checkpoint import CheckpointReader, Request, table

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

#: A reader may take this much memory, and so many times the size of its files.
FREE_BYTES, TIMES = 32 << 20, 64

#: No reader takes longer for one small file.
SECONDS = 20.0


@dataclass(frozen=True)
class Reader:
    """A reader to try: how a folder of files is read, and those that it starts from."""

    name: str
    read: Callable[[Path], Any]
    files: dict[str, bytes]
    #: Of these, the files to damage.
    damaged: tuple[str, ...]
    #: The damage beyond bytes: whatever a checksum would find is put right again.
    damage: tuple[Callable[[bytes, np.random.RandomState], bytes], ...] = ()
    #: What a message may name beside the path of a damaged file.
    names: tuple[str, ...] = ()
    accepts: tuple[type[Exception], ...] = field(default=(tf.errors.OpError,))


# -- damage ---------------------------------------------------------------------------------------

_NUMBERS = [0, 1, 2, 7, 8, 16, 127, 128, 255]


def bytes_changed(data: bytes, rng: np.random.RandomState) -> bytes:
    """A few bytes changed, cut out, doubled, or put in; or the end cut off."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not out:
            break
        at, size = rng.randint(len(out)), rng.randint(1, 9)
        what = rng.randint(7)
        if what == 0:
            out[at] ^= 1 << rng.randint(8)
        elif what == 1:
            out[at] = _NUMBERS[rng.randint(len(_NUMBERS))]
        elif what == 2:
            del out[at : at + size]
        elif what == 3:
            out[at:at] = out[at : at + size]
        elif what == 4:
            out[at:at] = rng.bytes(size)
        elif what == 5:
            out[at : at + 8] = b"\xff" * min(8, len(out) - at)
        else:
            del out[at:]
    return bytes(out)


def table_changed(data: bytes, rng: np.random.RandomState) -> bytes:
    """Keys or values of a table changed, with checksums that fit."""
    if not table.is_table(data):
        return bytes_changed(data, rng)
    items = list(table.entries(data, "seed"))
    for _ in range(rng.randint(1, 3)):
        i = rng.randint(len(items))
        key, value = items[i]
        if rng.randint(4):
            items[i] = key, bytes_changed(value, rng)
        elif rng.randint(2):
            items[i] = bytes_changed(key, rng), value
        else:
            items[i] = key, items[rng.randint(len(items))][1]
    return table.build(sorted(dict(items).items()))


_EXTREMES = [0, 1, 2, 3, -1, 127, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63)]


def fields_changed(message: Any, rng: np.random.RandomState) -> Any:
    """A message of which one field, at any depth, is odd."""
    inside = [(f, v) for f, v in message.ListFields() if f.type == f.TYPE_MESSAGE]
    if inside and rng.randint(5):
        field_, value = inside[rng.randint(len(inside))]
        if field_.message_type.GetOptions().map_entry:
            key = sorted(value)[rng.randint(len(value))]
            if field_.message_type.fields_by_name["value"].message_type is not None:
                fields_changed(value[key], rng)
            return message
        many = hasattr(value, "append") or hasattr(value, "add")
        fields_changed(value[rng.randint(len(value))] if many else value, rng)
        return message
    fields = message.DESCRIPTOR.fields
    if fields:
        _change_field(message, fields[rng.randint(len(fields))], rng)
    return message


def _change_field(message: Any, field_: Any, rng: np.random.RandomState) -> None:
    value = getattr(message, field_.name)
    if field_.type == field_.TYPE_MESSAGE:
        if hasattr(value, "add") and len(value):
            value.append(value[rng.randint(len(value))])
        else:
            message.ClearField(field_.name)
        return
    many = hasattr(value, "append")
    old = value[rng.randint(len(value))] if many and len(value) else value
    if field_.type == field_.TYPE_STRING:
        new: Any = bytes_changed(str(old).encode(), rng).decode(errors="replace")
    elif field_.type == field_.TYPE_BYTES:
        new = bytes_changed(old if isinstance(old, bytes) else b"abc", rng)
    else:
        new = _EXTREMES[rng.randint(len(_EXTREMES))]
    try:
        if many and rng.randint(2) and len(value):
            value[rng.randint(len(value))] = new
        elif many:
            value.append(new)
        else:
            setattr(message, field_.name, new)
    except (ValueError, OverflowError):  # beyond the range of the type
        message.ClearField(field_.name)


def entries_changed(data: bytes, rng: np.random.RandomState) -> bytes:
    """One message of a checkpoint's table changed, with checksums that fit."""
    from headrace.graph.proto import BundleEntryProto, BundleHeaderProto, SavedTensorSlices

    if not table.is_table(data):
        return bytes_changed(data, rng)
    items = list(table.entries(data, "seed"))
    i = rng.randint(len(items))
    key, value = items[i]
    kind: Any = SavedTensorSlices
    if dict(items)[b""][:1] == b"\x08":
        kind = BundleEntryProto if key else BundleHeaderProto
    for _ in range(rng.randint(1, 3)):
        value = fields_changed(kind.FromString(value), rng).SerializeToString()
    items[i] = key, value
    return table.build(items)


def messages_changed(kind: Any) -> Callable[[bytes, np.random.RandomState], bytes]:
    """For files that are one message."""

    def changed(data: bytes, rng: np.random.RandomState) -> bytes:
        message = kind.FromString(data)
        for _ in range(rng.randint(1, 3)):
            fields_changed(message, rng)
        return message.SerializeToString()

    return changed


def records_changed(data: bytes, rng: np.random.RandomState) -> bytes:
    """Events changed, with checksums that fit."""
    from headrace.files.records import frame
    from headrace.graph.proto import Event

    records, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        records.append(data[at + 12 : at + 12 + size])
        at += size + 16
    i = rng.randint(len(records))
    if rng.randint(2):
        records[i] = fields_changed(Event.FromString(records[i]), rng).SerializeToString()
    else:
        records[i] = bytes_changed(records[i], rng)
    return b"".join(map(frame, records))


def texts_changed(data: bytes, rng: np.random.RandomState) -> bytes:
    """Words of a text changed for others of it, or for odd ones."""
    words = data.split(b" ")
    odd = [b"-1", b"99999999999999999999", b"{", b"}", b'"', b"\xff", b"nan", b"", b"[", b"null"]
    for _ in range(rng.randint(1, 4)):
        i = rng.randint(len(words))
        words[i] = odd[rng.randint(len(odd))] if rng.randint(2) else words[rng.randint(len(words))]
    return b" ".join(words)


# -- trying ---------------------------------------------------------------------------------------


def try_once(reader: Reader, folder: Path, seed: int) -> str | None:
    """Damage a file and read; what went wrong, or None."""
    rng = np.random.RandomState(seed)
    name = reader.damaged[rng.randint(len(reader.damaged))]
    ways = (bytes_changed, *reader.damage)
    content = ways[rng.randint(len(ways))](reader.files[name], rng)
    for other, data in reader.files.items():
        path = folder / other
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if other == name else data)
    size = sum(map(len, reader.files.values())) + len(content)
    tf.reset_default_graph()
    tracemalloc.start()
    began = time.monotonic()
    problem = None
    try:
        reader.read(folder)
    except reader.accepts as error:
        named = (str(folder), *reader.names)
        if not any(part in str(error) for part in named):
            problem = f"names no file: {type(error).__name__}: {error}"
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if problem is None and peak > FREE_BYTES + TIMES * size:
        problem = f"{peak >> 20} MiB of memory for {size} bytes"
    if problem is None and time.monotonic() - began > SECONDS:
        problem = f"took {time.monotonic() - began:.0f} s"
    return problem and f"{reader.name}, seed {seed}, {name}: {problem}"


# -- readers --------------------------------------------------------------------------------------


def _files(folder: str, *names: str) -> dict[str, bytes]:
    return {name: (GOLDEN / folder / name).read_bytes() for name in names}


def _checkpoint(prefix: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        found = CheckpointReader(str(folder / prefix))
        found.debug_string()
        found.get_variable_to_dtype_map()
        for name in found.names:
            found.get_tensor(name)
        found.verify([Request(name) for name in found.names])

    return read


def _state(folder: Path) -> None:
    tf.train.latest_checkpoint(str(folder))
    tf.train.get_checkpoint_state(str(folder))


def _saved_model(folder: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], str(folder))


def _meta_graph(name: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        with tf.Graph().as_default():
            tf.train.import_meta_graph(str(folder / name))

    return read


def _graph(name: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        from headrace.graph.graph_def import parse_graph_def

        message = parse_graph_def((folder / name).read_bytes(), f"The file '{folder / name}'")
        with tf.Graph().as_default():
            tf.import_graph_def(message, name="")

    return read


def _records(folder: Path) -> None:
    for name, kind in (("plain", ""), ("zlib", "ZLIB"), ("gzip", "GZIP")):
        options = tf.python_io.TFRecordOptions(kind)
        for _ in tf.python_io.tf_record_iterator(str(folder / name), options):
            pass


def _events(folder: Path) -> None:
    for event in tf.train.summary_iterator(str(folder / "events")):
        str(event)


def _event_bytes() -> bytes:
    from headrace.files.records import frame
    from headrace.graph.proto import Event

    events = [Event(wall_time=1.0, file_version="brain.Event:2"), Event(step=3)]
    events[1].summary.value.add(tag="loss", simple_value=1.5)
    return b"".join(frame(e.SerializeToString()) for e in events)


def _record_bytes() -> bytes:
    from headrace.files.records import frame

    return b"".join(map(frame, (b"", b"record", b"x" * 300)))


def _vocabulary(folder: Path) -> None:
    tf.contrib.learn.preprocessing.VocabularyProcessor.restore(str(folder / "words"))


def _vocabulary_bytes() -> bytes:
    import tempfile

    made = tf.contrib.learn.preprocessing.VocabularyProcessor(4)
    made.fit(["a few words", "more words"])
    with tempfile.TemporaryDirectory() as folder:
        made.save(f"{folder}/words")
        return Path(folder, "words").read_bytes()


def _digits(folder: Path) -> None:
    from headrace.examples.tutorials.mnist import input_data

    input_data.extract_images(str(folder / "images"))
    input_data.extract_labels(str(folder / "labels"), one_hot=True)


def _graph_reader(name: str, file: str, data: bytes, *damage: Any) -> Reader:
    """Messages that are whole are graphs or not: that is a ValueError, and names the node."""
    accepted = (tf.errors.OpError, ValueError)
    return Reader(name, _graph(file), {file: data}, (file,), damage, names=("",), accepts=accepted)


def _checkpoint_readers() -> list[Reader]:
    tables = (table_changed, entries_changed, entries_changed)
    types = _files("checkpoints", "types.index", "types.data-00000-of-00001")
    parts = _files("checkpoints", "partitioned.index", "partitioned.data-00000-of-00001")
    state = b'model_checkpoint_path: "m-2"\nall_model_checkpoint_paths: "m-1"\n'
    return [
        Reader("V2 checkpoint", _checkpoint("types"), types, tuple(types), tables),
        Reader("V2 slices", _checkpoint("partitioned"), parts, tuple(parts), tables),
        *(
            Reader(f"V1 {name}", _checkpoint(name), _files("checkpoints", name), (name,), tables)
            for name in ("v1", "v1_types", "v1_partitioned")
        ),
        Reader(
            "checkpoint state",
            _state,
            {"checkpoint": state},
            ("checkpoint",),
            (texts_changed,),
            accepts=(tf.errors.OpError, ValueError),  # as TensorFlow: it names no checkpoint
        ),
    ]


def _graph_readers() -> list[Reader]:
    from headrace.graph.proto import MetaGraphDef, SavedModel

    folder = GOLDEN / "saved_models" / "v1"
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    saved = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    graphs = sorted((GOLDEN / "graphs").glob("*.pb"), key=lambda p: p.stat().st_size)[:8]
    text = str(tf.GraphDef.FromString(graphs[3].read_bytes())).encode()
    return [
        Reader(
            "SavedModel",
            _saved_model,
            saved,
            ("saved_model.pb",),
            (messages_changed(SavedModel),),
            names=("words.txt",),  # the vocabulary, where the asset is damaged
            # As TensorFlow: no graph has the tags, or it names several operations to run first.
            accepts=(tf.errors.OpError, RuntimeError),
        ),
        Reader(
            "meta graph",
            _meta_graph("model.meta"),
            _files("checkpoints", "model.meta"),
            ("model.meta",),
            (messages_changed(MetaGraphDef),),
        ),
        *(
            _graph_reader(f"graph {p.name}", p.name, p.read_bytes(), messages_changed(tf.GraphDef))
            for p in graphs
        ),
        _graph_reader("graph text", "g.pbtxt", text, texts_changed),
    ]


def readers() -> list[Reader]:
    """All readers of files."""
    records = _record_bytes()
    images = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, *range(12)])
    return [
        *_checkpoint_readers(),
        *_graph_readers(),
        Reader(
            "records",
            _records,
            {"plain": records, "zlib": zlib.compress(records), "gzip": gzip.compress(records)},
            ("plain", "zlib", "gzip"),
        ),
        Reader("events", _events, {"events": _event_bytes()}, ("events",), (records_changed,)),
        Reader(
            "vocabulary",
            _vocabulary,
            {"words": _vocabulary_bytes()},
            ("words",),
            (texts_changed,),
            accepts=(tf.errors.OpError, ValueError),  # no vocabulary of ours
        ),
        Reader(
            "digits",
            _digits,
            {"images": images, "labels": bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9])},
            ("images", "labels"),
            accepts=(tf.errors.OpError, ValueError),  # a label beyond the classes
        ),
    ]
