"""What a disk holds when the power goes: only what was synced, at every step of a writer.

A write survives once its file was synced after it, a name once its folder was. Disks may also
write names early: that is the second state, all names with only the synced contents.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

State = dict[str, bytes | None]
"""Path below the root -> content; None for a folder."""
CALLS = ("rename", "replace", "link", "unlink", "rmdir", "mkdir")


class PowerLoss:
    """Follows what this process syncs below a folder, and keeps every state a crash could leave."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.states: list[State] = []
        self._contents: dict[int, bytes] = {}
        self._entries: dict[int, dict[str, int]] = {root.stat().st_ino: {}}
        self._kept: dict[int, Path] = {}
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._synced)
        for name in CALLS:
            monkeypatch.setattr(os, name, self._noted(getattr(os, name)))

    def _synced(self, descriptor: int) -> None:
        self._fsync(descriptor)
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(descriptor) as found:
                self._entries[status.st_ino] = {one.name: one.inode() for one in found}
        else:
            self._contents[status.st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()
        self._keep()

    def _noted(self, call: Any) -> Any:
        def noted(*given: Any, **named: Any) -> Any:
            self._keep()
            done = call(*given, **named)
            self._keep()
            return done

        return noted

    def _keep(self) -> None:
        """Both states at this moment, where they differ from the last ones."""
        for state in (self._state(named=False), self._state(named=True)):
            if state not in self.states[-6:]:
                self.states.append(state)

    def _state(self, *, named: bool) -> State:
        """With `named`, names that nobody synced are there, too."""
        found: State = {}

        def walk(folder: Path, prefix: str) -> None:
            durable = self._entries.get(folder.stat().st_ino, {})
            for path in sorted(folder.iterdir()):
                number = path.lstat().st_ino
                if not named and durable.get(path.name) != number:
                    continue
                if path.is_dir():
                    found[f"{prefix}{path.name}"] = None
                    walk(path, f"{prefix}{path.name}/")
                else:
                    found[f"{prefix}{path.name}"] = self._contents.get(number, b"")

        walk(self.root, "")
        return found


def restored(state: State, place: Path) -> Path:
    """A disk as it is after the crash."""
    place.mkdir(parents=True)
    for name, content in state.items():
        path = place / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return place
