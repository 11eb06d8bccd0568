"""Static vectors on disk: a StaticEmbedding folder of sentence-transformers, one row per token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from bertsmith import __version__
from bertsmith.errors import ConfigError, FolderError
from bertsmith.files.folder_hashes import verified
from bertsmith.folders.dialects.transformers import read_tokenizer
from bertsmith.folders.kinds import STATIC, folder_kind
from bertsmith.folders.load_weights import read_exactly
from bertsmith.folders.opened import OWN, OpenFolder
from bertsmith.folders.read import read_dense
from bertsmith.folders.sentence_files import StoredModule, finishing, module_files
from bertsmith.folders.tensors import open_weights
from bertsmith.folders.write import write_folder
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.text.tokenizer import Tokenizer

_PLACE = "0_StaticEmbedding"
_NAMES = ("embedding.weight", "embeddings")  # of sentence-transformers, of model2vec


@dataclass(frozen=True, slots=True)
class StaticFolder:
    """A table (V, D) of token vectors whose mean is the vector of a text, and what follows it.

    The tokenizer adds no special tokens.
    """

    path: Path
    table: Tensor
    tokenizer: Tokenizer
    settings: SentenceSettings


def load_static(name: str | Path | OpenFolder, *, device: str = "cpu") -> StaticFolder:
    """The static vectors of a folder, in float32."""
    opened = name if isinstance(name, OpenFolder) else OpenFolder.at(name)
    path, parts = opened.path, opened.parts
    if folder_kind(opened) is not STATIC or parts.settings is None:
        raise FolderError(f"{path} is not a folder of static vectors")
    tokenizer = read_tokenizer(parts.transformer).bare()
    with verified(opened.root), open_weights(parts.transformer) as weights:
        stored = next((name for name in _NAMES if name in weights.stored), _NAMES[0])
        shape = weights.shapes.get(stored, (tokenizer.vocab_size, 1))
        if len(shape) != 2 or shape[0] < tokenizer.vocab_size:
            raise FolderError(
                f"{weights.where}: {stored} is {shape} and should have a row for each of the "
                f"{tokenizer.vocab_size:,} tokens; take table and tokenizer from the same model"
            )
        table = read_exactly(weights, {stored: shape}, device=device, dtype=torch.float32)[stored]
    dense = read_dense(
        parts, open_weights, width=table.shape[1], device=device, dtype=torch.float32
    )
    return StaticFolder(path, table, tokenizer, replace(parts.settings, dense=dense))


def save_static(
    table: Tensor,
    tokenizer: Tokenizer,
    path: Path | str,
    *,
    settings: SentenceSettings,
    overwrite: bool = False,
) -> None:
    """Write static vectors as a folder that sentence-transformers reads; whole or not at all."""
    if table.dim() != 2 or len(table) < tokenizer.vocab_size:
        raise ConfigError(
            f"a table of shape {tuple(table.shape)} has no row for each of the "
            f"{tokenizer.vocab_size:,} tokens"
        )
    embedding = StoredModule("StaticEmbedding", tensors={_NAMES[0]: table})
    stored = module_files([embedding, *finishing(settings)], settings)
    own = {OWN: {"version": __version__, "variant": "static"}}
    write_folder(
        Path(path),
        {**stored.json, **own},
        stored.tensors,
        {_PLACE: tokenizer.bare()},
        overwrite=overwrite,
    )
