"""Folders of neural language models: config.json, words.txt, model.safetensors, splitter.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from bertsmith.classic.neural.scoring import NeuralLm
from bertsmith.classic.neural.settings import NEURAL_KINDS, LineSettings
from bertsmith.classic.stream.folder import WORDS, read_words
from bertsmith.classic.stream.splitting import SPLITTER, SplitRule
from bertsmith.config import validated
from bertsmith.errors import FolderError, unknown
from bertsmith.files.atomic_folder import staged_folder, write_file
from bertsmith.files.folder_hashes import verified, write_hashes
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.load_weights import read_exactly
from bertsmith.folders.tensor_file import data_size, file_blocks
from bertsmith.folders.tensors import SINGLE, open_weights

CONFIG = "config.json"
_SMALL = 1 << 16


def write_line_model(
    folder: Path,
    settings: LineSettings,
    words: Sequence[str],
    tensors: Mapping[str, torch.Tensor],
    *,
    rule: SplitRule | None,
    overwrite: bool,
) -> None:
    """Write the folder of a model of words, all or nothing."""
    own = {name: tensor.detach().cpu() for name, tensor in tensors.items()}
    lines = "".join(f"{word}\n" for word in words).encode()
    config = {
        "model_type": settings.kind,
        "vocab_size": len(words),
        "settings": settings.model_dump(mode="json"),
    }
    needed = data_size(own) + len(lines) + _SMALL
    with staged_folder(folder, needed=needed, overwrite=overwrite) as staging:
        write_file(staging / CONFIG, json.dumps(config, indent=2, ensure_ascii=False).encode())
        write_file(staging / WORDS, lines)
        write_file(staging / SINGLE, *file_blocks(own))
        if rule is not None:
            rule.save(staging)
        write_hashes(staging)


def line_model_words(folder: Folder) -> tuple[str, ...]:
    """The words of such a folder, as many as its config says."""
    words, stated = read_words(folder), folder.json_object(CONFIG).get("vocab_size")
    if stated != len(words):
        raise FolderError(
            f"{folder.path / WORDS} has {len(words):,} words and {CONFIG} says {stated}; copy both "
            "files from one folder"
        )
    return words


def save_neural(model: NeuralLm, folder: Path, *, overwrite: bool = False) -> None:
    """Write a folder, all or nothing."""
    write_line_model(
        folder,
        model.settings,
        model.words,
        model.network.learned(),
        rule=model.rule,
        overwrite=overwrite,
    )


def open_neural(path: Path) -> NeuralLm:
    """The model of a folder; sizes are compared before memory is taken."""
    folder = Folder.at(path)
    config = folder.json_object(CONFIG)
    kind = config.get("model_type")
    where = str(folder.path / CONFIG)
    if not isinstance(kind, str) or kind not in NEURAL_KINDS:
        raise unknown(f"neural language model ({where}, model_type)", str(kind), NEURAL_KINDS)
    settings = validated(NEURAL_KINDS[kind], config.get("settings", {}), where)
    words = line_model_words(folder)
    counts = np.ones(len(words) + 1, dtype=np.int64)
    with verified(folder), open_weights(folder) as weights:
        with torch.device("meta"):
            shapes = {
                name: tuple(tensor.shape)
                for name, tensor in settings.network(counts, lanes=None).learned().items()
            }
        stored = read_exactly(weights, shapes, device="cpu", dtype=torch.float32)
    network = settings.network(counts, lanes=None)
    with torch.no_grad():
        for name, tensor in network.learned().items():
            tensor.copy_(stored[name])
    rule = SplitRule.open(folder.path) if folder.has(SPLITTER) else None
    return NeuralLm(settings=settings, words=words, network=network.eval(), rule=rule)
