"""Routes that other services do not have: tags, answers, masks, search, attention, health."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from bertsmith.runtime.generation.options import GenerationOptions
from bertsmith.serve.exchange import Exchange
from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.forms import given_settings, with_settings
from bertsmith.serve.routes import HttpAnswer, RequestForm, Route
from bertsmith.tasks.spelling.settings import CorrectionOptions

MOST_RESULTS = 1_000


class TagForm(RequestForm):
    """Texts whose entities or words are tagged."""

    inputs: str | list[str]
    model: str | None = None


class AnswerForm(RequestForm):
    """A question about a text."""

    question: str
    context: str
    model: str | None = None


class ChooseForm(RequestForm):
    """A context and what may follow or answer it."""

    context: str
    choices: Annotated[list[str], Field(min_length=2)]
    model: str | None = None


class FillForm(RequestForm):
    """A text with masks."""

    text: str
    top: Annotated[int, Field(ge=1, le=100)] = 5
    model: str | None = None


class SearchForm(RequestForm):
    """A question to the index."""

    query: str
    k: Annotated[int, Field(ge=1, le=MOST_RESULTS)] = 10
    where: list[str] | None = None
    hybrid: bool = False
    model: str | None = None


@with_settings(
    GenerationOptions,
    most={"max_new": MOST_RESULTS, "min_new": MOST_RESULTS, "beams": 32, "answers": 32},
    without=("forbid", "first", "last", "by"),
)
class GenerateForm(RequestForm):
    """A source or prompt, and how to write; `stream` sends pieces as they become certain."""

    text: str
    stream: bool = False
    model: str | None = None


@with_settings(CorrectionOptions)
class CorrectForm(RequestForm):
    """Texts whose spelling is corrected."""

    inputs: str | list[str]
    model: str | None = None


class AttentionForm(RequestForm):
    """A text whose attention is shown."""

    text: str
    layer: Annotated[int, Field(ge=0)] = 0
    model: str | None = None


async def tag(exchange: Exchange, form: TagForm) -> HttpAnswer:
    """The tagged pieces of each text."""
    given = [form.inputs] if isinstance(form.inputs, str) else form.inputs
    texts = exchange.checked_texts(list(given))
    found = await exchange.call("predict", [[text] for text in texts])
    value = [
        {"spans": one["prediction"], "tags": one.get("tags", []), **_cut(one)} for one in found
    ]
    return HttpAnswer(value=value)


async def answer(exchange: Exchange, form: AnswerForm) -> HttpAnswer:
    """The answer as a piece of the context, and further candidates."""
    texts = exchange.checked_texts([form.question, form.context], name="context")
    (found,) = await exchange.call("predict", [texts])
    return HttpAnswer(
        value={"answer": found["prediction"], "others": found.get("others", []), **_cut(found)}
    )


async def choose(exchange: Exchange, form: ChooseForm) -> HttpAnswer:
    """The number of the choice that fits best, and the probability of each."""
    texts = exchange.checked_texts(
        [form.context, *form.choices], most=exchange.service.limits.texts + 1, name="choices"
    )
    (found,) = await exchange.call("predict", [texts], readings=len(form.choices))
    probabilities = found["probabilities"]
    return HttpAnswer(
        value={"choice": found["prediction"], "probabilities": probabilities, **_cut(found)}
    )


async def fill(exchange: Exchange, form: FillForm) -> HttpAnswer:
    """The likeliest tokens for each mask."""
    texts = exchange.checked_texts([form.text], name="text")
    (found,) = await exchange.call("fill", [texts], {"top": form.top})
    return HttpAnswer(value=found)


async def search(exchange: Exchange, form: SearchForm) -> HttpAnswer:
    """The nearest rows of the index."""
    texts = exchange.checked_texts([form.query], name="query")
    options: dict[str, Any] = {"k": form.k, "where": form.where, "hybrid": form.hybrid}
    (found,) = await exchange.call("search", [texts], options)
    return HttpAnswer(value=found)


async def generate(exchange: Exchange, form: GenerateForm) -> HttpAnswer:
    """What the model writes, whole or in pieces."""
    (text,) = exchange.checked_texts([form.text], name="text")
    options = {"options": given_settings(form, GenerationOptions), "stream": form.stream}
    if form.stream:
        return HttpAnswer(parts=await exchange.parts("generate", text, options))
    return HttpAnswer(value=await exchange.apart("generate", text, options))


async def correct(exchange: Exchange, form: CorrectForm) -> HttpAnswer:
    """Each text corrected, with its edits."""
    given = [form.inputs] if isinstance(form.inputs, str) else form.inputs
    texts = exchange.checked_texts(list(given))
    options = {"options": given_settings(form, CorrectionOptions)}
    return HttpAnswer(value=await exchange.call("correct", [[text] for text in texts], options))


async def attention(exchange: Exchange, form: AttentionForm) -> HttpAnswer:
    """The attention of one layer."""
    texts = exchange.checked_texts([form.text], name="text")
    (found,) = await exchange.call("attention", [texts], {"layer": form.layer})
    return HttpAnswer(value=found)


def _cut(result: dict[str, Any]) -> dict[str, int]:
    """How many tokens were cut, where any were."""
    return {"tokens_cut": result["tokens_cut"]} if result.get("tokens_cut") else {}


async def models(exchange: Exchange, form: None) -> HttpAnswer:
    """Every model with its abilities and limits."""
    service = exchange.service
    return HttpAnswer(value={name: service.info(model) for name, model in service.models.items()})


async def live(exchange: Exchange, form: None) -> HttpAnswer:
    """The front answers."""
    return HttpAnswer(value={"status": "live"})


async def ready(exchange: Exchange, form: None) -> HttpAnswer:
    """Every model runs a text now; not ready while the service ends."""
    missing = await exchange.service.not_ready(exchange.caller)
    if missing:
        raise RequestError(FailureKind.UNAVAILABLE, f"not ready: {', '.join(missing)}")
    return HttpAnswer(value={"status": "ready"})


async def openapi(exchange: Exchange, form: None) -> HttpAnswer:
    """This API, described."""
    return HttpAnswer(value=exchange.service.openapi())


async def page(exchange: Exchange, form: None) -> HttpAnswer:
    """The page to try the models."""
    content, policy = exchange.service.page()
    return HttpAnswer(
        content=content,
        content_type=b"text/html; charset=utf-8",
        headers=((b"content-security-policy", policy), (b"cache-control", b"no-store")),
    )


ROUTES = (
    Route(
        path="/tag",
        handler=tag,
        form=TagForm,
        ability="tag",
        summary="Tagged pieces of texts",
        examples=({"inputs": "Ada Lovelace lived in London."},),
    ),
    Route(
        path="/answer",
        handler=answer,
        form=AnswerForm,
        ability="answer",
        summary="The answer to a question in a text",
        examples=({"question": "Who wrote it?", "context": "Ada wrote it."},),
    ),
    Route(
        path="/choose",
        handler=choose,
        form=ChooseForm,
        ability="choose",
        summary="Which of several texts fits a context",
        examples=({"context": "She opened the door", "choices": ["and went in", "and flew"]},),
    ),
    Route(
        path="/fill",
        handler=fill,
        form=FillForm,
        ability="fill",
        summary="Tokens for the masks of a text",
        examples=({"text": "Paris is the [MASK] of France."},),
    ),
    Route(
        path="/search",
        handler=search,
        form=SearchForm,
        ability="search",
        summary="The nearest rows of the index",
        examples=({"query": "open a file", "k": 3},),
    ),
    Route(
        path="/generate",
        handler=generate,
        form=GenerateForm,
        ability="generate",
        summary="Text that a model writes",
        examples=({"text": "Once upon a time", "max_new": 8},),
    ),
    Route(
        path="/correct",
        handler=correct,
        form=CorrectForm,
        ability="correct",
        summary="Spelling mistakes of texts, corrected",
        examples=({"inputs": ["他每天坐公交车去上斑"], "threshold": 0.5},),
    ),
    Route(
        path="/attention",
        handler=attention,
        form=AttentionForm,
        ability="attention",
        summary="The attention of one layer",
        examples=({"text": "The cat sat.", "layer": 0},),
    ),
    Route(path="/models", method="GET", handler=models, summary="All models and their limits"),
    Route(
        path="/health/live",
        method="GET",
        handler=live,
        needs_key=False,
        summary="Whether the service answers",
    ),
    Route(path="/health/ready", method="GET", handler=ready, summary="Whether every model answers"),
    Route(path="/health", method="GET", handler=ready, summary="The same (TEI)"),
    Route(path="/openapi.json", method="GET", handler=openapi, summary="This description"),
    Route(path="/", method="GET", handler=page, needs_key=False, summary="The page"),
)
