"""Texts as sparse TF-IDF features of scikit-learn: unigrams and bigrams of tokens.

A token is a word, a Han character or a mark, so that Chinese is read by characters and their pairs.
Every field of a row has columns of its own. A row of two fields also has what they share, where
they differ, and their cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bertsmith.metrics.baselines.baseline import Texts
from bertsmith.metrics.baselines.tokens import WORD

Features = Any
"""A scipy.sparse CSR matrix (rows, features); scipy ships no types."""

MANY_ROWS = 10_000  # from here on, what stands in one field only is left out
MOST_FIELDS = 4  # fields beyond are read as one with the last


def tfidf(texts: Texts, new: Texts) -> tuple[Features, Features]:
    """Features of both, with the vocabulary and the document frequencies of `texts`."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

    width = min(MOST_FIELDS, max(map(len, texts)))
    known, asked = _columns(texts, width), _columns(new, width)
    everything = [text for column in known for text in column]
    if not any(map(WORD.search, everything)):  # nothing to learn from: a constant
        return csr_matrix([[1.0]] * len(texts)), csr_matrix([[1.0]] * len(new))
    vectorizer = TfidfVectorizer(
        token_pattern=WORD.pattern,
        ngram_range=(1, 2),
        sublinear_tf=True,
        min_df=2 if len(texts) >= MANY_ROWS else 1,
    )
    learned = vectorizer.fit_transform(everything)
    looked_up = vectorizer.transform([text for column in asked for text in column])
    return _joined(learned, width), _joined(looked_up, width)


def _columns(texts: Texts, width: int) -> list[list[str]]:
    """The first, second, ... field of every row; "" where a row has fewer."""
    rows = [_row(fields, width) for fields in texts]
    return [[row[field] for row in rows] for field in range(width)]


def _row(fields: Sequence[str], width: int) -> list[str]:
    first = list(fields[: width - 1])
    return [*first, *[""] * (width - 1 - len(first)), "\n".join(fields[width - 1 :])]


def _joined(stacked: Features, width: int) -> Features:
    """(width * rows, features) of one field after another -> (rows, ...), fields side by side."""
    from scipy.sparse import csr_matrix, hstack

    rows = stacked.shape[0] // width
    blocks = [stacked[field * rows : (field + 1) * rows] for field in range(width)]
    if width == 2:
        first, second = blocks
        both = first.multiply(second).tocsr()
        cosine = csr_matrix(both.sum(axis=1).reshape(-1, 1))
        blocks += [both.sqrt(), abs(first - second), cosine]
    return hstack(blocks, format="csr")
