"""Reading checkpoints that TensorFlow wrote, whole and damaged."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import google_crc32c
import ml_dtypes
import numpy as np
import pytest
from cramjam import snappy

from headrace import errors
from headrace.train.checkpoint import CheckpointReader, Request, bundle, table
from headrace.train.checkpoint.slices import Box

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import make_checkpoint_goldens as made  # noqa: E402

GOLDEN = ROOT / "tests" / "golden" / "checkpoints"


def reader(name: str) -> CheckpointReader:
    return CheckpointReader(str(GOLDEN / name))


@pytest.mark.parametrize("name", made.TYPES)
def test_every_type_is_read(name: str) -> None:
    kind = ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)
    value = reader("types").get_tensor(name)
    assert value.dtype == kind
    np.testing.assert_array_equal(value, made.numbers(kind))


def test_strings_scalars_and_empty_tensors() -> None:
    types = reader("types")
    np.testing.assert_array_equal(types.get_tensor("string"), made.strings())
    assert types.get_tensor("string_scalar") == b"hello"
    assert types.get_tensor("scalar") == np.float32(2.5)
    assert types.get_tensor("empty").shape == (0, 4)
    assert types.format == "TensorFlow V2 bundle"


def test_maps_of_shapes_and_types() -> None:
    types = reader("types")
    shapes, dtypes = types.get_variable_to_shape_map(), types.get_variable_to_dtype_map()
    assert shapes["string"] == [2, 2]
    assert shapes["scalar"] == []
    assert dtypes["bfloat16"].name == "bfloat16"
    assert set(shapes) == set(dtypes) == {*made.TYPES, "string", "string_scalar", "scalar", "empty"}
    assert b"scalar (DT_FLOAT) []" in types.debug_string().splitlines()


def test_partitioned_tensors_are_whole() -> None:
    parts = reader("partitioned")
    np.testing.assert_array_equal(parts.get_tensor("rows"), made.table())
    np.testing.assert_array_equal(parts.get_tensor("columns"), made.table())
    assert parts.get_tensor("words").tolist() == [b"a", b"bc", b"", b"def"]
    assert set(parts.get_variable_to_shape_map()) == {"rows", "columns", "words"}


def test_a_box_across_partitions() -> None:
    box = Box((10, 30), (20, 15))
    for name in ("rows", "columns"):
        [part] = reader("partitioned").read([Request(name, box)])
        np.testing.assert_array_equal(part, made.table()[10:30, 30:45])


def test_many_tensors_in_several_blocks() -> None:
    many = reader("many")
    names = [f"layer_{i // 10}/w{i:03d}" for i in range(made.MANY)]
    assert sorted(many.get_variable_to_shape_map()) == sorted(names)
    values = many.read([Request(n) for n in reversed(names)])
    for i, value in enumerate(reversed(values)):
        np.testing.assert_array_equal(value, made.small(i))


def test_sharded_save() -> None:
    np.testing.assert_array_equal(reader("sharded").get_tensor("second"), [2.0, -2.0])


@pytest.mark.parametrize("name", made.V1_TYPES)
def test_v1_types(name: str) -> None:
    value = reader("v1_types").get_tensor(name)
    assert value.dtype == np.dtype(name)
    np.testing.assert_array_equal(value, made.numbers(name))


def test_v1_files() -> None:
    types = reader("v1_types")
    assert types.format == "TensorFlow V1"
    np.testing.assert_array_equal(types.get_tensor("string"), made.strings())
    assert types.get_tensor("scalar") == np.float32(2.5)
    assert reader("v1").get_tensor("v") == 1.0
    parts = reader("v1_partitioned")
    np.testing.assert_array_equal(parts.get_tensor("rows"), made.table())
    np.testing.assert_array_equal(parts.get_tensor("columns"), made.table())


@pytest.mark.parametrize("name", ["v1_sharded", "v1_sharded-?????-of-?????"])
def test_v1_shards(name: str) -> None:
    both = reader(name)
    assert both.names == ["first", "second"]
    np.testing.assert_array_equal(both.get_tensor("second"), [2.0, -2.0])


def test_damaged_v1_files(tmp_path: Path) -> None:
    data = bytearray((GOLDEN / "v1_types").read_bytes())
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 0x55
        (tmp_path / "m").write_bytes(damaged)
        try:
            found = CheckpointReader(str(tmp_path / "m"))
            for name in found.names:
                found.get_tensor(name)
        except errors.OpError:
            continue
        raise AssertionError(position)


def test_slice_keys_keep_the_order_of_numbers() -> None:
    numbers = [-70000, -65, -64, -1, 0, 1, 63, 64, 8191, 8192, 1 << 40]
    keys = [bundle._signed(n) for n in numbers]
    assert keys == sorted(keys)
    assert keys[4] == b"\x80"


def test_masked_checksums_are_reversible() -> None:
    for crc in (0, 1, 0xFFFFFFFF, 0x12345678):
        assert table.unmasked(table.masked(crc)) == crc


# -- damage ---------------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for path in GOLDEN.glob("types.*"):
        shutil.copy(path, tmp_path)
    return tmp_path


def read_all(directory: Path) -> None:
    opened = CheckpointReader(str(directory / "types"))
    opened.verify([Request(n) for n in opened.get_variable_to_shape_map()])


def test_the_copy_is_whole(copy: Path) -> None:
    read_all(copy)


@pytest.mark.parametrize("name", ["types.index", "types.data-00000-of-00001"])
def test_every_flipped_byte_is_found(copy: Path, name: str) -> None:
    path = copy / name
    good = path.read_bytes()
    for at in range(0, len(good), 7):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        with pytest.raises((errors.DataLossError, errors.UnimplementedError), match="types"):
            read_all(copy)


@pytest.mark.parametrize("name", ["types.index", "types.data-00000-of-00001"])
def test_truncation_is_found(copy: Path, name: str) -> None:
    path = copy / name
    good = path.read_bytes()
    for size in (0, 1, 40, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:size])
        with pytest.raises(errors.DataLossError, match=r"types\.(index|data)"):
            read_all(copy)


def test_a_missing_data_file_is_named(copy: Path) -> None:
    (copy / "types.data-00000-of-00001").unlink()
    with pytest.raises(errors.NotFoundError, match=r"types\.data-00000-of-00001 is missing"):
        read_all(copy)


def compressed(data: bytes, kind: int, pack: Any) -> bytes:
    """A table whose blocks are packed, as newer writers of bundles leave them."""
    out, index = bytearray(), table._BlockBuilder(1)

    def append(content: bytes) -> bytes:
        offset, packed = len(out), pack(content) + bytes([kind])
        out.extend(packed + table.masked(google_crc32c.value(packed)).to_bytes(4, "little"))
        return table.to_varint(offset) + table.to_varint(len(packed) - 1)

    for key, value in table.entries(data, "m.index"):
        block = table._BlockBuilder(16)
        block.add(key, value)
        index.add(key, append(block.finish()[:-1]))
    handles = append(table._BlockBuilder(16).finish()[:-1]) + append(index.finish()[:-1])
    return bytes(out) + handles.ljust(40, b"\0") + table.MAGIC.to_bytes(8, "little")


def test_blocks_compressed_with_snappy_are_read(copy: Path) -> None:
    path = copy / "types.index"
    path.write_bytes(
        compressed(path.read_bytes(), 1, lambda block: bytes(snappy.compress_raw(block)))
    )
    read_all(copy)
    assert reader("types").debug_string() == CheckpointReader(str(copy / "types")).debug_string()
    good = path.read_bytes()
    for at in range(0, len(good), 5):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        with pytest.raises((errors.DataLossError, errors.UnimplementedError), match="types"):
            read_all(copy)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (table.to_varint(1 << 40) + b"\x00a", "claims to hold 1099511627776 bytes"),
        (b"\x05\xff\xff\xff\xff", "is no snappy data"),
        (b"", "goes beyond the end"),
    ],
)
def test_damaged_snappy_blocks(copy: Path, block: bytes, message: str) -> None:
    path = copy / "types.index"
    path.write_bytes(compressed(path.read_bytes(), 1, lambda _: block))
    with pytest.raises(errors.DataLossError, match=rf"types\.index is damaged: .*{message}"):
        read_all(copy)


def test_other_compressions_are_refused(copy: Path) -> None:
    path = copy / "types.index"
    path.write_bytes(compressed(path.read_bytes(), 2, lambda block: block))
    with pytest.raises(errors.UnimplementedError, match=r"types\.index .* compression type 2"):
        read_all(copy)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.index").write_bytes(b"\x89PNG something else that is long enough to look at" * 3)
    with pytest.raises(errors.DataLossError, match="no checkpoint index"):
        CheckpointReader(str(tmp_path / "m"))


def test_absent_checkpoints_and_wrong_paths(copy: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="Failed to find any matching files"):
        CheckpointReader(str(copy / "nothing"))
    with pytest.raises(errors.NotFoundError, match="Use the path without the last part"):
        CheckpointReader(str(copy / "types.index"))
