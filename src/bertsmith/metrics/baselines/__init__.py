"""Baselines without a network: the most frequent target, and a linear model on TF-IDF features.

`MAJORITY[task]` and `WORDS[task]` are functions (texts, targets, new texts, labels) -> predictions,
fitted on the first two; targets, labels and predictions are those of `METRICS[task]`. Texts are the
fields of each row: (text,), (first, second), (question, context), (context, ending, ending, ...);
for `tag` the units of each text.
"""

from bertsmith.metrics.baselines import majority, words
from bertsmith.metrics.baselines.answer_window import answer_words
from bertsmith.metrics.baselines.majority import Baseline

MAJORITY: dict[str, Baseline] = {
    "classify": majority.classify,
    "multilabel": majority.multilabel,
    "regress": majority.regress,
    "tag": majority.tag,
    "answer": majority.answer,
    "choose": majority.choose,
}

WORDS: dict[str, Baseline] = {
    "classify": words.classify_words,
    "multilabel": words.multilabel_words,
    "regress": words.regress_words,
    "tag": majority.tag_words,
    "answer": answer_words,
    "choose": words.choose_words,
}

__all__ = ["MAJORITY", "WORDS", "Baseline"]
