"""Texts as training reads them: with the model's default prompt, cut to the length of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.nn.modes import evaluating
from bertsmith.nn.packing import pack
from bertsmith.sentences.compare import Vectors
from bertsmith.sentences.train.model import SentenceModel
from bertsmith.sentences.train.rows import TrainingRows
from bertsmith.sentences.train.workload import EncodedRows, packed_texts
from bertsmith.text.encoding import Ints
from bertsmith.text.tokenizer import Tokenizer

MICRO_TOKENS = 4_096


class TextEncoder:
    """Token ids of texts, with an account of what was cut."""

    def __init__(self, tokenizer: Tokenizer, settings: SentenceSettings, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._settings = settings
        self._max_length = max_length
        prompt = settings.default_prompt
        self._prefix = "" if prompt is None else settings.prompts[prompt]
        self.texts = 0
        self.cut = 0

    @property
    def prompt_rows(self) -> int:
        """Leading rows of each text that are not pooled."""
        if self._settings.pools_prompt or not self._prefix:
            return 0
        ids, _ = self._tokenizer.fast_ids([self._prepared("")], self._max_length)
        return len(ids[0]) - 1  # all but the closing special token

    def ids(self, texts: Sequence[str]) -> list[Ints]:
        """An array of token ids per text."""
        ids, cuts = self._tokenizer.fast_ids([self._prepared(t) for t in texts], self._max_length)
        self.texts += len(texts)
        self.cut += sum(cut > 0 for cut in cuts)
        return ids

    def rows(self, rows: TrainingRows) -> EncodedRows:
        """Rows of numbers of texts; texts that are equal after truncation have one number."""
        distinct = list(dict.fromkeys(text for row in rows.columns for text in row))
        number: dict[str, int] = {}
        by_ids: dict[bytes, int] = {}
        arrays: list[Ints] = []
        for text, ids in zip(distinct, self.ids(distinct), strict=True):
            key = ids.tobytes()
            if key not in by_ids:
                by_ids[key] = len(arrays)
                arrays.append(ids)
            number[text] = by_ids[key]
        table = [[number[text] for text in row] for row in rows.columns]
        return EncodedRows(texts=arrays, rows=np.array(table, dtype=np.int64), targets=rows.targets)

    def _prepared(self, text: str) -> str:
        whole = self._prefix + text
        return whole.lower() if self._settings.lowercase else whole


@torch.no_grad()
def vectors_of(
    model: SentenceModel,
    texts: Sequence[Ints],
    *,
    device: torch.device,
    precision: Callable[[], AbstractContextManager[Any]],
) -> Vectors:
    """The vectors of texts by a model in training, here in evaluation mode: -> (n, W)."""
    vectors = np.empty((len(texts), model.width), dtype=np.float32)
    with evaluating(model):
        for part in pack([len(ids) for ids in texts], MICRO_TOKENS):
            inputs = packed_texts([texts[text] for text in part]).to(device)
            with precision():
                vectors[part] = model(inputs).float().cpu().numpy()
    return vectors
