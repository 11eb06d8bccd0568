"""`bertsmith sentences train`: rows of texts in, a model of sentence vectors out; resumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.shared.options import (
    Accept,
    BatchSize,
    Budget,
    DataArgument,
    DevFile,
    Epochs,
    LearningRate,
    MaxLength,
    ModelOption,
    Quiet,
    RecipeOption,
    RunFolder,
    Seed,
    Seeds,
    Set,
    Steps,
    TestFile,
    Threads,
    TrainingDevice,
    TrainingPrecision,
    overrides,
)
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.sentence_options import SentenceRowOptions
from bertsmith.cli.shared.training import train_and_print
from bertsmith.config import Override
from bertsmith.errors import ConfigError
from bertsmith.setting import TRAINING, Setting

if TYPE_CHECKING:
    pass

ObjectiveOption = Annotated[
    Literal["softmax", "cosine", "cosent", "triplet", "contrastive", "simcse"] | None,
    Setting(
        "What is minimized; by the kind of data if unset: cosent for scores and two "
        "labels, softmax for more, contrastive for pairs and triplets, simcse for texts.",
        TRAINING,
    ),
]
Dims = Annotated[
    str | None,
    Setting(
        "Matryoshka: dimensions that vectors may be cut to later, the full width first.",
        TRAINING,
        metavar="384,128,64",
    ),
]
Margin = Annotated[float | None, Setting("Margin of the triplet objective; 1 if unset.", TRAINING)]
DistanceOption = Annotated[
    Literal["euclidean", "cosine", "manhattan"] | None,
    Setting("Distance of the triplet objective; euclidean if unset.", TRAINING),
]
Temperature = Annotated[
    float | None,
    Setting(
        "Temperature of the softmax: of contrastive, simcse and cosent; 0.05 if unset.", TRAINING
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutFiles:
    """Rows that choose the best weights, and rows that are evaluated at the end."""

    dev: DevFile = None
    test: TestFile = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceTraining:
    """The recipe, short names for its settings, and what it is computed on."""

    objective: ObjectiveOption = None
    dims: Dims = None
    margin: Margin = None
    distance: DistanceOption = None
    temperature: Temperature = None
    recipe: RecipeOption = None
    epochs: Epochs = None
    steps: Steps = None
    budget: Budget = None
    lr: LearningRate = None
    batch: BatchSize = None
    max_length: MaxLength = None
    seed: Seed = None
    seeds: Seeds = 1
    set: Set = None
    accept: Accept = None
    device: TrainingDevice = None
    precision: TrainingPrecision = None
    threads: Threads = None

    def settings(self, positive: str | None) -> list[Override]:
        """The settings that were given, as --set would take them."""
        short = {
            "vector.max_length": self.max_length,
            "plan.epochs": self.epochs,
            "plan.steps": self.steps,
            "plan.budget": self.budget,
            "optimizer.lr": self.lr,
            "plan.batch": self.batch,
            "run.seed": self.seed,
            "run.precision": self.precision,
            "run.threads": self.threads,
            "data.positive": positive,
            "matryoshka.dims": self._dims(),
        }
        inside = {
            "objective.margin": self.margin,
            "objective.distance": self.distance,
            "objective.temperature": self.temperature,
        }
        kind = {}
        if any(value is not None for value in inside.values()):
            kind = {"objective.kind": self._named_objective()}
        return overrides(self.set, {**kind, **inside, **short})

    def _dims(self) -> Any:
        """Dimensions as numbers; a mistake is named as one of the setting."""
        if self.dims is None:
            return None
        return Override.parse(f"matryoshka.dims=[{self.dims}]").value

    def _named_objective(self) -> str:
        """The objective whose settings were given."""
        if self.objective is not None:
            return self.objective
        if self.temperature is not None:
            raise ConfigError("--temperature is a setting of an objective: give --objective, too")
        return "triplet"


@spread
def train(
    data: DataArgument,
    model: ModelOption,
    out: RunFolder,
    rows: SentenceRowOptions,
    files: HeldOutFiles,
    plan: SentenceTraining,
    quiet: Quiet = False,
) -> None:
    """Train sentence vectors on your own rows; the same command resumes.

    DATA is a file, or a folder with train, dev and test files: pairs with scores or labels,
    triplets, question-answer pairs, or plain texts. What it holds is detected, printed, and can be
    set. The best weights by the dev rows are saved, as a folder that sentence-transformers reads.

    Examples:

        bertsmith sentences train pairs.tsv --model all-MiniLM-L6-v2 --out mine

        bertsmith sentences train faq.tsv --batch 1024 --model m --out mine

        bertsmith sentences train texts.txt --dev sts.tsv --model m --out mine
    """
    from bertsmith.sentences.train.kind import sentence_kind
    from bertsmith.training.kind import TrainingRequest

    named = {"dev": files.dev, "test": files.test}
    request = TrainingRequest(
        data=data,
        model=model,
        out=out,
        recipe=plan.recipe,
        overrides=plan.settings(rows.positive),
        spec=rows.spec(),
        on_error=rows.on_error,
        files={name: path for name, path in named.items() if path is not None},
        accept=plan.accept or [],
        seeds=plan.seeds,
        device=plan.device,
    )
    kind = sentence_kind(plan.objective, rows.row_kind, by_lines=rows.by_lines)
    code = train_and_print(kind, request, quiet=quiet)
    if code:
        raise typer.Exit(code)
