"""Embedder: one vector per text, for any number of texts, with an account of what was cut."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import TextError, unknown
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.nn.sentence_head import similarity
from bertsmith.runtime.engines.batches import pack_rows
from bertsmith.runtime.engines.engine import batch_budget
from bertsmith.runtime.host import Host
from bertsmith.text.grouping import groups

if TYPE_CHECKING:
    from bertsmith.models.build import Model
    from bertsmith.text.tokenizer import Tokenizer

log = logging.getLogger(__name__)

Vectors = NDArray[np.float32]
Progress = Callable[[int], None]  # called with the number of texts done so far

CHUNK = 16_384  # texts whose tokens are held at once
_CHUNK_CHARACTERS = 64_000_000


@dataclass(slots=True, kw_only=True)
class EncodingAccount:
    """What `encode` did: texts, distinct ones, tokens read, and what truncation removed.

    Give one to a call and it is filled in; of several calls it holds the sum.
    """

    texts: int = 0
    distinct: int = 0
    tokens: int = 0
    cut_texts: int = 0
    cut_tokens: int = 0
    max_length: int | None = None
    seconds: float = 0.0  # without the preparation
    preparation: float = 0.0  # seconds spent building and probing a faster engine
    engine: str = ""

    def add(self, other: EncodingAccount) -> None:
        """Add the account of a further call."""
        for name in ("texts", "distinct", "tokens", "cut_texts", "cut_tokens"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds += other.seconds
        self.preparation += other.preparation
        self.max_length, self.engine = other.max_length, other.engine

    def cuts(self) -> str:
        """What was cut, in words; empty if nothing was."""
        if not self.cut_texts:
            return ""
        return (
            f"{self.cut_texts:,} of {self.texts:,} texts were longer than {self.max_length} tokens "
            f"and lost {self.cut_tokens:,} tokens at their end"
        )


class Embedder:
    """Turns texts into vectors; any number of threads may use one at once."""

    def __init__(self, host: Host, settings: SentenceSettings | None = None) -> None:
        self.host = host
        self.settings = settings or SentenceSettings()
        self.max_length = _limit(host.model, host.tokenizer, self.settings)
        self._head = self.settings.head()

    @torch.inference_mode()
    def _pooled(self, hidden: Tensor, lengths: Sequence[int], skipped: int) -> Tensor:
        """Rows of a batch (T, D) -> (B, W), without the first `skipped` rows of each text."""
        return self._head(hidden, lengths, skipped)

    @property
    def dimension(self) -> int:
        """The width of a vector."""
        return self.settings.width(self.host.model.spec.hidden)

    @property
    def engine(self) -> str:
        """The engine in use now."""
        return self.host.engine.name

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        prompt: str | None = None,
        progress: Progress | None = None,
        account: EncodingAccount | None = None,
    ) -> Vectors:
        """Texts to float32 vectors in their order: -> (n, D), or (D,) for a single string.

        `prompt` names one of the model's prompts; `account` is filled with what the call did.
        """
        if isinstance(texts, str):
            single: Vectors = self.encode([texts], prompt=prompt, account=account)[0]
            return single
        # Equal texts are computed once: each is looked up by the number of its first appearance.
        first: dict[str, int] = {}
        numbers = [first.setdefault(_text(text), len(first)) for text in texts]
        distinct = np.empty((len(first), self.dimension), dtype=np.float32)
        done = 0
        own = EncodingAccount(max_length=self.max_length, engine=self.engine)
        counts = np.bincount(numbers, minlength=len(first)) if numbers else np.zeros(0, np.int64)
        for vectors, part in self._chunks(first, prompt, counts, progress):
            distinct[done : done + len(vectors)] = vectors
            done += len(vectors)
            own.add(part)
        if account is not None:
            account.add(own)
        if own.cut_texts:
            log.warning("%s; raise max_length or split them", own.cuts())
        return distinct if len(first) == len(numbers) else distinct[numbers]

    def encode_stream(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        progress: Progress | None = None,
        account: EncodingAccount | None = None,
    ) -> Iterator[Vectors]:
        """Any number of texts in bounded memory: yields (k, D) blocks in order.

        Equal texts are computed once in each block of 16,384.
        """
        if account is not None:  # also of no texts
            account.max_length, account.engine = self.max_length, self.engine
        done = 0
        for block in _blocks(texts):
            yield self.encode(
                block,
                prompt=prompt,
                progress=None if progress is None else _shifted(progress, done),
                account=account,
            )
            done += len(block)

    def similarity(
        self, first: Vectors | Sequence[str] | str, second: Vectors | Sequence[str] | str
    ) -> Vectors:
        """The similarity of each of `first` to each of `second`, texts or vectors: -> (n, m)."""
        both = [np.atleast_2d(self._vectors(side)) for side in (first, second)]
        return similarity(self.settings.similarity, both[0], both[1])

    def _vectors(self, side: Vectors | Sequence[str] | str) -> Vectors:
        if isinstance(side, np.ndarray):
            return side
        return self.encode(side)

    def _chunks(
        self,
        texts: Iterable[str],
        prompt: str | None,
        counts: NDArray[np.int64],
        progress: Progress | None,
    ) -> Iterator[tuple[Vectors, EncodingAccount]]:
        prefix, skipped = self._prompt(prompt)
        seen = finished = 0
        for block in _blocks(texts):
            start = time.perf_counter()
            ids, cuts = self.host.tokenizer.fast_ids(
                [self._prepared(prefix, text) for text in block], self.max_length
            )
            weights = counts[seen : seen + len(block)]
            seen += len(block)
            tokens = sum(map(len, ids))
            prepared = time.perf_counter()
            engine = self.host.prepare(self.host.flops(tokens, len(ids)))
            prepared = time.perf_counter() - prepared
            vectors = np.empty((len(block), self.dimension), dtype=np.float32)
            ended = self.host.run(
                engine,
                pack_rows(ids, budget=batch_budget(engine, tokens)),
                lambda batch, hidden: self._pooled(hidden, batch.lengths, skipped),
            )
            for batch, part in ended:
                vectors[list(batch.texts)] = part.cpu().numpy()
                finished += int(weights[list(batch.texts)].sum())
                if progress:
                    progress(finished)
            lost = np.array(cuts, dtype=np.int64)
            yield (
                vectors,
                EncodingAccount(
                    texts=int(weights.sum()),
                    distinct=len(block),
                    tokens=tokens,
                    cut_texts=int(weights[lost > 0].sum()),
                    cut_tokens=int((lost * weights).sum()),
                    max_length=self.max_length,
                    seconds=time.perf_counter() - start - prepared,
                    preparation=prepared,
                    engine=engine.name,
                ),
            )

    def _prompt(self, name: str | None) -> tuple[str, int]:
        """The text of a prompt and how many leading rows to leave out of the pooling."""
        chosen = name if name is not None else self.settings.default_prompt
        if chosen is None:
            return "", 0
        if chosen not in self.settings.prompts:
            raise unknown("prompt of this model", chosen, self.settings.prompts)
        prefix = self.settings.prompts[chosen]
        if self.settings.pools_prompt or not prefix:
            return prefix, 0
        ids, _ = self.host.tokenizer.fast_ids([self._prepared("", prefix)], self.max_length)
        return prefix, len(ids[0]) - 1  # all but the closing special token

    def _prepared(self, prefix: str, text: str) -> str:
        whole = prefix + text
        return whole.lower() if self.settings.lowercase else whole


def _limit(model: Model, tokenizer: Tokenizer, settings: SentenceSettings) -> int | None:
    """The longest text in tokens: the limit of the folder, within the number of positions."""
    limits = [settings.max_length, model.spec.longest, tokenizer.model_max_length]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise TextError(f"a text must be a string, not {type(text).__name__}: {text!r:.60}")
    return text


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts whose tokens are held at once."""
    return groups(map(_text, texts), CHUNK, size=len, most_size=_CHUNK_CHARACTERS)


def _shifted(progress: Progress, before: int) -> Progress:
    return lambda done: progress(before + done)
