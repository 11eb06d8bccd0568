"""A corpus on disk: tokens, words, sentences and documents as memory-mapped arrays."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.journal import ARRAYS
from bertsmith.errors import ConfigError, FolderError
from bertsmith.files.digest import file_digest
from bertsmith.files.folder_hashes import check_hashes
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.kinds import refuse_kind
from bertsmith.random_keys import mixed_with
from bertsmith.text.special_tokens import SpecialTokens
from bertsmith.text.tokenizer import Tokenizer

MANIFEST = "manifest.json"
TOKENIZER = "tokenizer"
FORMAT = "bertsmith corpus"
VERSION = 1
TOKEN_TYPES = {"uint16": "<u2", "uint32": "<u4"}
STEP = 1 << 22


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Corpus:
    """Documents of sentences of tokens; the arrays are read from disk as they are needed.

    `tokens` (N,); `starts_word` (N,) not 0 where a word begins, there 1 and twice the word's case
    (`letter_case`); `sentences` (S + 1,) token offsets; `documents` (M + 1,) sentence offsets;
    `vocabulary` names the tokenizer it was made with. Corpora made before the case was stored have
    1 for every word, and no "case" in their manifest.
    """

    path: Path
    tokens: NDArray[np.uint16] | NDArray[np.uint32]
    starts_word: NDArray[np.uint8]
    sentences: NDArray[np.int64]
    documents: NDArray[np.int64]
    vocabulary: str
    vocab_size: int
    special: SpecialTokens
    manifest: dict[str, Any]

    def tokenizer(self) -> Tokenizer:
        """The tokenizer the corpus was made with, from the corpus itself."""
        return Tokenizer.from_folder(self.path / TOKENIZER)

    def require_vocabulary(self, tokenizer: Tokenizer, name: str) -> None:
        """Refuse a tokenizer with other ids; `name` is where it came from."""
        if (vocabulary := vocabulary_of(tokenizer)) != self.vocabulary:
            raise FolderError(
                f"the vocabulary of {name} ({vocabulary[:12]}) is not that of the corpus "
                f"{self.path} ({self.vocabulary[:12]}, {self.vocab_size:,} tokens): the ids would "
                f"mean other words; build the corpus again with --model {name}"
            )

    def split(self, held_out: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of documents to train on and to hold out: always the same for a seed.

        At least one document stands on either side, if anything is held out.
        """
        if not 0.0 <= held_out < 1.0:
            raise ConfigError(f"held_out is {held_out}; it must be at least 0 and below 1")
        count = len(self.documents) - 1
        numbers = np.arange(count, dtype=np.int64)
        if held_out == 0.0:
            return numbers, numbers[:0]
        if count < 2:
            raise FolderError(f"{self.path} holds one document, so none of it can be held out")
        wanted = min(max(1, round(count * held_out)), count - 1)
        order = np.argsort(mixed_with(seed, numbers), kind="stable")
        return np.sort(order[wanted:]), np.sort(order[:wanted])


def open_corpus(path: str | Path) -> Corpus:
    """A corpus ready to be read; sizes, borders and small files are checked, others by `verify`."""
    folder = Folder.at(Path(path), wanted="the folder that `bertsmith corpus build` wrote")
    check_hashes(folder)
    manifest = _manifest(folder)
    kind = TOKEN_TYPES[manifest["token_type"]]
    tokens = _array(folder, "tokens.bin", kind, manifest)
    words = _array(folder, "words.bin", "u1", manifest)
    sentences = _array(folder, "sentences.bin", "<i8", manifest)
    documents = _array(folder, "documents.bin", "<i8", manifest)
    if len(tokens) != len(words):
        raise FolderError(f"{folder.path}: tokens.bin and words.bin do not fit together")
    _check_borders(folder.path / "sentences.bin", sentences, len(tokens))
    _check_borders(folder.path / "documents.bin", documents, len(sentences) - 1)
    return Corpus(
        path=folder.path,
        tokens=tokens,
        starts_word=words,
        sentences=sentences,
        documents=documents,
        vocabulary=manifest["vocabulary"],
        vocab_size=manifest["vocab_size"],
        special=SpecialTokens(**manifest["special"]),
        manifest=manifest,
    )


def verify(path: Path) -> None:
    """Read everything and compare it with the manifest; names the file that is damaged."""
    corpus = open_corpus(path)
    for name, known in corpus.manifest["files"].items():
        file = corpus.path / name
        if file_digest(file) != known["sha256"]:
            raise FolderError(
                f"{file} is damaged: its content is not what the manifest says; build the corpus "
                "again, or copy the file from where the corpus came from"
            )
    for name, borders in (("sentences.bin", corpus.sentences), ("documents.bin", corpus.documents)):
        for at in range(0, len(borders), STEP):
            if not (np.diff(borders[at : at + STEP + 1]) > 0).all():
                raise FolderError(f"{corpus.path / name}: its borders are not in order")
    for at in range(0, len(corpus.tokens), STEP):
        if int(corpus.tokens[at : at + STEP].max()) >= corpus.vocab_size:
            raise FolderError(f"{corpus.path / 'tokens.bin'} holds ids that no token has")
    corpus.require_vocabulary(corpus.tokenizer(), str(corpus.path / TOKENIZER))


def vocabulary_of(tokenizer: Tokenizer) -> str:
    """The sha256 of the tokenizer.json that the tokenizer would save."""
    return hashlib.sha256(tokenizer.files()["tokenizer.json"]).hexdigest()


def _manifest(folder: Folder) -> dict[str, Any]:
    if not folder.has(MANIFEST):
        refuse_kind(folder.path, "pretrain")
        raise FolderError(
            f"{folder.path} has no {MANIFEST}, so it is no corpus; "
            "make one with: bertsmith corpus build FILES --model DIR --out SHARDS"
        )
    try:
        manifest = folder.json_object(MANIFEST)
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise FolderError(f"{folder.path / MANIFEST} is not of format {FORMAT!r} {VERSION}")
        whole = (
            manifest["token_type"] in TOKEN_TYPES
            and isinstance(manifest["vocabulary"], str)
            and isinstance(manifest["vocab_size"], int)
            and SpecialTokens(**manifest["special"]) is not None
            and all(
                isinstance(known["size"], int) and isinstance(known["sha256"], str)
                for known in manifest["files"].values()
            )
            and set(ARRAYS) <= set(manifest["files"])
            and all(_inside(name) for name in manifest["files"])
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise FolderError(f"{folder.path / MANIFEST} is damaged: {error!r}") from error
    if not whole:
        raise FolderError(f"{folder.path / MANIFEST} is damaged: its entries are not as written")
    return manifest


def _inside(name: str) -> bool:
    """Whether a name is one the builder writes: a file of the corpus or of its tokenizer."""
    parts = name.split("/")
    plain = all(part not in ("", ".", "..") and "\\" not in part for part in parts)
    return plain and (len(parts) == 1 or (len(parts) == 2 and parts[0] == TOKENIZER))


def _array(folder: Folder, name: str, kind: str, manifest: dict[str, Any]) -> NDArray[Any]:
    """A file as a read-only array; its size must be what the manifest says."""
    wanted = manifest["files"][name]["size"]
    with folder.open(name) as file:
        size = os.fstat(file.fileno()).st_size
        if size != wanted or size == 0 or size % np.dtype(kind).itemsize:
            raise FolderError(
                f"{folder.path / name} has {size:,} bytes, the manifest says {wanted:,}: it is "
                "damaged; build the corpus again"
            )
        return np.memmap(file, dtype=kind, mode="r")


def _check_borders(path: Path, borders: NDArray[np.int64], last: int) -> None:
    if len(borders) < 2 or borders[0] != 0 or borders[-1] != last:
        raise FolderError(f"{path} does not fit the other files: the corpus is damaged")
