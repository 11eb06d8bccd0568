"""The options of the command line, each declared once, and settings objects spread into options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

MODEL, DATA, TRAINING, COMPUTE, OUTPUT, RARE_DATA = PANELS = (
    "Model",
    "Data",
    "Training",
    "Compute",
    "Output",
    "Data, rarely needed",
)

# Models
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Model folder, or a name such as all-MiniLM-L6-v2.")
]
MaskedModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Model folder or name; needs a masked-LM head.")
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Model folder or name to start from.",
        rich_help_panel=MODEL,
    ),
]

# Data
DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Folder with train, dev and test files, or one file, which is split."
    ),
]
DevFile = Annotated[
    Path | None,
    typer.Option("--dev", help="File with dev (validation) rows.", rich_help_panel=DATA),
]
TestFile = Annotated[
    Path | None, typer.Option("--test", help="File with test rows.", rich_help_panel=DATA)
]
Field = Annotated[
    str | None,
    typer.Option(
        "--field",
        metavar="COLUMN",
        help="Column with the texts: a name (the first row is a header), a number from 1 (no "
        "header), or the key in .jsonl.",
        rich_help_panel=DATA,
    ),
]
TextFormat = Annotated[
    Literal["txt", "tsv", "csv", "jsonl"] | None,
    typer.Option("--format", help="File format; by file name if unset.", rich_help_panel=DATA),
]
TextEncoding = Annotated[
    str,
    typer.Option(
        "--encoding",
        help="Encoding of the files; a byte order mark takes precedence.",
        rich_help_panel=DATA,
    ),
]
SegmenterOption = Annotated[
    str | None,
    typer.Option(
        "--segmenter", help="Chinese word boundaries: jieba or character.", rich_help_panel=DATA
    ),
]

# Training
RecipeOption = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        help="Recipe name (see `bertsmith recipes`) or .toml file.",
        rich_help_panel=TRAINING,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override any setting of the recipe: --set optimizer.lr=1e-4; repeatable. Dedicated "
        "options take precedence.",
        rich_help_panel=TRAINING,
    ),
]
Epochs = Annotated[
    float | None,
    typer.Option("--epochs", help="Number of training epochs.", rich_help_panel=TRAINING),
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        "--lr",
        help="Learning rate; chosen by the width of the model if unset.",
        rich_help_panel=TRAINING,
    ),
]
BatchSize = Annotated[
    int | None, typer.Option("--batch", min=1, help="Rows per step.", rich_help_panel=TRAINING)
]
MaxLength = Annotated[
    int | None,
    typer.Option("--max-length", min=4, help="Maximum tokens per text.", rich_help_panel=TRAINING),
]
TruncationSide = Annotated[
    Literal["head", "tail", "head+tail"] | None,
    typer.Option("--keep", help="Part of longer texts that is kept.", rich_help_panel=TRAINING),
]
TrialEpochs = Annotated[
    float, typer.Option("--epochs", help="Epochs per run.", rich_help_panel=TRAINING)
]
TrainRows = Annotated[
    int,
    typer.Option(
        "--rows", min=1, help="Training rows to use, stratified by label.", rich_help_panel=DATA
    ),
]
DevRows = Annotated[
    int, typer.Option("--dev-rows", min=2, help="Dev rows to use.", rich_help_panel=DATA)
]
Seed = Annotated[
    int | None, typer.Option("--seed", min=0, help="Random seed.", rich_help_panel=TRAINING)
]
Accept = Annotated[
    list[str] | None,
    typer.Option(
        "--accept",
        metavar="KEY",
        help="Resume although this setting has changed since the checkpoint; repeatable.",
        rich_help_panel=TRAINING,
    ),
]

# Compute
Precision = Annotated[
    Literal["auto", "fp32", "bf16"],
    typer.Option(
        "--precision",
        help="auto: fastest path proven on this machine; fp32: exact; bf16: required.",
        rich_help_panel=COMPUTE,
    ),
]
TrainingPrecision = Annotated[
    Literal["auto", "fp32", "bf16"] | None,
    typer.Option(
        "--precision",
        help="auto: fastest matmuls proven on this machine; fp32: nothing rounded; bf16: required.",
        rich_help_panel=COMPUTE,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, help="CPU threads; all cores if unset.", rich_help_panel=COMPUTE
    ),
]
Device = Annotated[
    str, typer.Option("--device", help="cpu, cuda, cuda:1, mps.", rich_help_panel=COMPUTE)
]
TrainingDevice = Annotated[
    str | None,
    typer.Option(
        "--device", help="cpu, cuda, cuda:1; a GPU if there is one.", rich_help_panel=COMPUTE
    ),
]

# Output
RunFolder = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder of the run and the trained model.",
        rich_help_panel=OUTPUT,
    ),
]
StudyFolder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder for finished runs, which are not repeated; named after the input if unset.",
        rich_help_panel=OUTPUT,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", help="Print errors and the result only.", rich_help_panel=OUTPUT),
]


def column(field: str | None) -> str | int | None:
    """A column as readers take it: a number counts columns, anything else is a name."""
    return int(field) if field is not None and field.isdecimal() else field


def overrides(settings: Mapping[str, object]) -> list[str]:
    """Settings that were given, as --set would take them."""
    return [f"{key}={value}" for key, value in settings.items() if value is not None]


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: dataclass parameters are replaced by their fields.

    A field is annotated as a parameter would be: `Annotated[type, typer.Option(...)]`. Options are
    ordered by their panel, as `PANELS` lists them; within a panel they keep their order.
    """
    hints = get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters
    groups = {name: hints[name] for name in own if is_dataclass(hints[name])}
    shown: list[inspect.Parameter] = []
    for name, parameter in own.items():
        shown += (
            _fields(groups[name])
            if name in groups
            else [_option(name, hints[name], parameter.default)]
        )

    @functools.wraps(command)
    def run(**values: Any) -> None:  # typer calls by name, whatever the names are
        for name, group in groups.items():
            values[name] = group(**{one.name: values.pop(one.name) for one in fields(group)})
        command(**values)

    run.__signature__ = inspect.Signature(sorted(shown, key=_panel))  # type: ignore[attr-defined]
    return run


def _panel(parameter: inspect.Parameter) -> int:
    """The place of a parameter's panel; arguments and options without one come first."""
    for mark in get_args(parameter.annotation)[1:]:
        panel = getattr(mark, "rich_help_panel", None)
        if panel in PANELS:
            return PANELS.index(panel)
    return -1


def _fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _option(
            one.name,
            hints[one.name],
            inspect.Parameter.empty if one.default is MISSING else one.default,
        )
        for one in fields(group)
    ]


def _option(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
