"""Image files: what goldens do not hold: bad files, round trips, threads, and what is imported."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.image import gif
from headrace.ops.image import jpeg as image_jpeg
from headrace.ops.image import png as image_png

ROOT = Path(__file__).resolve().parents[2]
FILES = {p.name: p.read_bytes() for p in sorted((ROOT / "tools" / "goldens" / "images").iterdir())}


def _run(make: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())


def _error(make: Any) -> str:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        _run(make)
    return str(caught.value.message)


def _decode(data: bytes, **options: Any) -> Any:
    return _run(lambda: tf.image.decode_image(data, **options))


# -- bad files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rgb.jpg", "rgb.png", "rgb16.png", "rgb.bmp", "palette.png"])
def test_a_file_that_is_cut_off_is_refused(name: str) -> None:
    data = FILES[name]
    for kept in (len(data) // 3, len(data) // 2, len(data) - 15):
        message = _error(lambda kept=kept: tf.image.decode_image(data[:kept]))
        kind = name.rpartition(".")[2].replace("jpg", "jpeg")
        assert kind in message.lower()
        assert str(kept) in message


def test_what_is_no_image() -> None:
    assert "this is empty" in _error(lambda: tf.image.decode_png(b""))
    message = _error(lambda: tf.image.decode_jpeg(b"GARBAGE!"))
    assert message.startswith("Unknown image file format. One of JPEG, PNG, GIF, BMP required")
    assert "b'GARBAGE!'" in message
    assert "Trying to decode PNG format using a wrong op: DecodeBmp" in _error(
        lambda: tf.image.decode_bmp(FILES["rgb.png"])
    )
    assert "decode_bmp" in _error(lambda: tf.image.decode_jpeg(FILES["rgb.bmp"]))
    assert "4 frames, but animated gifs can only be decoded by" in _error(
        lambda: tf.image.decode_png(FILES["animated.gif"])
    )
    assert "Invalid JPEG data" in _error(lambda: tf.image.extract_jpeg_shape(FILES["rgb.png"]))


def test_arguments_that_no_file_can_meet() -> None:
    jpeg, png = FILES["rgb.jpg"], FILES["rgb.png"]
    assert "channels must be one of 0, 1, 3 for JPEG, got 4" in _error(
        lambda: tf.image.decode_jpeg(jpeg, 4)
    )
    assert "0, 1, 3, 4 for PNG, got 2" in _error(lambda: tf.image.decode_png(png, 2))
    assert "ratio must be 1, 2, 4, or 8, got 3" in _error(
        lambda: tf.image.decode_jpeg(jpeg, ratio=3)
    )
    assert "dct_method" in _error(lambda: tf.image.decode_jpeg(jpeg, dct_method="SLOW"))
    for window in ([0, 0, 99, 1], [-1, 0, 2, 2], [0, 0, 0, 2]):
        assert "Invalid crop window" in _error(
            lambda window=window: tf.image.decode_and_crop_jpeg(jpeg, window)
        )
    with pytest.raises(ValueError, match="contents must be rank 0"):
        tf.image.decode_jpeg([jpeg])
    with pytest.raises(ValueError, match="channels must be in"):
        tf.image.decode_image(jpeg, channels=2)


def test_what_cannot_be_written() -> None:
    pixels = np.zeros((3, 4, 3), np.uint8)
    with pytest.raises(ValueError, match="image must be rank 3"):
        tf.image.encode_jpeg(pixels[None])
    assert "quality must be in [0,100], got 101" in _error(
        lambda: tf.image.encode_jpeg(pixels, quality=101)
    )
    assert "1, 3 channels" in _error(lambda: tf.image.encode_jpeg(pixels[:, :, :2]))
    assert "of 1 channels" in _error(lambda: tf.image.encode_jpeg(pixels, format="grayscale"))
    assert "compression should be in [-1,9], got 10" in _error(
        lambda: tf.image.encode_png(pixels, compression=10)
    )
    assert "channels" in _error(lambda: tf.image.encode_png(np.zeros((3, 4, 5), np.uint8)))
    assert "fits no segment" in _error(
        lambda: tf.image.encode_jpeg(pixels, xmp_metadata="x" * 70_000)
    )


@pytest.mark.parametrize("name", sorted(FILES))
def test_changed_bytes_give_an_image_or_a_clear_error(name: str) -> None:
    """Any damage: a flipped byte, a hole, a repeated part."""
    rng = np.random.default_rng(3)
    whole = FILES[name]
    read = {
        "jpg": lambda d: image_jpeg.decode_jpeg(d, image_jpeg.JpegOptions()),
        "png": lambda d: image_png.decode_png(d, 0, True),
        "gif": gif.decode_gif,
        "bmp": lambda d: gif.decode_bmp(d, 0),
    }[name.rpartition(".")[2]]
    for _ in range(60):
        data = bytearray(whole)
        at = int(rng.integers(6 if name.endswith("gif") else 0, len(data)))
        kind = rng.integers(3)
        if kind == 0:
            data[at] = int(rng.integers(256))
        elif kind == 1:
            del data[at : at + int(rng.integers(1, 9))]
        else:
            data[at:at] = data[at // 2 : at]
        try:
            pixels = read(bytes(data))
        except image_jpeg.BadImage:
            continue
        assert pixels.dtype in (np.uint8, np.uint16)


def test_sizes_beyond_memory_are_refused_before_it_is_taken() -> None:
    png = bytearray(FILES["rgb16.png"])
    png[16:24] = struct.pack(">II", 2**31 - 1, 2**31 - 1)
    assert "is too large" in _error(lambda: tf.image.decode_png(bytes(png)))
    bmp = bytearray(FILES["rgb.bmp"])
    bmp[18:26] = struct.pack("<ii", 2**30, 2**30)
    assert "BMP image of" in _error(lambda: tf.image.decode_bmp(bytes(bmp)))
    jpeg = bytearray(FILES["rgb.jpg"])
    frame = jpeg.index(b"\xff\xc0")
    jpeg[frame + 5 : frame + 9] = b"\xff\xff\xff\xff"
    assert "is too large" in _error(lambda: tf.image.decode_jpeg(bytes(jpeg)))


# -- files that are cut off, on request ----------------------------------------------------------


def _tall_jpeg() -> tuple[bytes, Any]:
    pixels = np.repeat(np.random.default_rng(0).integers(0, 255, (64, 8, 1)), 3, 2).repeat(8, 1)
    data = image_jpeg.encode_jpeg(pixels.astype(np.uint8), image_jpeg.JpegStyle())
    return data, _decode(data)


def test_an_acceptable_part_of_a_jpeg_file() -> None:
    data, whole = _tall_jpeg()
    part = _run(lambda: tf.image.decode_jpeg(data[: len(data) // 2], acceptable_fraction=0.2))
    missing = ~part.any(axis=(1, 2))
    assert 0.2 * 64 < missing.sum() < 0.8 * 64
    assert np.array_equal(part[~missing], whole[~missing])
    assert "lines could be read" in _error(
        lambda: tf.image.decode_jpeg(data[: len(data) // 2], acceptable_fraction=0.95)
    )


def test_a_truncated_jpeg_file_is_recovered() -> None:
    data, whole = _tall_jpeg()
    part = _run(lambda: tf.image.decode_jpeg(data[: len(data) // 2], try_recover_truncated=True))
    assert np.array_equal(part[:16], whole[:16])
    assert part[-1].any()


# -- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_png_keeps_every_bit(channels: int, dtype: Any) -> None:
    limit = np.iinfo(dtype).max
    pixels = np.random.default_rng(channels).integers(0, limit, (13, 9, channels), dtype, True)
    back = _run(lambda: tf.image.decode_png(tf.image.encode_png(pixels), dtype=dtype))
    assert back.dtype == dtype
    assert np.array_equal(back, pixels)


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "1", "P"])
@pytest.mark.parametrize("size", [28, 520])
def test_pixels_are_those_of_pillow(mode: str, size: int) -> None:
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 256, (size, size, 4), np.uint8)
    opaque = Image.fromarray(noise).convert("RGB")
    image = (Image.fromarray(noise) if mode.endswith("A") else opaque).convert(mode)
    file = io.BytesIO()
    image.save(file, "PNG", dpi=(72, 72))
    colour = {"1": "L", "P": "RGB"}.get(mode, mode)
    expected = np.asarray(image.convert(colour)).reshape(size, size, len(colour))
    pixels = _decode(file.getvalue())
    assert pixels.dtype == np.uint8
    np.testing.assert_array_equal(pixels, expected)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def test_small_png_files_in_parts_and_with_damage() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 3), np.uint8)
    packed = zlib.compress(np.insert(pixels.reshape(9, 21), 0, 0, axis=1).tobytes())
    head = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", 7, 9, 8, 2, 0, 0, 0))
    text, end = _chunk(b"tEXt", b"a\0b"), _chunk(b"IEND", b"")
    parts = _chunk(b"IDAT", packed[:40]) + _chunk(b"IDAT", b"") + _chunk(b"IDAT", packed[40:])
    for before in (b"", text, text[:-1] + b"?"):  # a damaged comment does no harm
        np.testing.assert_array_equal(_decode(head + before + parts + end), pixels)
    for damaged in (
        head[:-1] + b"?" + parts + end,
        head + _chunk(b"IDAT", packed[:-1] + b"?") + end,
        head + _chunk(b"IDAT", packed[:100]) + end,
    ):
        message = _error(lambda damaged=damaged: tf.image.decode_png(damaged))
        assert f"Invalid PNG data, size {len(damaged)}" in message


def test_png_files_of_a_batch() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (2, 3, 4, 5, 1)).astype(np.uint8)
    files = _run(lambda: tf.image.encode_png(pixels))
    assert files.shape == (2, 3)
    assert np.array_equal(image_png.decode_png(files[1, 2], 0, False), pixels[1, 2])


def test_other_programs_read_what_is_written() -> None:
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 255, (7, 9, 4)).astype(np.uint8)
    png = _run(lambda: tf.image.encode_png(pixels, compression=9))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png))), pixels)
    jpeg = _run(
        lambda: tf.image.encode_jpeg(
            pixels[:, :, :3], density_unit="cm", x_density=10, y_density=20, xmp_metadata="<hello/>"
        )
    )
    image = Image.open(io.BytesIO(jpeg))
    assert image.size == (9, 7)
    assert image.info["jfif_unit"] == 2
    assert image.info["jfif_density"] == (10, 20)
    assert image.info["xmp"] == b"<hello/>"


def test_jpeg_quality() -> None:
    slope = np.linspace(0, 1, 16, dtype=np.float32)
    pixels = tf.constant(
        np.stack([slope * s for s in slope])[:, :, None] * np.float32([1, 0.7, 0.4])
    )
    with tf.Session() as session:
        fine, coarse, drawn = session.run(
            [
                tf.image.adjust_jpeg_quality(pixels, 98),
                tf.image.adjust_jpeg_quality(pixels, 5),
                tf.image.random_jpeg_quality(pixels, 5, 6, seed=1),
            ]
        )
        x = session.run(pixels)
    assert fine.dtype == np.float32
    assert abs(fine - x).mean() < 0.25 * abs(coarse - x).mean()
    assert np.array_equal(drawn, coarse)


# -- shapes, threads, imports ----------------------------------------------------------------------


def test_static_shapes() -> None:
    contents = tf.placeholder(tf.string, [])
    shapes = {
        tf.image.decode_jpeg(contents, channels=3): [None, None, 3],
        tf.image.decode_png(contents): [None, None, None],
        tf.image.decode_gif(contents): [None, None, None, 3],
        tf.image.decode_and_crop_jpeg(contents, [1, 2, 3, 4], channels=1): [3, 4, 1],
        tf.image.decode_image(contents, channels=3, expand_animations=False): [None, None, 3],
        tf.image.extract_jpeg_shape(contents): [3],
    }
    for tensor, dims in shapes.items():
        assert tensor.shape.as_list() == dims
    assert tf.image.decode_image(contents).shape.ndims is None


def test_several_threads_decode_in_one_session() -> None:
    names = ["rgb.jpg", "rgba16.png", "animated.gif", "palette.png"] * 3
    with tf.Graph().as_default():
        contents = tf.placeholder(tf.string, [])
        image = tf.image.decode_image(contents)
        session = tf.Session()
        want = {n: session.run(image, {contents: FILES[n]}) for n in set(names)}
        same: list[bool] = []

        def work(name: str) -> None:
            for _ in range(10):
                same.append(np.array_equal(session.run(image, {contents: FILES[name]}), want[name]))

        threads = [threading.Thread(target=work, args=(n,)) for n in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(same) == 120
    assert all(same)


def test_pillow_is_imported_when_the_first_file_is_read() -> None:
    program = (
        "import sys, headrace as tf\n"
        "tf.image.decode_png(tf.placeholder(tf.string, []))\n"
        "assert 'PIL' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
