"""`bertsmith fill`: what a masked LM puts in place of each mask."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bertsmith.runtime.mask_filling import Filled

Model = Annotated[str, typer.Argument(help="A model folder with a masked-LM head, or its name.")]
Text = Annotated[str, typer.Argument(help="A text with [MASK] (or the model's own mask token).")]
Top = Annotated[int, typer.Option("--top", min=1, help="How many guesses for each mask.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def fill(model: Model, text: Text, top: Top = 5, as_json: Json = False) -> None:
    """Fill the masks of a text with the model's best guesses and their probabilities.

    Example:

        bertsmith fill my-bert "the man went to the [MASK] ."
    """
    from bertsmith.runtime.mask_filling import MaskedModel

    masked = MaskedModel.load(model)
    if masked.mask != "[MASK]" and masked.mask not in text:
        text = text.replace("[MASK]", masked.mask)  # what everybody writes, whatever the family
    filled = masked.fill(text, top=top)
    if as_json:
        sys.stdout.write(json.dumps(asdict(filled)) + "\n")
    else:
        _show(filled)


def _show(filled: Filled) -> None:
    """Guesses as lines: mask number, probability, token."""
    from bertsmith.cli.app import printable

    several = len(filled.guesses) > 1
    lines = []
    for number, guesses in enumerate(filled.guesses, start=1):
        prefix = f"{number}\t" if several else ""
        lines += [f"{prefix}{guess.score:.4f}\t{printable(guess.token)}" for guess in guesses]
    lines.append(f"{'' if not several else chr(9)}\t{printable(filled.text)}")
    sys.stdout.buffer.write(("\n".join(lines) + "\n").encode("utf-8", errors="replace"))
    sys.stdout.flush()
