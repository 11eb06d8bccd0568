"""Vectors from answers of the service: as many as texts were sent, of one width, and finite."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.serve.clients.shapes import AnswerError, checked, rows

Vectors = NDArray[np.float32]
MOST_CHARACTERS = 8_000_000  # of the vectors of one answer
MOST_DIMENSION = 65_536
BASE64 = 16 / 3  # characters per value
DECIMAL = 24


def texts_at_once(dimension: int, *, packed: bool) -> int:
    """Of how many texts the vectors fit one answer."""
    return max(1, int(MOST_CHARACTERS / (dimension * (BASE64 if packed else DECIMAL) + 100)))


def packed_vectors(answer: Any, count: int, dimension: int) -> Vectors:
    """The vectors of /v1/embeddings in base64: -> (count, D)."""
    found = rows(
        checked(answer, {"data": [object]})["data"], {"index": int, "embedding": str}, count
    )
    found = sorted(found, key=lambda one: one["index"])
    if [one["index"] for one in found] != list(range(count)):
        raise AnswerError("the vectors are not numbered as the texts are")
    try:
        parts = [base64.b64decode(one["embedding"], validate=True) for one in found]
    except (binascii.Error, ValueError):
        raise AnswerError("a vector is not base64") from None
    if any(len(part) != 4 * dimension for part in parts):
        raise AnswerError(f"a vector has not the {dimension:,} values of the model")
    return _finite(np.frombuffer(b"".join(parts), "<f4").reshape(count, dimension))


def listed_vectors(answer: Any, count: int, dimension: int) -> Vectors:
    """The vectors of /embed: -> (count, D)."""
    found = rows(answer, [float], count)
    if any(len(one) != dimension for one in found):
        raise AnswerError(f"a vector has not the {dimension:,} values of the model")
    try:
        with np.errstate(over="ignore"):  # infinite then, which is refused
            return _finite(np.array(found, np.float32).reshape(count, dimension))
    except OverflowError:
        raise AnswerError("a vector has a number beyond all bounds") from None


def _finite(vectors: Vectors) -> Vectors:
    if not np.isfinite(vectors).all():
        raise AnswerError("a vector has values that are not finite")
    return vectors
