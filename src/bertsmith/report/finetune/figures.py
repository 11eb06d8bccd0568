"""Names and formatted values of metrics."""

from __future__ import annotations

import math

from bertsmith.report.elements.charts import shown
from bertsmith.report.elements.values import as_float
from bertsmith.tasks.kinds import TASKS

NAMES = {
    "f1": "F1",
    "f1_macro": "macro F1",
    "f1_micro": "micro F1",
    "f1_weighted": "weighted F1",
    "mcc": "Matthews correlation",
    "spearman": "Spearman correlation",
    "pearson": "Pearson correlation",
    "mse": "mean squared error",
    "exact": "exact match",
    "f1_answerable": "F1, questions with an answer",
    "exact_answerable": "exact match, questions with an answer",
    "f1_unanswerable": "F1, questions without one",
    "exact_unanswerable": "exact match, questions without one",
}
BASELINES = {"majority": "majority", "words": "TF-IDF linear model"}
UNBOUNDED = frozenset({"mse", "loss", "nll"})
CORRELATIONS = frozenset({"mcc", "spearman", "pearson"})
NONE = "–"


def name_of(figure: str) -> str:
    """The title of a metric."""
    return NAMES.get(figure, figure.replace("_", " "))


def main_name(task: object, figure: str) -> str:
    """The title of a task's main metric."""
    kind = TASKS.get(str(task))
    return (kind.main_title if kind else "") or name_of(figure)


def baseline_name(task: object, key: str) -> str:
    """The title of a baseline."""
    kind = TASKS.get(str(task))
    return kind.words_title if kind and key == "words" else BASELINES.get(key, key)


def value_of(figure: str, value: object) -> str:
    """A metric's value: shares in percent, correlations with three decimals."""
    number = as_float(value)
    if not math.isfinite(number):
        return NONE
    if figure in UNBOUNDED:
        return shown(number)
    return f"{number:.3f}" if figure in CORRELATIONS else percent(number)


def percent(value: object) -> str:
    """A share in percent; the sign is never wrapped onto a new line."""
    number = as_float(value)
    return f"{100 * number:.1f}\u00a0%" if math.isfinite(number) else NONE


def counted(value: object) -> str:
    """An integer with thousands separators."""
    number = as_float(value)
    return f"{number:,.0f}" if math.isfinite(number) else NONE


def plural(value: object, one: str) -> str:
    """A count with its noun."""
    return f"{counted(value)} {one if as_float(value) == 1 else one + 's'}"
