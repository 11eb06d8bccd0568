"""Results of models that write as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertsmith.cli.shared.console import table_lines
from bertsmith.report.written_texts import BASELINES, FIGURES, reading_line
from bertsmith.wording import counted, duration

SHOWN = 3  # texts that are printed
WIDTH = 60  # characters of each


def writing_lines(out: Path, record: dict[str, Any], page: Path) -> list[str]:
    """The result: losses, figures next to the baselines, some texts, where the report is."""
    training = record["training"]
    spent = [counted(training["steps"], "step"), f"best after step {training['best_step'] or 0:,}"]
    if training.get("seconds"):
        spent.append(duration(training["seconds"]))
    lines = [f"{out}: {', '.join(spent)}"]
    for name, part in record["losses"].items():
        if part["dev"] is not None:
            lines.append(
                f"  {name} loss on dev: {part['dev']:.3f} nats (without looking at the texts: "
                f"{part['usual']:.3f})"
            )
    for name in ("dev", "test"):
        side = record.get(name)
        if side:
            lines.append(f"{name}, {side['rows']:,} of {counted(side['of'], 'row')}:")
            lines += side_lines(side)
    lines += _texts(record.get("test") or record.get("dev") or {})
    return [*lines, f"report: {page}"]


def side_lines(side: Mapping[str, Any]) -> list[str]:
    """Figures of written rows next to simple ways, and whether the source is read."""
    simple = side["baselines"]
    rows = [
        [
            f"  {title}",
            *(
                f"{some[key]:.3f}"
                for some in (side["figures"], *(simple[one] for one in BASELINES))
            ),
        ]
        for key, title in FIGURES.items()
    ]
    lines = table_lines(["", "model", *BASELINES.values()], rows)
    interval = side["intervals"][side["main"]]
    lines.append(
        f"  95 % interval over rows: {FIGURES[side['main']]} {interval['low']:.3f} to "
        f"{interval['high']:.3f}"
    )
    lines.append(f"  {reading_line(side)}")
    if side["sources_cut"]:
        lines.append(f"  truncated: {side['sources_cut']:,} sources")
    return lines


def _texts(side: Mapping[str, Any]) -> list[str]:
    lines = []
    for one in (side.get("examples") or ())[:SHOWN]:
        lines += [
            f"  {name:<10}{' '.join(one[name].split())[:WIDTH]}"
            for name in ("source", "written", "reference")
        ]
    return lines
