"""The result of a fine-tuned model: metrics next to the baselines, and what speaks against it."""

from __future__ import annotations

from typing import Any

from bertsmith.report.finetune.enrichment import enrichment_lines
from bertsmith.report.finetune.overfitting import overfitting
from bertsmith.report.finetune.overview import BEATEN, baseline_title, is_beaten, only_here
from bertsmith.report.result import SIDES, ResultView, plain_side


def finetune_result(record: dict[str, Any]) -> ResultView:
    """Both sides of a record."""
    sides = []
    for name in SIDES:
        side = record.get(name)
        if side:
            known = (record.get("baselines") or {}).get(name) or {}
            simple = {
                key: (baseline_title(side, side["task"], key, figures), figures)
                for key, figures in known.items()
            }
            sides.append(plain_side(name, side, simple))
    warnings = [BEATEN] if is_beaten(record) else []
    warnings += [line for line in (overfitting(record), only_here(record)) if line]
    return ResultView(sides=sides, after=[*enrichment_lines(record), *warnings])
