"""`bertsmith finetune`: labeled rows in, a model with its report out; resumes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import typer

from bertsmith.cli.shared.data_options import DataOptions, FirstRows
from bertsmith.cli.shared.options import (
    Accept,
    DataArgument,
    DevFile,
    ModelOption,
    Quiet,
    RunFolder,
    Seeds,
    TestFile,
    TruncationSide,
    overrides,
)
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.recipe_options import RecipeOptions
from bertsmith.cli.shared.training import train_and_print
from bertsmith.config import Override
from bertsmith.errors import ConfigError
from bertsmith.setting import DATA, TRAINING, Setting

SplitShares = Annotated[
    str, Setting("Split of a single file, in percent.", DATA, metavar="TRAIN/DEV/TEST")
]
SplitSeed = Annotated[int, Setting("Random seed of the split.", DATA, min=0)]
Folds = Annotated[int | None, Setting("Number of cross-validation folds.", TRAINING, min=2)]


Knowledge = Annotated[
    str | None,
    Setting(
        "Triples to read with the texts (K-BERT): subject TAB predicate TAB object.",
        TRAINING,
        metavar="FILE",
    ),
]
Channel = Annotated[
    str | None,
    Setting(
        "Tags of words to read along with the text (SemBERT): a column, or a tag model's folder.",
        TRAINING,
        metavar="COLUMN|DIR",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOptions:
    """Which rows are for training, validation and test."""

    dev: DevFile = None
    test: TestFile = None
    split: SplitShares = "80/10/10"
    split_seed: SplitSeed = 0
    rows: FirstRows = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneOptions(RecipeOptions):
    """The recipe, and what only a whole fine-tuning has."""

    keep: TruncationSide = None
    seeds: Seeds = 1
    folds: Folds = None
    accept: Accept = None
    knowledge: Knowledge = None
    channel: Channel = None

    def settings(self) -> list[Override]:
        """The settings that were given, as --set would take them."""
        further = {
            "length.keep": self.keep,
            "knowledge.file": self.knowledge,
            "channel.column": self.channel,
        }
        return [*self.overrides(), *overrides(None, further)]


@spread
def finetune(
    data: DataArgument,
    model: ModelOption,
    out: RunFolder,
    reading: DataOptions,
    parts: SplitOptions,
    plan: FinetuneOptions,
    quiet: Quiet = False,
) -> None:
    """Fine-tune a model on labeled rows and report what it is worth; the same command resumes.

    DATA is a folder with train, dev and test files, or one file. TSV, CSV, JSONL, CoNLL, SQuAD and
    other formats are detected from the content; what was detected is printed and can be set.

    Examples:

        bertsmith finetune reviews.csv --model all-MiniLM-L6-v2 --out my-model

        bertsmith finetune sst2/ --model bert-base-uncased --out sst2-model --recipe sst2

        bertsmith finetune news.tsv --text title --text body --label topic --model m --out news

        bertsmith finetune notes.conll --knowledge facts.tsv --model m --out notes-model

        bertsmith finetune pairs.tsv --task write --text article --text title --model m --out titles
    """
    from bertsmith.api.kinds import finetuning_kind
    from bertsmith.training.kind import TrainingRequest

    request = TrainingRequest(
        data=data,
        model=model,
        out=out,
        recipe=plan.recipe,
        overrides=plan.settings(),
        accept=plan.accept or [],
        spec=reading.labeled(parts.rows),
        on_error=reading.on_error,
        files={n: p for n, p in (("dev", parts.dev), ("test", parts.test)) if p is not None},
        shares=_shares(parts.split),
        split_seed=parts.split_seed,
        seeds=plan.seeds,
        folds=plan.folds,
        device=plan.device,
    )
    code = train_and_print(finetuning_kind(request), request, quiet=quiet)
    if code:
        raise typer.Exit(code)


def _shares(text: str) -> tuple[float, ...]:
    """ "80/20", "80/10/10" or "0.8/0.1/0.1" as shares that add up to 1."""
    try:
        parts = [float(part) for part in text.split("/")]
    except ValueError:
        parts = []
    parts += [0.0] * (3 - len(parts))
    total = sum(parts)
    way = "give train/dev/test in percent, such as 80/10/10"
    if len(parts) != 3 or not min(parts) >= 0 or parts[0] == 0 or parts[1] == 0:
        raise ConfigError(f"--split {text}: {way}")
    if not any(math.isclose(total, whole, rel_tol=1e-6) for whole in (1, 100)):
        raise ConfigError(f"--split {text}: the parts add up to {total:g}, not to 100; {way}")
    return tuple(round(part / total, 12) for part in parts)
