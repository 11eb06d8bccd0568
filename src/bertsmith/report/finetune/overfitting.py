"""Detects overfitting in the dev loss and suggests remedies."""

from __future__ import annotations

import math
from typing import Any

from bertsmith.report.elements.values import as_dicts, as_float, part

MUCH = 1.2  # times its lowest: a smaller rise of the dev loss is chance or overconfidence


def overfitting(record: dict[str, Any]) -> str:
    """A sentence on a dev loss that rises again, with remedies; "" if it does not.

    The best weights may still be the last: accuracy can keep rising while the loss does, too.
    """
    rows = as_dicts(record.get("curves"))
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
        f"Overfitting: the dev loss was lowest after step {step:,.0f} ({lowest:.3f}) and rose to "
        f"{last:.3f}. {_remedies(part(record, 'recipe'))}."
    )


def _remedies(recipe: dict[str, Any]) -> str:
    encoder, optimizer = part(recipe, "encoder"), part(recipe, "optimizer")
    dropped = part(recipe, "regularization").get("token_dropout")
    settings = []
    if not encoder.get("frozen") and not dropped:
        settings.append("regularization.token_dropout=0.1")
    if not encoder.get("frozen") and optimizer.get("layer_decay") == 1.0:
        settings.append("optimizer.layer_decay=0.8")
    tries = "".join(f", --set {setting}" for setting in settings)
    return f"Worth trying: fewer --epochs{tries}"
