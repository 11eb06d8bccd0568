"""Folders of neural language models: config.json, words.txt, model.safetensors, splitter.json."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from bertsmith.classic.neural.scoring import NeuralLm
from bertsmith.classic.neural.settings import NEURAL_KINDS
from bertsmith.classic.words.folder import WORDS, read_words
from bertsmith.classic.words.splitting import SPLITTER, SplitRule
from bertsmith.config import validated
from bertsmith.errors import FolderError, unknown
from bertsmith.files.atomic_folder import staged_folder, write_file
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.load_weights import read_exactly
from bertsmith.folders.tensor_file import data_size, file_blocks
from bertsmith.folders.tensors import SINGLE, open_weights

CONFIG = "config.json"
_SMALL = 1 << 16


def save_neural(model: NeuralLm, folder: Path, *, overwrite: bool = False) -> None:
    """Write a folder, all or nothing."""
    tensors = {name: tensor.cpu() for name, tensor in model.network.learned().items()}
    words = "".join(f"{word}\n" for word in model.words).encode()
    config = {
        "model_type": model.kind,
        "vocab_size": len(model.words),
        "settings": model.settings.model_dump(mode="json"),
    }
    needed = data_size(tensors) + len(words) + _SMALL
    with staged_folder(folder, needed=needed, overwrite=overwrite) as staging:
        write_file(staging / CONFIG, json.dumps(config, indent=2, ensure_ascii=False).encode())
        write_file(staging / WORDS, words)
        write_file(staging / SINGLE, *file_blocks(tensors))
        if model.rule is not None:
            model.rule.save(staging)


def open_neural(path: Path) -> NeuralLm:
    """The model of a folder; sizes are compared before memory is taken."""
    folder = Folder.at(path)
    config = folder.json_object(CONFIG)
    kind = config.get("model_type")
    where = str(folder.path / CONFIG)
    if not isinstance(kind, str) or kind not in NEURAL_KINDS:
        raise unknown(f"neural language model ({where}, model_type)", str(kind), NEURAL_KINDS)
    settings = validated(NEURAL_KINDS[kind], config.get("settings", {}), where)
    words = read_words(folder)
    if config.get("vocab_size") != len(words):
        raise FolderError(
            f"{folder.path / WORDS} has {len(words):,} words and {CONFIG} says "
            f"{config.get('vocab_size')}; copy both files from one folder"
        )
    counts = np.ones(len(words) + 1, dtype=np.int64)
    with open_weights(folder) as weights:
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
