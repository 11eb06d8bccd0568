"""A corpus on disk: opened, split, verified, refused when it does not fit."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat

import numpy as np
import pytest
from corpus_making import as_sentences, bert, fingerprint, make, some_documents

from bertsmith.corpus.shards import open_corpus, verify, vocabulary_of
from bertsmith.errors import BertsmithError, ConfigError, FolderError


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    place = tmp_path_factory.mktemp("corpus")
    path = place / "a.txt"
    path.write_text(as_sentences(some_documents(300)), encoding="utf-8")
    return make(path, place / "shards")[0]


def test_arrays_fit_together(corpus) -> None:
    assert corpus.tokens.dtype == np.uint16
    assert corpus.sentences.dtype == corpus.documents.dtype == np.int64
    assert corpus.sentences[-1] == len(corpus.tokens) == len(corpus.starts_word)
    assert corpus.documents[-1] == len(corpus.sentences) - 1
    assert len(corpus.documents) - 1 == 300
    assert (corpus.starts_word[corpus.sentences[:-1]] != 0).all()
    assert corpus.special.mask == bert().special.mask
    assert corpus.vocabulary == vocabulary_of(bert()) == vocabulary_of(corpus.tokenizer())
    verify(corpus.path)


def test_a_large_vocabulary_takes_four_bytes_a_token(tmp_path) -> None:
    from bertsmith.text.tokenizer import Tokenizer

    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(70_000))]
    big = Tokenizer.from_files({"vocab.txt": "\n".join(tokens).encode()})
    path = tmp_path / "a.txt"
    path.write_text("w69999 w1\n")
    made, _ = make(path, tmp_path / "out", big)
    assert made.tokens.dtype == np.uint32
    assert made.tokens.tolist() == [70_004, 6]


def test_a_split_is_exact_deterministic_and_disjoint(corpus) -> None:
    train, held = corpus.split(0.1, seed=3)
    assert len(held) == 30
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(300))
    again = corpus.split(0.1, seed=3)
    assert (train == again[0]).all()
    assert (held != corpus.split(0.1, seed=4)[1]).any()
    assert len(corpus.split(0.0, seed=1)[1]) == 0
    assert len(corpus.split(0.0001, seed=1)[1]) == 1
    larger = set(corpus.split(0.2, seed=3)[1].tolist())
    assert set(held.tolist()) <= larger
    with pytest.raises(ConfigError, match="held_out"):
        corpus.split(1.0, seed=1)


def test_another_vocabulary_is_refused_by_name(corpus) -> None:
    corpus.require_vocabulary(bert(), "my-bert")
    with pytest.raises(FolderError, match="vocabulary of other-bert"):
        corpus.require_vocabulary(bert(lowercase=False), "other-bert")


@pytest.mark.parametrize("file", ["tokens.bin", "words.bin", "sentences.bin", "documents.bin"])
def test_a_truncated_or_missing_file_is_named_on_opening(corpus, tmp_path, file) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(corpus.path, copy)
    os.truncate(copy / file, (copy / file).stat().st_size - 8)
    with pytest.raises(FolderError, match=file):
        open_corpus(copy)
    (copy / file).unlink()
    with pytest.raises(FolderError, match=file):
        open_corpus(copy)


def test_a_path_that_holds_no_corpus_is_told_what_to_give(tmp_path) -> None:
    (tmp_path / "file").touch()
    for name in ("missing", "file"):
        with pytest.raises(FolderError, match="give the folder that `bertsmith corpus build`"):
            open_corpus(tmp_path / name)


def test_every_flipped_bit_is_found(corpus, tmp_path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(corpus.path, copy)
    files = [file for file in sorted(copy.rglob("*")) if file.is_file()]
    files = [file for file in files if file.name != "manifest.json"]
    rng = random.Random(5)
    for _ in range(60):
        file = rng.choice(files)
        data = bytearray(file.read_bytes())
        at, bit = rng.randrange(len(data)), rng.randrange(8)
        data[at] ^= 1 << bit
        file.write_bytes(data)
        with pytest.raises(BertsmithError, match=file.name):
            verify(copy)
        data[at] ^= 1 << bit
        file.write_bytes(data)
    verify(copy)


@pytest.mark.usefixtures("edited_folders")
def test_a_damaged_manifest_is_refused_with_an_error_of_ours(corpus, tmp_path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(corpus.path, copy)
    content = (copy / "manifest.json").read_bytes()
    rng = random.Random(6)
    for _ in range(300):
        data = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (copy / "manifest.json").write_bytes(data)
        try:
            open_corpus(copy)
        except BertsmithError:
            continue
    manifest = json.loads(content)
    manifest["files"]["../a.txt"] = {"size": 1, "sha256": ""}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FolderError, match=r"manifest\.json"):
        verify(copy)
    (copy / "manifest.json").unlink()
    with pytest.raises(FolderError, match="is no corpus"):
        open_corpus(copy)


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_modes_follow_the_umask(tmp_path, mask, mode) -> None:
    path = tmp_path / "a.txt"
    path.write_text("the cat.\n")
    old = os.umask(mask)
    try:
        made, _ = make(path, tmp_path / "out")
    finally:
        os.umask(old)
    for name in fingerprint(made.path):
        assert stat.S_IMODE((made.path / name).stat().st_mode) == mode, name
    assert stat.S_IMODE(made.path.stat().st_mode) == (0o777 & ~mask)
