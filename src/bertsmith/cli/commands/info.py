"""`bertsmith info FOLDER`: what a folder is, can do and contains, from its small files."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.console import note, printable, rich_console, write_json, write_lines
from bertsmith.cli.shared.options import Json, ModelArgument
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.folders.describe import Description


@spread
def info(
    name: ModelArgument,
    hashes: Annotated[bool, Setting("Also print the sha256 of every file.", OUTPUT)] = False,
    verify_hashes: Annotated[
        bool,
        Setting(
            "Compare every file with its sha256 in hashes.json; exit 2 if one changed.", OUTPUT
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Describe a folder: its kind, what it can do, its files; no weights are loaded."""
    from bertsmith.errors import FolderError
    from bertsmith.folders.describe import describe

    about = describe(name, hashes=hashes, check=verify_hashes)
    if as_json:
        write_json(asdict(about))
    elif sys.stdout.isatty():
        _show(about)
    else:
        write_lines([f"{key}\t{value}" for key, value in _rows(about)])
    for problem in (*about.problems, *about.changed):
        note(problem)
    if about.changed:
        raise typer.Exit(FolderError.exit_code)


def _rows(about: Description) -> list[tuple[str, str]]:
    """What to show, one line each; what a folder does not have is left out."""
    shape = about.shape
    rows: list[tuple[str, Any]] = [
        ("folder", about.path),
        ("kind", f"{about.kind}: {about.holds}"),
        ("abilities", ", ".join(about.abilities)),
        *about.facts.items(),
        ("variant", about.variant),
        (
            "model type",
            about.model_type if about.model_type != about.variant else None,
        ),
        ("architecture", about.architecture),
        ("layers", shape.get("layers")),
        ("decoder layers", (shape.get("decoder") or {}).get("layers")),
        ("attention", "causal" if shape.get("sees") == "before" else None),
        ("hidden size", shape.get("hidden")),
        ("attention heads", shape.get("heads")),
        ("feed-forward size", shape.get("feed_forward")),
        ("embedding rows", f"{shape['vocab_size']:,}" if shape else None),
        ("parameters", None if about.parameters is None else f"{about.parameters:,}"),
        ("tensors", about.tensors),
        ("stored as", ", ".join(about.stored_as)),
        ("vocabulary", None if about.vocabulary is None else f"{about.vocabulary:,}"),
        ("longest text", _longest(about)),
        ("pooling", " + ".join(about.pooling or ())),
        ("modules", "; ".join(about.modules)),
        (
            "normalized",
            None if about.normalize is None else "yes" if about.normalize else "no",
        ),
        ("vector width", about.vector_width),
        ("similarity", about.similarity),
        ("prompts", ", ".join(about.prompts)),
        (
            "labels",
            ", ".join(about.labels[:20]) + (" ..." if len(about.labels) > 20 else ""),
        ),
        ("unknown keys", ", ".join(about.unknown_keys)),
    ]
    for file, entry in about.files.items():
        size = f"{entry['bytes']:,} bytes" if "bytes" in entry else f"refused: {entry['refused']}"
        rows.append((f"file {file}", f"{size}  {entry.get('sha256', '')}".rstrip()))
    shown = [(key, str(value)) for key, value in rows if value not in (None, "")]
    return [(printable(key, keep=""), printable(value, keep="")) for key, value in shown]


def _longest(about: Description) -> str | None:
    if about.longest_text is not None:
        return f"{about.longest_text} tokens"
    return "any" if about.shape else None


def _show(about: Description) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in _rows(about):
        table.add_row(Text(key), Text(value))
    rich_console().print(table)
