"""Whether training went on after the model had learned what carries over, and what helps."""

from __future__ import annotations

import math
from typing import Any

from bertsmith.report.elements.values import as_dict, as_float, as_list, part

MUCH = 1.2  # times its lowest: a smaller rise of the dev loss is chance or overconfidence


def learned_by_heart(record: dict[str, Any]) -> str:
    """A sentence on a dev loss that rose again, with settings that hold it back; "" if it did not.

    The weights that are kept may still be the last: a figure such as accuracy can go on rising
    while the loss does, too.
    """
    rows = [as_dict(row) for row in as_list(record.get("curves"))]
    looks = [
        (as_float(part(row, "losses").get("task")), as_float(row.get("step")))
        for row in rows
        if row.get("kind") == "eval"
    ]
    if len(looks) < 2 or any(math.isnan(value) for look in looks for value in look):
        return ""
    (lowest, step), (last, _) = min(looks), looks[-1]
    if last < MUCH * lowest:
        return ""
    return (
        f"The dev loss was lowest after step {step:,.0f} ({lowest:.3f}) and {last:.3f} at the end: "
        f"the last part of training learned rows by heart. {_remedies(part(record, 'recipe'))}."
    )


def _remedies(recipe: dict[str, Any]) -> str:
    encoder, optimizer = part(recipe, "encoder"), part(recipe, "optimizer")
    found = []
    if not encoder.get("frozen") and not encoder.get("masked"):
        found.append("regularization.token_dropout=0.1")
    if not encoder.get("frozen") and optimizer.get("layer_decay") == 1.0:
        found.append("optimizer.layer_decay=0.8")
    tries = "".join(f", --set {setting}" for setting in found)
    return f"Worth trying: fewer --epochs{tries}"
