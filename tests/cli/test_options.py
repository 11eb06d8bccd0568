"""Options made of settings classes: typed and read as if each were written for typer."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
import typer
from pydantic import Field
from site_scripts import script

from bertsmith.cli.shared.grouped_help import GroupedCommand
from bertsmith.cli.shared.options_of import spread
from bertsmith.config import Settings
from bertsmith.errors import ConfigError
from bertsmith.setting import DATA, TRAINING, Setting, check_settings, settings_of


@dataclass(frozen=True, kw_only=True)
class Pace:
    speed: Annotated[float, Setting("How fast.", DATA)] = 1.5
    stop: Annotated[Sequence[str], Setting("Where.", DATA, metavar="TOWN")] = ()
    night: Annotated[bool | None, Setting("By night.", DATA)] = None
    inner: int = 7


class Engine(Settings):
    power: int = Field(default=3, ge=1, le=9)
    fuel: Annotated[Literal["coal", "wood"], Setting("What burns.", TRAINING)] = "coal"
    steam: Annotated[int, Field(ge=2), Setting("Pressure.", TRAINING, rare=True)] = 4


def grouped(
    town: Annotated[str, typer.Argument(help="Where to.")],
    pace: Pace,
    engine: Engine,
    loud: Annotated[bool, Setting("Ring.", DATA)] = False,
) -> None:
    """Go."""
    SEEN.append((town, pace.speed, tuple(pace.stop), pace.night, engine.fuel, engine.steam, loud))


def plain(
    town: Annotated[str, typer.Argument(help="Where to.")],
    speed: Annotated[float, typer.Option(help="How fast.", rich_help_panel=DATA)] = 1.5,
    stop: Annotated[
        list[str] | None,
        typer.Option("--stop", help="Where.", metavar="TOWN", rich_help_panel=DATA),
    ] = None,
    night: Annotated[bool | None, typer.Option(help="By night.", rich_help_panel=DATA)] = None,
    loud: Annotated[bool, typer.Option("--loud", help="Ring.", rich_help_panel=DATA)] = False,
    fuel: Annotated[
        Literal["coal", "wood"], typer.Option(help="What burns.", rich_help_panel=TRAINING)
    ] = "coal",
    steam: Annotated[
        int, typer.Option("--steam", help="Pressure.", rich_help_panel=TRAINING, min=2)
    ] = 4,
) -> None:
    """Go."""
    SEEN.append((town, speed, tuple(stop or ()), night, fuel, steam, loud))


SEEN: list[tuple] = []


def call(command, *arguments: str) -> None:
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["--help", "--help-all"]},
    )
    app.command(cls=GroupedCommand)(command)
    with contextlib.suppress(SystemExit):
        typer.main.get_command(app)(args=list(arguments), prog_name="go", standalone_mode=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["Rome"],
        ["Rome", "--speed", "3", "--fuel", "wood", "--steam", "2"],
        ["--stop", "a", "Rome", "--stop", "b", "--loud", "--no-night"],
        ["--help-all"],
        ["Rome", "--speed", "fast"],
        ["Rome", "--fuel", "oil"],
        ["Rome", "--steam", "1"],
        [],
        ["Rome", "--goal", "x"],
        ["Rome", "--spede", "2"],
        ["Rome", "--inner", "2"],
        ["Rome", "--power", "2"],
    ],
)
def test_settings_read_and_help_like_options_written_for_typer(arguments, capsys) -> None:
    seen = []
    for command in (plain, spread(grouped)):
        SEEN.clear()
        call(command, *arguments)
        seen.append((list(SEEN), capsys.readouterr()))
    assert seen[0] == seen[1]
    assert seen[0][0] or seen[0][1].out or seen[0][1].err


def test_rare_options_are_counted_in_the_help_and_shown_by_help_all(capsys) -> None:
    call(spread(grouped), "--help")
    short = capsys.readouterr().out
    assert "--fuel" in short
    assert "--steam" not in short
    assert "1 more option: go --help-all" in short
    call(spread(grouped), "--help-all")
    whole = capsys.readouterr().out
    assert "--steam" in whole
    assert "more option" not in whole


def test_two_settings_of_one_name_are_a_fault_of_the_program() -> None:
    def twice(pace: Pace, speed: Annotated[int, Setting("Again.", DATA)] = 1) -> None:
        """Go."""

    with pytest.raises(TypeError, match="two settings called speed"):
        spread(twice)


def test_bounds_come_from_the_setting_or_from_what_pydantic_checks() -> None:
    fields = {one.name: one for one in settings_of(Engine)}
    assert set(fields) == {"fuel", "steam"}  # power has no Setting: it is for Python
    assert (fields["steam"].min, fields["steam"].max) == (2, None)
    assert fields["fuel"].default == "coal"


@dataclass(frozen=True, kw_only=True)
class Checked:
    count: Annotated[int | None, Setting("How many.", DATA, min=1, max=1_000)] = None
    share: Annotated[float, Setting("How much.", DATA)] = 0.5
    words: Annotated[Sequence[str], Setting("Which.", DATA)] = ()
    kind: Annotated[Literal["a", "b"] | None, Setting("What.", DATA)] = None
    loud: Annotated[bool, Setting("Ring.", DATA)] = False


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, r"count \(--count\) is 0; give 1 or more"),
        ({"count": 1_001}, "give at most 1,000"),
        ({"count": 1.0}, r"count \(--count\) must be int, not 1.0"),
        ({"count": True}, "must be int, not True"),
        ({"share": float("nan")}, "share .* give a finite number"),
        ({"share": "much"}, "must be float or int, not 'much'"),
        ({"share": None}, "must be float or int, not None"),
        ({"words": "one"}, "words .* must be a list of texts"),
        ({"words": (1,)}, "words .* must be a list of texts"),
        ({"kind": "c"}, r"value of kind \(--kind\)"),
        ({"loud": 3}, "must be True or False"),
    ],
)
def test_values_of_python_are_checked_by_the_same_declaration(values, message) -> None:
    check_settings(Checked())
    check_settings(Checked(count=1, share=1, words=["x"], kind="a", loud=True))
    with pytest.raises(ConfigError, match=message):
        check_settings(Checked(**values))


def test_an_option_is_added_in_one_place(capsys, monkeypatch) -> None:
    """A new field of a settings class is an option, a field of the form, a row of the pages."""
    from bertsmith.runtime.generation import options
    from bertsmith.serve.forms import given_settings, with_settings
    from bertsmith.serve.routes import RequestForm

    @dataclass(frozen=True, slots=True, kw_only=True)
    class GenerationOptions(options.GenerationOptions):
        """With one more."""

        rhyme: Annotated[int, Setting("Lines that rhyme.", DATA, min=0, max=9)] = 2

    monkeypatch.setattr(options, "GenerationOptions", GenerationOptions)
    module = importlib.import_module("bertsmith.cli.commands.generation.generate")
    monkeypatch.setattr(module, "GenerationOptions", GenerationOptions)
    command = spread(module.generate.__wrapped__)
    call(command, "--help")
    assert "--rhyme" in capsys.readouterr().out
    rows = script("options_page").option_rows(command.settings)
    assert "| `--rhyme` | number, 0 to 9 | `2` | Lines that rhyme. |" in rows

    @with_settings(GenerationOptions, most={"rhyme": 4})
    class Form(RequestForm):
        """A form."""

        text: str

    form = Form.model_validate({"text": "a", "rhyme": 3})
    assert given_settings(form, GenerationOptions) == {"rhyme": 3}
    assert Form.model_json_schema()["properties"]["rhyme"] == {
        "default": 2,
        "description": "Lines that rhyme.",
        "maximum": 4,
        "minimum": 0,
        "title": "Rhyme",
        "type": "integer",
    }
    with pytest.raises(ConfigError, match=r"rhyme \(--rhyme\) is 10; give at most 9"):
        check_settings(GenerationOptions(rhyme=10))
