"""Opening files of a model folder somebody else made: inside it, regular, bounded, strict JSON.

The rules, for a folder whose author is not trusted:

- A name is one path component. No separators, no `..`, no control characters, at most 255 bytes.
- A symbolic link is refused, with one exception: the Hugging Face cache, where
  `models--org--name/snapshots/<revision>/file` points to `../../blobs/<hash>`, exactly so.
- Pipes, devices and sockets are refused without being opened, so nothing can hang.
- Hard links are refused for names that a file of the folder chose (shard index). For the fixed
  names (`config.json`, `model.safetensors` ...) they are allowed, because package installers
  hard-link what they install, and no index can steer a fixed name at somebody else's file.
- Sizes are checked before anything is read.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertsmith.errors import FolderError, UnsafeFileError
from bertsmith.files.faults import BadRowError
from bertsmith.files.strict_json import parse_value

MEGABYTE = 1 << 20
JSON_LIMIT = 8 * MEGABYTE
JSON_DEPTH = 32
NAME_BYTES = 255

_BLOB = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f/\\:]|[\ud800-\udfff]")
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def check_name(name: object, *, source: str) -> str:
    """The name if it is one plain path component; `source` is the file that chose it."""
    if not isinstance(name, str) or not name:
        raise UnsafeFileError(
            f"{source} names a file by {_short(name)}; it must be a plain file name"
        )
    if name in (".", "..") or _FORBIDDEN.search(name) or len(name.encode()) > NAME_BYTES:
        raise UnsafeFileError(
            f"{source} names the file {_short(name)}, which could lie outside the folder; "
            "only plain file names inside the folder are read: correct the name"
        )
    return name


@dataclass(frozen=True, slots=True)
class Folder:
    """A model folder, or a part of one, whose files are opened by the rules of this module."""

    path: Path
    root: Path
    _kept: dict[str, Any] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def at(cls, path: Path, *, wanted: str = "the folder that holds config.json") -> Folder:
        """The folder at `path`, which the user chose, so links on the way to it are followed.

        `wanted` says in errors what to give instead.
        """
        try:
            real = path.resolve(strict=True)
            is_folder = real.is_dir()
        except (OSError, ValueError, RuntimeError) as fault:
            raise FolderError(
                f"no folder at {str(path)!r}: {_reason(fault)}; give {wanted}"
            ) from fault
        if not is_folder:
            raise FolderError(f"{str(path)!r} is not a folder; give {wanted}")
        return cls(real, real)

    def keeping(self) -> Folder:
        """The same folder, whose JSON files are read once and kept: nobody may change them."""
        return Folder(self.path, self.root, {})

    def part(self, name: str, *, source: str = "modules.json") -> Folder:
        """The folder `name` directly inside this one."""
        path = self.path / check_name(name, source=source)
        try:
            mode = path.lstat().st_mode
        except OSError as fault:
            raise FolderError(f"{path}: {_reason(fault)}; {source} names it as a folder") from fault
        if not stat.S_ISDIR(mode):
            raise UnsafeFileError(
                f"{path} is not a real folder; links are not followed, copy the folder instead"
            )
        return Folder(path, self.root, None if self._kept is None else {})

    def names(self) -> list[str]:
        """The names of everything directly inside, sorted."""
        try:
            return sorted(entry.name for entry in os.scandir(self.path))
        except OSError as fault:
            raise FolderError(f"{self.path}: cannot be listed: {_reason(fault)}") from fault

    def has(self, name: str) -> bool:
        """Whether something of that name is there; whether it may be read shows on opening."""
        return os.path.lexists(self.path / name)

    def open(self, name: str, *, source: str | None = None) -> io.FileIO:
        """The file `name`, unbuffered; `source` is the file that chose the name, if one did."""
        path = self.path / check_name(name, source=source or "this call")
        try:
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                path = self._blob(path)
                status = path.lstat()
            _check_kind(path, status, chosen=source)
            descriptor = os.open(path, _FLAGS)
        except OSError as fault:
            raise _cannot_open(path, fault, source) from fault
        file = io.FileIO(descriptor, "rb", closefd=True)
        opened = os.fstat(descriptor)
        if (opened.st_dev, opened.st_ino) != (status.st_dev, status.st_ino):
            file.close()
            raise UnsafeFileError(f"{path} was exchanged while it was opened; try again")
        return file

    def read(self, name: str, *, limit: int, source: str | None = None) -> bytes:
        """The bytes of a file of at most `limit` bytes."""
        with self.open(name, source=source) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise FolderError(
                    f"{self.path / name} has {size:,} bytes, more than the {limit:,} allowed here; "
                    "it is not a file of this kind"
                )
            data = file.read(limit + 1) or b""
        if len(data) > limit:
            raise FolderError(f"{self.path / name} grew while it was read; try again")
        return data

    def json_object(self, name: str) -> dict[str, Any]:
        """A JSON file whose top is an object."""
        value = self.json(name)
        if not isinstance(value, dict):
            raise FolderError(f"{self.path / name}: the top must be an object, {{...}}")
        return value

    def json_list(self, name: str) -> list[Any]:
        """A JSON file whose top is a list."""
        value = self.json(name)
        if not isinstance(value, list):
            raise FolderError(f"{self.path / name}: the top must be a list, [...]")
        return value

    def json(self, name: str) -> Any:
        """A JSON file, read strictly."""
        if self._kept is not None and name in self._kept:
            return self._kept[name]
        value = parse_json(self.read(name, limit=JSON_LIMIT), where=str(self.path / name))
        if self._kept is not None:
            self._kept[name] = value
        return value

    def _blob(self, link: Path) -> Path:
        """Where a link of the Hugging Face cache layout leads; every other link is refused."""
        refusal = UnsafeFileError(
            f"{link} is a symbolic link, which is not followed in a model folder; "
            "replace it by a copy of the file it points to"
        )
        snapshot = self.root
        target = link.readlink()
        deep = len(link.relative_to(snapshot).parts) - 1
        is_cache = snapshot.parent.name == "snapshots" and snapshot.parent.parent.name.startswith(
            "models--"
        )
        if not is_cache or target.parts[:-1] != ("..",) * (deep + 2) + ("blobs",):
            raise refusal
        if not _BLOB.fullmatch(target.name):
            raise refusal
        blob = snapshot.parent.parent / "blobs" / target.name
        if (snapshot.parent.parent / "blobs").is_symlink() or blob.is_symlink():
            raise refusal
        return blob


def parse_json(data: bytes, *, where: str) -> Any:
    """JSON as UTF-8 without doubled keys, NaN, infinities or deep nesting; `where` is its name."""
    try:
        value = parse_value(data.decode("utf-8-sig"))
    except UnicodeDecodeError as fault:
        raise FolderError(
            f"{where}: not UTF-8 at byte {fault.start}; save it again as UTF-8"
        ) from fault
    except BadRowError as fault:
        place = f"line {fault.line}, column {fault.column}: " if fault.line else ""
        raise FolderError(f"{where}: {place}{fault.reason}; {fault.advice}") from fault
    if any(depth > JSON_DEPTH for depth in _depths(value)):
        raise FolderError(f"{where}: nested too deeply: more than {JSON_DEPTH} levels")
    return value


def _depths(value: Any) -> Iterator[int]:
    """The depth of every container, without recursion, stopping below one level too many."""
    waiting = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        inner = item.values() if isinstance(item, dict) else item
        if not isinstance(item, (dict, list)):
            continue
        yield depth
        if depth <= JSON_DEPTH:
            waiting.extend((child, depth + 1) for child in inner)


def _check_kind(path: Path, status: os.stat_result, *, chosen: str | None) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise FolderError(f"{path} is a folder where a file is needed")
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeFileError(
            f"{path} is a pipe, a device or a socket; only regular files are read: remove it"
        )
    if chosen is not None and status.st_nlink > 1:
        raise UnsafeFileError(
            f"{path}, named by {chosen}, has {status.st_nlink} hard links and may be a file from "
            "elsewhere; copy it: cp FILE COPY && mv COPY FILE"
        )


def _cannot_open(path: Path, fault: OSError, source: str | None) -> FolderError:
    if fault.errno == errno.ENOENT:
        named = f", named by {source}," if source else ""
        return FolderError(f"{path}{named} is missing; copy it into the folder")
    if fault.errno == errno.ELOOP:
        return UnsafeFileError(f"{path} is a symbolic link, which is not followed; copy the file")
    return FolderError(f"{path} cannot be opened: {_reason(fault)}")


def _reason(fault: Exception) -> str:
    if isinstance(fault, FileNotFoundError):
        return "there is nothing there"
    if isinstance(fault, OSError) and fault.strerror:
        return fault.strerror.lower()
    return str(fault)


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."
