"""A folder as it lies on disk: each of its JSON files is read once, when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bertsmith.errors import FolderError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.resolve import resolve
from bertsmith.folders.sentence import SentenceFolder, read_sentence

CONFIG = "config.json"
OWN = "bertsmith.json"


@dataclass(frozen=True)
class OpenFolder:
    """The small files of a folder; nothing is read before it is needed, and nothing twice."""

    root: Folder

    @classmethod
    def at(cls, name: str | Path) -> OpenFolder:
        """The folder of a path or a name."""
        return cls(Folder.at(resolve(name)).keeping())

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.root.path

    def stored(self, name: str) -> dict[str, Any]:
        """The object in a JSON file of the folder; empty if there is no such file."""
        return self.root.json_object(name) if self.root.has(name) else {}

    @cached_property
    def model_type(self) -> str | None:
        """What config.json calls the model."""
        found = self.stored(CONFIG).get("model_type")
        return found if isinstance(found, str) else None

    @cached_property
    def parts(self) -> SentenceFolder:
        """How texts become vectors, and where the encoder lies."""
        return read_sentence(self.root)

    @property
    def home(self) -> Folder:
        """The folder of the encoder: this one, or the part that modules.json names."""
        return self.parts.transformer

    @cached_property
    def own(self) -> dict[str, Any]:
        """What only bertsmith writes and reads."""
        return self.home.json_object(OWN) if self.home.has(OWN) else {}

    def nothing(self) -> FolderError:
        """The error for a folder that holds nothing known."""
        return FolderError(
            f"{self.path} has no {CONFIG}, so it is not a model folder; it holds: "
            f"{', '.join(self.root.names()[:10]) or 'nothing'}"
        )
