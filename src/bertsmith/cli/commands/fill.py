"""`bertsmith fill`: the most likely tokens for each mask of a text."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.options import OUTPUT, Json, MaskedModelArgument, option, spread

if TYPE_CHECKING:
    from bertsmith.runtime.mask_filling import Filled

Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="Text with [MASK] (or the mask token of the model).")
]
Top = Annotated[int, option(OUTPUT, "--top", "Number of candidates per mask.", min=1)]


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
        sys.stdout.write(json.dumps(asdict(filled)) + "\n")
    else:
        _show(filled)


def _show(filled: Filled) -> None:
    """Guesses as lines: mask number, probability, token."""
    from bertsmith.cli.shared.console import printable

    several = len(filled.guesses) > 1
    lines = []
    for number, guesses in enumerate(filled.guesses, start=1):
        prefix = f"{number}\t" if several else ""
        lines += [f"{prefix}{guess.score:.4f}\t{printable(guess.token)}" for guess in guesses]
    lines.append(f"{'' if not several else chr(9)}\t{printable(filled.text)}")
    sys.stdout.buffer.write(("\n".join(lines) + "\n").encode("utf-8", errors="replace"))
    sys.stdout.flush()
