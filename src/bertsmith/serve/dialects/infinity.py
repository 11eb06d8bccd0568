"""Routes as infinity and Cohere have them: rerank and classify under /v1."""

from __future__ import annotations

import time
from typing import Annotated, Any

from pydantic import Field

from bertsmith.serve.dialects.openai import usage
from bertsmith.serve.dialects.ranking import ranked
from bertsmith.serve.dialects.tei import sorted_classes
from bertsmith.serve.exchange import Exchange
from bertsmith.serve.routes import HttpAnswer, RequestForm, Route


class RankForm(RequestForm):
    """Documents by their relevance to a query."""

    query: str
    documents: list[str]
    model: str | None = None
    return_documents: bool = False
    raw_scores: bool = False
    top_n: Annotated[int, Field(ge=1)] | None = None


class ClassifyForm(RequestForm):
    """Classes of texts."""

    input: list[str]
    model: str | None = None
    raw_scores: bool = False


async def rerank(exchange: Exchange, form: RankForm) -> HttpAnswer:
    """The best documents first."""
    most = exchange.service.limits.texts + 1
    texts = exchange.checked_texts([form.query, *form.documents], most=most, name="documents")
    scores = await ranked(exchange, texts[0], texts[1:], raw=form.raw_scores)
    order = sorted(range(len(scores)), key=lambda place: -scores[place])[: form.top_n]
    results: list[dict[str, Any]] = []
    for place in order:
        one: dict[str, Any] = {"index": place, "relevance_score": scores[place]}
        if form.return_documents:
            one["document"] = form.documents[place]
        results.append(one)
    return _wrapped(exchange, "rerank", "results", results)


async def classify(exchange: Exchange, form: ClassifyForm) -> HttpAnswer:
    """Classes with their probabilities, the likeliest first."""
    texts = exchange.checked_texts(list(form.input), name="input")
    found = await exchange.call("predict", [[text] for text in texts])
    data = [sorted_classes(one, raw=form.raw_scores) for one in found]
    return _wrapped(exchange, "classify", "data", data)


def _wrapped(exchange: Exchange, kind: str, key: str, results: list[Any]) -> HttpAnswer:
    return HttpAnswer(
        value={
            "object": kind,
            key: results,
            "model": exchange.served.name,
            "usage": usage(exchange),
            "id": exchange.request_id,
            "created": int(time.time()),
        }
    )


ROUTES = (
    Route(
        path="/v1/rerank",
        handler=rerank,
        form=RankForm,
        ability="rerank",
        dialect="openai",
        summary="Documents by relevance (infinity, Cohere)",
        examples=({"query": "a cat", "documents": ["a kitten sleeps", "stocks fell"]},),
    ),
    Route(
        path="/v1/classify",
        handler=classify,
        form=ClassifyForm,
        ability="classify",
        dialect="openai",
        summary="Classes of texts (infinity)",
        examples=({"input": ["A wonderful film."]},),
    ),
)
