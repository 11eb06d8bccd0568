"""`bertsmith compare-vectors`: every pooling of every choice of layers, as one table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from bertsmith.cli.shared.data_options import DataOptions
from bertsmith.cli.shared.options import DataArgument, Json, ModelOption, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.studies import StudyOptions
from bertsmith.setting import MODEL, TRAINING, Setting

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
    from bertsmith.api.studies import (
        VectorStudy,
        ranked,
        small_job,
        trials_of_vectors,
        weights_mark,
    )
    from bertsmith.cli.shared.console import write_json, write_lines
    from bertsmith.cli.shared.studies import studying
    from bertsmith.training.kinds.labeled.kind import labeled_recipe

    mark = weights_mark(model)
    out = choosing.out or Path(f"{data.resolve().name.partition('.')[0]}-vectors")
    request = replace(choosing.request(data, model, reading), out=out)
    rows = (choosing.train_rows, choosing.dev_rows)
    choices = VectorStudy(
        only=choosing.encoder,
        pooling=choosing.pooling or (),
        layers=choosing.layers or (),
        frozen_epochs=choosing.frozen_epochs,
        frozen_lr=choosing.frozen_lr,
    )
    settings = labeled_recipe(request).run
    with studying(settings, out, device=choosing.device, quiet=quiet) as study:
        study.observer.note(f"finished runs are stored in {out}")
        job, _ = small_job(request, rows, study.execution, study.observer)
        done = study.run(trials_of_vectors(job, choices, study.execution, mark=mark))
    record = ranked(job, done.rows)
    if as_json:
        write_json({"data": str(data), "model": model, **record})
    else:
        write_lines(_lines(record))


def _lines(record: dict[str, Any]) -> list[str]:
    from bertsmith.cli.shared.console import table_lines
    from bertsmith.cli.shared.studies import figure_text, shown_figures
    from bertsmith.wording import counted, duration

    runs = record["runs"]
    names = shown_figures(record["task"], runs[0]["figures"], record["figure"])
    rows = [
        [
            f"{run['pooling']} of {run['layers']}",
            run["encoder"],
            *(figure_text(run["figures"].get(name)) for name in names),
            duration(run["seconds"]),
        ]
        for run in runs
    ]
    train = counted(record["rows"]["train"], "training row")
    dev = counted(record["rows"]["dev"], "dev row")
    lines = [f"{train}; metrics of {dev}, best first:"]
    lines += table_lines(["vector", "encoder", *names, "time"], rows)
    return lines
