"""Baselines without a network: the most frequent target, and a linear model on TF-IDF features.

A `Baseline` is a function (texts, targets, new texts, labels) -> predictions, fitted on the first
two; targets, labels and predictions are those of the task's metric. Texts are the fields of each
row: (text,), (first, second), (question, context), (context, ending, ending, ...); for tags the
units of each text.
"""

from bertsmith.metrics.baselines.majority import Baseline

__all__ = ["Baseline"]
