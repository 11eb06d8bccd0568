"""The group `bertsmith sentences`: a table of its commands."""

from __future__ import annotations

import typer

from bertsmith.cli.commands.sentences.evaluate import evaluate
from bertsmith.cli.commands.sentences.flow import flow
from bertsmith.cli.commands.sentences.similar import similar
from bertsmith.cli.commands.sentences.static import static
from bertsmith.cli.commands.sentences.train import train
from bertsmith.cli.commands.sentences.tune import tune
from bertsmith.cli.commands.sentences.whiten import whiten

app = typer.Typer()
app.command()(train)
app.command()(evaluate)
app.command()(tune)
app.command()(whiten)
app.command()(flow)
app.command()(static)
app.command()(similar)
