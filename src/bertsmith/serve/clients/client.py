"""Client: a running service from Python, with the names of bert-as-service's client."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ArgumentError, ConfigError
from bertsmith.serve.clients.shapes import AnswerError, checked, rows
from bertsmith.serve.clients.transport import Transport
from bertsmith.serve.clients.vectors import (
    MOST_DIMENSION,
    Vectors,
    listed_vectors,
    packed_vectors,
    texts_at_once,
)
from bertsmith.serve.http.addresses import MODEL_NAME

Text = str | Sequence[str]  # a text, or a pair of them

AT_ONCE = 4  # requests of encode(blocking=False) on their way
SPARE = 4_096  # bytes of a body that are not texts
COUNTED = ("texts", "openai_texts", "body_bytes")
MODEL = {
    "model_id": str,
    "abilities": [str],
    "normalized": (bool, None),
    "dimension": int,
    "limits": dict.fromkeys(COUNTED, int),
}
SCORED = {"label": str, "score": float}
RANKED = {"index": int, "score": float}


class Fetched(NamedTuple):
    """The vectors (B, D) of one `encode(blocking=False)`, and its number."""

    id: int
    embedding: Vectors


class Client:
    """The models of a service.

    Every request ends within `timeout` seconds, retries included: with an answer of the form that
    the service has, or with a ServiceError that names the address and the way out. Busy answers
    (429, 503) are retried after the time that the service asks for. Longer lists than the service
    takes at once are sent in parts, in their order. For any number of threads; `close` it, or use
    it with `with`.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        key: str | None = None,
        model: str | None = None,
        timeout: float = 60.0,
        retries: int = 5,
    ) -> None:
        """`model` is a name of the service's; None: the first one that can do what is called."""
        if not timeout > 0 or retries < 0:
            raise ConfigError("timeout must be above 0 seconds, and retries at least 0")
        self._transport = Transport(url, key=key, timeout=timeout, retries=retries)
        self._model = model
        self._models: dict[str, dict[str, Any]] | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._sent: dict[Future[Vectors], int] = {}
        self._number = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Client({self._transport.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections; vectors that were not fetched are dropped."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        self._sent.clear()
        self._transport.close()

    def models(self) -> dict[str, dict[str, Any]]:
        """Every model by name: abilities, limits, labels, prompts."""
        answer = self._transport.ask("GET", "/models")
        with self._transport.understanding():
            found: dict[str, dict[str, Any]] = checked(answer, {})
            for name, info in found.items():
                _check_model(name, info)
        self._models = found
        return found

    @property
    def server_status(self) -> dict[str, Any]:
        """The service as bert-as-service's clients show it."""
        answer = self._transport.ask("GET", "/status/server")
        with self._transport.understanding():
            status: dict[str, Any] = checked(answer, {})
        return status

    def encode(
        self,
        texts: Sequence[Text],
        *,
        blocking: bool = True,
        is_tokenized: bool = False,
        prompt: str | None = None,
        normalize: bool | None = None,
    ) -> Vectors | None:
        """Vectors of texts: B texts -> (B, D) float32.

        `normalize` None does as the model's folder says. Without `blocking` the answer is None,
        and `fetch` or `fetch_all` give the vectors. With `is_tokenized` each text is a list of
        words or pieces; the model's tokenizer divides the words further as it does in a text.
        """
        given = _checked(_joined(texts) if is_tokenized else texts)
        if blocking:
            return self._vectors(given, prompt, normalize)
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(AT_ONCE, "bertsmith-client")
            self._number += 1
            future = self._threads.submit(self._vectors, given, prompt, normalize)
            self._sent[future] = self._number
        return None

    def encode_async(
        self, batches: Iterable[Sequence[str]], *, max_num_batch: int | None = None
    ) -> Iterator[Fetched]:
        """The vectors of each of a stream of lists, in their order; a few are on their way."""
        sent: deque[tuple[int, Future[Vectors]]] = deque()
        with ThreadPoolExecutor(AT_ONCE, "bertsmith-client") as threads:
            for number, batch in enumerate(islice(batches, max_num_batch), 1):
                if len(sent) == 2 * AT_ONCE:
                    first, future = sent.popleft()
                    yield Fetched(first, future.result())
                sent.append((number, threads.submit(self._vectors, _checked(batch), None, None)))
            for number, future in sent:
                yield Fetched(number, future.result())

    def fetch(self, delay: float = 0.0) -> Iterator[Fetched]:
        """The vectors of all `encode(blocking=False)` until now, as they arrive.

        `delay` seconds are waited first, for requests that other threads are sending.
        """
        time.sleep(delay)
        with self._lock:
            sent, self._sent = self._sent, {}
        for future in as_completed(sent):
            yield Fetched(sent[future], future.result())

    def fetch_all(self, *, sort: bool = True, concat: bool = False) -> list[Vectors] | Vectors:
        """The same at once: in the order of the calls, or as they arrived; or as one array."""
        fetched = list(self.fetch())
        if sort:
            fetched.sort(key=lambda one: one.id)
        vectors = [one.embedding for one in fetched]
        return np.concatenate(vectors) if concat and vectors else vectors

    def predict(self, texts: Sequence[Text]) -> list[list[dict[str, Any]]]:
        """Classes of texts or pairs: per text a list of {label, score}, the likeliest first."""
        info = self._info("classify")
        rows = [[one] if isinstance(one, str) else list(one) for one in _listed(texts)]
        return self._in_parts("/predict", info, rows, lambda part: {"inputs": part}, [SCORED])

    def tag(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Tagged pieces of texts: per text {spans, tags}."""
        info = self._info("tag")
        shape = {"spans": [object], "tags": [object]}
        return self._in_parts("/tag", info, _checked(texts), lambda part: {"inputs": part}, shape)

    def answer(self, question: str, context: str) -> dict[str, Any]:
        """The answer to a question as a piece of the context: {answer, others}."""
        body = {"question": question, "context": context}
        return self._one("answer", "/answer", body, {"answer": object, "others": [object]})

    def choose(self, context: str, choices: Sequence[str]) -> dict[str, Any]:
        """The choice that fits a context best: {choice, probabilities}, by number from 0."""
        body = {"context": context, "choices": _checked(choices)}
        return self._one("choose", "/choose", body, {"choice": int, "probabilities": {}})

    def rerank(
        self, query: str, texts: Sequence[str], *, raw: bool = False
    ) -> list[dict[str, Any]]:
        """Texts by relevance: {index, score}, the best first."""
        info, given = self._info("rerank"), _checked(texts)
        results: list[dict[str, Any]] = []
        for start, part in _parts(given, info["limits"], len(query)):
            body = {"query": query, "texts": part, "raw_scores": raw}
            found = self._rows("/rerank", info, body, RANKED, len(part))
            with self._transport.understanding():
                if sorted(one["index"] for one in found) != list(range(len(part))):
                    raise AnswerError("the results are not numbered as the texts are")
            results += [{**one, "index": start + one["index"]} for one in found]
        return sorted(results, key=lambda one: -one["score"])

    def similarity(self, text: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The cosine of one text with each of the others: -> (B,)."""
        info, given = self._info("similarity"), _checked(texts)
        found: list[float] = []
        for _, part in _parts(given, info["limits"], len(text)):
            body = {"inputs": {"source_sentence": text, "sentences": part}}
            found += self._rows("/similarity", info, body, float, len(part))
        return np.array(found, np.float32)

    def search(
        self, query: str, *, k: int = 10, where: Sequence[str] | None = None, hybrid: bool = False
    ) -> list[dict[str, Any]]:
        """The nearest rows of the service's index, the best first."""
        body: dict[str, Any] = {"query": query, "k": k, "hybrid": hybrid}
        if where is not None:
            body["where"] = list(where)
        hits: list[dict[str, Any]] = self._one("search", "/search", body, {"hits": [{}]})["hits"]
        return hits

    def correct(
        self, texts: Sequence[str], *, threshold: float | None = None
    ) -> list[dict[str, Any]]:
        """Spelling corrected: per text {corrected, edits}; the model's own threshold if unset."""
        info = self._info("correct")
        options = {} if threshold is None else {"threshold": threshold}
        shape = {"corrected": str, "edits": [object]}
        return self._in_parts(
            "/correct", info, _checked(texts), lambda part: {"inputs": part, **options}, shape
        )

    def fill(self, text: str, *, top: int = 5) -> dict[str, Any]:
        """The likeliest tokens for each [MASK]: {text, guesses}."""
        shape = {"text": str, "guesses": [object]}
        return self._one("fill", "/fill", {"text": text, "top": top}, shape)

    def generate(self, text: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What the model writes: {text, answers}; `options` as in the route's form."""
        shape = {"text": str, "answers": [object]}
        return self._one("generate", "/generate", {**(options or {}), "text": text}, shape)

    def stream(self, text: str, options: Mapping[str, Any] | None = None) -> Iterator[str]:
        """What the model writes, in pieces as they become certain."""
        info = self._info("generate")
        body = {**(options or {}), "text": text, "stream": True}
        for event in self._transport.events(_path(info, "/generate"), body):
            with self._transport.understanding():
                piece: str = checked(event, {"text": str})["text"]
            yield piece

    def _vectors(self, texts: list[str], prompt: str | None, normalize: bool | None) -> Vectors:
        info = self._info("embed")
        packed = prompt is None and normalize is None
        most = info["limits"]["openai_texts" if packed else "texts"]
        most = min(most, texts_at_once(info["dimension"], packed=packed))
        normal = info["normalized"] if normalize is None else normalize
        vectors = []
        for _, part in _parts(texts, {**info["limits"], "texts": most}):
            if packed:
                body = {"input": part, "model": info["model_id"], "encoding_format": "base64"}
                answer = self._transport.ask("POST", "/v1/embeddings", body)
            else:
                options = {"prompt_name": prompt, "normalize": normal}
                answer = self._ask("/embed", info, {"inputs": part, **options})
            with self._transport.understanding():
                decoded = packed_vectors if packed else listed_vectors
                vectors.append(decoded(answer, len(part), info["dimension"]))
        return np.concatenate(vectors)

    def _info(self, ability: str) -> dict[str, Any]:
        """What is known of the model that answers."""
        models = self._models or self.models()
        if self._model is not None and self._model not in models:
            known = ", ".join(models)
            raise ConfigError(f"{self._transport.url} has no model {self._model!r:.60}: {known}")
        named = models if self._model is None else {self._model: models[self._model]}
        for info in named.values():
            if ability in info["abilities"]:
                return info
        able = [name for name, info in models.items() if ability in info["abilities"]]
        raise ConfigError(
            f"{self._transport.url}: {' and '.join(named)} cannot {ability}; models that can: "
            f"{', '.join(able) or 'none'}"
        )

    def _ask(self, path: str, info: dict[str, Any], body: dict[str, Any]) -> Any:
        return self._transport.ask("POST", _path(info, path), body)

    def _rows(
        self, path: str, info: dict[str, Any], body: dict[str, Any], shape: Any, count: int
    ) -> list[Any]:
        """A result of that shape for each of so many texts."""
        answer = self._ask(path, info, body)
        with self._transport.understanding():
            found: list[Any] = rows(answer, shape, count)
        return found

    def _one(self, ability: str, path: str, body: dict[str, Any], shape: Any) -> dict[str, Any]:
        answer = self._ask(path, self._info(ability), body)
        with self._transport.understanding():
            found: dict[str, Any] = checked(answer, shape)
        return found

    def _in_parts(
        self, path: str, info: dict[str, Any], given: list[Any], body: Any, shape: Any
    ) -> list[Any]:
        results: list[Any] = []
        for _, part in _parts(given, info["limits"]):
            results += self._rows(path, info, body(part), shape, len(part))
        return results


def _check_model(name: str, info: Any) -> None:
    """Refuse what a service could not say of a model."""
    checked(info, MODEL, "a model")
    if not MODEL_NAME.fullmatch(name) or info["model_id"] != name:
        raise AnswerError(f"{name:.100} is no name of a model")
    if (
        not 0 < info["dimension"] <= MOST_DIMENSION
        or min(info["limits"][one] for one in COUNTED) < 1
    ):
        raise AnswerError(f"{name} has limits that no service has")


def _path(info: dict[str, Any], path: str) -> str:
    """The route of one model."""
    return f"/models/{info['model_id']}{path}"


def _parts(
    rows: list[Any], limits: Mapping[str, int], taken: int = 0
) -> Iterator[tuple[int, list[Any]]]:
    """Rows in parts that a request may hold, each with its first place; `taken` is used already."""
    room = limits["body_bytes"] - SPARE - 6 * taken
    start, size = 0, 0
    for place, row in enumerate(rows):
        texts = [row] if isinstance(row, str) else row
        # In JSON a character has up to 6 bytes (\u0000), and quotes, comma and blank around it.
        weight = sum(len(text.encode("utf-8", "replace")) + 8 for text in texts)
        weight += sum(5 * sum(char < " " or char in '"\\' for char in text) for text in texts)
        if place > start and (size + weight > room or place - start == limits["texts"]):
            yield start, rows[start:place]
            start, size = place, 0
        size += weight
    if rows:
        yield start, rows[start:]


def _listed(texts: Any) -> list[Any]:
    if isinstance(texts, str | bytes | os.PathLike) or not hasattr(texts, "__iter__"):
        raise ArgumentError("texts must be a list of texts, also for a single one: [text]")
    listed = list(texts)
    if not listed:
        raise ArgumentError("the list of texts is empty: give at least one text")
    return listed


def _joined(texts: Any) -> list[str]:
    """Texts of lists of words; pieces that begin with ## belong to the word before them."""
    rows = _listed(texts)
    for place, row in enumerate(rows):
        if isinstance(row, str) or not all(isinstance(word, str) for word in row):
            raise ArgumentError(f"texts[{place}] is not a list of words, as is_tokenized needs")
    return [" ".join(row).replace(" ##", "") for row in rows]


def _checked(texts: Any) -> list[str]:
    """Texts as a list, as bert-as-service wants them: none of them blank."""
    listed = _listed(texts)
    for place, text in enumerate(listed):
        if not isinstance(text, str) or not text.strip():
            raise ArgumentError(f"texts[{place}] is not a text, or blank: leave it out")
    return listed
