"""The bytes of a file as a stream, whether it is stored plain, as .gz or as .zst."""

from __future__ import annotations

import gzip
import importlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from bertsmith.errors import InputFileError, MissingExtraError
from bertsmith.files.lines import unreadable

PACKINGS = (".gz", ".zst")
CHUNK = 1 << 18
ZSTD_STEP = 1 << 12  # packed bytes at a time: what a bomb can make of them still fits in memory


class ByteStream(Iterator[bytes]):
    """Pieces of a file, unpacked by what its name ends in; the file closes with the last one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._packing = packing_of(path)
        self._broken = _faults_of(self._packing)
        if path.is_dir():
            raise InputFileError(f"{path} is a folder; give a file of texts")
        try:
            self._raw = path.open("rb")
            self._size = path.stat().st_size
        except OSError as error:
            raise unreadable(path, error) from error
        self._stream = _unpacked(self._raw, self._packing)

    def __next__(self) -> bytes:
        try:
            chunk = self._stream.read(CHUNK)
        except self._broken as error:
            self.close()
            raise InputFileError(
                f"{self.path} is not a whole {self._packing} file ({error}); check its size "
                "against the original, or correct the end of its name if it is not compressed"
            ) from error
        except OSError as error:
            self.close()
            raise unreadable(self.path, error) from error
        if not chunk:
            self.close()
            raise StopIteration
        return chunk

    @property
    def position(self) -> int:
        """How many of the stored bytes were read."""
        return self._size if self._raw.closed else self._raw.tell()

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close()


def packing_of(path: Path) -> str:
    """The ending of a packed file, or an empty string."""
    ending = path.suffix.lower()
    return ending if ending in PACKINGS else ""


def _unpacked(raw: BinaryIO, packing: str) -> BinaryIO:
    if packing == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if packing != ".zst":
        return raw
    return cast(BinaryIO, _Zstandard(raw))


class _Zstandard:
    """The frames of a .zst file, one after another; a file that ends inside one is an error."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._library = _zstandard()
        self._frame: Any = None
        self._left = b""

    def read(self, size: int) -> bytes:
        """About `size` bytes, none at the end."""
        found: list[bytes] = []
        length = 0
        while length < size:
            packed = self._left or self._raw.read(ZSTD_STEP)
            self._left = b""
            if not packed:
                if self._frame is not None:
                    raise EOFError("it ends in the middle of a frame")
                break
            if self._frame is None:
                self._frame = _new_frame(self._library)
            data = self._frame.decompress(packed)
            if self._frame.eof:
                self._left = self._frame.unused_data
                self._frame = None
            found.append(data)
            length += len(data)
        return b"".join(found)


def _new_frame(library: Any) -> Any:
    plain = library.ZstdDecompressor()
    return plain.decompressobj() if hasattr(plain, "decompressobj") else plain


def _faults_of(packing: str) -> tuple[type[BaseException], ...]:
    """What reading a damaged file of this packing raises."""
    if packing == ".gz":
        return (EOFError, gzip.BadGzipFile, zlib.error)
    if packing == ".zst":
        return (EOFError, cast(type[BaseException], _zstandard().ZstdError))
    return ()


def _zstandard() -> Any:
    """The standard library's module, or the package that was there before it (extra `zstd`)."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise MissingExtraError("zstandard", "zstd")
