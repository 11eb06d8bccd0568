"""TF-IDF features by scikit-learn: unigrams and bigrams of tokens.

A token is a word, a Han character or a punctuation mark, so Chinese gives characters and pairs of
characters. Every field of a row has columns of its own; a row of two fields also has columns for
shared terms, for differing terms, and the cosine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bertsmith.metrics.baselines.majority import Texts

Features = Any
"""A scipy.sparse CSR matrix (rows, features); scipy ships no types."""

TOKEN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3400-\u9fff\uf900-\ufaff]+|[^\w\s]")
"""A Han character; a run of other letters and digits; a punctuation mark."""

MANY_ROWS = 10_000  # from here on, terms of a single document are left out
MAX_FIELDS = 4  # further fields are joined with the last one


def tokens(text: str) -> list[str]:
    """The tokens of a text in lower case."""
    return TOKEN.findall(text.lower())


def tfidf(texts: Texts, new: Texts) -> tuple[Features, Features]:
    """Features of both, with the vocabulary and the document frequencies of `texts`."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

    width = min(MAX_FIELDS, max(map(len, texts)))
    train_fields, new_fields = _stacked(texts, width), _stacked(new, width)
    if not any(map(TOKEN.search, train_fields)):  # nothing to learn from: a constant
        return csr_matrix([[1.0]] * len(texts)), csr_matrix([[1.0]] * len(new))
    vectorizer = TfidfVectorizer(
        token_pattern=TOKEN.pattern,
        ngram_range=(1, 2),
        sublinear_tf=True,
        min_df=2 if len(texts) >= MANY_ROWS else 1,
    )
    train = vectorizer.fit_transform(train_fields)
    return _joined(train, width), _joined(vectorizer.transform(new_fields), width)


def _stacked(texts: Texts, width: int) -> list[str]:
    """The first field of every row, then the second of every row, ...; "" where there is none."""
    rows = [_row(fields, width) for fields in texts]
    return [row[field] for field in range(width) for row in rows]


def _row(fields: Sequence[str], width: int) -> list[str]:
    first = list(fields[: width - 1])
    return [*first, *[""] * (width - 1 - len(first)), "\n".join(fields[width - 1 :])]


def _joined(stacked: Features, width: int) -> Features:
    """(width * rows, features), one field after another -> (rows, ...), fields as column blocks."""
    from scipy.sparse import csr_matrix, hstack

    rows = stacked.shape[0] // width
    blocks = [stacked[field * rows : (field + 1) * rows] for field in range(width)]
    if width == 2:
        first, second = blocks
        both = first.multiply(second).tocsr()
        cosine = csr_matrix(both.sum(axis=1).reshape(-1, 1))
        blocks += [both.sqrt(), abs(first - second), cosine]
    return hstack(blocks, format="csr")
