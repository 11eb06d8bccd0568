"""Relevance of texts to a query: by a cross-encoder where the model is one, else by cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bertsmith.serve.exchange import Exchange


async def ranked(
    exchange: Exchange,
    query: str,
    texts: Sequence[str],
    *,
    raw: bool = False,
    truncate: bool | None = None,
) -> list[float]:
    """A score per text, higher is more relevant."""
    if exchange.served.description["ranks_pairs"]:
        pairs = [[query, text] for text in texts]
        found = await exchange.call("predict", pairs, truncate=truncate)
        return [_relevance(one, raw=raw) for one in found]
    vectors = await exchange.vectors([query, *texts], normalize=True, truncate=truncate)
    return [float(vectors[0] @ one) for one in vectors[1:]]


def _relevance(result: dict[str, Any], *, raw: bool) -> float:
    """The number of a regression, or the score of a classifier's last class."""
    scores = result["logits"] if raw else result.get("probabilities")
    return float(list(scores.values())[-1] if scores else result["prediction"])
