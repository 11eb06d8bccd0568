"""`bertsmith tokenize`: the tokens of a text, one by one."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.console import (
    note,
    printable,
    rich_console,
    write_json_lines,
    write_lines,
)
from bertsmith.cli.shared.options import Json, ModelArgument, SegmenterOption
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import DATA, TRAINING, Setting

if TYPE_CHECKING:
    from bertsmith.text.encoding import Encoding
    from bertsmith.text.truncation import Keep

COLUMNS = ("token", "id", "word", "start", "end", "text", "segment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How long texts are truncated."""

    max_length: Annotated[int | None, Setting("Maximum tokens per text.", TRAINING)] = None
    keep: Annotated[
        str,
        Setting("Part of longer texts that is kept: head, tail or head+tail.", DATA),
    ] = "head"
    strict: Annotated[
        bool, Setting("Refuse texts that are too long; else truncate them.", DATA)
    ] = False


@spread
def tokenize(
    model: ModelArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; - reads stdin.")],
    pair: Annotated[str | None, Setting("Second text.", DATA)] = None,
    cut: Cut = Cut(),  # noqa: B008 - frozen
    allow_special: Annotated[
        bool,
        Setting("Read [SEP] and other special tokens in the text as such.", DATA),
    ] = False,
    segmenter: SegmenterOption = None,
    as_json: Json = False,
) -> None:
    """Show the tokens of a text: id, word number, character offsets.

    Examples:

        bertsmith tokenize all-MiniLM-L6-v2 "He likes playing."

        bertsmith tokenize all-MiniLM-L6-v2 "A question?" --pair "An answer." --max-length 16

        cat page.txt | bertsmith tokenize ./my-model - --json
    """
    from bertsmith.folders.read import load_tokenizer
    from bertsmith.folders.resolve import resolve
    from bertsmith.text.segment import segmenter as segmenter_named
    from bertsmith.text.truncation import Truncation

    setting = Truncation(max_length=cut.max_length, keep=_keep(cut.keep), strict=cut.strict)
    tokenizer = load_tokenizer(resolve(model))
    if segmenter is not None:
        tokenizer = tokenizer.with_segmenter(segmenter_named(segmenter))
    fields = [_read_stdin() if text == "-" else text]
    if pair is not None:
        fields.append(_read_stdin() if pair == "-" else pair)
    encoding = tokenizer.encode_fields(fields, truncation=setting, allow_special=allow_special)
    _show(encoding, fields, as_json=as_json)
    unknown = tokenizer.unknown_tokens([encoding.ids])
    if unknown.unknown:
        note(str(unknown))


def _keep(name: str) -> Keep:
    from bertsmith.errors import unknown
    from bertsmith.text.truncation import KEEPS

    if name not in KEEPS:
        raise unknown("way to keep text", name, KEEPS)
    return name


def _read_stdin() -> str:
    """Standard input as UTF-8, whatever the locale; bad bytes become U+FFFD, with a note."""
    from bertsmith.files.lines import whole_input

    data = whole_input()
    text = data.decode("utf-8-sig", errors="replace")
    if bad := text.count("\ufffd") - data.count("\ufffd".encode()):
        note(f"standard input is not valid UTF-8: {bad} characters were replaced")
    return text.removesuffix("\n")


def _rows(encoding: Encoding, fields: list[str]) -> list[dict[str, Any]]:
    rows = []
    columns = (encoding.ids, encoding.words, encoding.offsets, encoding.segments, encoding.fields)
    lists = (column.tolist() for column in columns)
    for token, number, word, (start, end), segment, field in zip(
        encoding.tokens, *lists, strict=True
    ):
        row = {"token": token, "id": number, "segment": segment}
        row |= {"word": None, "start": None, "end": None, "text": None}
        if field >= 0:
            row |= {"word": word, "start": start, "end": end, "text": fields[field][start:end]}
        rows.append(row)
    return rows


def _show(encoding: Encoding, fields: list[str], *, as_json: bool) -> None:
    """JSON, a table on a terminal, or tab-separated lines."""
    rows = _rows(encoding, fields)
    if as_json:
        tree = {"tokens": rows, "cut": list(encoding.cut)}
        # ASCII output holds any text, lone surrogates included, in any locale.
        write_json_lines(json.dumps(tree) + "\n")
        return
    if sys.stdout.isatty():
        _table(rows)
    else:
        lines = ["\t".join(COLUMNS)]
        lines += ["\t".join(_cell(row[column]) for column in COLUMNS) for row in rows]
        write_lines(lines)
    if encoding.total_cut:
        parts = [f"{cut} of field {i}" for i, cut in enumerate(encoding.cut) if cut]
        note(f"{encoding.total_cut} tokens were truncated: {', '.join(parts)}")


def _cell(value: object) -> str:
    """A value on one line: control characters, tabs and newlines are shown escaped."""
    return "" if value is None else printable(str(value), keep="")


def _table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for column in COLUMNS:
        table.add_column(
            column, justify="right" if column in ("id", "word", "start", "end") else "left"
        )
    for row in rows:
        style = "dim" if row["word"] is None else ""
        table.add_row(*(Text(_cell(row[column]), style=style) for column in COLUMNS))
    rich_console().print(table)
