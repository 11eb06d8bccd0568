"""The checkpoints of a run: old ones are removed once a new one is verified."""

from __future__ import annotations

import json
import logging
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from bertsmith.config import Settings
from bertsmith.errors import BertsmithError, FolderError, WriteError
from bertsmith.files.atomic_folder import make_folder, staged_folder
from bertsmith.files.safe_folder import Folder
from bertsmith.training.checkpoints.checkpoint_files import (
    SHARDED,
    Content,
    Files,
    is_whole,
    read_manifest,
    verify,
    write_documents,
    write_manifest,
)
from bertsmith.training.checkpoints.tensor_layout import layout_for, layout_name
from bertsmith.training.execution.rank_sync import gather_text, on_first, together
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.loop.schedule import Seconds

log = logging.getLogger(__name__)

CHECKPOINTS = "checkpoints"  # their folder, in that of a run
_NAME = re.compile(r"step-(\d{8,})")
_LEFTOVER = re.compile(r"\.step-\d{8,}\.(new|trash)-[0-9a-f]+")
_OTHER = 1 << 16  # about the bytes that headers, state and manifest take


class SaveSettings(Settings):
    """How often the state is saved and how many checkpoints stay."""

    every: Annotated[int, Field(gt=0)] = 1_000  # steps
    seconds: Seconds | None = None  # also when this time has passed since the last one
    keep: Annotated[int, Field(ge=2)] = 2


@dataclass(frozen=True, slots=True)
class VerifiedCheckpoint:
    """A checkpoint that was verified byte by byte."""

    path: Path
    step: int
    manifest: dict[str, Any]


class Checkpoints:
    """The folder `checkpoints` of a run; only the ranks of the run that holds its lock write to it.

    `prepare`, `newest` and `save` are called by all ranks.
    """

    def __init__(self, folder: Path, *, keep: int = 2, ranks: Ranks | None = None) -> None:
        self.folder = folder
        self.keep = max(2, keep)
        self._ranks = ranks or Ranks()

    def prepare(self) -> None:
        """Make the folder and remove what a killed process left half done."""
        on_first(self._ranks, self._prepare)

    def newest(self) -> VerifiedCheckpoint | None:
        """The newest checkpoint that verifies; logs what is wrong with each newer one."""
        # One rank looks: on a network's file system another may see an older list.
        steps = json.loads(gather_text(self._ranks, json.dumps(self.steps()))[0])
        for step in reversed(steps):
            path = self.path(step)
            manifest: dict[str, Any] | None = None
            try:
                manifest = self._verified(path)
            except (BertsmithError, OSError) as fault:
                log.warning("checkpoint %s is not used: %s", path.name, fault)
            if not self._ranks.any(manifest is None) and manifest is not None:
                return VerifiedCheckpoint(path, step, manifest)
        if steps:
            raise FolderError(
                f"none of the {len(steps)} checkpoints in {self.folder} is whole (the log has "
                "the reasons); copy one back, or remove that folder to begin again from step 0"
            )
        return None

    def save(self, step: int, content: Content, *, rotate: bool = True) -> Path:
        """Write the checkpoint of a step, verify it, then remove the oldest.

        A whole checkpoint of the same step stays as it is; a damaged one makes room first.
        """
        path = self.path(step)
        if self._ranks.any(bool(on_first(self._ranks, lambda: self._stands(path)))):
            return path
        self._write(path, content)
        try:
            together(self._ranks, lambda: self._verify_share(path))
        except BertsmithError as fault:
            raise WriteError(
                f"{path} was written but does not read back: {fault}; older checkpoints are "
                "untouched; check the disk"
            ) from fault
        if rotate:
            on_first(self._ranks, lambda: self._rotate(step))
        return path

    def keep_newest(self) -> None:
        """Remove all but the newest: of a run whose result is written, one is enough."""
        on_first(self._ranks, self._keep_newest)

    def _keep_newest(self) -> None:
        *older, newest = self.steps() or [0]
        if is_whole(self.path(newest)):
            for step in older:
                self._discard(self.path(step))

    def steps(self) -> list[int]:
        """The steps of all checkpoints, whole or not, oldest first."""
        if not self.folder.is_dir():
            return []
        names = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match.group(1)) for match in names if match)

    def path(self, step: int) -> Path:
        """The folder of the checkpoint of a step."""
        return self.folder / f"step-{step:08d}"

    def _prepare(self) -> None:
        make_folder(self.folder)
        for path in self.folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                log.info("removing %s, left behind by a process that was killed", path)
                shutil.rmtree(path, ignore_errors=True)

    def _write(self, path: Path, content: Content) -> None:
        """Each rank writes its files into a staging folder; then manifest, sync, rename, sync."""
        ranks = self._ranks
        layout = layout_for(content.tensors)
        own = {"bytes": layout.size(content.tensors, ranks)}
        needed = int(ranks.sum_counts(own)["bytes"]) + _OTHER
        with ExitStack() as held:
            created = on_first(
                ranks,
                lambda: held.enter_context(staged_folder(path, needed=needed, overwrite=False)),
            )
            staging = path.with_name(gather_text(ranks, created.name if created else "")[0])

            def own_files() -> Files:
                with _failing_as_write(path):
                    return layout.write(staging, content.tensors, ranks)

            files: Files = {}
            for text in gather_text(ranks, json.dumps(together(ranks, own_files))):
                files |= json.loads(text)

            def complete() -> None:
                with _failing_as_write(path):
                    _check_arrived(staging, files)
                    every = files | write_documents(staging, content)
                    write_manifest(staging, content, layout=layout.name, files=every)
                held.close()  # syncs and renames

            on_first(ranks, complete)

    def _verified(self, path: Path) -> dict[str, Any]:
        """The manifest if all is well; of shards a rank reads some, of whole files it needs all."""
        if layout_name(read_manifest(Folder.at(path))) == SHARDED:
            return self._verify_share(path)
        return verify(path)

    def _verify_share(self, path: Path) -> dict[str, Any]:
        try:
            return verify(path, rank=self._ranks.rank, world=self._ranks.world)
        except OSError as fault:
            raise FolderError(f"{path}: {fault.strerror or fault}") from fault

    def _stands(self, path: Path) -> bool:
        """Whether this very checkpoint is there and whole; a damaged one is removed."""
        if not path.exists():
            return False
        try:
            verify(path)
        except (BertsmithError, OSError) as fault:
            log.warning("checkpoint %s is written again: %s", path.name, fault)
            self._discard(path)
            return False
        return True

    def _rotate(self, newest: int) -> None:
        """Keep the `keep` newest whole ones, `newest` (just verified) among them."""
        count = 1
        for step in reversed([step for step in self.steps() if step != newest]):
            if step < newest and count < self.keep and is_whole(self.path(step)):
                count += 1
            else:
                self._discard(self.path(step))

    def _discard(self, path: Path) -> None:
        """Rename first: a half-deleted checkpoint must not look like one."""
        trash = path.with_name(f".{path.name}.trash-{secrets.token_hex(8)}")
        try:
            path.rename(trash)
        except OSError as fault:
            log.warning("cannot remove %s: %s", path, fault)
            return
        shutil.rmtree(trash, ignore_errors=True)


@contextmanager
def _failing_as_write(path: Path) -> Iterator[None]:
    """An error of the system becomes one that is raised on every rank."""
    try:
        yield
    except OSError as fault:
        free = shutil.disk_usage(path.parent).free
        raise WriteError(
            f"{path} was not written: {(fault.strerror or str(fault)).lower()}; {free:,} bytes "
            "are free there; older checkpoints are untouched"
        ) from fault


def _check_arrived(staging: Path, files: Files) -> None:
    """The first rank must see what the others wrote."""
    for name, expected in files.items():
        path = staging / name
        size = path.stat().st_size if path.exists() else None
        if size != expected["size"]:
            raise WriteError(
                f"another rank wrote {expected['size']:,} bytes to {path}, the first one sees "
                f"{'nothing' if size is None else f'{size:,}'}; the run's folder must lie on a "
                "file system that all machines share"
            )


def finish_folder(out: Path | None, save: Callable[[Path], None], ranks: Ranks) -> None:
    """Write the folder of a finished run, if it has one; all checkpoints but the newest go.

    The first rank writes; if it fails, all ranks fail instead of waiting for it.
    """
    if out is None:
        return
    on_first(ranks, lambda: save(out))
    Checkpoints(out / CHECKPOINTS, ranks=ranks).keep_newest()
