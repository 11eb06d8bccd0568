"""`bertsmith sentences evaluate`: figures of a model's vectors on files of pairs and triplets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bertsmith.cli.shared.console import write_json, write_lines
from bertsmith.cli.shared.options import Device, Json, ModelArgument, Precision, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.sentence_options import SentenceRowOptions
from bertsmith.errors import ConfigError
from bertsmith.setting import DATA, MODEL, OUTPUT, Setting

Files = Annotated[
    list[Path], typer.Argument(metavar="FILES", help="Files of pairs, triplets or questions.")
]
Average = Annotated[
    Literal["all", "mean"],
    Setting("Several STS files: all pairs together, or the mean of files.", OUTPUT),
]
ExtraDocuments = Annotated[
    Path | None,
    Setting("Further documents that answers are searched among, one per line.", DATA),
]
SimilarityOption = Annotated[
    Literal["cosine", "dot", "euclidean", "manhattan"] | None,
    Setting("How vectors are compared; the model's own if unset.", MODEL),
]
Dim = Annotated[
    int | None, Setting("Dimensions of the vectors: the first ones only.", MODEL, min=1)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonOptions:
    """Which vectors are compared and how they are computed."""

    similarity: SimilarityOption = None
    dim: Dim = None
    extra_documents: ExtraDocuments = None
    average: Average = "all"
    device: Device = "cpu"
    precision: Precision = "fp32"


@spread
def evaluate(
    model: ModelArgument,
    files: Files,
    rows: SentenceRowOptions,
    vectors: ComparisonOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate the vectors of a model on scored pairs, labeled pairs, triplets, questions.

    Scored pairs: Spearman and Pearson. Labeled pairs: average precision, best F1 and accuracy with
    their thresholds. Question-answer pairs: nDCG@10, MRR@10, MAP@100, recall. Triplets: accuracy.

    Examples:

        bertsmith sentences evaluate all-MiniLM-L6-v2 sts-test.csv

        bertsmith sentences evaluate mine sts12.tsv sts13.tsv --average mean

        bertsmith sentences evaluate mine faq.tsv --extra-documents more.txt
    """
    from bertsmith.api.sentences import SentenceEvaluation, evaluate_sentences
    from bertsmith.cli.views.observer import ConsoleObserver

    if rows.by_lines:
        raise ConfigError("--format lines reads texts alone, and there is nothing to compare")
    settings = SentenceEvaluation(
        kind=rows.row_kind,
        spec=rows.spec(),
        on_error=rows.on_error,
        positive=rows.positive,
        corpus=vectors.extra_documents,
        aggregation=vectors.average,
        similarity=vectors.similarity,
        dim=vectors.dim,
    )
    record = evaluate_sentences(
        model,
        files,
        settings=settings,
        device=vectors.device,
        precision=vectors.precision,
        observer=ConsoleObserver(quiet=quiet or as_json),
    )
    if as_json:
        write_json(record)
        return
    lines = [line for one in record["files"] for line in figure_lines(one)]
    if "sts" in record:
        joined = record["sts"]
        how = "all pairs together" if joined["aggregation"] == "all" else "mean of files"
        lines.append(
            f"{joined['files']} STS files, {how}: spearman {joined['spearman']:.4f}, pearson "
            f"{joined['pearson']:.4f}"
        )
    write_lines(lines)


def figure_lines(scores: dict[str, Any]) -> list[str]:
    """The figures of one file, the main one with its interval."""
    main, *others = scores["figures"]
    line = f"{main} {_number(scores['figures'][main])}"
    if scores["interval"] is not None:
        low, high = scores["interval"]["low"], scores["interval"]["high"]
        line += f" [{low:.4f}, {high:.4f}]"
    more = ", ".join(f"{name} {_number(scores['figures'][name])}" for name in others)
    note = f" ({scores['note']})" if scores["note"] else ""
    head = f"{scores['file']}, {scores['measure']}, {scores['rows']:,} rows{note}"
    return [head, f"  {line}", *([f"  {more}"] if more else [])]


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"
