"""Folders of neural language models: config.json, words.txt and model.safetensors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from bertsmith.classic.neural.scoring import NeuralLm
from bertsmith.classic.neural.settings import NEURAL_KINDS
from bertsmith.config import validated
from bertsmith.errors import FolderError, unknown
from bertsmith.files.atomic_folder import staged_folder, write_file
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.load_weights import read_exactly
from bertsmith.folders.tensor_file import data_size, file_blocks
from bertsmith.folders.tensors import SINGLE, open_weights

CONFIG, WORDS = "config.json", "words.txt"
LARGEST_WORDS = 1 << 30  # bytes of words.txt
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


def open_neural(path: Path) -> NeuralLm:
    """The model of a folder; sizes are compared before memory is taken."""
    folder = Folder.at(path)
    config = folder.json_object(CONFIG)
    kind = config.get("model_type")
    where = str(folder.path / CONFIG)
    if not isinstance(kind, str) or kind not in NEURAL_KINDS:
        raise unknown(f"neural language model ({where}, model_type)", str(kind), NEURAL_KINDS)
    settings = validated(NEURAL_KINDS[kind], config.get("settings", {}), where)
    words = _read_words(folder)
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
    return NeuralLm(settings=settings, words=words, network=network.eval())


def _read_words(folder: Folder) -> tuple[str, ...]:
    where = folder.path / WORDS
    try:
        text = folder.read(WORDS, limit=LARGEST_WORDS).decode()
    except UnicodeDecodeError as fault:
        raise FolderError(f"{where} is not UTF-8 (byte {fault.start:,}); copy it anew") from fault
    words = tuple(text.removesuffix("\n").split("\n"))
    if len(set(words)) != len(words) or "" in words:
        raise FolderError(f"{where} has an empty line or a word twice; copy it anew")
    return words
