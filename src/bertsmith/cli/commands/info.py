"""`bertsmith info MODEL`: what a model folder contains, from config and tensor headers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from bertsmith.cli.shared.options import OUTPUT, Json, ModelArgument, option, spread

if TYPE_CHECKING:
    from bertsmith.folders.describe import Description


@spread
def info(
    name: ModelArgument,
    hashes: Annotated[
        bool, option(OUTPUT, "--hashes", "Also print the sha256 of every file.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Describe a model folder without loading its weights."""
    from bertsmith.folders.describe import describe

    about = describe(name, hashes=hashes)
    if as_json:
        import json
        from dataclasses import asdict

        sys.stdout.write(json.dumps(asdict(about), indent=2) + "\n")
    elif sys.stdout.isatty():
        _show(about)
    else:
        sys.stdout.write("".join(f"{key}\t{value}\n" for key, value in _rows(about)))
    for problem in about.problems:
        sys.stderr.write(f"note: {problem}\n")


def _rows(about: Description) -> list[tuple[str, str]]:
    """What to show, one line each; what a folder does not have is left out."""
    shape = about.shape
    rows: list[tuple[str, Any]] = [
        ("folder", about.path),
        ("variant", about.variant),
        (
            "model type",
            about.model_type if about.model_type != about.variant else None,
        ),
        ("architecture", about.architecture),
        ("layers", shape["layers"]),
        ("hidden size", shape["hidden"]),
        ("attention heads", shape["heads"]),
        ("feed-forward size", shape["feed_forward"]),
        ("embedding rows", f"{shape['vocab_size']:,}"),
        ("parameters", None if about.parameters is None else f"{about.parameters:,}"),
        ("tensors", about.tensors),
        ("stored as", ", ".join(about.stored_as)),
        ("vocabulary", None if about.vocabulary is None else f"{about.vocabulary:,}"),
        (
            "longest text",
            "any" if about.longest_text is None else f"{about.longest_text} tokens",
        ),
        ("pooling", " + ".join(about.pooling or ())),
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
    return [(key, _plain(str(value))) for key, value in rows if value not in (None, "")]


def _plain(text: str) -> str:
    """Text of a folder nobody vouches for: control characters must not reach the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _show(about: Description) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in _rows(about):
        table.add_row(Text(key), Text(value))
    Console().print(table)
