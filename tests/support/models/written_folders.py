"""A folder of every kind that bertsmith writes, and the numbers that a reader takes from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from folder_models import tiny_model, tiny_tokenizer
from tiny_correction import untrained_corrector
from tiny_words import random_words, tiny_settings
from toy_corpus import toy_corpus
from toy_index import build, texts
from word_encoders import language_models, vector_file

from bertsmith.classic.kinds import open_lm
from bertsmith.classic.neural.folder import save_neural
from bertsmith.classic.neural.scoring import NeuralLm
from bertsmith.classic.ngram.estimation import NgramSettings
from bertsmith.classic.ngram.train import train_ngram
from bertsmith.classic.stream.stream import WordReading, WordStream, build_words
from bertsmith.classic.word2vec.folder import open_model, read_counts, read_outputs
from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.train import train_word2vec
from bertsmith.corpus.shards import verify
from bertsmith.files.folder_hashes import HASHES
from bertsmith.folders.extras import NOTHING
from bertsmith.folders.read import load_model
from bertsmith.folders.static import load_static, save_static
from bertsmith.folders.word_encoders.read import load_word_folder
from bertsmith.folders.word_encoders.write import save_words
from bertsmith.folders.write import save_model
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.search.folder.store import FolderStore

TEXT = "".join(f"the man {n % 7} saw a dog {n % 5} and word{n % 3}\n" for n in range(40))
Written = tuple[Callable[[Path], object], Callable[[Path], str]]


def _digest(*values: Any) -> str:
    """One string that changes with any number, word or setting."""
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, torch.Tensor):
            value = value.detach().numpy()
        data = np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else None
        digest.update(repr(value).encode() if data is None else data)
    return digest.hexdigest()


def _state(module: torch.nn.Module) -> list[Any]:
    return [part for pair in module.state_dict().items() for part in pair]


def _read_model(path: Path) -> str:
    loaded = load_model(path)
    ids = loaded.tokenizer.encode("un affable dog runs", "a cat").ids
    return _digest(*_state(loaded.model), list(ids), loaded.sentence, loaded.folder.spec)


def _read_static(path: Path) -> str:
    read = load_static(path)
    return _digest(read.table, list(read.tokenizer.encode("the dog runs").ids), read.settings)


def _read_words(path: Path) -> str:
    read = load_word_folder(path)
    encoding = read.tokenizer.encode("the dog sees Anna")
    return _digest(*_state(read.model), list(encoding.ids), list(encoding.words))


def _read_lm(path: Path) -> str:
    lm = open_lm(path)
    lines = [np.arange(1, 4, dtype=np.int32), np.array([2], dtype=np.int32)]
    return _digest(lm.words, *lm.log_probabilities(lines), lm.next_log_probabilities(lines))


def _read_vectors(path: Path) -> str:
    read = open_model(path)
    return _digest(
        read.vectors.words,
        read.vectors.matrix,
        read_outputs(path),
        read_counts(path),
        read.settings,
    )


def _stream(place: Path) -> WordStream:
    place.mkdir(parents=True, exist_ok=True)
    (place / "text.txt").write_text(TEXT, encoding="utf-8")
    return build_words([place / "text.txt"], place / "words", reading=WordReading(form="sentences"))


def _read_stream(path: Path) -> str:
    read = WordStream.open(path)
    return _digest(read.ids, read.starts, read.documents, read.counts, read.words, read.rule)


def _make_stream(path: Path) -> None:
    _stream(path.with_name(f"{path.name}-from"))
    (path.with_name(f"{path.name}-from") / "words").rename(path)


def _make_ngram(path: Path) -> None:
    train_ngram(
        _stream(path.with_name(f"{path.name}-from")), NgramSettings(order=3, fallback=True), path
    )


def _make_neural(kind: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        settings = tiny_settings(kind)
        network = settings.build(np.arange(13, 0, -1)).eval()
        words = random_words(20).words
        save_neural(NeuralLm(settings=settings, words=words, network=network), path)

    return make


def _make_vectors(path: Path) -> None:
    stream = _stream(path.with_name(f"{path.name}-from"))
    train_word2vec(stream, Word2VecSettings(dim=4, epochs=1), path, threads=1, engine="torch")


def _make_table(path: Path) -> None:
    file = vector_file(path.with_name(f"{path.name}.txt"))
    read = load_word_folder(file)
    save_words(read.model, read.tokenizer, path, extras=NOTHING)


def _make_encoder(path: Path) -> None:
    source = path.with_name(f"{path.name}-from")
    language_models(source)
    read = load_word_folder(source)
    save_words(read.model, read.tokenizer, path, extras=NOTHING)


def _make_static(path: Path) -> None:
    table = torch.randn(20, 5, generator=torch.Generator().manual_seed(3))
    save_static(table, tiny_tokenizer(), path, settings=SentenceSettings(normalize=True))


def _make_model(path: Path) -> None:
    model = tiny_model("bert", heads=["masked_lm"])
    save_model(model, tiny_tokenizer(), path, sentence=SentenceSettings())


def _make_corpus(path: Path) -> None:
    toy_corpus(path.with_name(f"{path.name}-from")).rename(path)


def _read_corpus(path: Path) -> str:
    verify(path)
    files = sorted(one for one in path.rglob("*") if one.is_file() and one.name != HASHES)
    return _digest(*(one.read_bytes() for one in files))


def _read_index(path: Path) -> str:
    store = FolderStore.open(path)
    found = store.check()
    if found:
        return "damage was found"
    return _digest(list(store.texts()), store.ids, store.search_words(["w1 w2"], 5))


# By the kind of folder; a corrector and a sentence model are models.
WRITTEN: dict[str, Written] = {
    "model": (_make_model, _read_model),
    "corrector": (untrained_corrector, _read_model),
    "static": (_make_static, _read_static),
    "word-stream": (_make_stream, _read_stream),
    "ngram": (_make_ngram, _read_lm),
    "nnlm": (_make_neural("nnlm"), _read_lm),
    "lstm": (_make_neural("lstm"), _read_lm),
    "gru": (_make_neural("gru"), _read_lm),
    "word-vectors": (_make_vectors, _read_vectors),
    "elmo": (language_models, _read_lm),
    "elmo-encoder": (_make_encoder, _read_words),
    "word-table": (_make_table, _read_words),
    "corpus": (_make_corpus, _read_corpus),
    "index": (lambda path: build(path, texts(60)), _read_index),
}
READ_ONLY = {"elmo-published"}  # kinds that others write
