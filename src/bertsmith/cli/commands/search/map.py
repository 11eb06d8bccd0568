"""`bertsmith map`: texts, or words in their sentences, as points on a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bertsmith.cli.commands.search.index import File
from bertsmith.cli.shared.console import note, write_lines
from bertsmith.cli.shared.data_options import TextOptions
from bertsmith.cli.shared.inference import ComputeOptions, load_encoder
from bertsmith.cli.shared.options import EncoderOption, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import DATA, MODEL, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.labeled.texts import TextRows

Page = Annotated[Path, Setting("Output: a page, .html.", OUTPUT, metavar="FILE")]
Title = Annotated[str | None, Setting("Title of the page; the name of the file if unset.", OUTPUT)]
Methods = Annotated[
    list[str] | None,
    Setting(
        "pca, tsne or umap (needs the extra `map`); repeatable: the page switches between them. "
        "t-SNE and PCA if unset; PCA alone takes no time.",
        OUTPUT,
        metavar="METHOD",
    ),
]
LabelColumn = Annotated[
    str | None,
    Setting("Label column, by name or number; it colors the points.", DATA, metavar="COLUMN"),
]
Word = Annotated[
    list[str] | None,
    Setting(
        "Show every occurrence of this word instead of the texts; repeatable.", DATA, metavar="WORD"
    ),
]
Layer = Annotated[
    int | None,
    Setting("Layer of the words' vectors; the last if unset.", MODEL, min=0),
]
Points = Annotated[
    int, Setting("Most points; more are sampled at random.", DATA, min=3, max=100_000)
]
MapSeed = Annotated[int, Setting("Random seed; of sampling and projections.", OUTPUT, min=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the page shows."""

    method: Methods = None
    label: LabelColumn = None
    word: Word = None
    layer: Layer = None
    points: Points = 20_000
    seed: MapSeed = 0
    title: Title = None


@spread
def map_command(
    file: File,
    model: EncoderOption,
    out: Page,
    shown: Shown,
    reading: TextOptions,
    computing: ComputeOptions,
    quiet: Quiet = False,
) -> None:
    """Write a page with the texts of a file as points: similar texts are near each other.

    The page is one file that loads nothing from elsewhere. In it: hover for the text, find, zoom,
    labels on and off, light and dark, English and Chinese.

    Examples:

        bertsmith map news.tsv --label topic --model all-MiniLM-L6-v2 --out map.html

        bertsmith map texts.txt --word bank --model all-MiniLM-L6-v2 --out bank.html
    """
    from bertsmith.api.map import MapOptions, map_texts
    from bertsmith.cli.views.progress import stages
    from bertsmith.labeled.texts import other_column, read_text_rows

    rows = read_text_rows(file, reading.spec(), on_error=reading.on_error)
    column = None if shown.label is None else other_column(file, rows.spec, shown.label)
    read = rows.spec.model_copy(update={"extra": () if column is None else (column,)})
    note(f"{file}: {read.summary()}", quiet=quiet)
    with stages(quiet=quiet) as watch:
        made = map_texts(
            _labeled(rows, column),
            load_encoder(model, computing, quiet=quiet),
            out,
            options=MapOptions(
                methods=tuple(shown.method or ("tsne", "pca")),
                words=tuple(shown.word or ()),
                layer=shown.layer,
                points=shown.points,
                seed=shown.seed,
                legend=column or "",
                title=shown.title or file.name,
            ),
            watch=watch,
        )
    for remark in (*rows.account.notes(), *made.notes):
        note(remark, quiet=quiet)
    write_lines([f"{made.points:,} points: {made.path}"])


def _labeled(rows: TextRows, column: str | None) -> Iterator[tuple[str, str | None]]:
    """Texts with their labels."""
    for text, columns in rows:
        yield text, None if column is None else columns.get(column)
