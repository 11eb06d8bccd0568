"""The options of the command line, each declared once, and settings objects spread into options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

from bertsmith.errors import ConfigError
from bertsmith.hardware.environment import MOST_THREADS

LARGEST = 2**63  # what compiled code takes for a number

(
    MODEL,
    DATA,
    TRAINING,
    WRITING,
    BEAMS,
    SAMPLING,
    FILLING,
    SERVING,
    COMPUTE,
    OUTPUT,
    RARE_DATA,
    LIMITS,
) = PANELS = (
    "Model",
    "Data",
    "Training",
    "Writing",
    "Beams: several candidates per text, the best answer",
    "Sampling: tokens are drawn",
    "Filling: a masked LM writes",
    "Serving",
    "Compute",
    "Output",
    "Data, rarely needed",
    "Limits",
)


def option(
    panel: str,
    name: str,
    help: str,
    *,
    metavar: str | None = None,
    min: float | None = None,
    max: float | None = None,
) -> Any:
    """An option in a group of the help; typer's own signature names the group last."""
    return typer.Option(name, help=help, metavar=metavar, min=min, max=max, rich_help_panel=panel)


# Models
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Model folder, or a name such as all-MiniLM-L6-v2.")
]
MaskedModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Model folder or name; needs a masked-LM head.")
]
ModelOption = Annotated[
    str, option(MODEL, "--model", "Model folder or name to start from.", metavar="MODEL")
]

# Data
DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Folder with train, dev and test files, or one file, which is split."
    ),
]
DevFile = Annotated[Path | None, option(DATA, "--dev", "File with dev (validation) rows.")]
TestFile = Annotated[Path | None, option(DATA, "--test", "File with test rows.")]
SegmenterOption = Annotated[
    str | None, option(DATA, "--segmenter", "Chinese word boundaries: jieba or character.")
]

# Training
RecipeOption = Annotated[
    str | None, option(TRAINING, "--recipe", "Recipe name (see `bertsmith recipes`) or .toml file.")
]
Set = Annotated[
    list[str] | None,
    option(
        TRAINING,
        "--set",
        "Override any setting of the recipe: --set optimizer.lr=1e-4; repeatable. Dedicated "
        "options take precedence.",
        metavar="KEY=VALUE",
    ),
]
Epochs = Annotated[float | None, option(TRAINING, "--epochs", "Number of training epochs.")]
LearningRate = Annotated[
    float | None,
    option(TRAINING, "--lr", "Learning rate; chosen by the width of the model if unset."),
]
BatchSize = Annotated[int | None, option(TRAINING, "--batch", "Rows per step.", min=1)]
MaxLength = Annotated[
    int | None, option(TRAINING, "--max-length", "Maximum tokens per text.", min=4)
]
TruncationSide = Annotated[
    Literal["head", "tail", "head+tail"] | None,
    option(TRAINING, "--keep", "Part of longer texts that is kept."),
]
TrialEpochs = Annotated[float, option(TRAINING, "--epochs", "Epochs per run.")]
TrainRows = Annotated[
    int, option(DATA, "--rows", "Training rows to use, stratified by label.", min=1)
]
DevRows = Annotated[int, option(DATA, "--dev-rows", "Dev rows to use.", min=2)]
Seed = Annotated[int | None, option(TRAINING, "--seed", "Random seed.", min=0)]
Seeds = Annotated[
    int,
    option(
        TRAINING,
        "--seeds",
        "Train with this many consecutive seeds; report mean and interval.",
        min=1,
    ),
]
Accept = Annotated[
    list[str] | None,
    option(
        TRAINING,
        "--accept",
        "Resume although this setting has changed since the checkpoint; repeatable.",
        metavar="KEY",
    ),
]

# Compute
Precision = Annotated[
    Literal["auto", "fp32", "bf16"],
    option(
        COMPUTE,
        "--precision",
        "auto: fastest path proven on this machine; fp32: exact; bf16: required.",
    ),
]
TrainingPrecision = Annotated[
    Literal["auto", "fp32", "bf16"] | None,
    option(
        COMPUTE,
        "--precision",
        "auto: fastest matmuls proven on this machine; fp32: nothing rounded; bf16: required.",
    ),
]
Threads = Annotated[
    int | None,
    option(COMPUTE, "--threads", "CPU threads; all cores if unset.", min=1, max=MOST_THREADS),
]
Device = Annotated[str, option(COMPUTE, "--device", "cpu, cuda, cuda:1, mps.")]
TrainingDevice = Annotated[
    str | None, option(COMPUTE, "--device", "cpu, cuda, cuda:1; a GPU if there is one.")
]

# Output
RunFolder = Annotated[
    Path, option(OUTPUT, "--out", "Folder of the run and the trained model.", metavar="DIR")
]
StudyFolder = Annotated[
    Path | None,
    option(
        OUTPUT,
        "--out",
        "Folder for finished runs, which are not repeated; named after the input if unset.",
        metavar="DIR",
    ),
]
Json = Annotated[bool, option(OUTPUT, "--json", "Print JSON.")]
Quiet = Annotated[bool, option(OUTPUT, "--quiet", "Print errors and the result only.")]


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
        for name, value in values.items():
            if isinstance(value, int) and abs(value) >= LARGEST:
                raise ConfigError(f"--{name.replace('_', '-')} {value}: the number is too large")
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
