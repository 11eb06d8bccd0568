"""MASS (Song et al. 2019, arXiv:1905.02450): the decoder writes the span the encoder cannot see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator

from bertsmith.config import Fraction
from bertsmith.corpus.rows import Flags, Longs, RowsBatch, spread
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import FULL, Dense, Sees
from bertsmith.objectives.masking.replacement import MASKED, Mix, Replacement
from bertsmith.objectives.program import (
    Losses,
    ModelBuilder,
    PretrainModule,
    ProgramSettings,
    Scores,
)
from bertsmith.objectives.source_target import (
    GAIN,
    SourceTargetBatch,
    build_with_decoder,
    source_target_losses,
)
from bertsmith.text.tokenizer import Tokenizer

MASS = "masked_span"


class MaskedSpanProgram:
    """One span of each text is masked for the encoder and written by the decoder.

    The decoder reads the token before each place of the span, at that token's position in the
    text. The first token of a text is never in the span; the last, which ends it, may be.
    """

    weights: ClassVar[Mapping[str, float]] = {MASS: 1.0, GAIN: 0.0}

    def __init__(self, settings: MaskedSpanSettings, replacement: Replacement) -> None:
        self.settings = settings
        self.replacement = replacement

    def build(self, builder: ModelBuilder) -> PretrainModule:
        """An encoder-decoder."""
        return build_with_decoder(self, builder, MASS)

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> SourceTargetBatch:
        """Texts with a masked span for the encoder; the span, one token later, for the decoder."""
        first, sizes = self.spans(rows)
        at = spread(rows.starts + first, sizes)
        hidden = np.zeros(len(rows.ids), dtype=bool)
        hidden[at] = True
        ids, fates = self.replacement(rows, np.arange(len(rows.ids)), hidden)
        lengths = tuple(sizes.tolist())
        return SourceTargetBatch(
            name=MASS,
            source=Inputs.of(ids, rows.lengths),
            target=Inputs.of(rows.ids[at - 1], lengths, positions=rows.places[at] - 1),
            of=torch.from_numpy(rows.ids[at].astype(np.int64)),
            sees=FULL if self.settings.sees_masks else _without(fates == MASKED, rows, sizes),
        )

    def losses(self, module: PretrainModule, batch: SourceTargetBatch) -> tuple[Losses, Scores]:
        """The loss of the tokens of the span."""
        return source_target_losses(module, batch)

    def spans(self, rows: RowsBatch) -> tuple[Longs, Longs]:
        """(B,) the place in its text where each span begins, and (B,) its size."""
        settings = self.settings
        places = np.maximum(rows.sizes - 1, 0)  # of a span: all but the first token
        sizes = np.clip(np.rint(settings.size * rows.sizes).astype(np.int64), 1, None)
        sizes = np.minimum(sizes, places)
        last = rows.sizes - sizes
        drawn = rows.text_uniforms("span place")
        free = 1 + (rows.text_uniforms("span start") * last).astype(np.int64)
        where = np.where(drawn < settings.start + settings.end, last, np.minimum(free, last))
        return np.where(drawn < settings.start, np.minimum(1, last), where), sizes


def _without(masked: Flags, rows: RowsBatch, sizes: Longs) -> Sees:
    """Every decoder row sees the encoder's rows but those that show a mask: -> (B, L, M)."""
    shown = np.ones((len(rows.lengths), int(rows.sizes.max(initial=0))), dtype=bool)
    shown[rows.texts[masked], rows.places[masked]] = False
    each = np.repeat(shown[:, None], int(sizes.max(initial=0)), axis=1)
    return Dense(torch.from_numpy(each))


class MaskedSpanSettings(ProgramSettings):
    """Predict one span per text from the rest of it.

    `sees_masks` says whether the decoder attends to encoder places that show a mask: the published
    code for translation does not, the one for summarization does.
    """

    kind: Literal["masked_span"] = "masked_span"
    size: Annotated[float, Field(gt=0, lt=1)] = 0.5  # of the span, as a share of the text
    start: Fraction = 0.2  # share of spans that begin after the first token
    end: Fraction = 0.2  # share of spans that end with the text; the others lie anywhere
    replacement: Mix = Mix()
    sees_masks: bool = False

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.start + self.end > 1:
            raise ValueError(
                f"start and end are shares of spans: {self.start + self.end} is over 1"
            )
        return self

    def make(self, tokenizer: Tokenizer) -> MaskedSpanProgram:
        """The program for a vocabulary."""
        return MaskedSpanProgram(self, self.replacement.make(tokenizer))
