"""Static vectors: one vector per token, so that encoding a text is looking up and averaging.

As in model2vec: every token of the vocabulary goes through the encoder alone, the vectors are
reduced by PCA and weighted by how rare the token is (Arora et al. 2017, smooth inverse frequency).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError
from bertsmith.metrics.arrays import Floats
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.runtime.embedder import Embedder
from bertsmith.sentences.transform.moments import Moments
from bertsmith.sentences.transform.whitening import principal
from bertsmith.text.blocks import groups
from bertsmith.text.tokenizer import Tokenizer

_UNUSED = re.compile(r"\[unused\d+\]")
_BLOCK = 8_192  # tokens or texts at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticSettings:
    """Width of the vectors, and `smoothing`, a, of the weight a / (a + p) of a token.

    p is the share of the token among all tokens of the user's text; without a text, of a Zipf law
    over the order of the vocabulary.
    """

    width: int = 256
    smoothing: float = 1e-4

    def __post_init__(self) -> None:
        if self.width < 1 or not self.smoothing > 0:
            raise ConfigError(
                f"width and smoothing must be positive, not {self.width} and {self.smoothing}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTable:
    """A table (V, W) of token vectors, and what became of the tokens.

    `explained` is the share of variance that the columns keep; `seen` the number of tokens that
    the user's text has, None without one.
    """

    table: Tensor
    settings: SentenceSettings
    tokens: int
    explained: float
    seen: int | None


def token_counts(tokenizer: Tokenizer, texts: Iterable[str]) -> NDArray[np.int64]:
    """How often each token occurs in any number of texts: (V,)."""
    bare = tokenizer.bare()
    counts = np.zeros(tokenizer.vocab_size, dtype=np.int64)
    for block in groups(texts, _BLOCK, size=len, most_size=1 << 24):
        ids, _ = bare.fast_ids(block, None)
        joined = np.concatenate(ids) if ids else np.zeros(0, np.int32)
        counts += np.bincount(joined, minlength=len(counts))
    return counts


def static_table(
    embedder: Embedder,
    tokenizer: Tokenizer,
    settings: StaticSettings,
    counts: NDArray[np.int64] | None = None,
) -> StaticTable:
    """The static vectors of a model; `counts` (V,) are those of `token_counts`."""
    if embedder.settings.lowercase:
        raise ConfigError(
            "the folder lowers texts outside of its tokenizer, which static vectors cannot do; "
            "give a model whose tokenizer is uncased"
        )
    used = _used_tokens(tokenizer)
    vectors = np.empty((len(used), embedder.dimension), dtype=np.float32)
    for start in range(0, len(used), _BLOCK):
        ids = [tokenizer.framed([number]) for number in used[start : start + _BLOCK].tolist()]
        vectors[start : start + len(ids)] = embedder.encode_ids(ids, normalize=False)
    moments = Moments(embedder.dimension)
    moments.add(vectors)
    found = principal(moments, what="PCA")
    if settings.width > found.rank:
        raise ConfigError(
            f"static vectors of {settings.width} columns cannot be made of vectors of "
            f"{embedder.dimension} columns and rank {found.rank}; set at most {found.rank}"
        )
    kept = found.directions[:, : settings.width]
    weights = _weights(tokenizer.vocab_size, used, settings.smoothing, counts)
    table = np.zeros((tokenizer.vocab_size, settings.width))
    table[used] = ((vectors - found.mean) @ kept) * weights[used, None]
    variances = found.variances
    return StaticTable(
        table=torch.from_numpy(table).float(),
        settings=SentenceSettings(normalize=True, similarity=embedder.settings.similarity),
        tokens=len(used),
        explained=float(variances[: settings.width].sum() / variances.sum()),
        seen=None if counts is None else int((counts[used] > 0).sum()),
    )


def _used_tokens(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Ids that a text can have: no unused ones, and of the special ones only the unknown token."""
    special = tokenizer.special
    never = {special.pad, special.cls, special.sep, special.mask}
    return np.array(
        [
            number
            for number in range(tokenizer.vocab_size)
            if number not in never
            and (token := tokenizer.id_to_token(number)) is not None
            and not _UNUSED.fullmatch(token)
        ],
        dtype=np.int64,
    )


def _weights(
    size: int,
    used: NDArray[np.int64],
    smoothing: float,
    counts: NDArray[np.int64] | None,
) -> Floats:
    """a / (a + p) of each token: (V,)."""
    shares = np.zeros(size)
    if counts is None:
        ranks = 1.0 / np.arange(2, len(used) + 2)
        shares[used] = ranks / ranks.sum()
    else:
        total = int(counts.sum())
        if not total:
            raise ConfigError("the text to count tokens in has none; give another file")
        shares = counts / total
    weights: Floats = smoothing / (smoothing + shares)
    return weights
