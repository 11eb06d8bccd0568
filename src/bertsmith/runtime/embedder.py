"""Embedder: one vector per text, for any number of texts, with an account of what was cut."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from bertsmith.errors import ConfigError, TextError, check_type, unknown
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.nn.sentence_head import similarity
from bertsmith.runtime.engines.batches import Ids
from bertsmith.runtime.host import Host, not_finite
from bertsmith.runtime.text_vectors import EncoderVectors, TableVectors, TextVectors
from bertsmith.text.blocks import groups
from bertsmith.text.encoding import UnknownTokens
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.wording import shown

log = logging.getLogger(__name__)

Vectors = NDArray[np.float32]
Progress = Callable[[int], None]  # called with the number of texts done so far

CHUNK = 16_384  # texts whose tokens are held at once
_CHUNK_CHARACTERS = 64_000_000


@dataclass(slots=True, kw_only=True)
class EncodingAccount:
    """What `encode` did: texts, distinct ones, tokens, unknown ones, and what truncation removed.

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
    unknown: UnknownTokens = field(default_factory=UnknownTokens)  # of distinct texts

    def add(self, other: EncodingAccount) -> None:
        """Add the account of a further call."""
        for name in ("texts", "distinct", "tokens", "cut_texts", "cut_tokens"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds += other.seconds
        self.preparation += other.preparation
        self.max_length, self.engine = other.max_length, other.engine
        self.unknown.add(other.unknown)

    def cuts(self) -> str:
        """What was cut, in words; empty if nothing was."""
        if not self.cut_texts:
            return ""
        return (
            f"{self.cut_texts:,} of {self.texts:,} texts were longer than {self.max_length} tokens "
            f"and lost {self.cut_tokens:,} tokens at their end"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CallOptions:
    """What a call may set: see `Embedder.encode`."""

    prompt: str | None = None
    batch_size: int | None = None
    normalize: bool | None = None
    truncate_dim: int | None = None


class Embedder:
    """Turns texts into vectors; any number of threads may use one at once."""

    def __init__(
        self, source: Host | TableVectors, settings: SentenceSettings | None = None
    ) -> None:
        """`source` is a loaded encoder or a table of static vectors."""
        self.settings = settings or SentenceSettings()
        self._source: TextVectors = (
            source
            if isinstance(source, TableVectors)
            else EncoderVectors(source, self.settings.layer_mix)
        )
        limits = (self.settings.max_length, self._source.longest)
        self.max_length = min((limit for limit in limits if limit is not None), default=None)
        self._head = self.settings.head()

    @property
    def tokenizer(self) -> Tokenizer:
        """What turns texts into ids."""
        return self._source.tokenizer

    @property
    def dimension(self) -> int:
        """The width of a vector."""
        return self.settings.width(self._source.width)

    @property
    def engine(self) -> str:
        """The engine in use now."""
        return self._source.engine

    def settle(self, tokens: int, texts: int) -> str:
        """Select the engine for that much work for good; its name, with torch's rounding.

        What is computed by one engine in the same batches is equal to the last bit.
        """
        return self._source.settle(tokens, texts)

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        prompt: str | None = None,
        batch_size: int | None = None,
        normalize: bool | None = None,
        truncate_dim: int | None = None,
        progress: Progress | None = None,
        account: EncodingAccount | None = None,
    ) -> Vectors:
        """Texts to float32 vectors in their order: -> (n, D), or (D,) for a single string.

        `prompt` names one of the model's prompts. `batch_size` limits the texts of a batch, which
        is filled by tokens. `truncate_dim` returns the first columns only. `normalize` returns
        vectors of length one (True, after truncation), or as they are before normalization (False);
        None is what the model's folder says. `account` is filled with what the call did.
        """
        if isinstance(texts, str):
            texts, single = [texts], True
        else:
            check_type("texts", texts, Iterable)
            single = False
        options = _CallOptions(
            prompt=prompt,
            batch_size=batch_size,
            normalize=normalize,
            truncate_dim=truncate_dim,
        )
        vectors = self._encode(texts, self._checked(options), progress, account)
        first: Vectors = vectors[0] if single else vectors
        return first

    def encode_stream(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        batch_size: int | None = None,
        normalize: bool | None = None,
        truncate_dim: int | None = None,
        progress: Progress | None = None,
        account: EncodingAccount | None = None,
    ) -> Iterator[Vectors]:
        """Any number of texts in bounded memory: yields (k, D) blocks in order.

        Equal texts are computed once in each block of 16,384; the rest is as in `encode`.
        """
        check_type("texts", texts, Iterable)
        options = _CallOptions(
            prompt=prompt,
            batch_size=batch_size,
            normalize=normalize,
            truncate_dim=truncate_dim,
        )
        return self._stream(texts, self._checked(options), progress, account)

    def _stream(
        self,
        texts: Iterable[str],
        options: _CallOptions,
        progress: Progress | None,
        account: EncodingAccount | None,
    ) -> Iterator[Vectors]:
        if account is not None:  # also of no texts
            account.max_length, account.engine = self.max_length, self.engine
        done = 0
        for block in _blocks(texts):
            watch = None if progress is None else _shifted(progress, done)
            yield self._encode(block, options, watch, account, before=done)
            done += len(block)

    def _checked(self, options: _CallOptions) -> _CallOptions:
        """Refuse what cannot be computed before the first text is read."""
        prompt = options.prompt
        check_type("prompt", prompt, str, NoneType)
        check_type("normalize", options.normalize, bool, NoneType)
        check_type("batch_size", options.batch_size, int, NoneType)
        check_type("truncate_dim", options.truncate_dim, int, NoneType)
        if prompt is not None and prompt not in self.settings.prompts:
            raise unknown("prompt of this model", prompt, self.settings.prompts)
        if options.batch_size is not None and options.batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1, not {options.batch_size}")
        dimension = options.truncate_dim
        if dimension is not None and not 1 <= dimension <= self.dimension:
            raise ConfigError(
                f"truncate_dim must be from 1 to {self.dimension}, the width of a vector of this "
                f"model, not {dimension}"
            )
        return options

    def _encode(
        self,
        texts: Sequence[str],
        options: _CallOptions,
        progress: Progress | None,
        account: EncodingAccount | None,
        before: int = 0,
    ) -> Vectors:
        """The vectors of texts that come after `before` others: -> (n, D)."""
        # Equal texts are computed once: each is looked up by the number of its first appearance.
        first: dict[str, int] = {}
        numbers = [first.setdefault(_text(text), len(first)) for text in texts]
        width = options.truncate_dim or self.dimension
        distinct = np.empty((len(first), width), dtype=np.float32)
        done = 0
        own = EncodingAccount(max_length=self.max_length, engine=self.engine)
        counts = np.bincount(numbers, minlength=len(first)) if numbers else np.zeros(0, np.int64)
        for vectors, part in self._chunks(first, options, counts, progress):
            if not np.isfinite(vectors).all():
                bad = done + int((~np.isfinite(vectors).all(axis=1)).argmax())
                place = before + numbers.index(bad) + 1
                raise not_finite(f"text {place:,}, {shown(list(first)[bad])}")
            distinct[done : done + len(vectors)] = vectors
            done += len(vectors)
            own.add(part)
        if account is not None:
            account.add(own)
        if own.cut_texts:
            log.warning("%s; raise max_length or split them", own.cuts())
        if own.unknown.is_high:
            log.warning("%s", own.unknown)
        return distinct if len(first) == len(numbers) else distinct[numbers]

    def token_ids(self, texts: Sequence[str]) -> tuple[list[Ids], int]:
        """Ids as `encode` computes with, and how many leading rows of each are not pooled."""
        prefix, skipped = self.prompt(None)
        prepared = [self._prepared(prefix, _text(text)) for text in texts]
        return self._source.tokenizer.fast_ids(prepared, self.max_length)[0], skipped

    def encode_ids(
        self, ids: Sequence[Ids], *, normalize: bool | None = None, skipped: int = 0
    ) -> Vectors:
        """Vectors of texts given by their ids, special tokens included: -> (n, D).

        The first `skipped` rows of each text, those of a prompt, are not pooled.
        """
        head = self._head if normalize is None else replace(self._head, normalize=normalize)
        work = self._source.prepare(ids)
        vectors = np.empty((len(ids), self.dimension), dtype=np.float32)
        for places, part in work(head, skipped=skipped):
            vectors[list(places)] = part.cpu().numpy()
        return vectors

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
        options: _CallOptions,
        counts: NDArray[np.int64],
        progress: Progress | None,
    ) -> Iterator[tuple[Vectors, EncodingAccount]]:
        prefix, skipped = self.prompt(options.prompt)
        head = self._head if options.normalize is None else replace(self._head, normalize=False)
        seen = finished = 0
        for block in _blocks(texts):
            start = time.perf_counter()
            ids, cuts = self.tokenizer.fast_ids(
                [self._prepared(prefix, text) for text in block], self.max_length
            )
            weights = counts[seen : seen + len(block)]
            seen += len(block)
            tokens = sum(map(len, ids))
            prepared = time.perf_counter()
            work = self._source.prepare(ids)
            prepared = time.perf_counter() - prepared
            vectors = np.empty((len(block), options.truncate_dim or self.dimension), np.float32)
            for places, part in work(head, skipped=skipped, batch_size=options.batch_size):
                vectors[list(places)] = _finished(part, options).cpu().numpy()
                finished += int(weights[list(places)].sum())
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
                    engine=self.engine,
                    unknown=self.tokenizer.unknown_tokens(ids),
                ),
            )

    def prompt(self, name: str | None) -> tuple[str, int]:
        """The text of a prompt and how many leading rows to leave out of the pooling."""
        chosen = name if name is not None else self.settings.default_prompt
        if chosen is None:
            return "", 0
        prefix = self.settings.prompts[chosen]
        if self.settings.pools_prompt or not prefix:
            return prefix, 0
        ids, _ = self.tokenizer.fast_ids([self._prepared("", prefix)], self.max_length)
        return prefix, len(ids[0]) - 1  # all but the closing special token

    def _prepared(self, prefix: str, text: str) -> str:
        whole = prefix + text
        return whole.lower() if self.settings.lowercase else whole


def _finished(vectors: Tensor, options: _CallOptions) -> Tensor:
    """(B, W) -> (B, W) or fewer columns, of length one if that is wanted."""
    if options.truncate_dim is not None:
        vectors = vectors[:, : options.truncate_dim]
    return F.normalize(vectors, dim=1) if options.normalize else vectors


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise TextError(f"a text must be a string, not {type(text).__name__}: {text!r:.60}")
    return text


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts whose tokens are held at once."""
    return groups(map(_text, texts), CHUNK, size=len, most_size=_CHUNK_CHARACTERS)


def _shifted(progress: Progress, before: int) -> Progress:
    return lambda done: progress(before + done)
