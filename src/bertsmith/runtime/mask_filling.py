"""Mask filling: the likeliest tokens for the masks of a text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bertsmith.errors import ConfigError, FolderError, TextError
from bertsmith.folders.read import ModelFolder
from bertsmith.runtime.engines.batches import row_batch
from bertsmith.runtime.host import Host, not_finite
from bertsmith.text.encoding import Encoding
from bertsmith.text.truncation import Truncation

GENERATOR = "generator"  # the folder of ELECTRA's masked-LM half, inside that of the other half


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A token for a mask and the probability the model gives it."""

    token: str
    id: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """Guesses for each mask of a text, best first, and the text with the best of each in place."""

    guesses: tuple[tuple[Guess, ...], ...]
    text: str


class MaskedModel:
    """The masked-LM head of a model; any number of threads may use one at once."""

    def __init__(self, host: Host, *, longest: int | None) -> None:
        mask = host.tokenizer.special.mask
        if mask is None:
            raise FolderError("the vocabulary has no mask token, so no token can be masked")
        self.host = host
        self.tokenizer = host.tokenizer
        self.longest = longest
        self.mask_id = mask
        self.mask = host.tokenizer.id_to_token(mask) or ""

    @classmethod
    def of(cls, host: Host, folder: ModelFolder) -> MaskedModel:
        """The masked LM of a model in memory that was loaded from `folder`."""
        if "masked_lm" not in host.model.heads:
            has = ", ".join(host.model.heads) or "none"
            inner = folder.path / GENERATOR
            hint = (
                f"its generator has one: {inner}"
                if inner.is_dir()
                else "take a folder that was pre-trained with one"
            )
            raise FolderError(f"{folder.path} has no masked-LM head (its heads: {has}); {hint}")
        if host.model.spec.causal:
            raise FolderError(
                f"{folder.path} is a causal model, which predicts the next token and not masked "
                "ones; take a masked LM"
            )
        return cls(host, longest=folder.longest())

    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """Of every token of the vocabulary, from hidden states: (P, D) -> (P, V)."""
        weight = self.host.model.encoder.embeddings.tokens.weight
        with torch.inference_mode():
            logits = self.host.model.logits("masked_lm", hidden.to(weight.device, weight.dtype))
            return logits.float().log_softmax(-1)

    def fill(self, text: str, *, top: int = 5) -> Filled:
        """The likeliest tokens for each mask of a text; masks do not know of each other's guess."""
        if top < 1:
            raise ConfigError(f"top is {top}; at least 1 guess is needed")
        encoding = self.encoded(text)
        places = np.flatnonzero((encoding.ids == self.mask_id) & (encoding.fields >= 0)).tolist()
        if not places:
            raise TextError(f"the text has no {self.mask}; put one where the model should guess")
        hidden = self.host.hidden(row_batch([0], [encoding.ids]), places)
        scores = self.log_probabilities(hidden)
        scores = scores[:, : self.tokenizer.vocab_size]  # spare rows of the embedding are no tokens
        best = scores.topk(min(top, scores.shape[1]))
        if not best.values.isfinite().all():
            raise not_finite("the text")
        guesses = tuple(
            tuple(
                Guess(token=self.tokenizer.id_to_token(number) or "", id=number, score=score)
                for number, score in zip(numbers, values, strict=True)
            )
            for numbers, values in zip(
                best.indices.tolist(), best.values.exp().tolist(), strict=True
            )
        )
        ids = encoding.ids.copy()
        ids[places] = [row[0].id for row in guesses]
        return Filled(guesses=guesses, text=self.tokenizer.decode(ids[encoding.fields >= 0]))

    def encoded(self, text: str) -> Encoding:
        """The text with its masks, but no other control token, read as control tokens."""
        whole = Truncation(max_length=self.longest, strict=True)
        encoding = self.tokenizer.encode(text, truncation=whole, allow_special=True)
        inside = set(encoding.ids[encoding.fields >= 0].tolist())
        for token in sorted(self.tokenizer.control_tokens - {self.mask}):
            number = self.tokenizer.token_to_id(token)
            if number in inside and number != self.tokenizer.special.unk:
                raise TextError(
                    f"the text contains the control token {token!r}; only {self.mask} is allowed"
                )
        return encoding
