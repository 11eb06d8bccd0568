"""Routes of bert-as-service: /encode and /status/server."""

from __future__ import annotations

from typing import Any

from bertsmith import __version__
from bertsmith.serve.exchange import Exchange
from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.routes import HttpAnswer, RequestForm, Route

PAIR = " ||| "


class EncodeForm(RequestForm):
    """Texts to vectors, with a number of the client's own."""

    id: int | str
    texts: list[str]
    is_tokenized: bool = False


async def encode(exchange: Exchange, form: EncodeForm) -> HttpAnswer:
    """One vector per text."""
    if form.is_tokenized:
        raise RequestError(
            FailureKind.INVALID,
            "is_tokenized is not supported: the tokenizer of the model divides texts",
            field="is_tokenized",
        )
    if any(PAIR in text for text in form.texts):
        raise RequestError(
            FailureKind.INVALID,
            "pairs joined by ||| are not supported: encode each text by itself",
            field="texts",
        )
    most = exchange.service.limits.openai_texts
    texts = exchange.checked_texts(list(form.texts), most=most, name="texts")
    vectors = await exchange.vectors(texts)
    return HttpAnswer(value={"id": form.id, "result": vectors, "status": 200})


async def status(exchange: Exchange, form: None) -> HttpAnswer:
    """What the client checks when it connects."""
    service = exchange.service
    model = exchange.served
    value: dict[str, Any] = {
        "server_version": __version__,
        "max_seq_len": model.longest,
        "num_worker": len(service.models),
        "max_batch_size": service.limits.openai_texts,
        "status": 200,
    }
    return HttpAnswer(value=value)


ROUTES = (
    Route(
        path="/encode",
        handler=encode,
        form=EncodeForm,
        ability="embed",
        summary="One vector per text (bert-as-service)",
        examples=({"id": 1, "texts": ["hey you", "whats up?"]},),
    ),
    Route(
        path="/status/server",
        method="GET",
        handler=status,
        ability="embed",
        summary="The server as bert-as-service shows it",
    ),
)
