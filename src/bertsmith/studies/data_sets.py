"""The data sets of GLUE and CLUE, and others with a recipe: their names on disk, published figures.

`published` are figures of BERT of base size: on the hidden test rows of GLUE (Devlin et al. 2018,
arXiv:1810.04805, table 1; SQuAD, SWAG and CoNLL-2003 from tables 2, 4 and 7), of Chinese BERT of
base size on those of CLUE (the authors' own table, github.com/CLUEbenchmark/CLUE), and on the
development rows of CMRC 2018 and others by Cui et al. 2019 (arXiv:1906.08101).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.labeled.split.splits import split_files

DEEPEST = 2  # folders below the one that was given
ADDED = ("public", "dataset", "data")  # to the names of folders


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A published data set, called as its recipe is, and how its folder may be called."""

    name: str
    suite: str  # GLUE, CLUE, or "" for others
    figures: tuple[str, ...]
    published: Mapping[str, float] = field(default_factory=dict)
    rows: str = "test"  # that the published figures were measured on
    also: tuple[str, ...] = ()


def _set(
    suite: str, name: str, figures: Mapping[str, float | None], *also: str, rows: str = "test"
) -> DataSet:
    published = {figure: value for figure, value in figures.items() if value is not None}
    return DataSet(
        name=name, suite=suite, figures=tuple(figures), published=published, rows=rows, also=also
    )


SETS = {
    one.name: one
    for one in (
        _set("GLUE", "cola", {"mcc": 0.521}),
        _set("GLUE", "sst2", {"accuracy": 0.935}),
        _set("GLUE", "mrpc", {"f1": 0.889, "accuracy": None}, "msrparaphrasecorpus"),
        _set("GLUE", "stsb", {"spearman": 0.858, "pearson": None}, "stsbenchmark"),
        _set("GLUE", "qqp", {"f1": 0.712, "accuracy": None}, "quoraquestionpairs"),
        _set("GLUE", "mnli", {"accuracy": 0.846}, "multinli"),
        _set("GLUE", "qnli", {"accuracy": 0.905}),
        _set("GLUE", "rte", {"accuracy": 0.664}),
        _set("GLUE", "wnli", {"accuracy": None}),
        _set("CLUE", "afqmc", {"accuracy": 0.737}),
        _set("CLUE", "tnews", {"accuracy": 0.5658}),
        _set("CLUE", "iflytek", {"accuracy": 0.6029}),
        _set("CLUE", "cmnli", {"accuracy": 0.7969}),
        _set("CLUE", "cluewsc", {"accuracy": 0.62}, "cluewsc2020", "wsc"),
        _set("CLUE", "csl", {"accuracy": 0.8036}),
        _set("CLUE", "cmrc", {"f1": 0.845, "exact": 0.655}, "cmrc2018", rows="dev"),
        _set("CLUE", "c3", {"accuracy": 0.645}),
        _set("CLUE", "cluener", {"f1": 0.7882}, "cluener2020"),
        _set(
            "",
            "squad",
            {"f1": 0.885, "exact": 0.808},
            "squad-1.1",
            "squad-v1.1",
            "squad1",
            rows="dev",
        ),
        _set("", "squad2", {"f1": None, "exact": None}, "squad-2.0", "squad-v2.0", rows="dev"),
        _set("", "swag", {"accuracy": 0.816}, rows="dev"),
        _set("", "conll2003", {"f1": 0.924}, "conll03"),
        _set("", "wikiann", {"f1": None}, "wikiannen", "panx", rows="dev"),
        _set("", "chnsenticorp", {"accuracy": 0.947}, rows="dev"),
        _set("", "lcqmc", {"accuracy": 0.894}, rows="dev"),
        _set("", "xnli-zh", {"accuracy": 0.778}, "xnli", rows="dev"),
        _set("", "drcd", {"f1": 0.899, "exact": 0.831}, rows="dev"),
        _set("", "msra-ner", {"f1": None}, "msra", rows="dev"),
        _set("", "imdb", {"accuracy": None}, rows="dev"),
        _set("", "bbc", {"accuracy": None}, "bbcnews", "bbctext", rows="dev"),
    )
}
SUITES = ("GLUE", "CLUE")


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailableSets:
    """What a folder holds: the data sets that can be trained on, and why others cannot."""

    usable: Mapping[str, Path]
    unusable: Mapping[str, str]

    def absent(self, suite: str) -> list[str]:
        """The sets of a suite that are not there at all."""
        known = {**self.usable, **self.unusable}
        return [name for name, one in SETS.items() if one.suite == suite and name not in known]


def find_sets(data: Path) -> AvailableSets:
    """Folders or files called as the published ones are, in `data` and the folders in it."""
    if not data.is_dir():
        raise InputFileError(f"{data} is no folder; give the one that holds the data sets")
    names = {_bare(spelled): one.name for one in SETS.values() for spelled in (one.name, *one.also)}
    usable: dict[str, Path] = {}
    unusable: dict[str, str] = {}
    for path in _below(data):
        name = names.get(_bare(_stem(path)))
        if name is None or name in usable:
            continue
        fault = _fault(path)
        if fault is None:
            usable[name] = path
            unusable.pop(name, None)
        else:
            unusable.setdefault(name, fault)
    return AvailableSets(
        usable={name: usable[name] for name in SETS if name in usable}, unusable=unusable
    )


def _below(data: Path) -> Iterator[Path]:
    """The folder itself, then all in it, level by level."""
    level = [data]
    for _ in range(DEEPEST + 1):
        yield from level
        level = [
            path
            for folder in level
            if folder.is_dir()
            for path in sorted(folder.iterdir())
            if not path.name.startswith(".")
        ]


def _stem(path: Path) -> str:
    return path.name if path.is_dir() else path.name.partition(".")[0]


def _bare(name: str) -> str:
    """Letters and digits alone, without what download pages add: "SST-2" and "sst2_public"."""
    parts = [part for part in re.split(r"[^a-z0-9]+", name.lower()) if part]
    while len(parts) > 1 and parts[-1] in ADDED:
        parts.pop()
    return "".join(parts)


def _fault(path: Path) -> str | None:
    """Why a folder cannot be trained on; None if it can."""
    if path.is_file():
        return None
    try:
        split_files(path)
    except InputFileError as fault:
        return str(fault)
    return None
