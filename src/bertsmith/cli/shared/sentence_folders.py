"""What the commands that make sentence folders share: texts, pairs, output, lines of results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.data_options import Text, TextOptions, open_texts
from bertsmith.cli.shared.options import Device, Overwrite, PositiveLabel, Precision, Threads
from bertsmith.errors import ConfigError
from bertsmith.setting import DATA, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.api.sentence_folders import FolderJob
    from bertsmith.sentences.pair_measure import Change

TextsArgument = Annotated[
    str,
    typer.Argument(
        metavar="TEXTS",
        help="Texts to fit on, without labels: any file that `embed` reads; several text columns "
        "by --text 1 --text 2; - is stdin.",
    ),
]
OutFolder = Annotated[Path, Setting("Output: the folder of the new model.", OUTPUT, metavar="DIR")]
PairsFile = Annotated[
    Path | None,
    Setting(
        "Pairs with scores or labels of your own: prints whether the new vectors are better.",
        DATA,
        metavar="FILE",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOptions:
    """Where a new folder goes, what it is judged on and how it is computed."""

    pairs: PairsFile = None
    positive: PositiveLabel = None
    overwrite: Overwrite = False
    device: Device = "cpu"
    precision: Precision = "fp32"
    threads: Threads = None

    def job(self, model: str, out: Path) -> FolderJob:
        """The job of these options."""
        from bertsmith.api.sentence_folders import FolderJob, PairFile

        pairs = None
        if self.pairs is not None:
            pairs = PairFile(path=self.pairs, positive=self.positive)
        return FolderJob(
            model=model,
            out=out,
            pairs=pairs,
            overwrite=self.overwrite,
            device=self.device,
            precision=self.precision,
            threads=self.threads,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyTextOptions(TextOptions):
    """How a file of texts in one or several columns is read."""

    text: Text = None

    def stream(self, source: str, *, quiet: bool) -> Iterator[str]:
        """The texts of each column in turn, as a stream."""
        columns: list[list[str] | None] = [[column] for column in self.text or ()]
        if source == "-" and len(columns) > 1:
            raise ConfigError("standard input cannot be read twice; save it to a file")
        for column in columns or [None]:
            with open_texts(source, replace(self, text=column), quiet=quiet) as texts:
                yield from texts


def change_line(change: Change | None) -> list[str]:
    """What became of the measure on the user's pairs."""
    if change is None:
        return []
    moved = change.difference
    return [
        f"{change.measure} on {change.pairs:,} pairs: {change.before:.4f} -> {change.after:.4f} "
        f"({moved.value:+.4f}, 95 % interval {moved.low:+.4f} to {moved.high:+.4f}): it "
        f"{change.verdict}"
    ]


def change_record(change: Change | None) -> dict[str, Any] | None:
    """The same as plain values."""
    return None if change is None else {**asdict(change), "verdict": change.verdict}
