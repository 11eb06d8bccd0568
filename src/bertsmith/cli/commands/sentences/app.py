"""The group `bertsmith sentences`: a table of its commands."""

from __future__ import annotations

import typer

from bertsmith.cli.commands.sentences.evaluate import evaluate
from bertsmith.cli.commands.sentences.train import train

app = typer.Typer()
app.command()(train)
app.command()(evaluate)
