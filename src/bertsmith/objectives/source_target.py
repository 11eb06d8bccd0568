"""Source and target of an encoder-decoder: the batch, its loss, and whether the source is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from bertsmith.corpus.examples import frame_of
from bertsmith.errors import ConfigError
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import FULL, Layout, Sees
from bertsmith.nn.loss import LossSum
from bertsmith.objectives.masked_lm import token_loss
from bertsmith.objectives.program import Losses, ModelBuilder, PretrainModule, Program, Scores
from bertsmith.text.tokenizer import Tokenizer

GAIN = "source_gain"
"""Part of the held-out loss: nats that another text's source costs, per predicted token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTargetBatch:
    """What the encoder reads, what the decoder reads, and the tokens `of` (P,) it predicts.

    Every decoder row predicts one token. Decoder text b looks at encoder text b as `sees` says.
    """

    name: str  # of the part of the loss
    source: Inputs
    target: Inputs
    of: Tensor
    sees: Sees = field(default=FULL)

    @property
    def tokens(self) -> int:
        """Tokens of encoder and decoder; nothing is padding."""
        return self.source.ids.shape[0] + self.target.ids.shape[0]

    @property
    def counts(self) -> dict[str, int]:
        """One prediction per decoder row."""
        return {self.name: self.of.shape[0]}

    def to(self, device: torch.device | str) -> SourceTargetBatch:
        """The same batch on a device."""
        return replace(
            self,
            source=self.source.to(device),
            target=self.target.to(device),
            of=self.of.to(device, non_blocking=True),
            sees=self.sees.to(device),
        )


def build_with_decoder(program: Program, builder: ModelBuilder, kind: str) -> PretrainModule:
    """The module of a program that needs an encoder-decoder."""
    if builder.spec.decoder is None:
        raise ConfigError(
            f"the program {kind} needs a model with a decoder, and this one has none: set "
            "model.variant=bart, or take a program for encoders (masked, causal, unified)"
        )
    return PretrainModule(program, builder.model([builder.vocabulary_head]))


def source_target_losses(module: PretrainModule, batch: SourceTargetBatch) -> tuple[Losses, Scores]:
    """The loss of the target; in evaluation also `GAIN`."""
    model = module.model
    memory = model(batch.source).hidden
    layout = batch.source.layout
    hidden = model.decode(batch.target, memory, layout, sees_memory=batch.sees)
    loss, score = token_loss(model, hidden, batch.of)
    losses: Losses = {batch.name: loss}
    if not module.training and len(layout.lengths) > 1:
        other = other_texts(layout.lengths)
        memory, layout = _taken(memory, layout, other)
        sees = batch.sees.take(other)
        hidden = model.decode(batch.target, memory, layout, sees_memory=sees)
        wrong, _ = token_loss(model, hidden, batch.of)
        losses[GAIN] = LossSum(wrong.sum - loss.sum, loss.count)
    return losses, {batch.name: score}


def other_texts(lengths: Sequence[int]) -> list[int]:
    """(B,) another text for each, the next longer one; the longest gets the shortest."""
    order = sorted(range(len(lengths)), key=lambda text: (lengths[text], text))
    other = [0] * len(order)
    for place, text in enumerate(order):
        other[text] = order[(place + 1) % len(order)]
    return other


def _taken(rows: Tensor, layout: Layout, texts: Sequence[int]) -> tuple[Tensor, Layout]:
    """The rows of some texts, and their layout."""
    lengths = tuple(layout.lengths[text] for text in texts)
    starts = layout.starts
    each = [torch.arange(starts[text], starts[text] + layout.lengths[text]) for text in texts]
    at = torch.cat(each).to(rows.device)
    return rows[at], Layout(lengths, layout.positions[at])


def end_token(tokenizer: Tokenizer, kind: str) -> int:
    """The special token that ends every text, `</s>` or `[SEP]`: the decoder starts with it."""
    marks = frame_of(tokenizer, 1).gaps[-1]
    if not marks:
        raise ConfigError(
            f"the program {kind} needs texts that end with a special token, so that the decoder "
            "learns to stop; this tokenizer adds none"
        )
    return marks[-1][0]
