"""ELMo folders of our own: config.json, words.txt and model.safetensors; published ones, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from bertsmith.classic.elmo.language_model import BidirectionalLm
from bertsmith.classic.elmo.model import ElmoModel
from bertsmith.classic.elmo.reader import ElmoReader
from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.neural.folder import CONFIG, line_model_words, write_line_model
from bertsmith.classic.neural.settings import noise_chances
from bertsmith.classic.neural.softmax import build_softmax
from bertsmith.classic.stream.splitting import SPLITTER, SplitRule
from bertsmith.config import validated
from bertsmith.errors import FolderError
from bertsmith.files.folder_hashes import verified
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.kinds import kind_at
from bertsmith.folders.load_weights import read_exactly
from bertsmith.folders.tensors import open_weights
from bertsmith.folders.word_encoders.published_elmo import read_published
from bertsmith.models.word_encoders.elmo_network import ElmoNetwork


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
    write_line_model(
        folder,
        model.settings,
        model.words,
        model.module.state_dict(),
        rule=model.rule,
        overwrite=overwrite,
    )


def open_elmo(path: Path) -> ElmoModel:
    """The model of a folder of our own; sizes are compared before memory is taken."""
    folder = Folder.at(path)
    config = folder.json_object(CONFIG)
    where = str(folder.path / CONFIG)
    if config.get("model_type") != ElmoSettings.kind:
        raise FolderError(f"{where} is of a {config.get('model_type')} model, not of ELMo")
    settings = validated(ElmoSettings, config.get("settings", {}), where)
    words = line_model_words(folder)
    counts = np.ones(len(words) + 1, dtype=np.int64)
    with verified(folder), open_weights(folder) as weights:
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
    kind, _ = kind_at(path)
    if kind.name == "elmo-published":
        return ElmoReader(read_published(path))
    return open_elmo(path).reader()
