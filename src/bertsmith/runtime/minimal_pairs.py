"""Minimal pairs (BLiMP, Warstadt et al. 2020, arXiv:1912.00582): which of two texts is likelier."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.runtime.mask_filling import MaskedModel
from bertsmith.runtime.scoring import Hide, score_texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A good text and a bad one that differ in what a paradigm tests."""

    good: str
    bad: str
    phenomenon: str
    paradigm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a model did on some pairs; a tie counts one half."""

    name: str
    pairs: int
    points: float
    ties: int

    @property
    def accuracy(self) -> float:
        """Points a pair."""
        return self.points / self.pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class PairReport:
    """All pairs together, by phenomenon, and by paradigm."""

    overall: Verdict
    phenomena: tuple[Verdict, ...]
    paradigms: tuple[Verdict, ...]


def read_pairs(folder: Path, *, limit: int | None = None) -> list[Pair]:
    """The pairs of every .jsonl file of a folder, at most `limit` of each file."""
    files = sorted(folder.glob("*.jsonl")) or sorted((folder / "data").glob("*.jsonl"))
    if not files:
        raise InputFileError(f"{folder} holds no .jsonl files; BLiMP is a folder of 67 of them")
    return [pair for file in files for pair in islice(_read(file), limit)]


def judge(
    model: MaskedModel,
    pairs: Sequence[Pair],
    *,
    hide: Hide = "token",
    progress: Callable[[int], None] | None = None,
) -> PairReport:
    """Score both texts of every pair and count how often the good one is likelier."""
    texts = (text for pair in pairs for text in (pair.good, pair.bad))
    scores = score_texts(model, texts, hide=hide, progress=lambda n: progress and progress(n // 2))
    points: dict[str, list[float]] = defaultdict(list)
    grouped: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        good, bad = next(scores).total, next(scores).total
        point = 0.5 if good == bad else float(good > bad)
        points[pair.paradigm].append(point)
        grouped[pair.phenomenon].append(point)
    everything = [point for found in points.values() for point in found]
    return PairReport(
        overall=_verdict("overall", everything),
        phenomena=tuple(_verdict(name, found) for name, found in sorted(grouped.items())),
        paradigms=tuple(_verdict(name, found) for name, found in sorted(points.items())),
    )


def _verdict(name: str, points: Sequence[float]) -> Verdict:
    return Verdict(name=name, pairs=len(points), points=sum(points), ties=points.count(0.5))


def _read(file: Path) -> Iterator[Pair]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputFileError(f"{file}, line {number}: not JSON ({error})") from error
            keys = ("sentence_good", "sentence_bad")
            if not isinstance(row, dict) or not all(isinstance(row.get(k), str) for k in keys):
                raise InputFileError(
                    f"{file}, line {number}: needs {' and '.join(keys)}, both of them texts"
                )
            paradigm = str(row.get("UID", file.stem))
            yield Pair(
                good=row["sentence_good"],
                bad=row["sentence_bad"],
                phenomenon=str(row.get("linguistics_term", paradigm)),
                paradigm=paradigm,
            )
