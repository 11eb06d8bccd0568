"""Masked tokens and what a model puts in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError, FolderError, TextError
from bertsmith.folders.read import load_model
from bertsmith.models.build import Model
from bertsmith.nn.inputs import Inputs
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.truncation import Truncation

Ids = NDArray[np.int32]
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
    """A model with a masked-LM head and its tokenizer, ready to be asked."""

    def __init__(self, model: Model, tokenizer: Tokenizer, *, longest: int | None) -> None:
        if tokenizer.special.mask is None:
            raise FolderError("the vocabulary has no mask token, so nothing can be asked of it")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.longest = longest
        self.mask_id = tokenizer.special.mask
        self.mask = tokenizer.id_to_token(self.mask_id) or ""

    @classmethod
    def load(cls, name: str | Path, *, device: str = "cpu") -> MaskedModel:
        """The masked LM of a model folder by path or name."""
        loaded = load_model(name, device=device)
        if "masked_lm" not in loaded.model.heads:
            has = ", ".join(loaded.model.heads) or "none"
            inner = loaded.folder.path / GENERATOR
            hint = (
                f"its generator has one: {inner}"
                if inner.is_dir()
                else "take a folder that was pre-trained with one"
            )
            raise FolderError(
                f"{loaded.folder.path} has no masked-LM head (its heads: {has}); {hint}"
            )
        return cls(loaded.model, loaded.tokenizer, longest=loaded.folder.longest())

    def log_probabilities(self, texts: Sequence[Ids], rows: Sequence[int]) -> Tensor:
        """Of every token at some rows of the joined texts: B of (L,), P rows -> (P, V)."""
        device = self.model.encoder.embeddings.tokens.weight.device
        with torch.inference_mode():
            inputs = Inputs.of(np.concatenate(texts), [len(text) for text in texts]).to(device)
            places = torch.tensor(rows, dtype=torch.long, device=device)
            hidden = self.model(inputs, rows=places).hidden  # (P, D)
            return self.model.logits("masked_lm", hidden).float().log_softmax(-1)

    def fill(self, text: str, *, top: int = 5) -> Filled:
        """The likeliest tokens for each mask of a text; masks do not know of each other's guess."""
        if top < 1:
            raise ConfigError(f"top is {top}; ask for at least 1 guess")
        encoding = self._encoded(text)
        places = np.flatnonzero((encoding.ids == self.mask_id) & (encoding.fields >= 0)).tolist()
        if not places:
            raise TextError(f"the text has no {self.mask}; put one where the model should guess")
        scores = self.log_probabilities([encoding.ids], places)
        scores = scores[:, : self.tokenizer.vocab_size]  # spare rows of the embedding are no tokens
        found = scores.topk(min(top, scores.shape[1]))
        guesses = tuple(
            tuple(
                Guess(token=self.tokenizer.id_to_token(number) or "", id=number, score=score)
                for number, score in zip(numbers, values, strict=True)
            )
            for numbers, values in zip(
                found.indices.tolist(), found.values.exp().tolist(), strict=True
            )
        )
        ids = encoding.ids.copy()
        ids[places] = [row[0].id for row in guesses]
        return Filled(guesses=guesses, text=self.tokenizer.decode(ids[encoding.fields >= 0]))

    def _encoded(self, text: str) -> Encoding:
        """The text with its masks, but no other control token, taken as what they say."""
        whole = Truncation(max_length=self.longest, strict=True)
        encoding = self.tokenizer.encode(text, truncation=whole, allow_special=True)
        inside = set(encoding.ids[encoding.fields >= 0].tolist())
        for token in sorted(self.tokenizer.control_tokens - {self.mask}):
            number = self.tokenizer.token_to_id(token)
            if number in inside and number != self.tokenizer.special.unk:
                raise TextError(
                    f"the text writes the control token {token!r}; only {self.mask} may stand in it"
                )
        return encoding
