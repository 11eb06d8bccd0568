"""The checkpoints of a run: the newest whole one counts, old ones go after a new one verifies."""

from __future__ import annotations

import logging
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from bertsmith.config import Settings
from bertsmith.errors import BertsmithError, FolderError, WriteError
from bertsmith.staged import sync
from bertsmith.training.checkpoint_files import Content, is_whole, verify, write
from bertsmith.training.schedule import Seconds

log = logging.getLogger(__name__)

_NAME = re.compile(r"step-(\d{8,})")
_LEFTOVER = re.compile(r"\.step-\d{8,}\.(new|trash)-[0-9a-f]+")


class SaveSettings(Settings):
    """How often the state is saved and how many checkpoints stay."""

    every: Annotated[int, Field(gt=0)] = 1_000  # steps
    seconds: Seconds | None = None  # also when this time has passed since the last one
    keep: Annotated[int, Field(ge=2)] = 2


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint that was verified byte by byte."""

    path: Path
    step: int
    manifest: dict[str, Any]


class Checkpoints:
    """The folder `checkpoints` of a run; only the holder of the run's lock writes to it."""

    def __init__(self, folder: Path, *, keep: int = 2) -> None:
        self.folder = folder
        self.keep = max(2, keep)

    def prepare(self) -> None:
        """Make the folder and remove what a killed process left half done."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            sync(self.folder.parent)
        except OSError as fault:
            raise WriteError(
                f"cannot make {self.folder}: {(fault.strerror or str(fault)).lower()}"
            ) from fault
        for path in self.folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                log.info("removing %s, left behind by a process that was killed", path)
                shutil.rmtree(path, ignore_errors=True)

    def newest(self) -> Found | None:
        """The newest checkpoint that verifies; says what is wrong with each newer one."""
        steps = self.steps()
        for step in reversed(steps):
            path = self.path(step)
            try:
                return Found(path, step, verify(path))
            except (BertsmithError, OSError) as fault:
                log.warning("checkpoint %s is not used: %s", path.name, fault)
        if steps:
            raise FolderError(
                f"none of the {len(steps)} checkpoints in {self.folder} is whole (the log says "
                "why); copy one back, or remove that folder to begin again from step 0"
            )
        return None

    def at(self, step: int) -> Found:
        """The checkpoint of a step, verified."""
        return Found(self.path(step), step, verify(self.path(step)))

    def save(self, step: int, content: Content, *, rotate: bool = True) -> Path:
        """Write the checkpoint of a step, verify it, then let the oldest go.

        A whole checkpoint of the same step stays as it is; a damaged one makes room first.
        """
        path = self.path(step)
        if path.exists():
            if is_whole(path) and self._verifies(path):
                return path
            self._discard(path)
        write(path, content)
        try:
            verify(path)
        except (BertsmithError, OSError) as fault:
            raise WriteError(
                f"{path} was written but does not read back: {fault}; older checkpoints are "
                "untouched; check the disk"
            ) from fault
        if rotate:
            self._rotate(step)
        return path

    def steps(self) -> list[int]:
        """The steps of all checkpoints, whole or not, oldest first."""
        if not self.folder.is_dir():
            return []
        found = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match.group(1)) for match in found if match)

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step lies."""
        return self.folder / f"step-{step:08d}"

    def _rotate(self, newest: int) -> None:
        """Keep the `keep` newest whole ones, `newest` (just verified) among them."""
        kept = 1
        for step in reversed([step for step in self.steps() if step != newest]):
            if step < newest and kept < self.keep and is_whole(self.path(step)):
                kept += 1
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

    def _verifies(self, path: Path) -> bool:
        try:
            verify(path)
        except (BertsmithError, OSError) as fault:
            log.warning("checkpoint %s is written again: %s", path.name, fault)
            return False
        return True
