"""Tiny models under training, and batches of pairs to ask them about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from tiny_tasks import word_tokenizer
from torch import nn

from bertsmith.corpus.rows import RowsBatch
from bertsmith.models import VARIANTS, Learned, Spec
from bertsmith.models.build import Model, build
from bertsmith.models.spec import DecoderSpec
from bertsmith.objectives.causal import CausalProgram
from bertsmith.objectives.continual.program import ContinualProgram
from bertsmith.objectives.continual.tasks import DistanceTask
from bertsmith.objectives.denoise import DenoiseProgram
from bertsmith.objectives.electra import ElectraProgram
from bertsmith.objectives.entities.entity_list import EntityList
from bertsmith.objectives.entities.mentions import Entities
from bertsmith.objectives.entities.wklm import WklmProgram
from bertsmith.objectives.masked import MaskedProgram, ObjectiveTable
from bertsmith.objectives.masked_span import MaskedSpanProgram, MaskedSpanSettings
from bertsmith.objectives.masking.grouping import geometric, runs
from bertsmith.objectives.masking.masking import Masking
from bertsmith.objectives.masking.replacement import Replacement
from bertsmith.objectives.noise.infilling import infill
from bertsmith.objectives.noise.noised import Noised
from bertsmith.objectives.noise.token_masking import hide_units
from bertsmith.objectives.permuted_lm import PermutationProgram, PermutationSettings
from bertsmith.objectives.program import PretrainModule, Program
from bertsmith.objectives.unified import KindShares, UnifiedProgram

VOCAB = 60
MIXES = {  # parts of the loss of each program
    "bert": ("mlm", "nsp"),
    "spanbert": ("mlm", "sbo"),
    "roberta": ("mlm",),
    "albert": ("mlm", "sop"),
    "electra": ("mlm", "rtd", "rtd_baseline"),
    "causal": ("next_token",),
    "unified": ("bidirectional", "seq2seq", "left_to_right", "right_to_left"),
    "denoise": ("denoise",),
    "masked_span": ("masked_span",),
    "permutation": ("permuted",),
    "continual": ("distance",),
    "wklm": ("mlm", "replaced", "aligned"),
}
SHAPES: dict[str, dict[str, object]] = {  # of BERT, where a program has no variant of its own
    "spanbert": {},
    "wklm": {},
    "causal": {"sees": "before"},
    "unified": {"segments": 6},
    "denoise": {"decoder": DecoderSpec(layers=2, heads=4, feed_forward=64, start=3)},
    "masked_span": {"decoder": DecoderSpec(layers=2, heads=4, feed_forward=64, start=3)},
}
VARIANT_OF = {**dict.fromkeys(SHAPES, "bert"), "permutation": "xlnet", "continual": "ernie"}


SOURCES = {"continual": "distance"}  # which task texts are of


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
    stages = [(1.0, runs(geometric(0.4, 4)))]
    return Masking(stages=stages, replacement=replacement(**more), rate=rate)


class Builder:
    """Builds tiny models, drawn from one generator."""

    def __init__(self, variant: str, **more: object) -> None:
        self.variant, self.more = variant, more
        self.random = torch.Generator().manual_seed(1)
        self.spec = tiny(variant, **more)

    @property
    def vocabulary_head(self) -> str:
        return "language_model" if self.variant == "xlnet" else "masked_lm"

    def model(self, heads: Sequence[str], *, pooler: bool = False) -> Model:
        alone = {"pooler": False} if len(heads) == 1 and not pooler else {}  # nobody reads it
        self.spec = tiny(self.variant, **{**alone, **self.more})
        return build(self.variant, self.spec, heads=heads, generator=self.random)

    def companion(self, spec: Spec, heads: Sequence[str]) -> Model:
        small = replace(self.spec, hidden=16, feed_forward=32)
        return build(self.variant, small, heads=heads, generator=self.random)

    def own_heads(self, make: Callable[[], Mapping[str, nn.Module]]) -> dict[str, nn.Module]:
        with torch.random.fork_rng():
            torch.manual_seed(1)
            return dict(make())


def objectives(*names: str) -> ObjectiveTable:
    return ObjectiveTable.model_validate(dict.fromkeys(names, 1.0))


def replacement(**more: float) -> Replacement:
    return Replacement(mask_id=4, ordinary=np.arange(5, VOCAB), **more)


def noise(rows: RowsBatch) -> Noised:
    """Infilling, then masking."""
    first = infill(0.3, 2.0, 4, "first")(rows)
    second = hide_units(0.1, "word", 4, "second", shown=True)
    return second(first.rows(rows)).after(first)


@cache
def tiny_entities() -> Entities:
    """Entities of one to three tokens; the token of the id n is the word w<n>."""
    words = [f"w{number}" for number in range(5, VOCAB)]
    names = ["w6", "w7 w8", "w15 w16 w17", "w18", "w9", "w10 w11", "w25", "w9 w12", "w20"]
    types = ["a", "a", "a", "a", "b", "b", "b", "b", "lone"]
    return Entities(EntityList(tuple(names), tuple(types)), word_tokenizer(words))


def program(name: str) -> Program:
    if name == "wklm":
        parts = dict.fromkeys(MIXES[name], 1.0)
        return WklmProgram(tiny_entities(), masking(), rate=0.4, weights=parts, width=16)
    if name == "electra":
        return ElectraProgram(masking(), mlm=1.0, rtd=50.0, width=0.5)
    if name == "causal":
        return CausalProgram()
    if name == "unified":
        return UnifiedProgram(masking(0.3), KindShares())
    if name == "denoise":
        return DenoiseProgram(noise, 3)
    if name == "masked_span":
        return MaskedSpanProgram(MaskedSpanSettings(), replacement())
    if name == "continual":
        return ContinualProgram([DistanceTask(task=2)], masking())
    if name == "permutation":
        return PermutationProgram(PermutationSettings(block=8))
    return MaskedProgram(objectives(*MIXES[name]).chosen, masking())


def case(name: str, **more: object) -> tuple[Program, PretrainModule]:
    made = program(name)
    shape = {**SHAPES.get(name, {}), **more}
    return made, made.build(Builder(VARIANT_OF.get(name, name), **shape))
