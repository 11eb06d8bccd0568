"""UniLM (Dong et al. 2019, arXiv:1905.03197): one masked LM under four kinds of visibility."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from bertsmith.config import Settings
from bertsmith.corpus.rows import Flags, Ints, Longs, RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import Layout, Mixed
from bertsmith.nn.loss import LossSum
from bertsmith.objectives.batch import PretrainBatch, Targets, rows_inputs
from bertsmith.objectives.masked_lm import token_loss
from bertsmith.objectives.masking.grouping import Ngram
from bertsmith.objectives.masking.masking import Masking, MaskSettings
from bertsmith.objectives.program import (
    Losses,
    MaskingProgramSettings,
    ModelBuilder,
    PretrainModule,
    Scores,
)
from bertsmith.objectives.source_target import GAIN, other_texts
from bertsmith.text.tokenizer import Tokenizer

KINDS = ("bidirectional", "seq2seq", "left_to_right", "right_to_left")
BOTH, WRITTEN, FORWARD, BACKWARD = range(4)  # an index of KINDS
SEGMENTS_BY_KIND = ((0, 1), (4, 5), (2, 2), (3, 3))  # of source and target
PAIR_SEGMENTS = ((0, 1),) * 4
Weight = Annotated[float, Field(ge=0)]


class KindShares(Settings):
    """How often a text is of each kind; only the proportions matter."""

    bidirectional: Weight = 2.0
    seq2seq: Weight = 2.0
    left_to_right: Weight = 1.0
    right_to_left: Weight = 1.0

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not sum(self.shares):
            raise ValueError("at least one kind of text must have a share above 0")
        return self

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares in the order of KINDS, adding up to 1; all 0 where none is given."""
        given = [getattr(self, kind) for kind in KINDS]
        return tuple(one / (sum(given) or 1.0) for one in given)


class UnifiedProgram:
    """Each text is of one kind, which decides what its tokens see and its segment numbers.

    A text is a pair `[CLS] A [SEP] B [SEP]`. As seq2seq its source `[CLS] A [SEP]` sees itself and
    its target `B [SEP]` sees the source and what comes before; the last [SEP] may be masked, which
    is how the model learns to stop.
    """

    def __init__(self, masking: Masking, kinds: KindShares, *, by_kind: bool = True) -> None:
        """`by_kind` numbers segments by the kind of the text, otherwise 0 and 1 as in BERT."""
        self.masking = masking
        self.shares = kinds.shares
        used = {kind: share for kind, share in zip(KINDS, self.shares, strict=True) if share}
        self.weights: Mapping[str, float] = used | ({GAIN: 0.0} if "seq2seq" in used else {})
        self.segments = SEGMENTS_BY_KIND if by_kind else PAIR_SEGMENTS

    def build(self, builder: ModelBuilder) -> PretrainModule:
        """A bidirectional model; the folder records how it writes."""
        if builder.spec.sees != "all":
            raise ConfigError(
                "the unified program decides for each text what its tokens see: it needs "
                'model.sees="all"'
            )
        needed = 1 + max(max(pair) for pair in self.segments)
        if needed > 2 and builder.spec.segments < needed:
            raise ConfigError(
                f"the kinds of texts have {needed} segment numbers and the model "
                f"{builder.spec.segments}: set model.segments={needed} for a new model, or "
                'program.segments="pair" to use 0 and 1 alone'
            )
        module = PretrainModule(self, builder.model([builder.vocabulary_head]))
        if GAIN in self.weights:
            source, target = self.segments[WRITTEN]
            module.record = {
                "writes": {"by": "mask", "source_segment": source, "target_segment": target}
            }
        return module

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> PretrainBatch:
        """Masked texts, each with the visibility and the segments of its kind."""
        kinds, sources = self.kinds(rows)
        masked = self.masking(with_end(rows, kinds == WRITTEN), share)
        first = np.select(
            [kinds == BOTH, kinds == WRITTEN], [rows.sizes, sources], 0
        )  # tokens that every token of the text sees
        arranged = replace(
            rows,
            ids=masked.ids,
            segments=self._segments(rows, kinds, sources),
            sees=Mixed(tuple(first.tolist()), tuple((kinds == BACKWARD).tolist())),
        )
        at = np.flatnonzero(masked.hidden)
        targets = {}
        for kind, name in enumerate(KINDS):
            if name in self.weights:
                here = at[kinds[rows.texts[at]] == kind]
                of = torch.from_numpy(rows.ids[here].astype(np.int64))
                targets[name] = Targets(at=torch.from_numpy(here), of=of)
        return PretrainBatch.of(rows_inputs(arranged), targets)

    def losses(self, module: PretrainModule, batch: PretrainBatch) -> tuple[Losses, Scores]:
        """The loss of each kind; in evaluation also `GAIN`."""
        model = module.model
        hidden = model(batch.inputs, rows=batch.rows).hidden
        losses: Losses = {}
        scores: Scores = {}
        for name, targets in batch.targets.items():
            losses[name], scores[name] = token_loss(model, hidden[targets.at], targets.of)
        if not module.training and GAIN in self.weights:
            gain = source_gain(model, batch)
            losses |= {} if gain is None else {GAIN: gain}
        return losses, scores

    def kinds(self, rows: RowsBatch) -> tuple[Longs, Longs]:
        """(B,) the kind of each text, an index of KINDS, and (B,) the tokens of its source."""
        limits = np.cumsum(self.shares)
        kinds = np.searchsorted(limits, rows.text_uniforms("kind"), side="right")
        kinds = np.minimum(kinds, int(np.flatnonzero(self.shares)[-1]))
        return kinds, source_sizes(rows)

    def _segments(self, rows: RowsBatch, kinds: Longs, sources: Longs) -> Ints:
        table = np.array(self.segments, dtype=np.int32)
        target = (rows.places >= sources[rows.texts]).astype(np.int64)
        return table[kinds[rows.texts], target]


def source_sizes(rows: RowsBatch) -> Longs:
    """(B,) tokens before the second part of each text, all of them where there is one part."""
    starts = np.flatnonzero(rows.breaks)
    second = starts[1:][rows.texts[starts[1:]] == rows.texts[starts[:-1]]]
    sizes = rows.sizes.copy()
    texts = rows.texts[second]
    sizes[texts[::-1]] = rows.places[second[::-1]]  # the first of several
    return sizes


def with_end(rows: RowsBatch, texts: Flags) -> RowsBatch:
    """Rows in which the last token of some texts (B,) is a word, so that it may be masked."""
    last = (rows.starts + rows.sizes - 1)[texts & (rows.sizes > 0)]
    words = rows.words.copy()
    words[last] = rows.words.max(initial=0) + 1 + np.arange(len(last), dtype=np.int32)
    return replace(rows, words=words)


def source_gain(model: Model, batch: PretrainBatch) -> LossSum | None:
    """What another text's source costs the masked tokens of targets; None with fewer than two.

    A source longer than the text's own is cut to it, before its last token.
    """
    sees, lengths = batch.inputs.layout.sees, batch.inputs.layout.lengths
    if not isinstance(sees, Mixed) or batch.rows is None:
        raise ConfigError("these texts were not prepared by the unified program")
    sizes = zip(sees.sources, lengths, sees.backward, strict=True)
    texts = [n for n, (first, size, back) in enumerate(sizes) if 0 < first < size and not back]
    if len(texts) < 2:
        return None
    mine = [sees.sources[text] for text in texts]
    other = [texts[number] for number in other_texts(mine)]
    own, at, of = _assembled(batch, texts, texts)
    wrong, moved, _ = _assembled(batch, texts, other)
    losses = [
        token_loss(model, model(inputs, rows=rows).hidden, of)[0].sum
        for inputs, rows in ((own, at), (wrong, moved))
    ]
    return LossSum(losses[1] - losses[0], len(of))


def _assembled(
    batch: PretrainBatch, texts: list[int], sources: list[int]
) -> tuple[Inputs, Tensor, Tensor]:
    """Targets of `texts` after the sources of `sources`: inputs, masked rows, what they hide."""
    layout, seq2seq = batch.inputs.layout, batch.targets[KINDS[WRITTEN]]
    read = batch.rows if batch.rows is not None else torch.arange(layout.rows)
    masked = read[seq2seq.at]  # rows of the batch
    first = layout.sees.sources if isinstance(layout.sees, Mixed) else ()
    starts, device = layout.starts, masked.device
    parts, at, of, lengths, kept = [], [], [], [], []
    total = 0
    for text, source in zip(texts, sources, strict=True):
        size = min(first[text], first[source])
        begin, end = starts[text] + first[text], starts[text] + layout.lengths[text]
        from_ = starts[source]
        last = from_ + first[source] - 1
        parts += [torch.arange(from_, from_ + size - 1), torch.tensor([last])]
        parts.append(torch.arange(begin, end))
        here = (masked >= begin) & (masked < end)
        at.append(masked[here] - begin + total + size)
        of.append(seq2seq.of[here])
        lengths.append(size + end - begin)
        kept.append(size)
        total += lengths[-1]
    rows = torch.cat(parts).to(device)
    sees = Mixed(tuple(kept), (False,) * len(kept))
    plain = Layout.of(lengths, sees=sees, device=device)
    channels = {name: part[rows] for name, part in batch.inputs.channels.items()}
    return Inputs(batch.inputs.ids[rows], plain, channels), torch.cat(at), torch.cat(of)


class UnifiedSettings(MaskingProgramSettings):
    """Masked LM of texts that are read in four ways: both, source to target, and each direction.

    Segments number the kind ("kind": 0 1, 4 5, 2, 3, which needs model.segments = 6) or the two
    parts of the text only ("pair": 0 1, for any BERT).
    """

    kind: Literal["unified"] = "unified"
    kinds: KindShares = KindShares()
    segments: Literal["kind", "pair"] = "kind"
    mask: MaskSettings = MaskSettings(grouping=Ngram(weights=(0.8, 0.1, 0.1), of="token"))

    @property
    def paired(self) -> bool:
        """Source and target are the two parts of a pair."""
        return self.kinds.seq2seq > 0

    def make(self, tokenizer: Tokenizer) -> UnifiedProgram:
        """The program for a vocabulary."""
        masking = Masking.of(self.mask, tokenizer)
        return UnifiedProgram(masking, self.kinds, by_kind=self.segments == "kind")
