"""The layout of transformers, which is ours as well; its pickles only where that is allowed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from bertsmith.errors import FolderError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.dialects.dialect import Dialect
from bertsmith.folders.opened import CONFIG
from bertsmith.folders.tensors import Weights, open_weights

if TYPE_CHECKING:
    from bertsmith.text.tokenizer import Tokenizer

VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model")


def read_tokenizer(folder: Folder) -> Tokenizer:
    """The tokenizer from the files of a folder."""
    from bertsmith.text.tokenizer import Tokenizer

    return Tokenizer.from_safe_folder(folder)


def no_tokenizer(folder: Folder) -> FolderError:
    """The error for a folder that has none where one is needed."""
    return FolderError(
        f"{folder.path} has no tokenizer ({', '.join(VOCABULARIES)}); "
        "copy it from where the model came from"
    )


def _tokenizer(folder: Folder) -> Tokenizer | None:
    return read_tokenizer(folder) if any(map(folder.has, VOCABULARIES)) else None


def _pickled(folder: Folder) -> AbstractContextManager[Weights]:
    from bertsmith.folders.unpickle import open_pickled  # needed for old folders alone

    return open_pickled(folder)


TRANSFORMERS = Dialect(
    name="transformers",
    finds=lambda folder: folder.has(CONFIG),
    config=lambda folder: folder.json_object(CONFIG),
    tokenizer=_tokenizer,
    opener=open_weights,
)
PICKLED = replace(TRANSFORMERS, name="pickled", opener=_pickled)
DIALECTS: tuple[Dialect, ...] = (TRANSFORMERS,)
