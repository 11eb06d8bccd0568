"""`bertsmith fill`: the most likely tokens for each mask of a text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from bertsmith.cli.shared.console import write_json, write_lines
from bertsmith.cli.shared.options import Json, MaskedModelArgument
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import OUTPUT, Setting

Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="Text with [MASK] (or the mask token of the model).")
]
Top = Annotated[int, Setting("Number of candidates per mask.", OUTPUT, min=1)]


@spread
def fill(model: MaskedModelArgument, text: Text, top: Top = 5, as_json: Json = False) -> None:
    """Fill the masks of a text with the most likely tokens and their probabilities.

    Example:

        bertsmith fill my-bert "the man went to the [MASK] ."
    """
    from bertsmith.runtime.loading import load

    masked = load(model, precision="fp32").masked
    if masked.mask != "[MASK]" and masked.mask not in text:
        text = text.replace("[MASK]", masked.mask)  # what everybody writes, whatever the family
    filled = masked.fill(text, top=top)
    if as_json:
        write_json(asdict(filled))
        return
    several = len(filled.guesses) > 1
    lines = []
    for number, guesses in enumerate(filled.guesses, start=1):
        prefix = f"{number}\t" if several else ""
        lines += [f"{prefix}{guess.score:.4f}\t{guess.token}" for guess in guesses]
    write_lines([*lines, f"{chr(9) if several else ''}\t{filled.text}"])
