"""`bertsmith lm score`: pseudo-log-likelihoods of texts, and BLiMP minimal pairs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.cli.shared.console import (
    printable,
    table_lines,
    write_json,
    write_json_lines,
    write_lines,
    write_remarks,
)
from bertsmith.cli.shared.data_options import FirstRows, TextOptions, texts_or_text
from bertsmith.cli.shared.options import Json, MaskedModelArgument
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError
from bertsmith.setting import DATA, MODEL, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.runtime.mask_filling import MaskedModel
    from bertsmith.runtime.scoring import PairAccuracy

Texts = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE|TEXT", help="File of texts (one per line, .jsonl ...), or a text."
    ),
]
Blimp = Annotated[
    Path | None,
    Setting("Evaluate the minimal pairs of the .jsonl files in this folder.", DATA, metavar="DIR"),
]
HideOption = Annotated[
    Literal["token", "word"],
    Setting("Mask one token at a time, or also the rest of its word.", MODEL),
]
Tokens = Annotated[bool, Setting("Also print the score of each token.", OUTPUT)]


@spread
def score(
    model: MaskedModelArgument,
    reading: TextOptions,
    texts: Texts = None,
    blimp: Blimp = None,
    rows: FirstRows = None,
    hide: HideOption = "token",
    tokens: Tokens = False,
    as_json: Json = False,
) -> None:
    """Score texts by pseudo-log-likelihood: each token is masked once, given all others.

    Examples:

        bertsmith lm score my-bert "the man went to the store ."

        bertsmith lm score my-bert texts.txt --json

        bertsmith lm score my-bert --blimp blimp/data --rows 100
    """
    from bertsmith.runtime.loading import load

    if (texts is None) == (blimp is None):
        raise ConfigError("give a file or a text to score, or --blimp FOLDER, and not both")
    masked = load(model, precision="fp32").masked
    if blimp is not None:
        _compare(masked, blimp, rows, hide, as_json=as_json)
        return
    total, count = 0.0, 0
    from bertsmith.runtime.scoring import score_texts

    for scored in score_texts(masked, texts_or_text(texts or "", reading), hide=hide):
        total, count = total + scored.total, count + len(scored.values)
        if as_json:
            row: dict[str, object] = {"score": scored.total, "tokens": len(scored.values)}
            if tokens:
                row |= {
                    "values": [list(one) for one in zip(scored.tokens, scored.values, strict=True)]
                }
            write_json_lines(json.dumps(row) + "\n")
            continue
        lines = [f"{scored.total:.4f}\t{len(scored.values)}"]
        if tokens:
            pairs = zip(scored.tokens, scored.values, strict=True)
            lines += [f"  {value:9.4f}\t{printable(token, keep='')}" for token, value in pairs]
        write_lines(lines)
    if count:
        perplexity = math.exp(-total / count)
        write_remarks([f"pseudo-perplexity {perplexity:,.2f} over {count:,} tokens"])


def _compare(
    masked: MaskedModel,
    folder: Path,
    limit: int | None,
    hide: Literal["token", "word"],
    *,
    as_json: bool,
) -> None:
    from bertsmith.cli.views.progress import meter
    from bertsmith.runtime.scoring import compare_pairs, read_pairs

    pairs = read_pairs(folder, limit=limit)
    with meter("compare", quiet=as_json) as shown:
        report = compare_pairs(
            masked, pairs, hide=hide, progress=lambda done: shown(done, done / len(pairs))
        )
    if as_json:
        write_json(
            {
                "overall": _row(report.overall),
                "phenomena": [_row(one) for one in report.phenomena],
                "paradigms": [_row(one) for one in report.paradigms],
            }
        )
        return
    rows = [
        [one.name, f"{one.pairs:,}", f"{one.ties:,}", f"{one.accuracy:.4f}"]
        for one in (*report.phenomena, report.overall)
    ]
    write_lines(table_lines(["phenomenon", "pairs", "ties", "accuracy"], rows))


def _row(one: PairAccuracy) -> dict[str, object]:
    return {"name": one.name, "pairs": one.pairs, "ties": one.ties, "accuracy": one.accuracy}
