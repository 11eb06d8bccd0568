"""Figures by name as people read them."""

from __future__ import annotations

import math

from bertsmith.report.elements.chart import shown
from bertsmith.report.elements.values import as_float
from bertsmith.tasks.kinds import TASKS

NAMES = {
    "accuracy": "accuracy",
    "f1": "F1",
    "f1_macro": "macro F1",
    "f1_micro": "micro F1",
    "f1_weighted": "weighted F1",
    "mcc": "Matthews correlation",
    "subset_accuracy": "subset accuracy",
    "average_precision": "average precision",
    "spearman": "Spearman correlation",
    "pearson": "Pearson correlation",
    "mse": "mean squared error",
    "precision": "precision",
    "recall": "recall",
    "exact": "exact match",
    "f1_answerable": "F1, questions with an answer",
    "exact_answerable": "exact match, questions with an answer",
    "f1_unanswerable": "F1, questions without one",
    "exact_unanswerable": "exact match, questions without one",
    "loss": "loss",
}
BASELINES = {"majority": "majority", "words": "bag of words"}
NUMBERS = frozenset({"mse", "loss", "nll"})  # without an upper end
CORRELATIONS = frozenset({"mcc", "spearman", "pearson"})
NONE = "–"


def name_of(figure: str) -> str:
    """A figure's name in words."""
    return NAMES.get(figure, figure.replace("_", " "))


def main_name(task: object, figure: str) -> str:
    """The main figure of a task in words."""
    kind = TASKS.get(str(task))
    return (kind.main_title if kind else "") or name_of(figure)


def baseline_name(task: object, key: str) -> str:
    """What a baseline does, in words."""
    kind = TASKS.get(str(task))
    return kind.words_title if kind and key == "words" else BASELINES.get(key, key)


def said(figure: str, value: object) -> str:
    """A value of a figure: shares in percent, correlations with three places."""
    number = as_float(value)
    if not math.isfinite(number):
        return NONE
    if figure in NUMBERS:
        return shown(number)
    return f"{number:.3f}" if figure in CORRELATIONS else percent(number)


def percent(value: object) -> str:
    """A share as people say it; its sign never stands on a line of its own."""
    number = as_float(value)
    return f"{100 * number:.1f}\u00a0%" if math.isfinite(number) else NONE


def counted(value: object) -> str:
    """A whole number with its thousands apart."""
    number = as_float(value)
    return f"{number:,.0f}" if math.isfinite(number) else NONE


def plural(value: object, one: str) -> str:
    """A count with its noun."""
    return f"{counted(value)} {one if as_float(value) == 1 else one + 's'}"
