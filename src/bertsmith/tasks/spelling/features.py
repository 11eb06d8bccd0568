"""Features of correction: texts as tokens, which of them may be changed, and what belongs there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import FolderError
from bertsmith.labeled.errors.rows import correctable
from bertsmith.labeled.example import Example
from bertsmith.nn.inputs import Inputs
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.tag.features import tag_features
from bertsmith.text.encoding import Ints
from bertsmith.text.segment import is_chinese
from bertsmith.text.tokenizer import Tokenizer

UNKNOWN = -1  # the right character is not in the vocabulary


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrectionFeature:
    """One passage of a text: `ids` (L,), whether each is of the text (L,), and its U characters.

    `at` (U,) are their tokens, `places` (U,) their places in text number `text`; with a right text
    `wanted` (U,) are the ids that belong there (-1: not in the vocabulary), `wrong` (U,) whether
    they differ.
    """

    text: int
    ids: Ints
    inside: NDArray[np.bool_]
    at: NDArray[np.int64]
    places: NDArray[np.int64]
    wanted: NDArray[np.int64]
    wrong: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class CorrectionBatch:
    """Passages packed: inputs of T rows, the rows of text (I,), and the U characters read.

    `wanted` (U,), `wrong` (U,) as in `CorrectionFeature`; `texts` and `places` (U,) say whose.
    """

    inputs: Inputs
    inside: Tensor
    at: Tensor
    wanted: Tensor
    wrong: Tensor
    texts: NDArray[np.int64]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, features: Sequence[CorrectionFeature]) -> CorrectionBatch:
        """Some passages one after another."""
        lengths = [len(one.ids) for one in features]
        starts = np.cumsum([0, *lengths[:-1]])
        rows = [one.at + start for one, start in zip(features, starts, strict=True)]
        return cls(
            Inputs.of(np.concatenate([one.ids for one in features]), lengths),
            torch.from_numpy(np.flatnonzero(np.concatenate([one.inside for one in features]))),
            torch.from_numpy(np.concatenate(rows)),
            torch.from_numpy(np.concatenate([one.wanted for one in features])),
            torch.from_numpy(np.concatenate([one.wrong for one in features])),
            np.repeat([one.text for one in features], [len(one.at) for one in features]),
            np.concatenate([one.places for one in features]),
        )

    def to(self, device: torch.device | str) -> CorrectionBatch:
        """The same on a device."""
        return replace(
            self,
            inputs=self.inputs.to(device),
            inside=self.inside.to(device, non_blocking=True),
            at=self.at.to(device, non_blocking=True),
            wanted=self.wanted.to(device, non_blocking=True),
            wrong=self.wrong.to(device, non_blocking=True),
        )


class CharacterTokens:
    """The Chinese characters of a vocabulary, and texts as features."""

    def __init__(self, tokenizer: Tokenizer, *, max_length: int, where: str) -> None:
        self.tokenizer = tokenizer
        self.lengths = LengthSettings(max_length=max_length, stride="half")
        if not self.characters:
            raise FolderError(
                f"{where}: no token of the vocabulary is a Chinese character, so no character "
                "can be corrected; take a model with a Chinese vocabulary"
            )

    @cached_property
    def characters(self) -> dict[int, str]:
        """Id -> the character it stands for."""
        found = {}
        for number in range(self.tokenizer.vocab_size):
            token = self.tokenizer.id_to_token(number) or ""
            if len(token) == 1 and is_chinese(token):
                found[number] = token
        return found

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {character: number for number, character in self.characters.items()}

    def features(
        self, texts: Sequence[str], rights: Sequence[str] | None = None
    ) -> list[CorrectionFeature]:
        """The passages of texts; a text without a character that may be changed has none.

        Characters outside of the vocabulary are not read: nothing is known of them.
        """
        numbers, examples = [], []
        for number, text in enumerate(texts):
            units = tuple((place, place + 1) for place in correctable(text))
            if units:
                numbers.append(number)
                examples.append(
                    Example(source="", line=number + 1, id=str(number), texts=(text,), units=units)
                )
        found = []
        for one in tag_features(examples, self.tokenizer, self.lengths, {}) if examples else []:
            if one.at is None or one.units is None or not len(one.at):
                continue
            example = examples[one.example]
            places = np.array([example.units[unit][0] for unit in one.units.tolist()])
            at = one.at.astype(np.int64)
            known = np.isin(one.encoding.ids[at], self._known)
            number = numbers[one.example]
            at, places = at[known], places[known]
            if not len(at):
                continue
            text = texts[number]
            right = text if rights is None else rights[number]
            found.append(
                CorrectionFeature(
                    text=number,
                    ids=one.encoding.ids,
                    inside=one.encoding.fields >= 0,
                    at=at,
                    places=places,
                    wanted=np.array([self._ids.get(right[p], UNKNOWN) for p in places.tolist()]),
                    wrong=np.array([text[p] != right[p] for p in places.tolist()]),
                )
            )
        return found

    @cached_property
    def _known(self) -> Ints:
        return np.array(list(self.characters), dtype=np.int32)
