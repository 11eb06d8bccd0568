"""The group `bertsmith words`: a table of its commands."""

from __future__ import annotations

import typer

from bertsmith.cli.commands.words.commands import analogy, convert, evaluate, near
from bertsmith.cli.commands.words.train import train

app = typer.Typer(
    help="Word vectors: train word2vec, look up, evaluate, convert.", no_args_is_help=True
)
app.command()(train)
app.command()(near)
app.command()(analogy)
app.command()(evaluate)
app.command()(convert)
