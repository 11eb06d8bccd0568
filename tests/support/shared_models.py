"""Tiny models and a corpus that many tests read: made once for each process of tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def only_read(folder: Path) -> Iterator[Path]:
    """A folder that no test may change: whoever wants to, copies it."""
    before = _prints(folder)
    yield folder
    assert _prints(folder) == before, f"a test has changed the shared folder {folder}"


def _prints(folder: Path) -> dict[Path, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What a fine-tuning starts from: the folder of a tiny encoder, untrained."""
    from tiny_finetuning import tiny_folder

    with only_read(Path(tiny_folder(tmp_path_factory.mktemp("source") / "model"))) as folder:
        yield str(folder)


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fine-tuned folder: says whether a text has a bird or a tree in it."""
    from tiny_finetuning import finetuned_folder

    with only_read(finetuned_folder(tmp_path_factory.mktemp("classifier") / "model")) as folder:
        yield folder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The folder of a tiny sentence encoder, untrained."""
    from tiny_sentences import tiny_sentence_folder

    place = tmp_path_factory.mktemp("sentences") / "model"
    with only_read(Path(tiny_sentence_folder(place))) as folder:
        yield str(folder)


@pytest.fixture(scope="session")
def toy_shards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The corpus of a few English documents, as pre-training reads it."""
    from toy_corpus import toy_corpus

    with only_read(toy_corpus(tmp_path_factory.mktemp("corpus"))) as shards:
        yield shards
