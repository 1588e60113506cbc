"""Open files as ``tf.gfile.GFile`` gives them."""

from __future__ import annotations

from types import TracebackType
from typing import IO, Any, Self

from headrace.errors import InvalidArgumentError, OutOfRangeError, PermissionDeniedError
from headrace.files.paths import as_path, is_failure, translate, translated
from headrace.files.system import open_binary, stat

_MODES = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A file, opened when it is first read or written.

    Text is UTF-8. Positions and sizes count bytes, and so does ``read(n)``; line ends stay as they
    are, but lines are given without carriage returns. In the modes with ``+``, reading has a
    position of its own, which begins at 0; ``r+`` writes over what is there from the start.

    Args:
        name: a path, or a URL that fsspec can open.
        mode: ``r``, ``w``, ``a``, ``r+``, ``w+`` or ``a+``, with ``b`` for bytes instead of text.

    Raises:
        InvalidArgumentError: for another mode.
        NotFoundError: when it is first used, if the file (for writing: its directory) does not
            exist.
        PermissionDeniedError: for reading a file that is open for writing only, or the reverse.

    >>> with tf.gfile.GFile("notes.txt", "w") as file:
    ...     file.write("one line")
    >>> with tf.gfile.GFile("notes.txt") as file:
    ...     file.size(), file.read()
    (8, 'one line')
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._name = name
        self._path = as_path(name)
        self._mode = mode
        self._binary = "b" in mode
        plain = mode.replace("b", "")
        if plain not in _MODES:
            raise InvalidArgumentError(
                None, None, "mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'"
            )
        self._may_read = plain == "r" or "+" in plain
        self._may_write = plain != "r"
        self._write_mode = {"w": "wb", "a": "ab", "r": "r+b"}[plain[0]]
        self._reader: IO[bytes] | None = None
        self._writer: IO[bytes] | None = None

    @property
    def name(self) -> Any:
        """The path as it was given."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode as it was given."""
        return self._mode

    def size(self) -> int:
        """Bytes in the file. Raises NotFoundError."""
        return stat(self._path).length

    def read(self, n: int = -1) -> Any:
        """At most ``n`` bytes (all that follow, if negative), as text unless the mode has ``b``."""
        reader = self._reading()
        with translated(self._path):
            data = reader.read(n)
        return data if self._binary else data.decode()

    def readline(self) -> Any:
        """The next line with its newline; nothing at the end of the file."""
        reader = self._reader
        if reader is None or self._writer is not None:
            reader = self._reading()
        try:
            line = reader.readline()
        except Exception as error:
            if not is_failure(error):
                raise
            raise translate(self._path, error) from error
        if b"\r" in line:
            line = line.replace(b"\r", b"")
        return line if self._binary else line.decode()

    def readlines(self) -> list[Any]:
        """All lines that follow."""
        return list(self)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if line:
            return line
        raise StopIteration

    next = __next__

    def write(self, file_content: Any) -> None:
        """Append text or bytes at the position for writing."""
        if isinstance(file_content, str):
            file_content = file_content.encode()
        elif not isinstance(file_content, (bytes, bytearray, memoryview)):
            raise TypeError(f"Expected binary or unicode string, got {file_content!r}")
        writer = self._writer or self._writing()
        try:
            writer.write(file_content)
        except Exception as error:
            if not is_failure(error):
                raise
            raise translate(self._path, error) from error

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Move the position for reading; ``position`` is an old name of ``offset``.

        Args:
            whence: 0 counts from the start of the file, 1 from the position, 2 from the end.

        Raises:
            InvalidArgumentError: for a negative position or another ``whence``.
            OutOfRangeError: behind the end of the file.
        """
        reader = self._reading()
        if offset is None:
            offset = position
        if offset is None:
            raise TypeError("seek(): offset argument required")
        if whence not in (0, 1, 2):
            raise InvalidArgumentError(
                None, None, f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2."
            )
        size = self.size()
        target = offset + (0, reader.tell(), size)[whence]
        if target < 0:
            raise InvalidArgumentError(None, None, f"Seeking to a negative position: {target}")
        if target > size:
            raise OutOfRangeError(None, None, f"reached end of file: {self._path}")
        with translated(self._path):
            reader.seek(target)

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The position for reading; of a file that is open for writing only, that for writing."""
        return (self._reading() if self._may_read else self._writing()).tell()

    def flush(self) -> None:
        """Hand what was written to the file system."""
        if self._writer is not None:
            with translated(self._path):
                self._writer.flush()

    def close(self) -> None:
        """Close the file; using it again opens it again."""
        reader, writer = self._reader, self._writer
        self._reader = self._writer = None
        with translated(self._path):
            if reader is not None:
                reader.close()
            if writer is not None:
                writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        for file in (self.__dict__.get("_reader"), self.__dict__.get("_writer")):
            if file is not None:
                file.close()

    def _reading(self) -> IO[bytes]:
        if not self._may_read:
            raise PermissionDeniedError(None, None, f"File isn't open for reading: {self._path}")
        self.flush()
        if self._reader is None:
            if self._write_mode == "wb" and self._may_write:
                self._writing()  # w+ empties the file also for one who reads first
            self._reader = open_binary(self._path, "rb")
        return self._reader

    def _writing(self) -> IO[bytes]:
        if not self._may_write:
            raise PermissionDeniedError(None, None, f"File isn't open for writing: {self._path}")
        if self._writer is None:
            self._writer = open_binary(self._path, self._write_mode)
        return self._writer
