"""The bytes of a file or of standard input as a stream; .gz and .zst files are decompressed."""

from __future__ import annotations

import contextlib
import difflib
import gzip
import importlib
import itertools
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

from bertsmith.errors import InputFileError, MissingExtraError
from bertsmith.files.not_text import (
    check_regular,
    check_standard_input,
    refuse_other_formats,
)

PACKINGS = (".gz", ".zst")
CHUNK = 1 << 18
ZSTD_STEP = 1 << 12  # packed bytes at a time: what a bomb can make of them still fits in memory
MOST_NAMES = 10_000  # of a folder, compared with a name that is not in it

FileSource = Path | Literal["-"]
"""A file, or "-" for standard input."""


class ByteStream(Iterator[bytes]):
    """Chunks of a file, decompressed by its suffix; the file is closed after the last one.

    Only regular files are opened, and standard input; formats that are not text are refused.
    """

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self._packing = "" if source == "-" else packing_of(source)
        self._broken: tuple[type[BaseException], ...] = ()  # what a damaged file raises
        library = _zstandard() if self._packing == ".zst" else None
        self._raw, self.size = _open(source)
        stream: Any = self._raw
        if self._packing == ".gz":
            stream = gzip.GzipFile(fileobj=self._raw)
            self._broken = (EOFError, gzip.BadGzipFile, zlib.error)
        elif library is not None:
            stream = _Zstandard(self._raw, library)
            self._broken = (EOFError, library.ZstdError)
        pipe = self.size is None and not self._packing
        # read1 hands over what a pipe has now instead of waiting for a full chunk.
        self._read = getattr(stream, "read1", stream.read) if pipe else stream.read
        self._checked = False

    def __next__(self) -> bytes:
        if self._raw.closed:
            raise StopIteration
        try:
            chunk: bytes = self._read(CHUNK)
        except self._broken as error:
            self.close()
            raise InputFileError(
                f"{self.source} is not a whole {self._packing} file ({error}); check its size "
                "against the original, or correct the end of its name if it is not compressed"
            ) from error
        except OSError as error:
            self.close()
            raise unreadable(self.source, error) from error
        if not chunk:
            self.close()
            raise StopIteration
        if not self._checked:
            self._checked = True
            refuse_other_formats(
                "standard input" if self.source == "-" else str(self.source), chunk
            )
        return chunk

    @property
    def position(self) -> int:
        """How many of the stored bytes were read; 0 where that is not known."""
        if self.size is None:
            return 0
        return self.size if self._raw.closed else self._raw.tell()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.source != "-":
            self._raw.close()


def read_start(path: Path, size: int) -> bytes:
    """The first bytes of a file, decompressed."""
    stream = ByteStream(path)
    start = bytearray()
    for chunk in stream:
        start += chunk
        if len(start) >= size:
            break
    stream.close()
    return bytes(start[:size])


def packing_of(path: Path) -> str:
    """The suffix of a compressed file, or an empty string."""
    ending = path.suffix.lower()
    return ending if ending in PACKINGS else ""


def format_suffix(path: Path) -> str:
    """The suffix of a file name in lower case, without the dot and without .gz or .zst."""
    name = path.name.lower().removesuffix(packing_of(path))
    return name.rpartition(".")[2] if "." in name else ""


def unreadable(source: FileSource, fault: OSError) -> InputFileError:
    """The error; if there is no such file, with the most similar name in its folder."""
    reason = fault.strerror or fault
    if source == "-":
        return InputFileError(f"cannot read standard input: {reason}")
    return InputFileError(f"cannot read {source}: {reason}{_hint(source, fault)}")


def _hint(path: Path, fault: OSError) -> str:
    if not isinstance(fault, FileNotFoundError):
        return ""
    try:
        names = [one.name for one in itertools.islice(path.parent.iterdir(), MOST_NAMES)]
    except OSError:
        return ""  # the folder does not exist, or cannot be listed
    near = difflib.get_close_matches(path.name, sorted(names), n=1)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""


def _open(source: FileSource) -> tuple[BinaryIO, int | None]:
    """The open file and its size, if it has one."""
    if source == "-":
        if sys.stdin is None:
            raise InputFileError("standard input is closed; give a file instead of -")
        with contextlib.suppress(OSError, AttributeError):  # no file of the system: a notebook
            check_standard_input(sys.stdin.buffer.fileno())
        return sys.stdin.buffer, None
    try:
        check_regular(source)
        raw = source.open("rb")
        return raw, source.stat().st_size if raw.seekable() else None
    except OSError as error:
        raise unreadable(source, error) from error


class _Zstandard:
    """The frames of a .zst file, one after another; a file that ends inside one is an error."""

    def __init__(self, raw: BinaryIO, library: Any) -> None:
        self._raw = raw
        self._library = library
        self._frame: Any = None
        self._left = b""

    def read(self, size: int) -> bytes:
        """About `size` bytes, none at the end."""
        parts: list[bytes] = []
        length = 0
        while length < size:
            packed = self._left or self._raw.read(ZSTD_STEP)
            self._left = b""
            if not packed:
                if self._frame is not None:
                    raise EOFError("it ends in the middle of a frame")
                break
            if self._frame is None:
                frame = self._library.ZstdDecompressor()
                self._frame = frame.decompressobj() if hasattr(frame, "decompressobj") else frame
            data = self._frame.decompress(packed)
            if self._frame.eof:
                self._left = self._frame.unused_data
                self._frame = None
            parts.append(data)
            length += len(data)
        return b"".join(parts)


def _zstandard() -> Any:
    """The standard library's module, or the package that was there before it (extra `zstd`)."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise MissingExtraError("zstandard", "zstd")
