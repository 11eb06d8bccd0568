"""The headline of a record: one sentence, for the top of a page and of a model card."""

from __future__ import annotations

import math
from typing import Any

from bertsmith.report.elements.values import as_dict, as_float, as_list, part
from bertsmith.report.finetune.figures import (
    BASELINES,
    NUMBERS,
    baseline_name,
    main_name,
    plural,
    said,
)

BEATEN = "A simple baseline is as good or better: as it is, this model is not worth its cost."


def judged_split(record: dict[str, Any]) -> str | None:
    """The split to judge by: test if there is one, else dev, which also chose the weights."""
    return next((name for name in ("test", "dev") if part(record, name, "figures")), None)


def main_figure(proof: dict[str, Any]) -> str:
    """The name of the main figure of a proof."""
    figures = as_dict(proof.get("figures"))
    return str(proof.get("main") or next(iter(figures), ""))


def headline(record: dict[str, Any]) -> str:
    """The main figure, on how many rows, and those of the baselines; "" without figures."""
    split = judged_split(record)
    if split is None:
        return ""
    proof = part(record, split)
    main = main_figure(proof)
    value = said(main, part(proof, "figures").get(main))
    name = main_name(record.get("task"), main)
    first = f"{name[:1].upper()}{name[1:]} {value}"
    sentence = f"{first} on {plural(proof.get('rows'), f'{split} row')}"
    others = _others(record, split, main)
    return f"{sentence}; {', '.join(others)}." if others else f"{sentence}."


def is_beaten(record: dict[str, Any]) -> bool:
    """Whether a baseline is at least as good as the model in the main figure."""
    split = judged_split(record)
    if split is None:
        return False
    main = main_figure(part(record, split))
    own = as_float(part(record, split, "figures").get(main))
    others = (as_float(as_dict(one).get(main)) for one in part(record, "baselines", split).values())
    return any(other <= own if main in NUMBERS else other >= own for other in others)


def _others(record: dict[str, Any], split: str, main: str) -> list[str]:
    """Baselines with their figures."""
    known = part(record, "baselines", split)
    others = []
    for key in BASELINES:
        value = as_float(part(known, key).get(main))
        if math.isfinite(value):
            name = baseline_name(record.get("task"), key)
            if key == "majority":
                name = _always(part(record, split), main, value) or name
            others.append(f"{name} {said(main, value)}")
    return others


def _always(proof: dict[str, Any], main: str, share: float) -> str:
    """Which label the majority is, where its share is the accuracy; else ""."""
    rows = as_float(proof.get("rows"))
    if main == "accuracy" and rows > 0:
        for one in as_list(proof.get("classes")):
            if abs(as_float(as_dict(one).get("support")) / rows - share) < 1e-9:
                return f"majority (“{as_dict(one).get('label')}”)"
    return ""
