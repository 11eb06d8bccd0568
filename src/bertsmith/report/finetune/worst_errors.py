"""The worst errors, each with its text, true label, prediction and place in the data."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any

from bertsmith.report.elements.page import flowing, folded, paragraph, subheading, text
from bertsmith.report.elements.values import as_dict, as_float, as_list, part
from bertsmith.report.finetune.figures import counted, percent, plural
from bertsmith.tasks.kinds import TASKS

OPEN = 10  # shown at once; the others on request


def worst_errors(proof: dict[str, Any]) -> list[str]:
    """Cards, the worst first."""
    errors = part(proof, "errors")
    shown = [as_dict(one) for one in as_list(errors.get("shown"))]
    if not shown:
        return []
    cards = [_card(one) for one in shown]
    sections = [subheading("Worst errors"), paragraph(_words(proof, errors, len(cards)), "dim")]
    sections += cards[:OPEN]
    if len(cards) > OPEN:
        sections.append(folded(f"{len(cards) - OPEN} more", cards[OPEN:]))
    return sections


def _words(proof: dict[str, Any], errors: dict[str, Any], shown: int) -> str:
    if errors.get("wrong") is None:
        return f"The {shown} rows with the largest absolute error."
    wrong = f"{counted(errors.get('wrong'))} of {plural(proof.get('rows'), 'row')} are wrong"
    kind = TASKS.get(str(proof.get("task")))
    return f"{wrong}; {kind.error_order}." if kind else f"{wrong}."


def _card(one: dict[str, Any]) -> str:
    texts = [flowing(each) for each in as_list(one.get("texts"))]
    body = "".join(f'<p dir="auto">{each}</p>' for each in texts)
    labels = [f'<span class="truth">true <b>{text(one.get("truth"))}</b></span>']
    labels.append(f'<span class="prediction">predicted <b>{text(one.get("prediction"))}</b></span>')
    sure = as_float(one.get("confidence"))
    if math.isfinite(sure):
        other = as_float(one.get("truth_confidence"))
        more = f", true label {percent(other)}" if math.isfinite(other) else ""
        labels.append(f'<span class="dim">{text(f"confidence {percent(sure)}{more}")}</span>')
    return (
        f'<div class="card"><div class="labels">{"".join(labels)}</div>{body}'
        f'<span class="place">{text(_place(one))}</span></div>'
    )


def _place(one: dict[str, Any]) -> str:
    """File name, line and id."""
    place = PurePath(str(one.get("place", ""))).name
    parts = [place]
    # Many rows may share a line of a JSON file; then only the id is unique.
    if one.get("id") is not None and not place.endswith(f":{one['id']}"):
        parts.append(f"id {one['id']}")
    cut = as_float(one.get("tokens_cut"))
    if cut > 0:
        parts.append(f"{plural(cut, 'token')} truncated")
    return " · ".join(parts)
