"""Evaluation metrics in numpy, by the official rules of each benchmark.

A `Metric` scores N rows: `metric.score(targets, predictions, labels)` gives `dict[str, float]` with
the main figure first (its name is `metric.main`); `metric.figure(...)` gives one figure as a
function of row numbers, which `significance.bootstrap` and `paired_bootstrap` take. All figures are
fractions (0 to 1; correlations -1 to 1), except `mse`. `better(name, new, old)` knows which way is
up, and what to do with nan.

| metric | targets | predictions | labels |
|---|---|---|---|
| CLASSIFICATION | (N,) class numbers | (N,) class numbers, or (N, C) scores | the C names |
| MULTILABEL | (N, C) bool | `Decisions`, (N, C) bool, or probabilities cut at 0.5 | the C names |
| REGRESSION | (N,) numbers | (N,) numbers | () |
| TAGS | N sequences of tags | the same, equal lengths | all tags, or () |
| ANSWERS | N sequences of gold texts | N texts, "": none, None: missing | rules, or () |
| CHOICES | (N,) numbers of choices | (N,) numbers of choices | () |
| WRITTEN | N reference texts | N written texts | () |

TAGS: entities as conlleval reads them, in BIO, BIOES or BMES; if a tag is of no such scheme (parts
of speech), every unit is an entity of its own, and F1 is the share of right tags.
ANSWERS: without a gold text there is no answer. labels may hold one name of `answers.RULES`
("squad1", "squad2", "cmrc"); without one, `answers.rules_for` chooses.

Figures: CLASSIFICATION accuracy, f1_macro, f1_micro, f1_weighted, mcc, and f1 (of the second of two
labels); MULTILABEL f1_micro, f1_macro, subset_accuracy, average_precision (if probabilities are
known); REGRESSION spearman, pearson, mse; TAGS f1, precision, recall, f1_macro, accuracy; ANSWERS
f1, exact, and both for _answerable and _unanswerable questions; CHOICES accuracy; WRITTEN rouge_l,
rouge_1, rouge_2, bleu, chrf, exact (Chinese characters count as words).
"""

from bertsmith.metrics.answers import ANSWERS
from bertsmith.metrics.classification import CHOICES, CLASSIFICATION
from bertsmith.metrics.correlation import REGRESSION
from bertsmith.metrics.entities import TAGS
from bertsmith.metrics.metric import LOWER_IS_BETTER, Metric, better
from bertsmith.metrics.multilabel import MULTILABEL, Decisions
from bertsmith.metrics.written_text import WRITTEN

__all__ = [
    "ANSWERS",
    "CHOICES",
    "CLASSIFICATION",
    "LOWER_IS_BETTER",
    "MULTILABEL",
    "REGRESSION",
    "TAGS",
    "WRITTEN",
    "Decisions",
    "Metric",
    "better",
]
