"""Evaluation of vectors on rows of texts: STS, pair classification, retrieval, triplets.

Figures are those of sentence-transformers' evaluators for the same vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.strict_json import json_values
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.metrics.arrays import Floats, Ints
from bertsmith.metrics.correlation import pearson, spearman
from bertsmith.metrics.pair_scores import PAIRS
from bertsmith.metrics.retrieval import RANKED, RETRIEVAL
from bertsmith.metrics.significance import Interval, bootstrap
from bertsmith.sentences.compare import Vectors, check_vectors, paired_similarity, rank_documents
from bertsmith.sentences.train.rows import pair_labels

Encode = Callable[[Sequence[str]], Vectors]
Aggregation = Literal["all", "mean"]
MEASURES = {
    "scores": "sts",
    "labels": "pair classification",
    "triplets": "triplets",
    "pairs": "retrieval",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceScores:
    """The figures of one file, the main one first, with the interval of the main one.

    `table` (N, 2) has the gold scores and similarities of STS pairs, to be joined with others.
    """

    source: str
    measure: str
    rows: int
    figures: dict[str, float]
    interval: Interval | None = None
    note: str = ""
    table: Floats | None = None

    @property
    def main(self) -> str:
        """The name of the figure that decides."""
        return next(iter(self.figures))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        interval = None
        if self.interval is not None:
            interval = {"figure": self.main, "low": self.interval.low, "high": self.interval.high}
        record = {
            "file": self.source,
            "measure": self.measure,
            "rows": self.rows,
            "figures": self.figures,
            "interval": interval,
            "note": self.note,
        }
        return dict(json_values(record))


def evaluate_rows(
    data: SentenceData,
    encode: Encode,
    *,
    similarity: str = "cosine",
    positive: str | None = None,
    corpus: Sequence[str] = (),
    samples: int = 1_000,
) -> SentenceScores:
    """The figures of rows of any kind but plain texts; `samples` 0 leaves the interval out.

    `positive` is the label of pairs that mean the same; `corpus` are further documents that the
    answers of question-answer pairs are searched among.
    """
    if data.kind == "texts":
        raise ConfigError(
            f"{data.source} holds texts without scores, labels or pairs: there is nothing to "
            "compare vectors with"
        )
    vectors = _encoded(data, encode)
    if data.kind == "pairs":
        return _retrieval(data, encode, vectors, similarity, corpus, samples)
    first, second = (vectors([row[side] for row in data.rows]) for side in (0, 1))
    near = paired_similarity(similarity, first, second)
    if data.kind == "scores":
        return _correlated(data, near, samples)
    if data.kind == "labels":
        marks, name = pair_labels(data, positive)
        figures = PAIRS.score(marks, near)
        table = PAIRS.rows(marks, near, ())
        drawn = PAIRS.drawn(table, ()) if PAIRS.drawn else PAIRS.figure(marks, near)
        note = f"label {name!r} is the positive one; thresholds are of {similarity}"
        return _scores(data, figures, drawn, len(marks), samples, note=note)
    right = np.concatenate(
        [
            near > paired_similarity(similarity, first, vectors([row[side] for row in data.rows]))
            for side in range(2, len(data.rows[0]))
        ]
    ).astype(np.float64)
    accuracy = {"accuracy": float(right.mean())}
    return _scores(data, accuracy, lambda drawn: float(right[drawn].mean()), len(right), samples)


def aggregate(files: Sequence[SentenceScores], how: Aggregation) -> dict[str, float]:
    """Correlations of several STS files: of all their pairs together, or the mean over files."""
    tables = [one.table for one in files if one.table is not None]
    if how == "all":
        joined = np.concatenate(tables)
        return {
            "spearman": spearman(joined[:, 0], joined[:, 1]),
            "pearson": pearson(joined[:, 0], joined[:, 1]),
        }
    return {
        name: float(np.mean([one.figures[name] for one in files]))
        for name in ("spearman", "pearson")
    }


def _encoded(data: SentenceData, encode: Encode) -> Callable[[Sequence[str]], Vectors]:
    """Vectors by text, each distinct text encoded once."""
    texts = data.texts()
    number = {text: at for at, text in enumerate(texts)}
    table = encode(texts)
    check_vectors(table, f"{data.source}, distinct texts")
    return lambda some: table[[number[text] for text in some]]


def _correlated(data: SentenceData, near: Floats, samples: int) -> SentenceScores:
    gold = data.targets
    if gold is None or gold.min() == gold.max():
        raise InputFileError(
            f"{data.source}: all scores are the same; a correlation needs differences"
        )
    figures = {"spearman": spearman(gold, near), "pearson": pearson(gold, near)}
    return _scores(
        data,
        figures,
        lambda drawn: spearman(gold[drawn], near[drawn]),
        len(gold),
        samples,
        table=np.column_stack([gold, near]),
    )


def _retrieval(
    data: SentenceData,
    encode: Encode,
    vectors: Callable[[Sequence[str]], Vectors],
    similarity: str,
    corpus: Sequence[str],
    samples: int,
) -> SentenceScores:
    """Each distinct first text is a query; second texts and `corpus` are the documents."""
    answers: dict[str, set[str]] = {}
    for row in data.rows:
        answers.setdefault(row[0], set()).add(row[1])
    documents = list(dict.fromkeys([*(row[1] for row in data.rows), *corpus]))
    place = {text: at for at, text in enumerate(documents)}
    own = len(dict.fromkeys(row[1] for row in data.rows))
    known = vectors(documents[:own])
    if len(documents) > own:
        further = encode(documents[own:])
        check_vectors(further, "the corpus")
        known = np.concatenate([known, further])
    ranked = rank_documents(similarity, vectors(list(answers)), known, RANKED)
    relevant = [{place[text] for text in some} for some in answers.values()]
    table = RETRIEVAL.rows(relevant, ranked, ())
    figures = RETRIEVAL.figures(table, ())
    main = table[:, 0]
    note = f"{len(answers):,} queries, {len(documents):,} documents"
    return _scores(
        data, figures, lambda drawn: float(main[drawn].mean()), len(table), samples, note=note
    )


def _scores(
    data: SentenceData,
    figures: dict[str, float],
    drawn: Callable[[Ints], float],
    rows: int,
    samples: int,
    *,
    note: str = "",
    table: Floats | None = None,
) -> SentenceScores:
    interval = None
    if samples:
        sampled = bootstrap(drawn, rows, samples=samples)
        main = next(iter(figures.values()))
        interval = Interval(main, sampled.low, sampled.high)
        if math.isnan(sampled.low):
            interval = None
    return SentenceScores(
        source=data.source,
        measure=MEASURES[data.kind],
        rows=len(data),
        figures=figures,
        interval=interval,
        note=note,
        table=table,
    )
