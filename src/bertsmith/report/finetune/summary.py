"""What a record comes down to: one sentence, for the top of a page and of a model card."""

from __future__ import annotations

import math
from typing import Any

from bertsmith.report.elements.values import as_dict, as_float, as_list, part
from bertsmith.report.finetune.figures import NUMBERS, baseline_name, main_name, plural, said

BEATEN = "A simple baseline does as well or better: as it is, this model is not worth its cost."


def judged_split(record: dict[str, Any]) -> str | None:
    """The split that says most: test, which chose nothing, else dev."""
    return next((name for name in ("test", "dev") if part(record, name, "figures")), None)


def main_figure(proof: dict[str, Any]) -> str:
    """The name of the main figure of a proof."""
    figures = as_dict(proof.get("figures"))
    return str(proof.get("main") or next(iter(figures), ""))


def headline(record: dict[str, Any]) -> str:
    """How good the model is, on how many rows, and what less would get; "" without figures."""
    split = judged_split(record)
    if split is None:
        return ""
    proof = part(record, split)
    main = main_figure(proof)
    value = said(main, part(proof, "figures").get(main))
    name = main_name(record.get("task"), main)
    first = f"{value} right" if main == "accuracy" else f"{name[:1].upper()}{name[1:]} {value}"
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
    known = part(record, "baselines", split)
    found = []
    value = as_float(part(known, "majority").get(main))
    if math.isfinite(value):
        found.append(f"{_always(part(record, split), main, value)} {said(main, value)}")
    value = as_float(part(known, "words").get(main))
    if math.isfinite(value):
        found.append(f"{_words(record.get('task'))} {said(main, value)}")
    return found


def _words(task: object) -> str:
    name = baseline_name(task, "words")
    return f"{name} get" if name.endswith("s") else f"the {name} gets"


def _always(proof: dict[str, Any], main: str, share: float) -> str:
    """Which answer the majority is, where that can be told for sure: its share is the accuracy."""
    rows = as_float(proof.get("rows"))
    if main == "accuracy" and rows > 0:
        for one in as_list(proof.get("classes")):
            if abs(as_float(as_dict(one).get("support")) / rows - share) < 1e-9:
                return f"always saying “{as_dict(one).get('label')}” gets"
    return "the commonest answer gets"
