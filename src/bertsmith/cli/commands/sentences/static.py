"""`bertsmith sentences static`: one vector per token, for speed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

from bertsmith.cli.shared.console import write_json, write_lines
from bertsmith.cli.shared.options import Json, ModelArgument, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.sentence_folders import (
    FolderOptions,
    ManyTextOptions,
    OutFolder,
    change_line,
    change_record,
)
from bertsmith.setting import DATA, MODEL, Setting

CountTexts = Annotated[
    str | None,
    Setting(
        "File of texts: token frequencies are counted in it; without it, by the order of the "
        "vocabulary.",
        DATA,
        metavar="FILE",
    ),
]
TableWidth = Annotated[int, Setting("Dimensions of the vectors.", MODEL, min=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticOptions:
    """What static vectors are made of."""

    text_file: CountTexts = None
    dim: TableWidth = 256


@spread
def static(
    model: ModelArgument,
    out: OutFolder,
    making: StaticOptions,
    reading: ManyTextOptions,
    folder: FolderOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make static vectors of a model: a text is the weighted mean of its tokens' vectors.

    Every token goes through the model once; PCA; frequent tokens weigh less. Encoding is then as
    fast as tokenizing. What that loses is printed: on --pairs, or as agreement with the model on
    --text-file.

    Example:

        bertsmith sentences static my-model --text-file texts.txt --pairs dev.csv --out fast
    """
    from bertsmith.api.sentence_folders import run_static
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.sentences.static import StaticSettings

    silent = quiet or as_json
    texts = None if making.text_file is None else reading.stream(making.text_file, quiet=silent)
    made = run_static(
        folder.job(model, out),
        texts,
        StaticSettings(width=making.dim),
        observer=ConsoleObserver(quiet=silent),
    )
    if as_json:
        record = {**asdict(made), "out": str(made.out), "change": change_record(made.change)}
        write_json(record)
        return
    seen = "by the order of the vocabulary"
    if made.seen is not None:
        seen = f"by your texts, which have {made.seen:,} of them"
    lines = [
        f"{made.out}: {made.tokens:,} tokens, {made.width} columns with {made.explained:.1%} of "
        f"the variance, weighted {seen}",
        f"{made.rate_after:,.0f} texts/s, {made.rate_after / made.rate_before:.0f} times the "
        f"model's {made.rate_before:,.0f}",
        *change_line(made.change),
    ]
    if made.agreement is not None:
        lines.append(
            f"agreement with the model on random pairs of your texts: Spearman {made.agreement:.4f}"
        )
    if made.agreement is None and made.change is None:
        lines.append("quality was not measured: give --pairs or --text-file")
    write_lines(lines)
