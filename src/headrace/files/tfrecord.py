"""Record files as ``tf.python_io`` gives them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, ClassVar

from headrace.files.records import COMPRESSIONS, RecordReader, RecordWriter


class TFRecordCompressionType:
    """How a record file is compressed as a whole.

    >>> kind = tf.io.TFRecordCompressionType.GZIP
    >>> tf.io.TFRecordOptions.get_compression_type_string(tf.io.TFRecordOptions(kind))
    'GZIP'
    """

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How to write (and read) a record file.

    Args:
        compression_type: ``"GZIP"``, ``"ZLIB"``, ``""`` (or None), a `TFRecordCompressionType`, or
            other options whose type is taken.
        flush_mode: what `TFRecordWriter.flush` asks of zlib; ``Z_SYNC_FLUSH`` by default.
        input_buffer_size, output_buffer_size: taken for compatibility; they change nothing.
        window_bits: base-2 logarithm of the window, 8..15; negative for raw deflate, 16 more for
            gzip; by default what the type asks for.
        compression_level: 0 (none) to 9 (best), or -1.
        compression_method: zlib has one, 8.
        mem_level: 1..9, memory for the state.
        compression_strategy: one of zlib's ``Z_`` constants.

    Raises:
        ValueError: for an unknown compression type.

    >>> options = tf.io.TFRecordOptions(compression_type="GZIP", compression_level=9)
    >>> with tf.io.TFRecordWriter("packed", options) as writer:
    ...     writer.write(b"record")
    >>> list(tf.io.tf_record_iterator("packed", options))
    [b'record']
    """

    compression_type_map: ClassVar[dict[int, str]] = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """``""``, ``"ZLIB"`` or ``"GZIP"``, from options, a type or its name.

        Raises:
            ValueError: for anything else.
        """
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if isinstance(options, int) and options in cls.compression_type_map:
            return cls.compression_type_map[options]
        if options in cls.compression_type_map.values():
            return str(options)
        raise ValueError(f'Not a valid compression_type: "{options}"')

    def _compressor(self) -> Any:
        """What compresses as these options say; None without compression."""
        kind = self.get_compression_type_string(self)
        if not kind:
            return None
        wbits = COMPRESSIONS[kind] if self.window_bits is None else self.window_bits
        return zlib.compressobj(
            level=-1 if self.compression_level is None else self.compression_level,
            method=zlib.DEFLATED if self.compression_method is None else self.compression_method,
            wbits=wbits,
            memLevel=8 if self.mem_level is None else self.mem_level,
            strategy=0 if self.compression_strategy is None else self.compression_strategy,
        )


def _as_options(options: Any) -> TFRecordOptions:
    return options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)


class TFRecordWriter(RecordWriter):
    """Writes records to a file; use it in a ``with`` block, or close it.

    Args:
        path: the file; what is there is replaced.
        options: `TFRecordOptions`, or the name of a compression type.

    Raises:
        ValueError: for an unknown compression type.
        NotFoundError: if the directory does not exist.

    >>> with tf.io.TFRecordWriter("records") as writer:
    ...     writer.write(b"one")
    ...     writer.write(b"two")
    >>> list(tf.io.tf_record_iterator("records"))
    [b'one', b'two']
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        chosen = _as_options(options)
        kind = TFRecordOptions.get_compression_type_string(chosen)
        mode = zlib.Z_SYNC_FLUSH if chosen.flush_mode is None else chosen.flush_mode
        super().__init__(path, kind, chosen._compressor(), mode)


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file, in order.

    Args:
        options: `TFRecordOptions`, or the name of a compression type.

    Raises:
        NotFoundError: if the file does not exist.
        DataLossError: at a record that is damaged or cut off, naming the file and the position.
    """
    kind = TFRecordOptions.get_compression_type_string(_as_options(options))
    return iter(RecordReader(path, kind))
