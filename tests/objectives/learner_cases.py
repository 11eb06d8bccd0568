"""Tiny models under training, and batches of pairs to ask them about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from bertsmith.corpus.rows import RowsBatch
from bertsmith.models import VARIANTS, Learned, Spec
from bertsmith.models.build import Model, build
from bertsmith.objectives import OBJECTIVES
from bertsmith.objectives.learner import Asking, Learner
from bertsmith.objectives.masking.grouping import geometric, runs
from bertsmith.objectives.masking.masking import Masking, Rate
from bertsmith.objectives.masking.replacement import Replacement

VOCAB = 60
MIXES = {  # objectives that are asked together, and the variant that is asked
    "bert": ("mlm", "nsp"),
    "spanbert": ("mlm", "sbo"),
    "roberta": ("mlm",),
    "albert": ("mlm", "sop"),
    "electra": ("mlm", "rtd"),
}


def tiny(variant: str, **more: object) -> Spec:
    shape = {"vocab_size": VOCAB, "hidden": 32, "layers": 2, "heads": 4, "feed_forward": 64}
    shape |= {"embedding": 16 if variant in ("albert", "electra") else 32}
    spec = VARIANTS[variant].spec
    if isinstance(spec.positions, Learned):
        shape["positions"] = replace(spec.positions, rows=64 + spec.positions.first)
    return replace(spec, **{**shape, "dropout": 0.0, "attention_dropout": 0.0, **more})


def pairs(count: int = 8, seed: int = 0, segments: int = 2) -> RowsBatch:
    """Texts `[CLS] A [SEP] B [SEP]` whose tokens tell what the labels are."""
    rng = np.random.default_rng(seed)
    ids, kinds, words, lengths, labels = [], [], [], [], []
    word = 0
    for _ in range(count):
        label = int(rng.integers(2))
        first, second = rng.integers(4, 12, 2)
        topic = 5 + 10 * rng.integers(5)
        a = topic + rng.integers(0, 8, first)
        b = (topic if not label else 5 + (topic + 15) % 50) + rng.integers(0, 8, second)
        ids += [2, *a, 3, *b, 3]
        kinds += [0] * (first + 2) + [min(1, segments - 1)] * (second + 1)
        words += [-1, *range(word, word + first), -1]
        words += [*range(word + first, word + first + second), -1]
        word += first + second
        lengths.append(int(first + second + 3))
        labels.append(label)
    return RowsBatch(
        ids=np.array(ids, np.int32),
        segments=np.array(kinds, np.int32),
        words=np.array(words, np.int32),
        lengths=tuple(lengths),
        keys=rng.integers(0, 2**63, count, dtype=np.uint64),
        pair_labels=np.array(labels, np.int64),
    )


def masking(rate: float = 0.15, **more: float) -> Masking:
    make = Replacement(mask_id=4, ordinary=np.arange(5, VOCAB), **more)
    stages = [(1.0, runs(geometric(0.4, 4)))]
    return Masking(stages=stages, replacement=make, rate=Rate(start=rate, end=rate))


def case(name: str, **more: object) -> tuple[Asking, Learner]:
    objectives = [OBJECTIVES[part] for part in MIXES[name]]
    asking = Asking(objectives, masking())
    variant = "bert" if name == "spanbert" else name
    random = torch.Generator().manual_seed(1)
    if len(asking.heads) == 1:  # nobody reads a pooler
        more = {"pooler": False, **more}
    model = build(variant, tiny(variant, **more), heads=asking.heads, generator=random)
    generator: Model | None = None
    if "rtd" in MIXES[name]:
        small = replace(tiny(variant, **more), hidden=16, feed_forward=32)
        generator = build(variant, small, heads=["masked_lm"], generator=random)
    return asking, Learner(model, objectives, generator=generator, random=random)
