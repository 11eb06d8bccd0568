"""`bertsmith sentences similar`: sentences that say the same, written or found in a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from bertsmith.cli.shared.console import write_json, write_lines
from bertsmith.cli.shared.options import Device, Json, ModelArgument
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError
from bertsmith.setting import DATA, MODEL, OUTPUT, Setting

Sentence = Annotated[str, typer.Argument(metavar="SENTENCE", help="The sentence, in quotes.")]
Write = Annotated[
    int | None,
    Setting("Number of sentences to write; 10 if unset.", OUTPUT, min=1, metavar="N"),
]
Among = Annotated[
    Path | None,
    Setting(
        "Find the nearest texts of this file (.txt, .tsv, .csv, .jsonl) instead of writing.",
        DATA,
        metavar="FILE",
    ),
]
Nearest = Annotated[
    int | None,
    Setting(
        "Number of results: texts of --among; 5 if unset.", OUTPUT, flag="-k", min=1, metavar="K"
    ),
]
Candidates = Annotated[
    int | None,
    Setting("Texts that are drawn to choose from; 100 if unset.", MODEL, min=1, metavar="N"),
]
TopK = Annotated[
    int | None,
    Setting("Draw among the K likeliest; 5 if unset.", MODEL, min=1),
]
DrawSeed = Annotated[int | None, Setting("Random seed; 0 if unset.", MODEL, min=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawOptions:
    """How candidates are drawn."""

    candidates: Candidates = None
    top_k: TopK = None
    seed: DrawSeed = None

    def given(self) -> dict[str, int]:
        """The options that were given, by their names in Python."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@spread
def similar(
    model: ModelArgument,
    sentence: Sentence,
    drawing: DrawOptions,
    write: Write = None,
    among: Among = None,
    nearest: Nearest = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Write sentences that say the same, or find them in a file; the nearest come first.

    To write, the model must have been trained with `bertsmith finetune PAIRS --task similar`. To
    find, any model of sentence vectors will do.

    Examples:

        bertsmith sentences similar my-simbert "how do I reset my password" --write 10

        bertsmith sentences similar my-simbert "how do I reset my password" --among bank.txt -k 5
    """
    from bertsmith.api.similar import similar_sentences
    from bertsmith.labeled.texts import read_texts

    _check(write, among, nearest, drawing)
    bank = None if among is None else (text for text in read_texts(among) if text.strip())
    count = (write or 10) if among is None else (nearest or 5)
    found = similar_sentences(
        model,
        sentence,
        count=count,
        among=bank,
        device=device,
        **drawing.given(),
    )
    if as_json:
        write_json({"sentence": sentence, "similar": [asdict(one) for one in found]})
    else:
        write_lines([f"{one.score:.3f}  {one.text}" for one in found])


def _check(
    write: int | None, among: Path | None, nearest: int | None, drawing: DrawOptions
) -> None:
    """Refuse options of the other half."""
    if among is None and nearest is not None:
        raise ConfigError("-k is for --among FILE; sentences that are written: --write N")
    if among is not None and write is not None:
        raise ConfigError("give --write N or --among FILE, not both")
    wrong = [f"--{name.replace('_', '-')}" for name in drawing.given()]
    if among is not None and wrong:
        raise ConfigError(
            f"{wrong[0]} is for sentences that are written; leave it out with --among"
        )
