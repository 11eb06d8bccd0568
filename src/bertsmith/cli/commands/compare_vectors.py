"""`bertsmith compare-vectors`: every pooling of every choice of layers, as one table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from bertsmith.cli.shared.data_options import DataOptions
from bertsmith.cli.shared.options import DataArgument, Json, ModelOption, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.studies import StudyOptions
from bertsmith.setting import MODEL, TRAINING, Setting

if TYPE_CHECKING:
    from bertsmith.cli.shared.studies import StudyProcess
    from bertsmith.studies.vectors import VectorStudy

Encoder = Annotated[
    Literal["frozen", "trained"] | None,
    Setting(
        "Only one of: frozen, heads on a frozen encoder; trained, the encoder is fine-tuned, too.",
        MODEL,
    ),
]
Pooling = Annotated[
    list[str] | None,
    Setting("first, mean, max, attention; repeatable. All if unset.", MODEL),
]
Layers = Annotated[
    list[str] | None,
    Setting(
        "last, a number (0: embeddings), sum4, concat4, weighted, all_first; repeatable. "
        "These and the second-to-last if unset.",
        MODEL,
    ),
]
FrozenEpochs = Annotated[float, Setting("Epochs per run with a frozen encoder.", TRAINING)]
FrozenRate = Annotated[
    float | None,
    Setting("Learning rate with a frozen encoder; by the norm of its vectors if unset.", TRAINING),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing(StudyOptions):
    """Which text vectors are compared, and how."""

    encoder: Encoder = None
    pooling: Pooling = None
    layers: Layers = None
    frozen_epochs: FrozenEpochs = 10.0
    frozen_lr: FrozenRate = None


@spread
def compare_vectors(
    data: DataArgument,
    model: ModelOption,
    choosing: Choosing,
    reading: DataOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare text vectors on your rows: which pooling of which layers works best.

    Each is tried twice: with a frozen encoder (vectors as features), and with fine-tuning. One
    table, best dev metric first. The same command resumes; finished runs are not repeated.

    Examples:

        bertsmith compare-vectors sst2/ --model all-MiniLM-L6-v2

        bertsmith compare-vectors reviews.csv --model my-bert --encoder frozen --pooling mean
    """
    from bertsmith.api.studies import small_job
    from bertsmith.cli.shared.studies import StudyCommand
    from bertsmith.studies.study import weights_mark
    from bertsmith.studies.vectors import VectorChoices, VectorStudy
    from bertsmith.training.kinds.labeled.kind import labeled_recipe

    mark = weights_mark(model)
    out = choosing.out or Path(f"{data.resolve().name.partition('.')[0]}-vectors")
    request = replace(choosing.request(data, model, reading), out=out)
    rows = (choosing.train_rows, choosing.dev_rows)
    choices = VectorChoices(
        only=choosing.encoder,
        pooling=choosing.pooling or (),
        layers=choosing.layers or (),
        frozen_epochs=choosing.frozen_epochs,
        frozen_lr=choosing.frozen_lr,
    )

    def make(process: StudyProcess) -> VectorStudy:
        process.observer.note(f"finished runs are stored in {out}")
        job, _ = small_job(request, rows, process.execution, process.observer)
        return VectorStudy(data=data, folder=out, job=job, choices=choices, mark=mark)

    StudyCommand(
        run=labeled_recipe(request).run,
        out=out,
        as_json=as_json,
        quiet=quiet,
        device=choosing.device,
    ).print(make)
