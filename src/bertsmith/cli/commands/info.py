"""`bertsmith info MODEL`: what a model folder contains, from config and tensor headers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.options import OUTPUT, Json, ModelArgument, spread

if TYPE_CHECKING:
    from bertsmith.folders.describe import Description


@spread
def info(
    name: ModelArgument,
    hashes: Annotated[
        bool,
        typer.Option(
            "--hashes", help="Also print the sha256 of every file.", rich_help_panel=OUTPUT
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Describe a model folder without loading its weights."""
    from bertsmith.folders.describe import describe

    found = describe(name, hashes=hashes)
    if as_json:
        import json
        from dataclasses import asdict

        sys.stdout.write(json.dumps(asdict(found), indent=2) + "\n")
    elif sys.stdout.isatty():
        _show(found)
    else:
        sys.stdout.write("".join(f"{key}\t{value}\n" for key, value in _rows(found)))
    for problem in found.problems:
        sys.stderr.write(f"note: {problem}\n")


def _rows(found: Description) -> list[tuple[str, str]]:
    """What to show, one line each; what a folder does not have is left out."""
    shape = found.shape
    rows: list[tuple[str, Any]] = [
        ("folder", found.path),
        ("variant", found.variant),
        ("model type", found.model_type if found.model_type != found.variant else None),
        ("architecture", found.architecture),
        ("layers", shape["layers"]),
        ("hidden size", shape["hidden"]),
        ("attention heads", shape["heads"]),
        ("feed-forward size", shape["feed_forward"]),
        ("embedding rows", f"{shape['vocab_size']:,}"),
        ("parameters", None if found.parameters is None else f"{found.parameters:,}"),
        ("tensors", found.tensors),
        ("stored as", ", ".join(found.stored_as)),
        ("vocabulary", None if found.vocabulary is None else f"{found.vocabulary:,}"),
        ("longest text", "any" if found.longest_text is None else f"{found.longest_text} tokens"),
        ("pooling", " + ".join(found.pooling or ())),
        ("normalized", None if found.normalize is None else "yes" if found.normalize else "no"),
        ("vector width", found.vector_width),
        ("similarity", found.similarity),
        ("prompts", ", ".join(found.prompts)),
        ("labels", ", ".join(found.labels[:20]) + (" ..." if len(found.labels) > 20 else "")),
        ("unknown keys", ", ".join(found.unknown_keys)),
    ]
    for file, entry in found.files.items():
        size = f"{entry['bytes']:,} bytes" if "bytes" in entry else f"refused: {entry['refused']}"
        rows.append((f"file {file}", f"{size}  {entry.get('sha256', '')}".rstrip()))
    return [(key, _plain(str(value))) for key, value in rows if value not in (None, "")]


def _plain(text: str) -> str:
    """Text of a folder nobody vouches for: control characters must not reach the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _show(found: Description) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in _rows(found):
        table.add_row(Text(key), Text(value))
    Console().print(table)
