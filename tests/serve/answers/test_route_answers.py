"""Every route and every call of the client answers as the Python API does, whoever else asks."""

from __future__ import annotations

import base64
import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from page_models import TaskFolders
from running_service import KEY, RunningService

import bertsmith
from bertsmith import Client, LoadedModel
from bertsmith.nn.encoder import Want
from bertsmith.runtime.engines.batches import row_batch
from bertsmith.runtime.generation.options import GenerationOptions
from bertsmith.serve.limits import Limits
from bertsmith.serve.service import ROUTES

LONG = bool(os.environ.get("BERTSMITH_LONG"))
REQUESTS, CLIENTS = (5_000, 64) if LONG else (400, 16)
WORDS = ["red", "bird", "tree", "house", "green", "the", "cat", "红", "鸟", "屋", "今", "天"]
TOLERANCE = 1e-5
Expected = Callable[[str, str], Any]


@pytest.fixture(scope="module")
def running(task_folders: TaskFolders) -> Iterator[RunningService]:
    limits = Limits(deadline=120, drain=120)
    one = RunningService(task_folders.models, index=task_folders.index, limits=limits)
    yield one
    one.close()


@pytest.fixture(scope="module")
def loaded(task_folders: TaskFolders) -> Iterator[dict[str, LoadedModel]]:
    models = {
        name: bertsmith.load(folder, precision="fp32")
        for name, folder in task_folders.models.items()
    }
    yield models
    for one in models.values():
        one.close()


def texts_of(draw: random.Random) -> tuple[str, str]:
    """Two texts, alike those of hardly any other request."""
    first, second = (" ".join(draw.choices(WORDS, k=draw.randint(2, 40))) for _ in range(2))
    return first, second


def alike(found: Any, wanted: Any) -> bool:
    """Equal, numbers to 1e-5."""
    if isinstance(wanted, dict):
        return set(found) == set(wanted) and all(alike(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(alike, found, wanted))
    if isinstance(wanted, float):
        return abs(found - wanted) <= TOLERANCE
    return bool(found == wanted)


def classes(scores: dict[str, float]) -> list[dict[str, Any]]:
    found = [{"label": label, "score": score} for label, score in scores.items()]
    return sorted(found, key=lambda one: -one["score"])


def token_rows(model: LoadedModel, text: str) -> list[list[float]]:
    batch = row_batch([0], [model.tokenizer.encode(text).ids])
    with torch.inference_mode():
        return model.model(batch.inputs()).hidden.float().tolist()


def attention(model: LoadedModel, text: str) -> dict[str, Any]:
    encoding = model.tokenizer.encode(text)
    with torch.inference_mode():
        found = model.model(row_batch([0], [encoding.ids]).inputs(), want=Want(attention=True))
    squares = found.attention
    return {
        "tokens": [model.tokenizer.id_to_token(int(one)) for one in encoding.ids],
        "layers": len(squares),
        "attention": squares[1][0].double().numpy().round(4).tolist(),
    }


def expectations(loaded: dict[str, LoadedModel], index: Any) -> dict[str, tuple[Any, Expected]]:
    """By route: the body of two texts, and the answer by the Python API."""
    masked, writer = loaded["masked"], loaded["writer"]

    def cosines(first: str, second: str) -> list[float]:
        both = masked.encode([first, second, "bird"], normalize=True)
        return (both[1:] @ both[0]).tolist()

    def ranked(first: str, second: str, score: str) -> list[dict[str, Any]]:
        scores = cosines(first, second)
        order = np.argsort([-one for one in scores], kind="stable").tolist()
        return [{"index": place, score: scores[place]} for place in order]

    def predicted(name: str, *fields: str) -> dict[str, Any]:
        return loaded[name].predict([fields if len(fields) > 1 else fields[0]])[0].to_json()

    def tagged(text: str) -> dict[str, Any]:
        found = predicted("tagger", text)
        return {"spans": found["prediction"], "tags": found.get("tags", [])}

    def answered(question: str, context: str) -> dict[str, Any]:
        found = predicted("answerer", question, context)
        return {"answer": found["prediction"], "others": found.get("others", [])}

    def chosen(context: str, choice: str) -> dict[str, Any]:
        found = predicted("chooser", context, choice, "bird")
        return {"choice": found["prediction"], "probabilities": found["probabilities"]}

    def filled(text: str) -> dict[str, Any]:
        found = masked.fill(f"{text} [MASK]", top=3)
        return {"text": found.text, "guesses": [[asdict(g) for g in one] for one in found.guesses]}

    def listed(text: str) -> list[dict[str, Any]]:
        encoding = masked.tokenizer.encode(text)
        return [
            {
                "id": number,
                "text": masked.tokenizer.id_to_token(number),
                "special": field < 0,
                "start": None if field < 0 else start,
                "stop": None if field < 0 else stop,
            }
            for number, field, (start, stop) in zip(
                encoding.ids.tolist(),
                encoding.fields.tolist(),
                encoding.offsets.tolist(),
                strict=True,
            )
        ]

    def written(text: str) -> dict[str, Any]:
        found = writer.generate([text], GenerationOptions(max_new=4))[0]
        return {"text": found.text, "answers": [one.to_json() for one in found.answers]}

    def corrected(*texts: str) -> list[dict[str, Any]]:
        found = [one.to_json() for one in loaded["corrector"].correct(texts, threshold=0.01)]
        return [{"corrected": one["corrected"], "edits": one["edits"]} for one in found]

    def hits(text: str) -> list[dict[str, Any]]:
        return [asdict(hit) for hit in index.search([text], k=3)[0]]

    ids = {"masked": masked.tokenizer}
    return {
        "/embed": (
            lambda a, b: {"inputs": [a, b]},
            lambda a, b: masked.encode([a, b], normalize=True).tolist(),
        ),
        "/embed_all": (
            lambda a, b: {"inputs": a},
            lambda a, b: [token_rows(masked, a)],
        ),
        "/encode": (
            lambda a, b: {"id": 7, "texts": [a, b]},
            lambda a, b: {"id": 7, "result": masked.encode([a, b]).tolist(), "status": 200},
        ),
        "/predict": (
            lambda a, b: {"inputs": [[a], [b]]},
            lambda a, b: [classes(predicted("classifier", one)["probabilities"]) for one in (a, b)],
        ),
        "/rerank": (
            lambda a, b: {"query": a, "texts": [b, "bird"]},
            lambda a, b: ranked(a, b, "score"),
        ),
        "/similarity": (
            lambda a, b: {"inputs": {"source_sentence": a, "sentences": [b, "bird"]}},
            cosines,
        ),
        "/tokenize": (
            lambda a, b: {"inputs": [a, b]},
            lambda a, b: [listed(a), listed(b)],
        ),
        "/decode": (
            lambda a, b: {"ids": ids["masked"].encode(a).ids.tolist()},
            lambda a, b: [ids["masked"].decode(ids["masked"].encode(a).ids)],
        ),
        "/tag": (lambda a, b: {"inputs": [a, b]}, lambda a, b: [tagged(a), tagged(b)]),
        "/answer": (lambda a, b: {"question": a, "context": b}, answered),
        "/choose": (lambda a, b: {"context": a, "choices": [b, "bird"]}, chosen),
        "/fill": (lambda a, b: {"text": f"{a} [MASK]", "top": 3}, lambda a, b: filled(a)),
        "/search": (lambda a, b: {"query": a, "k": 3}, lambda a, b: {"hits": hits(a)}),
        "/generate": (lambda a, b: {"text": a, "max_new": 4}, lambda a, b: written(a)),
        "/correct": (lambda a, b: {"inputs": [a, b], "threshold": 0.01}, corrected),
        "/attention": (
            lambda a, b: {"text": a, "layer": 1},
            lambda a, b: attention(masked, a),
        ),
        "/v1/embeddings": (
            lambda a, b: {"input": [a, b], "model": "masked"},
            lambda a, b: masked.encode([a, b]).tolist(),
        ),
        "/v1/rerank": (
            lambda a, b: {"query": a, "documents": [b, "bird"]},
            lambda a, b: ranked(a, b, "relevance_score"),
        ),
        "/v1/classify": (
            lambda a, b: {"input": [a]},
            lambda a, b: [classes(predicted("classifier", a)["probabilities"])],
        ),
    }


def plain(path: str, answer: Any) -> Any:
    """The part of an answer that the model computed."""
    if path == "/v1/embeddings":
        rows = [one["embedding"] for one in answer["data"]]
        assert [one["index"] for one in answer["data"]] == list(range(len(rows)))
        if isinstance(rows[0], str):
            rows = [np.frombuffer(base64.b64decode(one), "<f4").tolist() for one in rows]
        return rows
    if path.startswith("/v1/"):
        return answer["results" if "rerank" in path else "data"]
    return answer


def test_every_route_answers_as_the_python_api_whatever_else_is_in_the_batch(
    running: RunningService, loaded: dict[str, LoadedModel], task_folders: TaskFolders
) -> None:
    index = bertsmith.Index.open(task_folders.index, model=loaded["masked"])
    expected = expectations(loaded, index)
    posted = {path for path, methods in ROUTES.items() if "POST" in methods}
    assert posted == set(expected)
    draw = random.Random(5)
    jobs = []
    for number in range(REQUESTS):
        path = list(expected)[number % len(expected)]
        jobs.append((path, *texts_of(draw)))
    headers = {"authorization": f"Bearer {KEY}"}
    connections = httpx.Limits(max_connections=CLIENTS)
    with httpx.Client(
        base_url=running.address, headers=headers, timeout=120, limits=connections
    ) as client:

        def ask(job: tuple[str, str, str]) -> Any:
            path, first, second = job
            answer = client.post(path, json=expected[path][0](first, second))
            assert answer.status_code == 200, (path, answer.text)
            return plain(path, answer.json())

        with ThreadPoolExecutor(CLIENTS) as threads:
            found = list(threads.map(ask, jobs))
    checked: dict[str, int] = {}
    for (path, first, second), answer in zip(jobs, found, strict=True):
        # The vectors of all; the slower operations of a part of the long run.
        if checked.get(path, 0) < 60:
            assert alike(answer, expected[path][1](first, second)), (path, first, second)
            checked[path] = checked.get(path, 0) + 1
    assert set(checked) == set(expected)
    several = [job[1:] for job in jobs if job[0] == "/embed"]
    wanted = loaded["masked"].encode([one for pair in several for one in pair], normalize=True)
    vectors = np.array(
        [answer for job, answer in zip(jobs, found, strict=True) if job[0] == "/embed"]
    )
    assert np.abs(vectors.reshape(wanted.shape) - wanted).max() <= TOLERANCE


def test_every_call_of_the_client_answers_as_the_python_api(
    running: RunningService, loaded: dict[str, LoadedModel], task_folders: TaskFolders
) -> None:
    index = bertsmith.Index.open(task_folders.index, model=loaded["masked"])
    expected = expectations(loaded, index)
    first, second = "the red bird", "红鸟 and a green tree"
    with Client(running.address, key=KEY) as client:
        found = {
            "/encode": {"id": 7, "result": client.encode([first, second]).tolist(), "status": 200},
            "/predict": client.predict([first, second]),
            "/rerank": client.rerank(first, [second, "bird"]),
            "/similarity": client.similarity(first, [second, "bird"]).tolist(),
            "/tag": client.tag([first, second]),
            "/answer": client.answer(first, second),
            "/choose": client.choose(first, [second, "bird"]),
            "/fill": client.fill(f"{first} [MASK]", top=3),
            "/search": {"hits": client.search(first, k=3)},
            "/generate": client.generate(first, {"max_new": 4}),
            "/correct": client.correct([first, second], threshold=0.01),
        }
    for path, answer in found.items():
        assert alike(answer, expected[path][1](first, second)), path


def test_what_is_cut_is_counted_in_the_answer_and_its_header(
    running: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"authorization": f"Bearer {KEY}"}
    long = "red bird " * 150  # 300 tokens for models of 160
    cases = {
        "/search": ({"query": long}, "tokens_cut"),
        "/choose": ({"context": "red", "choices": [long, "bird"]}, "tokens_cut"),
        "/v1/embeddings": ({"input": long, "model": "masked"}, "usage"),
        "/predict": ({"inputs": long}, None),
        "/embed": ({"inputs": long}, None),
    }
    with httpx.Client(base_url=running.address, headers=headers, timeout=60) as client:
        for path, (body, field) in cases.items():
            answer = client.post(path, json=body)
            assert answer.status_code == 200, (path, answer.text)
            cut = int(answer.headers["x-cut-tokens"])
            assert cut >= 140, path
            if field is not None:
                value = answer.json()[field]
                assert cut == (value if field == "tokens_cut" else value["cut_tokens"]), path
        whole = client.post("/tag", json={"inputs": long})  # read in windows, or cut
        assert int(whole.headers["x-cut-tokens"]) == whole.json()[0].get("tokens_cut", 0)
        # Texts that are read in windows have a limit of their own.
        document = "red bird " * 3_000
        for path, body in (
            ("/answer", {"question": "bird", "context": document}),
            ("/tag", {"inputs": document}),
        ):
            answer = client.post(path, json=body)
            assert answer.status_code == 200, (path, answer.text)
            found = answer.json() if path == "/answer" else answer.json()[0]
            assert found["tokens_cut"] == int(answer.headers["x-cut-tokens"]) >= 6_000 - 4_096
        monkeypatch.setattr(running.service, "strict", True)
        for path, (body, _) in cases.items():
            assert client.post(path, json=body).status_code == 413, path
        for path, text in (("/fill", f"{document} [MASK]"), ("/attention", document)):
            assert client.post(path, json={"text": text}).status_code == 413, path


def test_texts_of_a_batch_are_corrected_each_by_its_own_threshold(
    running: RunningService, loaded: dict[str, LoadedModel]
) -> None:
    text = "今天红鸟"
    scores = [edit.score for edit in loaded["corrector"].correct([text])[0].edits]
    assert scores
    headers = {"authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=running.address, headers=headers, timeout=60) as client:
        models = client.get("/models").json()
        assert [name for name, one in models.items() if "correct" in one["abilities"]] == [
            "corrector"
        ]

        def edits(threshold: float | None) -> int:
            body = {"inputs": text} | ({} if threshold is None else {"threshold": threshold})
            answer = client.post("/correct", json=body)
            assert answer.status_code == 200, answer.text
            return len(answer.json()[0]["edits"])

        given: list[float | None] = [None, 1.0, max(scores) - 1e-6, 0.0] * 8
        with ThreadPoolExecutor(16) as threads:
            found = list(threads.map(edits, given))
        assert found == [len(scores), 0, 1, len(scores)] * 8
        odd = client.post("/correct", json={"inputs": text, "threshold": 2})
        assert odd.status_code == 422
        assert "threshold" in odd.text
        other = client.post("/models/masked/correct", json={"inputs": text})
        assert other.status_code == 404
        assert "corrector" in other.text


def test_a_text_beyond_the_limit_of_documents_is_not_corrected_in_part(
    running: RunningService,
) -> None:
    headers = {"authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=running.address, headers=headers, timeout=60) as client:
        windows = client.post("/correct", json={"inputs": "红鸟" * 200})  # more than the positions
        assert windows.status_code == 200, windows.text
        assert len(windows.json()[0]["corrected"]) == 400
        assert client.post("/correct", json={"inputs": "红鸟" * 3_000}).status_code == 413
