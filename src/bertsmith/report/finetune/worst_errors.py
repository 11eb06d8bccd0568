"""The worst errors, each with its text, true label, prediction and place in the data."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import element, folded, paragraph, subheading
from bertsmith.report.elements.values import as_dicts, as_float, as_list, part
from bertsmith.report.finetune.figures import counted, fraction, plural
from bertsmith.tasks.kinds import TASKS

OPEN = 10  # shown at once; the others on request


def worst_errors(proof: dict[str, Any]) -> list[Markup]:
    """Cards, the worst first."""
    errors = part(proof, "errors")
    shown = as_dicts(errors.get("shown"))
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


def _card(one: dict[str, Any]) -> Markup:
    sure, other = as_float(one.get("confidence")), as_float(one.get("truth_confidence"))
    confidence = f"confidence {fraction(sure)}" if math.isfinite(sure) else ""
    if confidence and math.isfinite(other):
        confidence += f", true label {fraction(other)}"
    labels = (one.get("truth"), one.get("prediction"))
    texts = as_list(one.get("texts"))
    return element("elements", "card", texts, *labels, confidence, _place(one))


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
