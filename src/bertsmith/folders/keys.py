"""The keys of a folder: equal keys mean equal vectors, or equal predictions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from bertsmith.files.digest import stream_digest
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.extras import DETECTOR, HEAD, KNOWLEDGE
from bertsmith.folders.generation import GENERATION_CONFIG
from bertsmith.folders.opened import CONFIG, OWN
from bertsmith.folders.read import TOKENIZER_FILES
from bertsmith.folders.resolve import resolve
from bertsmith.folders.sentence import (
    MODULES,
    SENTENCE_CONFIG,
    TRANSFORMER_CONFIGS,
    module_folders,
)
from bertsmith.folders.tensors import INDEX, SINGLE

_DECIDING = {CONFIG, MODULES, SENTENCE_CONFIG, *TRANSFORMER_CONFIGS, SINGLE, INDEX}
_DECIDING |= set(TOKENIZER_FILES)


def sentence_key(name: str | Path) -> str:
    """The sha256 over everything in a folder that decides a vector.

    Weights, tokenizer and config, the modules and the order of them, pooling, layer mix, dense
    layers, prompts and the longest text; neither heads nor anything of fine-tuning.
    """
    root = Folder.at(resolve(name))
    return _digest(root, module_folders(root), _DECIDING)


def model_key(name: str | Path) -> str:
    """The sha256 over everything in a fine-tuned folder that decides an answer to a row."""
    root = Folder.at(resolve(name))
    deciding = {OWN, HEAD, KNOWLEDGE, DETECTOR, GENERATION_CONFIG}
    return _digest(root, [root], _DECIDING | deciding)


def _digest(root: Folder, places: Iterable[Folder], deciding: set[str]) -> str:
    total = hashlib.sha256()
    for place in places:
        where = "" if place.path == root.path else f"{place.path.name}/"
        for file in _files(place, deciding):
            with place.open(file) as stream:
                digest = stream_digest(stream)
            total.update(f"{where}{file}\0{digest}\n".encode())
    return total.hexdigest()


def _files(folder: Folder, deciding: set[str]) -> list[str]:
    """The deciding files of a folder, with the shards its index names."""
    names = set(folder.names())
    found = names & deciding
    if SINGLE not in found and INDEX in found:
        shards = folder.json_object(INDEX).get("weight_map")
        found |= names & set(map(str, shards.values())) if isinstance(shards, dict) else set()
    return sorted(found)
