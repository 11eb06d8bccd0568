"""`bertsmith sentences tune`: which layer, pooling, correction and dimension suit your pairs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.console import table_lines, write_json, write_lines
from bertsmith.cli.shared.options import Device, Json, ModelArgument, Overwrite, Quiet, Threads
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.sentence_folders import ManyTextOptions
from bertsmith.cli.shared.sentence_options import SentenceRowOptions
from bertsmith.setting import DATA, MODEL, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.sentences.tune.tune import Tried, TuneResult
    from bertsmith.sentences.tune.without_labels import Hinted

PairsArgument = Annotated[
    Path, typer.Argument(metavar="PAIRS", help="Pairs with scores or labels; or texts, for hints.")
]
FitTexts = Annotated[
    str | None,
    Setting(
        "File of texts: whitening and flow are fitted on them, 20,000 at most; those of the pairs "
        "if unset.",
        DATA,
        metavar="FILE",
    ),
]
MaxPairs = Annotated[int, Setting("Pairs to use at most, evenly spread.", DATA, min=10)]
Flows = Annotated[int, Setting("Layers and poolings that a flow is learned for.", MODEL, min=0)]
Dimension = Annotated[
    list[int] | None,
    Setting(
        "Dimensions of the vectors: whiten to these; repeatable. All, 512, 256 ... if unset.", MODEL
    ),
]
WinnerFolder = Annotated[
    Path | None, Setting("Output: the folder of the winner, with tune.html.", OUTPUT, metavar="DIR")
]
Picture = Annotated[Path | None, Setting("The picture as an HTML page.", OUTPUT, metavar="FILE")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """What is tried, on what, and where the result goes."""

    text_file: FitTexts = None
    max_pairs: MaxPairs = 5_000
    flows: Flows = 2
    dim: Dimension = None
    out: WinnerFolder = None
    report: Picture = None
    overwrite: Overwrite = False
    device: Device = "cpu"
    threads: Threads = None


@spread
def tune(
    model: ModelArgument,
    pairs: PairsArgument,
    rows: SentenceRowOptions,
    trying: TuneOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try layers, poolings, whitening, flow and dimensions on your own pairs; save the winner.

    The encoder runs once. The winner is the simplest way that the best one does not clearly beat,
    by paired bootstrap. Texts or pairs without scores give alignment, uniformity and isotropy,
    which are hints only: whitening wins on them whether it helps or not.

    Example:

        bertsmith sentences tune my-model pairs.tsv --out tuned
    """
    from bertsmith.api.sentence_folders import PairFile, TuneJob, run_tune
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.sentences.tune.tune import TuneResult, TuneSettings

    silent = quiet or as_json
    source = PairFile(path=pairs, kind=rows.row_kind, spec=rows.spec(), positive=rows.positive)
    job = TuneJob(
        model=model,
        pairs=source,
        out=trying.out,
        report=trying.report,
        max_pairs=trying.max_pairs,
        overwrite=trying.overwrite,
        device=trying.device,
        threads=trying.threads,
    )
    settings = TuneSettings(flows=trying.flows, dimensions=tuple(trying.dim or ()) or None)
    texts = ManyTextOptions().stream(trying.text_file, quiet=silent) if trying.text_file else ()
    found = run_tune(job, texts, settings, observer=ConsoleObserver(quiet=silent))
    if isinstance(found, TuneResult):
        write_json(_record(found)) if as_json else write_lines(_lines(found, trying))
    elif as_json:
        write_json([{"way": one.candidate.name, **asdict(one.hints)} for one in found])
    else:
        write_lines(_hint_lines(found))


def _lines(found: TuneResult, trying: TuneOptions) -> list[str]:
    shown = [one for one in found.tried if one.interval is not None]
    lines = table_lines(["way", found.measure, "95 % interval"], [_cells(one) for one in shown])
    gain, winner = found.gain, found.winner.candidate
    lines += [
        f"{len(found.tried)} ways on {found.pairs:,} pairs; corrections fitted on "
        f"{found.fitted_on}",
        f"chosen: {winner.name}, {gain.value:+.4f} against the folder as it is (95 % interval "
        f"{gain.low:+.4f} to {gain.high:+.4f})",
    ]
    if found.winner is not found.best:
        lines.append(
            f"  the simplest that {found.best.candidate.name} does not clearly beat "
            f"({found.lead.value:+.4f}, {found.lead.low:+.4f} to {found.lead.high:+.4f})"
        )
    where = trying.report or (trying.out / "tune.html" if trying.out else None)
    lines += [f"{trying.out}: the folder of the winner"] if trying.out else []
    lines += [f"{where}: the picture"] if where else []
    return lines


def _cells(one: Tried) -> list[str]:
    low, high = (one.interval.low, one.interval.high) if one.interval else (0.0, 0.0)
    return [one.candidate.name, f"{one.score:.4f}", f"{low:.4f} to {high:.4f}"]


def _record(found: TuneResult) -> dict[str, Any]:
    def plain(one: Tried) -> dict[str, Any]:
        interval = None if one.interval is None else [one.interval.low, one.interval.high]
        return {
            "way": one.candidate.name,
            "layers": one.candidate.layers,
            "pooling": one.candidate.pooling,
            "correction": one.candidate.correction,
            "dimension": one.candidate.dimension,
            "score": one.score,
            "interval": interval,
        }

    return {
        "measure": found.measure,
        "pairs": found.pairs,
        "fitted_on": found.fitted_on,
        "winner": plain(found.winner),
        "gain": asdict(found.gain),
        "lead": asdict(found.lead),
        "tried": [plain(one) for one in found.tried],
    }


def _hint_lines(found: list[Hinted]) -> list[str]:
    heads = ["way", "alignment", "uniformity", "mean cosine", "first direction", "isotropy"]
    rows = [
        [
            one.candidate.name,
            f"{one.hints.alignment:.3f}",
            f"{one.hints.uniformity:.3f}",
            f"{one.hints.mean_cosine:.3f}",
            f"{one.hints.first_share:.1%}",
            f"{one.hints.isotropy:.3f}",
        ]
        for one in found
    ]
    return [
        *table_lines(heads, rows),
        "these are hints, not quality: whitening improves them whether it helps or not; nothing "
        "was chosen or saved",
        "pairs with scores or labels, even a few hundred, decide it",
    ]
