"""`bertsmith ablate`: what single settings of a recipe are worth, over seeds, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.cli.commands.pretrain import Shards, Size
from bertsmith.cli.shared.options import (
    DevRows,
    Estimate,
    Json,
    Quiet,
    Seed,
    Set,
    Steps,
    StudyFolder,
    Threads,
    TrainingPrecision,
    TrainRows,
    overrides,
)
from bertsmith.cli.shared.options_of import spread
from bertsmith.config import Override
from bertsmith.setting import DATA, TRAINING, Setting

if TYPE_CHECKING:
    from bertsmith.studies.ablation.study import AblationRequest

What = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE", help="Recipe to vary, or a grid: bert-paper, or a .toml file."
    ),
]
Vary = Annotated[
    list[str] | None,
    Setting(
        "A row: settings that it changes, several with ; between them; repeatable.",
        TRAINING,
        metavar="SETTING",
    ),
]
Row = Annotated[
    list[str] | None,
    Setting("Row of the grid; repeatable. All if unset.", TRAINING, metavar="NAME"),
]
Seeds = Annotated[
    int,
    Setting(
        "Train with this many consecutive seeds; below 3 no difference is shown.", TRAINING, min=1
    ),
]
Probe = Annotated[
    list[Path] | None,
    Setting("Labeled rows of a probe; repeatable.", DATA, metavar="FILE"),
]
How = Annotated[
    Literal["frozen", "tuned", "both"],
    Setting("Probes train the head alone, all weights, or both in turn.", TRAINING),
]
ProbeSet = Annotated[
    list[str] | None,
    Setting("Setting of all fine-tunings.", TRAINING, metavar="KEY=VALUE"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    """What varies, and the settings that all rows share."""

    vary: Vary = None
    row: Row = None
    seeds: Seeds = 3
    size: Size = None
    steps: Steps = None
    seed: Seed = None
    set: Set = None
    precision: TrainingPrecision = None
    threads: Threads = None
    estimate: Estimate = False

    def overrides(self) -> list[Override]:
        """The settings of all rows, as --set would take them."""
        short = {
            "model.size": self.size,
            "schedule.steps": self.steps,
            "run.seed": self.seed,
            "run.precision": self.precision,
            "run.threads": self.threads,
        }
        return overrides(self.set, short)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """How the models are probed."""

    probe: Probe = None
    probing: How = "tuned"
    probe_set: ProbeSet = None
    train_rows: TrainRows = 2_000
    dev_rows: DevRows = 1_000
    out: StudyFolder = None


@spread
def ablate(
    what: What,
    corpus: Shards,
    varied: Varied,
    probed: Probed,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what settings of a recipe are worth: each changed alone, over several seeds.

    Every row is pre-trained on the same corpus, in the same order, on equally many tokens, with
    the same seeds, and compared with the base by its paired differences: held-out masked loss under
    the base's masks, and the metrics of probes (fine-tuning on labeled rows). The cost is printed
    first; the same command resumes, and finished runs are not repeated.

    Short forms: objectives.nsp=0, mask.rate=0.3, mask.copies=10, size=mini, bilstm=128,
    reading=left_to_right.

    Examples:

        bertsmith ablate bert-paper --corpus shards --size tiny --probe sst2/ --probe wikiann/

        bertsmith ablate bert --corpus shards --vary mask.rate=0.3 --vary objectives.nsp=0

        bertsmith ablate bert-paper --corpus shards --size tiny --estimate
    """
    from bertsmith.cli.shared.studies import StudyCommand
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.studies.ablation.study import read_ablation

    request = _request(what, corpus, varied, probed)
    study = read_ablation(request, notice=ConsoleObserver(quiet=quiet).note)
    StudyCommand(
        run=study.ablation.base.run,
        out=request.out,
        as_json=as_json,
        quiet=quiet,
        estimate=varied.estimate,
    ).print(lambda process: study)


def _request(what: str, corpus: Path, varied: Varied, probed: Probed) -> AblationRequest:
    """What was given, as the library takes it."""
    from bertsmith.studies.ablation.study import AblationRequest

    return AblationRequest(
        recipe=what,
        corpus=corpus,
        out=probed.out or Path(f"{Path(what).stem}-ablation"),
        vary=varied.vary or (),
        only=varied.row or (),
        settings=varied.overrides(),
        seeds=varied.seeds,
        probes=probed.probe or (),
        probing=probed.probing,
        probe_settings=probed.probe_set or (),
        rows=(probed.train_rows, probed.dev_rows),
    )
