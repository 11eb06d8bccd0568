"""What `bertsmith mask preview --noise` shows: lines, a colored terminal, an HTML page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bertsmith.cli.shared.console import printable, rich_console, write_lines
from bertsmith.report.elements.page import element, page, paragraph, table

if TYPE_CHECKING:
    from bertsmith.objectives.noise.noised import NoiseSettings
    from bertsmith.objectives.noise.preview import NoisePiece, NoisePreview, NoiseTally

HEADS = ("", "requested", "measured")
STYLES = {"mask": "bold black on yellow", "deleted": "bold white on red"}
MOVED = "bold blue"
JUMP = "⇄"
LEGEND = (("mask", "words→[MASK]"), ("random", "deleted words→"), ("similar", f"{JUMP} moved here"))
CLASSES = {"mask": "mask", "deleted": "random", "shown": ""}  # of the page's style sheet


def show_noise(preview: NoisePreview, noises: Sequence[NoiseSettings]) -> None:
    """The samples and the table on standard output."""
    rows = list(_measured(preview.tally, noises))
    if not sys.stdout.isatty():
        lines = [" ".join(_words(piece) for piece in pieces) for pieces in preview.samples]
        table_rows = ("\t".join(row) for row in [HEADS, *rows])
        write_lines([*lines, "", _summary(preview.tally), *table_rows])
        return
    from rich.table import Table
    from rich.text import Text

    console = rich_console()
    for pieces in preview.samples:
        line = Text()
        for piece in pieces:
            line.append(_words(piece), style=STYLES.get(piece.fate, MOVED if piece.jumps else ""))
            line.append(" ")
        console.print(line)
        console.print()
    shown = Table(*HEADS, title=_summary(preview.tally), title_justify="left", header_style="bold")
    for row in rows:
        shown.add_row(*row)
    console.print(shown)


def noise_page(preview: NoisePreview, noises: Sequence[NoiseSettings]) -> str:
    """The whole page; everything that comes from texts is escaped."""
    samples = [
        [(_words(piece), _class(piece), False, False) for piece in pieces]
        for pieces in preview.samples
    ]
    named = ", then ".join(one.model_dump_json() for one in noises)
    sections = [
        paragraph(printable(named, keep="")),
        table((_summary(preview.tally), *HEADS[1:]), _measured(preview.tally, noises)),
        element("elements", "masked", samples, LEGEND, ""),
    ]
    return page("Noise preview", sections)


def _class(piece: NoisePiece) -> str:
    return "similar" if piece.jumps and piece.fate == "shown" else CLASSES[piece.fate]


def _words(piece: NoisePiece) -> str:
    """A piece as text; what was taken out stands in angle brackets."""
    words = printable(piece.text, keep="")
    marked = words if piece.fate == "shown" else f"‹{words}›"
    return f"{JUMP} {marked}" if piece.jumps else marked


def _summary(tally: NoiseTally) -> str:
    return f"{tally.texts:,} texts, {tally.tokens:,} tokens before, {tally.noised_tokens:,} after"


def _measured(tally: NoiseTally, noises: Sequence[NoiseSettings]) -> Iterator[tuple[str, str, str]]:
    """Rows of a table: noise and unit, requested, measured."""
    for number, one in enumerate(noises):
        yield f"{one.kind}: {one.changes}", f"{one.rate:.2%}", f"{tally.rate(number):.2%}"
    total = sum(tally.spans.values())
    if total:
        shares = ", ".join(
            f"{size}: {count / total:.0%}" for size, count in sorted(tally.spans.items())[:12]
        )
        mean = sum(size * count for size, count in tally.spans.items()) / total
        yield "words per mask", "", f"{mean:.2f}"
        yield "masks by words", "", shares
