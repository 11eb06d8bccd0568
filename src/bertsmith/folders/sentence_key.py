"""The key of a sentence model: equal keys mean equal vectors."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bertsmith.files.digest import stream_digest
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.read import CONFIG, TOKENIZER_FILES
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
    total = hashlib.sha256()
    for place in module_folders(root):
        where = "" if place.path == root.path else f"{place.path.name}/"
        for file in _files(place):
            with place.open(file) as stream:
                digest = stream_digest(stream)
            total.update(f"{where}{file}\0{digest}\n".encode())
    return total.hexdigest()


def _files(folder: Folder) -> list[str]:
    """The deciding files of a folder, with the shards its index names."""
    names = set(folder.names())
    found = names & _DECIDING
    if SINGLE not in found and INDEX in found:
        shards = folder.json_object(INDEX).get("weight_map")
        found |= names & set(map(str, shards.values())) if isinstance(shards, dict) else set()
    return sorted(found)
