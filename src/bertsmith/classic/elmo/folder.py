"""ELMo folders of our own: config.json, words.txt and model.safetensors; published ones, too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from bertsmith.classic.elmo.language_model import BidirectionalLm
from bertsmith.classic.elmo.model import ElmoModel
from bertsmith.classic.elmo.reader import ElmoReader
from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.neural.folder import CONFIG
from bertsmith.classic.neural.settings import noise_chances
from bertsmith.classic.neural.softmax import build_softmax
from bertsmith.classic.words.folder import WORDS, read_words
from bertsmith.classic.words.splitting import SPLITTER, SplitRule
from bertsmith.config import validated
from bertsmith.errors import FolderError
from bertsmith.files.atomic_folder import staged_folder, write_file
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.load_weights import read_exactly
from bertsmith.folders.tensor_file import data_size, file_blocks
from bertsmith.folders.tensors import SINGLE, open_weights
from bertsmith.folders.words.published_elmo import is_published, read_published
from bertsmith.models.words.elmo_network import ElmoNetwork

_SMALL = 1 << 16


def build_elmo(settings: ElmoSettings, counts: np.ndarray) -> BidirectionalLm:
    """A model for words with these counts (V + 1,), line ends first, not yet initialized."""
    softmax = build_softmax(
        settings.softmax,
        width=settings.model.projection,
        noise=torch.from_numpy(noise_chances(counts, settings.softmax)),
        shared=None,
    )
    return BidirectionalLm(ElmoNetwork(settings.model), softmax, dropout=settings.dropout)


def save_elmo(model: ElmoModel, folder: Path, *, overwrite: bool = False) -> None:
    """Write a folder, all or nothing."""
    tensors = {name: tensor.detach().cpu() for name, tensor in model.module.state_dict().items()}
    words = "".join(f"{word}\n" for word in model.words).encode()
    config = {
        "model_type": ElmoSettings.kind,
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


def open_elmo(path: Path) -> ElmoModel:
    """The model of a folder of our own; sizes are compared before memory is taken."""
    folder = Folder.at(path)
    config = folder.json_object(CONFIG)
    where = str(folder.path / CONFIG)
    if config.get("model_type") != ElmoSettings.kind:
        raise FolderError(f"{where} is of a {config.get('model_type')} model, not of ELMo")
    settings = validated(ElmoSettings, config.get("settings", {}), where)
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
                for name, tensor in build_elmo(settings, counts).state_dict().items()
            }
        stored = read_exactly(weights, shapes, device="cpu", dtype=torch.float32)
    module = build_elmo(settings, counts)
    module.load_state_dict(stored)
    rule = SplitRule.open(folder.path) if folder.has(SPLITTER) else None
    return ElmoModel(settings=settings, words=words, module=module.eval(), rule=rule)


def open_reader(path: Path) -> ElmoReader:
    """Contextual vectors from a folder of our own or a published one."""
    return ElmoReader(read_published(path)) if is_published(path) else open_elmo(path).reader()


def is_elmo(path: Path) -> bool:
    """Whether a folder holds an ELMo model, published or of our own."""
    if is_published(path):
        return True
    if not (path / CONFIG).is_file():
        return False
    return Folder.at(path).json_object(CONFIG).get("model_type") == ElmoSettings.kind
