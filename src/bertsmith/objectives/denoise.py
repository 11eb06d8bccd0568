"""Denoising (BART, Lewis et al. 2019, arXiv:1910.13461): write the text that noise has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.nn.inputs import Inputs
from bertsmith.objectives.noise.infilling import Infilling
from bertsmith.objectives.noise.noised import Noise
from bertsmith.objectives.noise.noises import AnyNoise, noising
from bertsmith.objectives.noise.shuffle import Permutation
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
    end_token,
    source_target_losses,
)
from bertsmith.text.tokenizer import Tokenizer

DENOISE = "denoise"


class DenoiseProgram:
    """The encoder reads the noised text, the decoder writes the whole text as it was.

    The decoder reads the end token and then the text without its last token, so that its first
    row predicts the first token of the text, which is a special one too.
    """

    weights: ClassVar[Mapping[str, float]] = {DENOISE: 1.0, GAIN: 0.0}

    def __init__(self, noise: Noise, end: int) -> None:
        self.noise = noise
        self.end = end

    def build(self, builder: ModelBuilder) -> PretrainModule:
        """An encoder-decoder whose decoder starts with the end token."""
        module = build_with_decoder(self, builder, DENOISE)
        decoder = module.model.spec.decoder
        if decoder is not None and decoder.start != self.end:
            raise ConfigError(
                f"the decoder of this model starts with token {decoder.start}, and texts end with "
                f"token {self.end}: denoising needs the same token for both"
            )
        return module

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> SourceTargetBatch:
        """Noised texts for the encoder; the texts, one token later, for the decoder."""
        noised = self.noise(rows)
        shifted = np.empty_like(rows.ids)
        shifted[1:] = rows.ids[:-1]
        shifted[rows.starts[rows.sizes > 0]] = self.end
        return SourceTargetBatch(
            name=DENOISE,
            source=Inputs.of(noised.ids, noised.lengths),
            target=Inputs.of(shifted, rows.lengths),
            of=torch.from_numpy(rows.ids.astype(np.int64)),
        )

    def losses(self, module: PretrainModule, batch: SourceTargetBatch) -> tuple[Losses, Scores]:
        """The loss of every token of the text."""
        return source_target_losses(module, batch)


class DenoiseSettings(ProgramSettings):
    """Restore texts after noises, applied in the given order."""

    kind: Literal["denoise"] = "denoise"
    noise: Annotated[tuple[AnyNoise, ...], Field(min_length=1, strict=False)] = (
        Permutation(),
        Infilling(),
    )

    def make(self, tokenizer: Tokenizer) -> DenoiseProgram:
        """The program for a vocabulary."""
        return DenoiseProgram(noising(self.noise, tokenizer), end_token(tokenizer, self.kind))
