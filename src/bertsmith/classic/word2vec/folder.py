"""Folders of word2vec models and checkpoints of their training.

A model folder holds config.json (settings, losses), vectors.bin (words and input vectors in
word2vec's binary form, which every program reads), outputs.npy (vectors of words, or of the tree's
inner nodes, as outputs), counts.npy and splitter.json (how text became words).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.stream.folder import WordStream
from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.tables import WordWeights
from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.config import validated
from bertsmith.errors import FolderError
from bertsmith.files.atomic_folder import staged_folder, write_file
from bertsmith.files.folder_hashes import at_load, check_hashes, write_hashes
from bertsmith.files.safe_folder import Folder
from bertsmith.files.word_vectors.reading import VECTORS
from bertsmith.files.word_vectors.writing import write_word_vectors

KIND = "word2vec"
CONFIG, OUTPUTS, COUNTS = "config.json", "outputs.npy", "counts.npy"
STATE, INPUTS, EPOCH = "state.json", "inputs.npy", "epoch"
_SMALL = 1 << 16
_MOST_LOSS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedWords:
    """Word vectors with the losses of their epochs: means per prediction, in nats.

    `facts` are what else config.json says: engine, threads, seconds, words.
    """

    vectors: WordVectors
    settings: Word2VecSettings
    losses: tuple[float, ...]
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingState:
    """How far training is: finished epochs, their losses, words seen."""

    key: str
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0


def save_state(place: Path, state: TrainingState, weights: WordWeights) -> None:
    """Replace the checkpoint, all or nothing."""
    needed = weights.inputs.nbytes + weights.outputs.nbytes + _SMALL
    only = (STATE, INPUTS, OUTPUTS)
    with staged_folder(place / EPOCH, needed=needed, overwrite=True, only=only) as staging:
        np.save(staging / INPUTS, weights.inputs[:, : weights.dim])
        np.save(staging / OUTPUTS, weights.outputs[:, : weights.dim])
        about = {"key": state.key, "losses": state.losses, "seconds": state.seconds}
        write_file(staging / STATE, json.dumps(about).encode())


def load_state(place: Path, key: str, weights: WordWeights) -> TrainingState | None:
    """Put the checkpoint into the weights; None if there is none of the same run."""
    if not (place / EPOCH / STATE).is_file():
        return None
    folder = Folder.at(place / EPOCH)
    known = folder.json_object(STATE)
    if known.get("key") != key:
        return None
    for name, target in ((INPUTS, weights.inputs), (OUTPUTS, weights.outputs)):
        stored = _array(folder, name)
        if stored.shape != (len(target), weights.dim) or stored.dtype != np.float32:
            raise FolderError(
                f"{folder.path / name} is of shape {stored.shape}; remove {place} and train again"
            )
        target[:, : weights.dim] = stored
    return TrainingState(key=key, losses=known["losses"], seconds=known["seconds"])


def save_model(
    out: Path,
    stream: WordStream,
    weights: WordWeights,
    settings: Word2VecSettings,
    about: dict[str, Any],
) -> None:
    """Write the model folder, all or nothing."""
    needed = weights.inputs.nbytes + weights.outputs.nbytes + _SMALL
    with staged_folder(out, needed=needed, overwrite=False) as staging:
        words, inputs = stream.words[1:], weights.inputs[:, : weights.dim]
        write_word_vectors(staging / VECTORS, words, inputs, form="binary")
        np.save(staging / OUTPUTS, weights.outputs[:, : weights.dim])
        np.save(staging / COUNTS, np.asarray(stream.counts[1:], dtype=np.int64))
        stream.rule.save(staging)
        config = {
            "model_type": KIND,
            "vocab_size": len(words),
            "settings": settings.model_dump(mode="json", exclude_none=True),
            **about,
        }
        write_file(staging / CONFIG, json.dumps(config, indent=2, ensure_ascii=False).encode())
        write_hashes(staging)


def open_model(path: Path) -> TrainedWords:
    """The vectors, settings and losses of a model folder."""
    folder = Folder.at(path, wanted="a folder of `bertsmith words train`")
    check_hashes(folder)
    config = folder.json_object(CONFIG)
    where = folder.path / CONFIG
    losses = config.get("losses")
    if (
        config.get("model_type") != KIND
        or not isinstance(losses, list)
        or not all(isinstance(loss, int | float) and abs(loss) < _MOST_LOSS for loss in losses)
    ):
        raise FolderError(f"{where} is not that of word vectors of `bertsmith words train`")
    settings = validated(Word2VecSettings, config.get("settings", {}), str(where))
    vectors = WordVectors.read(folder.path / VECTORS, form="binary")
    if vectors.matrix.shape != (config.get("vocab_size"), settings.dim):
        raise FolderError(
            f"{folder.path / VECTORS} holds {len(vectors):,} vectors of {vectors.dimension} and "
            f"{CONFIG} says otherwise; copy both files from one folder"
        )
    left_out = ("model_type", "settings", "losses")
    facts = {name: value for name, value in config.items() if name not in left_out}
    return TrainedWords(
        vectors=vectors,
        settings=settings,
        losses=tuple(float(loss) for loss in losses),
        facts=facts,
    )


def read_outputs(path: Path) -> NDArray[np.float32]:
    """The output vectors of a model folder: of words, or of inner nodes of the Huffman tree."""
    return _checked(Folder.at(path), OUTPUTS)


def read_counts(path: Path) -> NDArray[np.int64]:
    """How often each word of a model folder occurred in its text."""
    return _checked(Folder.at(path), COUNTS)


def _checked(folder: Folder, name: str) -> NDArray[Any]:
    """An array of a finished folder, as it was written."""
    check_hashes(folder, lambda file, size: file == name and at_load(file, size))
    return _array(folder, name)


def _array(folder: Folder, name: str) -> NDArray[Any]:
    """An array as numpy stores it, memory-mapped: its size is compared with its header."""
    with folder.open(name) as file:
        size = os.fstat(file.fileno()).st_size
    try:
        found: NDArray[Any] = np.load(folder.path / name, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise FolderError(
            f"{folder.path / name} ({size:,} bytes) is damaged: {error}; train again"
        ) from error
    return found
