"""The files of a folder that hold the training, development and test rows, however spelled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.files.streams import packing_of
from bertsmith.labeled.guess.conll import ENDINGS as CONLL
from bertsmith.labeled.read.rejects_file import ENDING as REJECTED

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "dev": ("dev", "valid", "validation", "val", "development"),
    "test": ("test", "testing"),
}
ENDINGS = (".tsv", ".csv", ".txt", ".jsonl", ".json", *CONLL)
SPLIT_RECORD = ".split.json"
PARTS = re.compile(r"[-_. ]+")


def split_files(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """Files by "train", "dev" and "test", and the names of those that are not used.

    A folder with one data file gives it as "train" alone.
    """
    files = [path for path in sorted(folder.iterdir()) if _is_data(path)]
    splits = {name: path for name in SPELLINGS if (path := _chosen(name, files, folder))}
    if not splits and len(files) == 1:
        splits = {"train": files[0]}
    if "train" not in splits:
        names = ", ".join(path.name for path in files[:10]) or "none"
        raise InputFileError(
            f"{folder}: no file is called train (with .tsv, .csv, .jsonl, .json, .txt, .conll); "
            f"files that could hold rows: {names}; rename one, or give the file itself"
        )
    return splits, [path.name for path in files if path not in splits.values()]


def _is_data(path: Path) -> bool:
    name = path.name.lower()
    if name.startswith(".") or name.endswith((REJECTED, SPLIT_RECORD)) or not path.is_file():
        return False
    return _stem(name) != name


def _stem(name: str) -> str:
    """A name without the endings of data files; the name itself if it has none."""
    bare = name.removesuffix(packing_of(Path(name)))
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if bare.endswith(ending) and bare != ending:
            return bare.removesuffix(ending)
    return name


def _chosen(split: str, files: list[Path], folder: Path) -> Path | None:
    """The one file of a split: named so and no more, or with the word among others."""
    words = SPELLINGS[split]
    exact = [path for path in files if _stem(path.name.lower()) in words]
    named = exact or [path for path in files if _names(path) == {split}]
    # MNLI has two of each: within the genres of the training rows, and outside.
    if len(named) > 1:
        matched = [path for path in named if "matched" in PARTS.split(_stem(path.name.lower()))]
        named = matched if len(matched) == 1 else named
    if len(named) > 1:
        several = ", ".join(path.name for path in named)
        raise InputFileError(
            f"{folder}: {several} could all be the {split} file; keep one in the folder, or call "
            f"it {split}{named[0].suffix}"
        )
    return named[0] if named else None


def _names(path: Path) -> set[str]:
    """The splits whose words stand in a file's name."""
    parts = set(PARTS.split(_stem(path.name.lower())))
    return {split for split, words in SPELLINGS.items() if parts & set(words)}
