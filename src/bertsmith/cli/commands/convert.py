"""`bertsmith convert SRC DST`: a model folder of any age to a current one, with a check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.cli.shared.console import note, write_lines, write_remarks
from bertsmith.cli.shared.options import Overwrite
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import MODEL, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.folders.convert import ConvertReport


@spread
def convert(
    source: Annotated[str, typer.Argument(metavar="SRC", help="Model folder or name.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="Folder to write.")],
    to: Annotated[
        Literal["transformers"] | None,
        Setting("Refuse a model that this library cannot run with the same numbers.", OUTPUT),
    ] = None,
    verify: Annotated[
        bool,
        Setting("Read DST again and compare the hidden states of every layer.", OUTPUT),
    ] = False,
    from_pickle: Annotated[
        bool,
        Setting(
            "Also read pickled weights (pytorch_model.bin), in a restricted child process.", MODEL
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Convert a model folder to safetensors and the files that current tools read."""
    from bertsmith.folders.convert import convert as run

    if to is not None:
        from bertsmith.api.convert import check_transformers

        check_transformers(source)
    report = run(
        source, target, from_pickle=from_pickle, check=verify, overwrite=overwrite, step=note
    )
    write_lines(_lines(report))
    if not report.equal:
        write_remarks(
            [
                f"error: {target} does not reproduce the hidden states of {source}; it was "
                "written, but do not use it, and report this"
            ]
        )
        raise typer.Exit(1)


def _lines(report: ConvertReport) -> list[str]:
    heads = ", ".join(report.heads) or "none"
    lines = [
        f"wrote\t{report.target}",
        f"variant\t{report.variant}",
        f"heads\t{heads}",
        f"parameters\t{report.parameters}",
    ]
    if report.unknown_keys:
        lines.append(f"keys not carried over\t{', '.join(report.unknown_keys)}")
    if report.differences is not None and report.scales is not None:
        names = ["embeddings", *(f"layer {number}" for number in range(1, len(report.scales)))]
        if report.decoder:
            names[-1] = "decoder"
        for name, difference, scale in zip(names, report.differences, report.scales, strict=True):
            lines.append(f"{name}\tmax difference {difference:.3g}\tof {scale:.3g}")
        lines.append(f"check\t{'equal' if report.equal else 'DIFFERENT'}")
    return lines
