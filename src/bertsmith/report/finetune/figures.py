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
BASELINES = ("majority", "words")
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
    titles = {"majority": kind.majority_title, "words": kind.words_title} if kind else {}
    return titles.get(key, key)


def value_of(figure: str, value: object) -> str:
    """A metric's value on the scale of the record: most are fractions from 0 to 1."""
    number = as_float(value)
    return shown(number) if figure in UNBOUNDED and math.isfinite(number) else fraction(value)


def fraction(value: object) -> str:
    """A metric or probability with the digits that JSON and terminal show, too."""
    number = as_float(value)
    return f"{number:.4f}" if math.isfinite(number) else NONE


def percent(value: object) -> str:
    """A share of rows or tokens; the sign is never wrapped onto a new line."""
    number = as_float(value)
    return f"{100 * number:.1f}\u00a0%" if math.isfinite(number) else NONE


def counted(value: object) -> str:
    """An integer with thousands separators."""
    number = as_float(value)
    return f"{number:,.0f}" if math.isfinite(number) else NONE


def plural(value: object, one: str) -> str:
    """A count with its noun."""
    return f"{counted(value)} {one if as_float(value) == 1 else one + 's'}"
