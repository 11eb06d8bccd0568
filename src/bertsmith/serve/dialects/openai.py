"""Routes of OpenAI's API, as its official client calls them."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from bertsmith.serve.dialects.tei import cut_vector, narrowed_headers
from bertsmith.serve.exchange import Exchange, TextOrIds
from bertsmith.serve.routes import HttpAnswer, RequestForm, Route


class EmbeddingsForm(RequestForm):
    """Texts or token ids to vectors."""

    input: str | list[str] | list[int] | list[list[int]]
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None
    user: str | None = None

    def texts(self) -> list[TextOrIds]:
        """The input as a list of texts."""
        if isinstance(self.input, str):
            return [self.input]
        if self.input and isinstance(self.input[0], int):
            return [list(self.input)]
        return list(self.input)  # type: ignore[arg-type]


async def embeddings(exchange: Exchange, form: EmbeddingsForm) -> HttpAnswer:
    """One vector per text, as numbers or as base64 of little-endian float32."""
    texts = exchange.checked_texts(
        form.texts(), most=exchange.service.limits.openai_texts, name="input"
    )
    vectors = await exchange.vectors(texts)
    normal = bool(exchange.served.description["normalized"]) or form.dimensions is not None
    found = [cut_vector(one, form.dimensions, normal) for one in vectors]
    written = [_base64(one) for one in found] if form.encoding_format == "base64" else found
    return HttpAnswer(
        value={
            "object": "list",
            "data": [
                {"object": "embedding", "index": number, "embedding": one}
                for number, one in enumerate(written)
            ],
            "model": exchange.served.name,
            "usage": usage(exchange),
        },
        headers=narrowed_headers(exchange, form.dimensions),
    )


def usage(exchange: Exchange) -> dict[str, int]:
    """The tokens of a request, and how many were cut where any were."""
    cut = {"cut_tokens": exchange.cut} if exchange.cut else {}
    return {"prompt_tokens": exchange.tokens, "total_tokens": exchange.tokens, **cut}


def _base64(vector: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode()


async def models(exchange: Exchange, form: None) -> HttpAnswer:
    """The models by name."""
    listed = [model_record(exchange, name) for name in exchange.service.models]
    return HttpAnswer(value={"object": "list", "data": listed})


async def one_model(exchange: Exchange, form: None) -> HttpAnswer:
    """One model."""
    return HttpAnswer(value=model_record(exchange, exchange.served.name))


def model_record(exchange: Exchange, name: str) -> dict[str, Any]:
    """A model as OpenAI's list has it, with what it can do."""
    return {
        "id": name,
        "object": "model",
        "created": exchange.service.started,
        "owned_by": "bertsmith",
        "abilities": sorted(exchange.service.models[name].abilities),
    }


ROUTES = (
    Route(
        path="/v1/embeddings",
        handler=embeddings,
        form=EmbeddingsForm,
        ability="embed",
        dialect="openai",
        summary="One vector per text (OpenAI)",
        examples=(
            {"input": "What is deep learning?", "model": "MODEL", "encoding_format": "base64"},
            {"input": ["今天天气很好"], "model": "MODEL", "encoding_format": "float"},
        ),
    ),
    Route(
        path="/v1/models",
        method="GET",
        handler=models,
        dialect="openai",
        summary="The models by name (OpenAI)",
    ),
    Route(
        path="/v1/models/{model}",
        method="GET",
        handler=one_model,
        ability="tokenize",
        dialect="openai",
        summary="One model (OpenAI)",
    ),
)
