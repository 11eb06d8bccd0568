"""Arguments and options that several commands have, each declared once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from bertsmith.config import Override, overrides_of
from bertsmith.hardware.environment import MOST_THREADS
from bertsmith.setting import COMPUTE, DATA, MODEL, OUTPUT, TRAINING, Setting

# Models
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Model folder, or a name such as all-MiniLM-L6-v2.")
]
MaskedModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Model folder or name; needs a masked-LM head.")
]
EncoderOption = Annotated[
    str,
    Setting("Model folder or name: all-MiniLM-L6-v2, for instance.", MODEL, metavar="MODEL"),
]
ModelOption = Annotated[
    str, Setting("Model folder or name: what training starts from.", MODEL, metavar="MODEL")
]

# Data
DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Folder with train, dev and test files, or one file, which is split."
    ),
]
DevFile = Annotated[Path | None, Setting("File with dev (validation) rows.", DATA)]
TestFile = Annotated[Path | None, Setting("File with test rows.", DATA)]
PositiveLabel = Annotated[
    str | None,
    Setting("Label of pairs that mean the same; 1, yes, entailment are known.", DATA),
]
SegmenterOption = Annotated[
    str | None, Setting("Chinese word boundaries: jieba or character.", DATA)
]

Estimate = Annotated[bool, Setting("Print the plan and its cost; train nothing.", TRAINING)]
# Training
RecipeOption = Annotated[
    str | None, Setting("Recipe name (see `bertsmith recipes`) or .toml file.", TRAINING)
]
Set = Annotated[
    list[str] | None,
    Setting(
        "Override any setting of the recipe: --set optimizer.lr=1e-4; repeatable. Dedicated "
        "options take precedence.",
        TRAINING,
        metavar="KEY=VALUE",
    ),
]
Epochs = Annotated[float | None, Setting("Number of training epochs.", TRAINING)]
Steps = Annotated[int | None, Setting("Number of training steps.", TRAINING, min=1)]
Budget = Annotated[
    str | None,
    Setting("Training time instead of steps: 20m, 1h30m.", TRAINING, metavar="TIME"),
]
LearningRate = Annotated[
    float | None,
    Setting("Learning rate; chosen by the width of the model if unset.", TRAINING),
]
BatchSize = Annotated[int | None, Setting("Rows per step.", TRAINING, min=1)]
MaxLength = Annotated[int | None, Setting("Maximum tokens per text.", TRAINING, min=4)]
TruncationSide = Annotated[
    Literal["head", "tail", "head+tail"] | None,
    Setting("Part of longer texts that is kept: head, tail or head+tail.", DATA),
]
TrialEpochs = Annotated[float, Setting("Number of training epochs.", TRAINING)]
TrainRows = Annotated[
    int, Setting("Training rows to use at most, stratified by label.", DATA, min=2)
]
DevRows = Annotated[int, Setting("Dev rows to use at most.", DATA, min=2)]
Seed = Annotated[int | None, Setting("Random seed.", TRAINING, min=0)]
Seeds = Annotated[
    int,
    Setting("Train with this many consecutive seeds; report mean and interval.", TRAINING, min=1),
]
Accept = Annotated[
    list[str] | None,
    Setting(
        "Resume although this setting has changed since the checkpoint; repeatable.",
        TRAINING,
        metavar="KEY",
    ),
]

# Compute
Precision = Annotated[
    Literal["auto", "fp32", "bf16"],
    Setting(
        "Precision: auto, the fastest path proven on this machine; fp32, exact; bf16, required.",
        COMPUTE,
    ),
]
TrainingPrecision = Annotated[
    Literal["auto", "fp32", "bf16"] | None,
    Setting(
        "Precision: auto, the fastest matmuls proven on this machine; fp32, nothing rounded; "
        "bf16, required.",
        COMPUTE,
    ),
]
Threads = Annotated[
    int | None,
    Setting("CPU threads; all cores if unset.", COMPUTE, min=1, max=MOST_THREADS),
]
Device = Annotated[str, Setting("Device: cpu, cuda, cuda:1, mps.", COMPUTE)]
TrainingDevice = Annotated[
    str | None, Setting("Device: cpu, cuda, cuda:1; a GPU if there is one.", COMPUTE)
]

# Output
RunFolder = Annotated[
    Path, Setting("Output: the folder of the run and the trained model.", OUTPUT, metavar="DIR")
]
StudyFolder = Annotated[
    Path | None,
    Setting(
        "Output: a folder of finished runs, which are not repeated; named after the input if "
        "unset.",
        OUTPUT,
        metavar="DIR",
    ),
]
Json = Annotated[bool, Setting("Print JSON.", OUTPUT, flag="--json")]
Overwrite = Annotated[bool, Setting("Replace an existing model folder.", OUTPUT)]
Quiet = Annotated[bool, Setting("Print errors and the result only.", OUTPUT)]


def overrides(given: list[str] | None, settings: Mapping[str, object]) -> list[Override]:
    """What --set was given, then the settings of dedicated options that were given."""
    named = {name: value for name, value in settings.items() if value is not None}
    return [*map(Override.parse, given or []), *overrides_of(named)]
