"""Sentence vectors: training from a file of rows to a model folder, and evaluation on files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertsmith.api.observer import Observer
from bertsmith.api.train import TrainedModel, train
from bertsmith.config import overrides_of
from bertsmith.errors import ConfigError, unknown
from bertsmith.labeled.pairs.pairs import (
    Kind,
    read_sentences,
)
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.runtime.loading import load
from bertsmith.runtime.selection import Precision
from bertsmith.sentences.compare import SIMILARITIES, Vectors
from bertsmith.sentences.evaluate import Aggregation, aggregate, evaluate_rows
from bertsmith.sentences.train.kind import sentence_kind, show_rows
from bertsmith.training.kind import TrainingRequest


def train_sentences(
    data: str | Path,
    *,
    model: str,
    out: str | Path,
    objective: str | None = None,
    kind: Kind | None = None,
    dev: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    device: str | None = None,
) -> TrainedModel:
    """Train sentence vectors; the same call again resumes a run that was interrupted.

    `data` is a file, or a folder with train, dev and test files: pairs with scores or labels,
    triplets, question-answer pairs or plain texts. `objective` is softmax, cosine, cosent, triplet,
    contrastive or simcse. `settings` are those of a recipe by dotted name, {"plan.steps": 100} say.
    """
    request = TrainingRequest(
        data=Path(data),
        model=model,
        out=Path(out),
        overrides=overrides_of(settings),
        files={} if dev is None else {"dev": Path(dev)},
        device=device,
    )
    return train(sentence_kind(objective, kind), request)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceEvaluation:
    """How files are evaluated; `dim` cuts vectors to their first dimensions.

    `aggregation` joins several STS files: all pairs together, or the mean over files.
    """

    kind: Kind | None = None
    spec: DataSpec = field(default_factory=DataSpec)
    on_error: OnError = "stop"
    positive: str | None = None
    corpus: Path | None = None
    aggregation: Aggregation = "all"
    similarity: str | None = None
    dim: int | None = None
    samples: int = 1_000


def evaluate_sentences(
    model: str | Path,
    files: str | Path | Sequence[str | Path],
    *,
    settings: SentenceEvaluation | None = None,
    device: str = "cpu",
    precision: Precision = "fp32",
    observer: Observer | None = None,
) -> dict[str, Any]:
    """Figures of a model's vectors on files: STS, pair classification, retrieval, triplets.

    What a file holds is guessed from its content. The main figure of each has a bootstrap interval.
    """
    settings = settings or SentenceEvaluation()
    observer = observer or Observer()
    paths = [Path(files)] if isinstance(files, str | Path) else [Path(file) for file in files]
    rows = [
        read_sentences(path, kind=settings.kind, spec=settings.spec, on_error=settings.on_error)
        for path in paths
    ]
    for data in rows:
        show_rows(data, observer)
    corpus = [] if settings.corpus is None else _corpus(settings.corpus)
    with load(model, device=device, precision=precision) as loaded:
        own = settings.similarity or loaded.settings.similarity
        if own not in SIMILARITIES:
            raise unknown("similarity", own, SIMILARITIES)
        if settings.dim is not None and not 0 < settings.dim <= loaded.dimension:
            raise ConfigError(
                f"--dim {settings.dim}: vectors of {model} have {loaded.dimension} dimensions"
            )

        def encode(texts: Sequence[str]) -> Vectors:
            return loaded.encode(texts)[:, : settings.dim]

        scores = [
            evaluate_rows(
                data,
                encode,
                similarity=own,
                positive=settings.positive,
                corpus=corpus,
                samples=settings.samples,
            )
            for data in rows
        ]
    record: dict[str, Any] = {
        "model": str(model),
        "similarity": own,
        "dim": settings.dim or loaded.dimension,
        "files": [one.to_json() for one in scores],
    }
    correlated = [one for one in scores if one.measure == "sts"]
    if len(correlated) > 1:
        joined = aggregate(correlated, settings.aggregation)
        record["sts"] = {"aggregation": settings.aggregation, "files": len(correlated), **joined}
    return record


def _corpus(path: Path) -> list[str]:
    return read_sentences(path, by_lines=path.suffix == ".txt", kind="texts").texts()
