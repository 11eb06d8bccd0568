"""index.json: what an index folder holds, with the sha256 of every file and of itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from bertsmith.config import Settings
from bertsmith.errors import FolderError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.digest import json_digest
from bertsmith.files.safe_folder import MEGABYTE, Folder, parse_json
from bertsmith.folders.kinds import refuse_kind
from bertsmith.search.recall import RecallRecord
from bertsmith.search.store import StoreManifest

NAME = "index.json"
FORMAT = 1
LIMIT = 64 * MEGABYTE
_SEGMENT = re.compile(r"[0-9]{5,9}")
_FILE = re.compile(r"[a-z_]+(-[0-9]+)?\.[a-z0-9]+")


class FileRecord(Settings):
    """The size and content of a file."""

    bytes: int
    sha256: str


class SegmentRecord(Settings):
    """A folder of rows that never changes."""

    name: str
    rows: int
    files: dict[str, FileRecord]


class GraphRecord(Settings):
    """The HNSW graph over all rows; derived from the vectors, so it can be built again."""

    library: str
    version: str
    file: str
    connectivity: int
    expansion_add: int
    expansion_search: int
    rows: int
    recall: RecallRecord


class FolderManifest(StoreManifest):
    """All that an index folder holds."""

    format: int = FORMAT
    generation: int = 0
    """Counts the manifests; files of a generation have its number in their name."""
    segments: tuple[SegmentRecord, ...] = ()
    files: dict[str, FileRecord] = Field(default_factory=dict)
    """Files next to the segments: the deleted rows, the graph."""
    deleted: str | None = None
    """The file with the positions of deleted rows."""
    graph: GraphRecord | None = None

    @property
    def stored_rows(self) -> int:
        """Rows in the segments, with the deleted ones."""
        return sum(segment.rows for segment in self.segments)


def write_manifest(folder: Path, manifest: FolderManifest) -> None:
    """Put index.json in place as a whole."""
    content = manifest.model_dump(mode="json")
    write_staged(folder / NAME, _encoded({"sha256": json_digest(content), "index": content}))


def read_manifest(folder: Folder) -> FolderManifest:
    """The manifest, if it is as it was written."""
    path = folder.path / NAME
    if not folder.has(NAME):
        refuse_kind(folder.path, "search")
        raise FolderError(
            f"{path} is missing, so this is not an index; give the folder that "
            "`bertsmith index build` wrote, or finish that command"
        )
    data = folder.read(NAME, limit=LIMIT)
    try:
        record = parse_json(data, where=str(path))
    except FolderError as fault:
        raise FolderError(f"{fault}; {_damaged()}") from fault
    content = record.get("index") if isinstance(record, dict) else None
    if (
        not isinstance(content, dict)
        or record.get("sha256") != json_digest(content)
        or data != _encoded(record)
    ):
        raise FolderError(f"{path} was changed after it was written; {_damaged()}")
    return _parsed(content, path)


def _parsed(content: dict[str, Any], path: Path) -> FolderManifest:
    form = content.get("format")
    if not isinstance(form, int) or form > FORMAT:
        raise FolderError(
            f"{path} has format {form}, and this version reads up to {FORMAT}: update bertsmith, "
            "or build the index again"
        )
    try:
        manifest = FolderManifest.model_validate_json(json.dumps(content))
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise FolderError(f"{path}: {place}: {first['msg']}; {_damaged()}") from fault
    names = [segment.name for segment in manifest.segments]
    files = [*manifest.files, *(name for one in manifest.segments for name in one.files)]
    if not all(map(_SEGMENT.fullmatch, names)) or not all(map(_FILE.fullmatch, files)):
        raise FolderError(f"{path} names files that no index has; {_damaged()}")
    return manifest


def _encoded(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"


def _damaged() -> str:
    return "copy the index again from its origin, or build it again"
