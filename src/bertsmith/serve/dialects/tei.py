"""Routes of text-embeddings-inference 1.9, with its forms, errors and headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from bertsmith.serve.dialects.ranking import ranked
from bertsmith.serve.exchange import Exchange, TextOrIds
from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.routes import HttpAnswer, RequestForm, Route
from bertsmith.text.tokenizer import Tokenizer

MOST_LISTED = 65_536  # tokens that /tokenize answers with; each has about 60 bytes of JSON
CHARACTERS_PER_TOKEN = 4
Direction = Literal["left", "right", "Left", "Right"]


class Truncating(RequestForm):
    """What all forms of TEI have in common."""

    truncate: bool | None = None
    truncation_direction: Direction = "right"
    prompt_name: str | None = None

    def check(self) -> None:
        """Refuse what is not done here: texts lose their end, never their beginning."""
        if self.truncation_direction in ("left", "Left"):
            raise RequestError(
                FailureKind.INVALID,
                "truncation_direction must be right: texts are truncated at their end",
                field="truncation_direction",
            )

    def check_without_prompt(self) -> None:
        """The same, where the model has no prompts to read before its texts."""
        self.check()
        if self.prompt_name is not None:
            raise RequestError(
                FailureKind.INVALID,
                "prompt_name is for vectors: leave it out here",
                field="prompt_name",
            )


class EmbedAllForm(Truncating):
    """Every token's vector."""

    inputs: str | list[str | list[int]]

    def texts(self) -> list[TextOrIds]:
        """The inputs as a list."""
        return [self.inputs] if isinstance(self.inputs, str) else list(self.inputs)


class EmbedForm(EmbedAllForm):
    """One vector per text."""

    normalize: bool = True
    dimensions: Annotated[int, Field(ge=1)] | None = None


class PredictForm(Truncating):
    """Classes of a text, of a pair, or of a list of them."""

    inputs: str | list[str] | list[list[str]]
    raw_scores: bool = False


class RerankForm(Truncating):
    """Texts by their relevance to a query."""

    query: str
    texts: list[str]
    raw_scores: bool = False
    return_text: bool = False


class SimilarityInputs(RequestForm):
    """One text and those it is compared with."""

    source_sentence: str
    sentences: list[str]


class SimilarityForm(RequestForm):
    """The similarity of one text to others."""

    inputs: SimilarityInputs
    parameters: Truncating | None = None


class TokenizeForm(RequestForm):
    """The tokens of texts."""

    inputs: str | list[str]
    add_special_tokens: bool = True
    prompt_name: str | None = None


class DecodeForm(RequestForm):
    """Texts of token ids."""

    ids: list[int] | list[list[int]]
    skip_special_tokens: bool = True


async def embed(exchange: Exchange, form: EmbedForm) -> HttpAnswer:
    """One vector per text."""
    form.check()
    texts = exchange.checked_texts(form.texts())
    narrowed = form.dimensions is not None
    vectors = await exchange.vectors(
        texts,
        prompt=form.prompt_name,
        normalize=form.normalize and not narrowed,
        truncate=form.truncate,
    )
    return HttpAnswer(
        value=[cut_vector(one, form.dimensions, form.normalize) for one in vectors],
        headers=narrowed_headers(exchange, form.dimensions),
    )


def narrowed_headers(exchange: Exchange, dimensions: int | None) -> tuple[tuple[bytes, bytes], ...]:
    """Whether the first columns of this model are of use by themselves: true, or unknown."""
    if dimensions is None:
        return ()
    known = exchange.served.description["truncatable"]
    return ((b"x-truncatable", b"true" if known else b"unknown"),)


def cut_vector(vector: Any, dimensions: int | None, normalize: bool) -> Any:
    """The first columns, then of length one if wanted: (D,) -> (d,)."""
    if dimensions is None:
        return vector
    if dimensions > len(vector):
        raise RequestError(
            FailureKind.INVALID,
            f"dimensions must be from 1 to {len(vector)}, the width of this model's vectors",
            field="dimensions",
        )
    part = vector[:dimensions]
    length = float((part * part).sum()) ** 0.5
    return part / length if normalize and length else part


async def embed_all(exchange: Exchange, form: EmbedAllForm) -> HttpAnswer:
    """A vector per token."""
    form.check()
    texts = exchange.checked_texts(form.texts())
    rows = await exchange.vectors(
        texts, prompt=form.prompt_name, truncate=form.truncate, every_token=True
    )
    return HttpAnswer(value=rows)


async def predict(exchange: Exchange, form: PredictForm) -> HttpAnswer:
    """Classes with their probabilities, the likeliest first."""
    form.check_without_prompt()
    given = form.inputs
    single = isinstance(given, str) or (bool(given) and isinstance(given[0], str))
    rows: Any = [[given]] if isinstance(given, str) else [given] if single else given
    exchange.checked_texts(["".join(row) for row in rows])
    found = await exchange.call("predict", rows, truncate=form.truncate)
    scored = [sorted_classes(one, raw=form.raw_scores) for one in found]
    return HttpAnswer(value=scored[0] if single else scored)


def sorted_classes(result: dict[str, Any], *, raw: bool) -> list[dict[str, Any]]:
    """The classes of a prediction with their scores, the highest first."""
    scores = result["logits"] if raw else result.get("probabilities")
    if not scores:
        scores = {"score": result["prediction"]}
    listed = [{"label": label, "score": score} for label, score in scores.items()]
    return sorted(listed, key=lambda one: -one["score"])


async def rerank(exchange: Exchange, form: RerankForm) -> HttpAnswer:
    """Texts by relevance, the best first."""
    form.check_without_prompt()
    texts = exchange.checked_texts(
        [form.query, *form.texts], most=exchange.service.limits.texts + 1
    )
    scores = await ranked(
        exchange, texts[0], texts[1:], raw=form.raw_scores, truncate=form.truncate
    )
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    results: list[dict[str, Any]] = [{"index": place, "score": scores[place]} for place in order]
    if form.return_text:
        results = [{**one, "text": form.texts[one["index"]]} for one in results]
    return HttpAnswer(value=results)


async def similarity(exchange: Exchange, form: SimilarityForm) -> HttpAnswer:
    """The cosine of one text to each of the others."""
    settings = form.parameters or Truncating()
    settings.check()
    sides = [form.inputs.source_sentence, *form.inputs.sentences]
    texts = exchange.checked_texts(sides, most=exchange.service.limits.texts + 1)
    vectors = await exchange.vectors(
        texts, prompt=settings.prompt_name, normalize=True, truncate=settings.truncate
    )
    return HttpAnswer(value=[float(vectors[0] @ one) for one in vectors[1:]])


async def tokenize(exchange: Exchange, form: TokenizeForm) -> HttpAnswer:
    """Tokens with their places in the text."""
    given = [form.inputs] if isinstance(form.inputs, str) else form.inputs
    if form.prompt_name is not None:
        raise RequestError(
            FailureKind.INVALID,
            "prompt_name is for vectors: write the prompt before the text",
            field="prompt_name",
        )
    texts = exchange.checked_texts(list(given))
    rows = await exchange.read_apart(
        sum(map(len, texts)),
        lambda: _listed_tokens(exchange.served.tokenizer, texts, special=form.add_special_tokens),
    )
    exchange.tokens += sum(map(len, rows))
    return HttpAnswer(value=rows)


def _listed_tokens(
    tokenizer: Tokenizer, texts: Sequence[str], *, special: bool
) -> list[list[dict[str, Any]]]:
    encodings = [tokenizer.encode(text) for text in texts]
    if (count := sum(map(len, encodings))) > MOST_LISTED:
        raise RequestError(
            FailureKind.TOO_LARGE,
            f"{count:,} tokens; at most {MOST_LISTED:,} are listed per request",
            field="inputs",
        )
    rows = []
    for encoding in encodings:
        columns = (encoding.ids.tolist(), encoding.fields.tolist(), encoding.offsets.tolist())
        rows.append(
            [
                {
                    "id": number,
                    "text": tokenizer.id_to_token(number) or "",
                    "special": field < 0,
                    "start": None if field < 0 else start,
                    "stop": None if field < 0 else stop,
                }
                for number, field, (start, stop) in zip(*columns, strict=True)
                if special or field >= 0
            ]
        )
    return rows


async def decode(exchange: Exchange, form: DecodeForm) -> HttpAnswer:
    """Texts of token ids."""
    given: Any = form.ids
    rows = given if given and isinstance(given[0], list) else [given]
    exchange.check_ids(rows, name="ids")
    tokenizer = exchange.served.tokenizer
    size = CHARACTERS_PER_TOKEN * sum(map(len, rows))
    texts = await exchange.read_apart(
        size,
        lambda: [tokenizer.decode(ids, skip_special=form.skip_special_tokens) for ids in rows],
    )
    return HttpAnswer(value=texts)


async def info(exchange: Exchange, form: None) -> HttpAnswer:
    """The first model and the limits of the service."""
    return HttpAnswer(value=exchange.service.info(exchange.served))


async def metrics(exchange: Exchange, form: None) -> HttpAnswer:
    """Metrics for Prometheus."""
    content, kind = exchange.service.metrics_text()
    return HttpAnswer(content=content, content_type=kind)


ONE = ({"inputs": "What is deep learning?"}, {"inputs": ["今天天气很好", "a second text"]})
ROUTES = (
    Route(
        path="/embed",
        handler=embed,
        form=EmbedForm,
        ability="embed",
        summary="One vector per text",
        examples=ONE,
    ),
    Route(
        path="/embed_all",
        handler=embed_all,
        form=EmbedAllForm,
        ability="embed_all",
        summary="One vector per token",
        examples=ONE,
    ),
    Route(
        path="/predict",
        handler=predict,
        form=PredictForm,
        ability="classify",
        summary="Classes of texts or pairs",
        examples=({"inputs": "A wonderful film."},),
    ),
    Route(
        path="/rerank",
        handler=rerank,
        form=RerankForm,
        ability="rerank",
        summary="Texts by relevance to a query",
        examples=({"query": "a cat", "texts": ["a kitten sleeps", "stocks fell"]},),
    ),
    Route(
        path="/similarity",
        handler=similarity,
        form=SimilarityForm,
        ability="similarity",
        summary="The similarity of one text to others",
        examples=({"inputs": {"source_sentence": "a cat", "sentences": ["a kitten", "stocks"]}},),
    ),
    Route(
        path="/tokenize",
        handler=tokenize,
        form=TokenizeForm,
        ability="tokenize",
        summary="Tokens of texts",
        examples=ONE,
    ),
    Route(
        path="/decode",
        handler=decode,
        form=DecodeForm,
        ability="tokenize",
        summary="Texts of token ids",
        examples=({"ids": [101, 102]}, {"ids": [[101, 102]]}),
    ),
    Route(path="/info", method="GET", handler=info, ability="tokenize", summary="The model"),
    Route(path="/metrics", method="GET", handler=metrics, summary="Metrics for Prometheus"),
)
