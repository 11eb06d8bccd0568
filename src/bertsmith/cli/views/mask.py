"""What `bertsmith mask preview` shows: lines, a colored terminal, an HTML page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bertsmith.cli.shared.console import printable, rich_console, write_lines
from bertsmith.report.elements.page import element, page, paragraph, table

if TYPE_CHECKING:
    from rich.text import Text

    from bertsmith.objectives.masking.masking import MaskSettings
    from bertsmith.objectives.masking.preview import Piece, Preview, Tally

NAMES = {
    "hidden": "tokens masked",
    "mask": "of them: [MASK]",
    "random": "random token",
    "keep": "unchanged",
    "similar": "similar word",
}
HEADS = ("", "requested", "measured")
LEGEND = (
    ("mask", "[MASK]"),
    ("random", "random token"),
    ("keep", "unchanged"),
    ("similar", "similar word"),
)
STYLES = {
    "mask": "bold black on yellow",
    "random": "bold white on red",
    "keep": "black on green",
    "similar": "bold white on blue",
}


def show(preview: Preview, requested: dict[str, float]) -> None:
    """The samples and the table on standard output."""
    rows = list(_measured(preview.tally, requested))
    if not sys.stdout.isatty():
        lines = ["".join(part for part, _ in _marked(one)).strip() for one in preview.samples]
        table_rows = ("\t".join(row) for row in [HEADS, *rows])
        write_lines([*lines, "", _summary(preview.tally), *table_rows])
        return
    from rich.table import Table

    console = rich_console()
    for pieces in preview.samples:
        console.print(_colored(pieces))
        console.print()
    shown = Table(*HEADS, title=_summary(preview.tally), title_justify="left", header_style="bold")
    for row in rows:
        shown.add_row(*row)
    console.print(shown)


def preview_page(preview: Preview, requested: dict[str, float], settings: MaskSettings) -> str:
    """The whole page; everything that comes from texts or settings is escaped."""
    tally = preview.tally
    samples = [
        [(_words(piece), piece.fate, piece.opens, piece.closes) for piece in pieces]
        for pieces in preview.samples
    ]
    sections = [
        paragraph(printable(settings.model_dump_json(exclude_none=True), keep="")),
        table((_summary(tally), *HEADS[1:]), _measured(tally, requested)),
        element("elements", "masked", samples, LEGEND, "masked together"),
    ]
    return page("Masking preview", sections)


def _summary(tally: Tally) -> str:
    return f"{tally.texts:,} texts, {tally.tokens:,} tokens, {tally.units:,} masked units"


def _measured(tally: Tally, requested: dict[str, float]) -> Iterator[tuple[str, str, str]]:
    """Rows of a table: name, requested, measured."""
    for key, wanted in requested.items():
        share = tally.rate if key == "hidden" else tally.share(key)
        if wanted or share:
            yield NAMES[key], f"{wanted:.2%}", f"{share:.2%}"
    units = max(tally.units, 1)
    yield "tokens per masked unit", "", f"{tally.hidden / units:.2f}"
    most = sorted(tally.lengths.items())[:12]
    shares = ", ".join(f"{size}: {number / units:.0%}" for size, number in most)
    yield "masked units by words", "", shares


def _words(piece: Piece) -> str:
    """A piece as text: `was→now` where it changed, `was=` where it was chosen and kept."""
    before, after = printable(piece.before, keep=""), printable(piece.after, keep="")
    if piece.fate == "shown":
        return before
    return f"{before}=" if piece.fate == "keep" else f"{before}→{after}"


def _marked(pieces: list[Piece]) -> Iterator[tuple[str, str]]:
    """Texts and the fate that colors each; masked units are in angle brackets."""
    inside = False
    for piece in pieces:
        yield (" ", "gap" if inside and not piece.opens else "shown")
        opens, closes = "‹" if piece.opens else "", "›" if piece.closes else ""
        yield f"{opens}{_words(piece)}{closes}", piece.fate
        inside = piece.fate != "shown" and not piece.closes


def _colored(pieces: list[Piece]) -> Text:
    from rich.text import Text

    line = Text()
    for part, fate in _marked(pieces):
        line.append(part, style=STYLES.get(fate, ""))
    return line
