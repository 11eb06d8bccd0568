"""Dialect: how one kind of program lays out a model folder, in the terms of transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bertsmith.errors import FolderError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.tensors import Weights

if TYPE_CHECKING:
    from bertsmith.text.tokenizer import Tokenizer

Opener = Callable[[Folder], AbstractContextManager[Weights]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A layout of model folders.

    `finds` knows a folder by its files; `config` gives what transformers would have in config.json,
    `tokenizer` None where the folder has none, `opener` the tensors. `names` gives the published
    name of a stored tensor, None for one that is no part of the model.
    """

    name: str
    finds: Callable[[Folder], bool]
    config: Callable[[Folder], dict[str, Any]]
    tokenizer: Callable[[Folder], Tokenizer | None]
    opener: Opener
    names: Callable[[str], str | None] | None = None

    @contextmanager
    def weights(self, folder: Folder) -> Iterator[Weights]:
        """The tensors of a folder by their published names."""
        with self.opener(folder) as weights:
            if self.names is not None:
                _rename(weights, self.names)
            yield weights


def _rename(weights: Weights, names: Callable[[str], str | None]) -> None:
    renamed = {}
    for stored, tensor in weights.stored.items():
        name = names(stored)
        if name is None:
            continue
        if name in renamed:
            raise FolderError(f"{weights.where}: two tensors are {name}; one of them is {stored}")
        renamed[name] = tensor
    weights.stored = renamed


def dialect_of(folder: Folder, dialects: Iterable[Dialect]) -> Dialect | None:
    """The first dialect that finds its files in a folder."""
    return next((dialect for dialect in dialects if dialect.finds(folder)), None)
