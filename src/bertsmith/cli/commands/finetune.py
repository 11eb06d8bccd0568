"""`bertsmith finetune`: your labeled rows in, a proven model out; the same command goes on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from bertsmith.cli.shared.data_options import Reading
from bertsmith.cli.shared.options import spread
from bertsmith.errors import ConfigError

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A folder with train, dev and test files, or one file, which is then split.",
    ),
]
Model = Annotated[
    str, typer.Option("--model", metavar="MODEL", help="A model folder or a name to start from.")
]
Out = Annotated[Path, typer.Option("--out", help="Folder of the run and of the finished model.")]
Recipe = Annotated[
    str | None,
    typer.Option("--recipe", help="A name (see `bertsmith recipes`) or a .toml file."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any setting: --set head.dropout=0.2; options of a setting's own win.",
    ),
]
Dev = Annotated[Path | None, typer.Option("--dev", help="The file of development rows.")]
Test = Annotated[Path | None, typer.Option("--test", help="The file of test rows.")]
Shares = Annotated[
    str,
    typer.Option("--split", metavar="TRAIN/DEV/TEST", help="How one file is split, in percent."),
]
SplitSeed = Annotated[int, typer.Option("--split-seed", min=0, help="Another split of one file.")]
MaxLength = Annotated[
    int | None, typer.Option("--max-length", min=4, help="The most tokens that are read of a text.")
]
Keep = Annotated[
    Literal["head", "tail", "head+tail"] | None,
    typer.Option("--keep", help="Which part of a longer text is read."),
]
Epochs = Annotated[float | None, typer.Option("--epochs", help="How often each row is read.")]
Rate = Annotated[
    float | None, typer.Option("--lr", help="The learning rate; what suits the model if unset.")
]
Batch = Annotated[int | None, typer.Option("--batch", min=1, help="Rows in a step.")]
Seeds = Annotated[
    int,
    typer.Option(
        "--seeds", min=1, help="Train so often, with this and the next seeds; show the mean."
    ),
]
Folds = Annotated[
    int | None,
    typer.Option("--folds", min=2, help="Cross-validate: every training row is judged once."),
]
Precision = Annotated[
    Literal["auto", "fp32", "bf16"] | None,
    typer.Option("--precision", help="auto: the fastest path proven here; fp32: nothing rounded."),
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Cores to use; all if unset.")
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Another seed, another run.")]
Device = Annotated[
    str | None, typer.Option("--device", help="cpu, cuda, cuda:1; a GPU if there is one.")
]
Accept = Annotated[
    list[str] | None,
    typer.Option("--accept", metavar="KEY", help="Let a setting differ from the last checkpoint."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Only errors and the result.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Which rows are for what."""

    dev: Dev = None
    test: Test = None
    split: Shares = "80/10/10"
    split_seed: SplitSeed = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How it is learned: settings of the recipe, some by a short name."""

    recipe: Recipe = None
    set: Set = None
    max_length: MaxLength = None
    keep: Keep = None
    epochs: Epochs = None
    lr: Rate = None
    batch: Batch = None
    accept: Accept = None
    seeds: Seeds = 1
    folds: Folds = None

    def overrides(self) -> list[str]:
        """The settings that were given, as --set would take them."""
        short = {
            "length.max_length": self.max_length,
            "length.keep": f'"{self.keep}"' if self.keep else None,
            "plan.epochs": self.epochs,
            "optimizer.lr": self.lr,
            "plan.batch": self.batch,
        }
        return [*(self.set or []), *_given(short)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What it is trained on: short names for the section `run` of the recipe."""

    precision: Precision = None
    threads: Threads = None
    seed: Seed = None
    device: Device = None

    def overrides(self) -> list[str]:
        """The settings that were given, as --set would take them."""
        return _given(
            {"run.precision": self.precision, "run.threads": self.threads, "run.seed": self.seed}
        )


@spread
def finetune(
    data: Data,
    model: Model,
    out: Out,
    rows: Rows,
    plan: Plan,
    reading: Reading,
    place: Place,
    quiet: Quiet = False,
) -> None:
    """Fine-tune a model on labeled rows and prove what it is worth. The same command goes on.

    DATA is a folder with train, dev and test files, or one file. TSV, CSV, JSONL, CoNLL, SQuAD and
    others are told apart by what they hold; what was guessed is printed and can be set.

    Examples:

        bertsmith finetune reviews.csv --model all-MiniLM-L6-v2 --out my-model

        bertsmith finetune sst2/ --model bert-base-uncased --out sst2-model --recipe sst2

        bertsmith finetune news.tsv --text title --text body --label topic --model m --out news
    """
    from bertsmith.cli.shared.finetune_run import Request, run

    if plan.folds is not None and plan.seeds > 1:
        raise ConfigError("give --seeds or --folds, not both")
    request = Request(
        data=data,
        model=model,
        out=out,
        recipe=plan.recipe,
        overrides=[*plan.overrides(), *place.overrides()],
        accept=plan.accept or [],
        given=reading.labeled(),
        on_error=reading.on_error,
        files={n: p for n, p in (("dev", rows.dev), ("test", rows.test)) if p is not None},
        shares=_shares(rows.split),
        split_seed=rows.split_seed,
        seeds=plan.seeds,
        folds=plan.folds,
        device=place.device,
    )
    code = run(request, quiet=quiet)
    sys.stdout.flush()
    if code:
        raise typer.Exit(code)


def _given(settings: Mapping[str, object]) -> list[str]:
    return [f"{key}={value}" for key, value in settings.items() if value is not None]


def _shares(text: str) -> tuple[float, ...]:
    """ "80/20" or "80/10/10" as shares that add up to 1."""
    try:
        parts = [float(part) for part in text.split("/")]
    except ValueError:
        parts = []
    parts += [0.0] * (3 - len(parts))
    total = sum(parts)
    if len(parts) != 3 or total <= 0 or min(parts) < 0 or parts[0] == 0 or parts[1] == 0:
        raise ConfigError(f"--split {text}: give train/dev/test in percent, such as 80/10/10")
    return tuple(round(part / total, 12) for part in parts)
