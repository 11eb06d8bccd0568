"""Options in groups: what the user types and reads is the same as with one parameter each."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer

from bertsmith.cli.shared.options import spread


@dataclass(frozen=True, kw_only=True)
class Pace:
    speed: Annotated[float, typer.Option(help="How fast.")] = 1.5
    stops: Annotated[list[str] | None, typer.Option("--stop", help="Where.")] = None


@dataclass(frozen=True, kw_only=True)
class Goal:
    town: Annotated[str, typer.Argument(help="Where to.")]


def grouped(goal: Goal, pace: Pace, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
    """Go."""
    SEEN.append((goal.town, pace.speed, pace.stops, loud))


def plain(
    town: Annotated[str, typer.Argument(help="Where to.")],
    speed: Annotated[float, typer.Option(help="How fast.")] = 1.5,
    stops: Annotated[list[str] | None, typer.Option("--stop", help="Where.")] = None,
    loud: Annotated[bool, typer.Option("--loud")] = False,
) -> None:
    """Go."""
    SEEN.append((town, speed, stops, loud))


SEEN: list[tuple] = []


def call(command, *arguments: str) -> None:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(command)
    with contextlib.suppress(SystemExit):
        typer.main.get_command(app)(args=list(arguments), prog_name="go", standalone_mode=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["Rome"],
        ["Rome", "--speed", "3"],
        ["--stop", "a", "Rome", "--stop", "b", "--loud"],
        ["--help"],
        ["Rome", "--speed", "fast"],
        [],
        ["Rome", "--goal", "x"],
    ],
)
def test_a_grouped_command_reads_and_helps_like_a_plain_one(arguments, capsys) -> None:
    told = []
    for command in (plain, spread(grouped)):
        SEEN.clear()
        call(command, *arguments)
        told.append((list(SEEN), capsys.readouterr()))
    assert told[0] == told[1]
    assert told[0][0] or told[0][1].out or told[0][1].err
