"""How well a task was answered: every figure in numpy, by the official rules.

`METRICS[task].score(targets, predictions, labels)` gives `dict[str, float]` with the main figure
first (its name is `METRICS[task].main`); `METRICS[task].figure(...)` gives one figure as a function
of row numbers, which `significance.bootstrap` and `paired_bootstrap` take. All figures are shares
(0 to 1; correlations -1 to 1), except `mse`; those of SQuAD programs are times 100. `better(name,
new, old)` knows which way is up, and what to do with nan. What the sides are, for N rows:

| task | targets | predictions | labels |
|---|---|---|---|
| classify | (N,) class numbers | (N,) class numbers, or (N, C) scores | the C names |
| multilabel | (N, C) bool | `Decisions`, (N, C) bool, or probabilities cut at 0.5 | the C names |
| regress | (N,) numbers | (N,) numbers | () |
| tag | N sequences of tags | the same, equal lengths | all tags, or () |
| answer | N sequences of gold texts | N texts, "": none, None: missing | rules, or () |
| choose | (N,) numbers of choices | (N,) numbers of choices | () |

tag: entities as conlleval reads them, in BIO, BIOES or BMES; if a tag is of no such scheme (parts
of speech), every unit is an entity of its own, and F1 is the share of right tags.
answer: no gold text at all says that there is no answer. labels may hold one name of
`answers.RULES` ("squad1", "squad2", "cmrc"); without one, `answers.rules_for` chooses.

Figures: classify accuracy, f1_macro, f1_micro, f1_weighted, mcc, and f1 (of the second of two
labels); multilabel f1_micro, f1_macro, subset_accuracy, average_precision (if probabilities are
known); regress spearman, pearson, mse; tag f1, precision, recall, f1_macro, accuracy; answer f1,
exact, and both for _answerable and _unanswerable questions; choose accuracy.
"""

from bertsmith.metrics import label_rows, text_rows
from bertsmith.metrics.metric import LOWER_IS_BETTER, Metric, better
from bertsmith.metrics.multilabel import Decisions

METRICS: dict[str, Metric] = {
    "classify": Metric("accuracy", label_rows.classify_rows, label_rows.classify_figures),
    "multilabel": Metric("f1_micro", label_rows.multilabel_rows, label_rows.multilabel_figures),
    "regress": Metric("spearman", label_rows.regress_rows, label_rows.regress_figures),
    "tag": Metric("f1", text_rows.tag_rows, text_rows.tag_figures),
    "answer": Metric("f1", text_rows.answer_rows, text_rows.answer_figures),
    "choose": Metric("accuracy", label_rows.choose_rows, label_rows.choose_figures),
}

__all__ = ["LOWER_IS_BETTER", "METRICS", "Decisions", "Metric", "better"]
