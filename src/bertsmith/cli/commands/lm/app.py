"""The group `bertsmith lm`: a table of its commands."""

from __future__ import annotations

import typer

from bertsmith.cli.commands.lm.commands import convert, generate, perplexity
from bertsmith.cli.commands.lm.score import score
from bertsmith.cli.commands.lm.train import train

app = typer.Typer(
    help="Language models of words: n-gram, NNLM, LSTM, GRU, ELMo, GPT.", no_args_is_help=True
)
app.command()(train)
app.command()(perplexity)
app.command()(score)
app.command()(generate)
app.command()(convert)
