"""The client against a real service: answers, parts, retries, time limits."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from fresh_python import run_fresh
from service_process import ServiceProcess
from tiny_finetuning import tiny_folder, tiny_writer

import bertsmith
from bertsmith import Client
from bertsmith.errors import ArgumentError, ConfigError, ServiceError

KEY = "a-key-of-the-tests-0123456789"
TEXTS = ["the bird", "the man went", "a tree in the street", "the dog"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_folder(tmp_path_factory.mktemp("client") / "model")


@pytest.fixture(scope="module")
def service(folder: str) -> Iterator[ServiceProcess]:
    writer = tiny_writer(folder.replace("model", "writer"))
    limits = ("--texts", "3", "--openai-texts", "3", "--body-bytes", "8000")
    one = ServiceProcess(f"tiny={folder}", f"writer={writer}", *limits, key=KEY)
    yield one
    one.close()


@pytest.fixture
def client(service: ServiceProcess) -> Iterator[Client]:
    with Client(service.url, key=KEY) as one:
        yield one


def test_vectors_are_those_of_the_python_api_in_parts_of_the_services_limits(
    client: Client, folder: str
) -> None:
    texts = TEXTS * 5 + ["the bird went " * 200] * 4  # more than 3 texts, and more than 8,000 bytes
    with bertsmith.load(folder, precision="fp32") as model:
        wanted, unit = model.encode(texts), model.encode(texts, normalize=True)
    found = client.encode(texts)
    assert found.dtype == np.float32
    assert np.abs(found - wanted).max() < 1e-5
    assert np.abs(client.encode(texts, normalize=True) - unit).max() < 1e-5


def test_requests_without_blocking_are_fetched_in_their_order(client: Client) -> None:
    wanted = client.encode(TEXTS)
    for text in TEXTS:
        assert client.encode([text], blocking=False) is None
    assert np.abs(client.fetch_all(concat=True) - wanted).max() < 1e-5
    assert client.fetch_all() == []
    for text in TEXTS:
        client.encode([text], blocking=False)
    numbers = {one.id: one.embedding for one in client.fetch()}
    assert sorted(numbers) == [5, 6, 7, 8]
    assert np.abs(numbers[6] - wanted[1]).max() < 1e-5


def test_calls_that_bert_as_service_documents(client: Client) -> None:
    wanted = client.encode(TEXTS)
    words = [text.split() for text in TEXTS]
    assert np.abs(client.encode(words, is_tokenized=True) - wanted).max() < 1e-5
    assert (
        np.abs(client.encode([["the", "bi", "##rd"]], is_tokenized=True) - wanted[0]).max() < 1e-5
    )
    with pytest.raises(ValueError, match="not a list of words"):
        client.encode(TEXTS, is_tokenized=True)
    endless = ([text] for text in TEXTS * 1_000)
    found = list(client.encode_async(endless, max_num_batch=20))
    assert [one.id for one in found] == list(range(1, 21))
    vectors = np.concatenate([one.embedding for one in found])
    assert np.abs(vectors - np.concatenate([wanted] * 5)).max() < 1e-5
    client.encode(TEXTS[:1], blocking=False)
    start = time.monotonic()
    assert len(list(client.fetch(delay=0.2))) == 1
    assert time.monotonic() - start >= 0.2
    with Client(client._transport.url, key=KEY) as other:  # as `with BertClient() as bc`
        assert other.encode(["the bird"]).shape == (1, wanted.shape[1])


def test_the_other_calls(client: Client) -> None:
    ranked = client.rerank("the bird", TEXTS)
    similar = client.similarity("the bird", TEXTS)
    assert ranked[0]["index"] == 0
    assert [one["index"] for one in ranked] == np.argsort(-similar, kind="stable").tolist()
    assert client.server_status["status"] == 200
    assert set(client.models()) == {"tiny", "writer"}
    written = client.generate("the bird", {"max_new": 4})
    assert written["answers"]
    assert "".join(client.stream("the bird", {"max_new": 4})) in written["text"]
    with pytest.raises(ConfigError, match="cannot classify; models that can: none"):
        client.predict(TEXTS)


@pytest.mark.parametrize("texts", ["one text", [], [""], ["  "], [3], None])
def test_what_is_no_list_of_texts_is_a_value_error(client: Client, texts) -> None:
    with pytest.raises(ValueError, match="text"):
        client.encode(texts)
    assert issubclass(ArgumentError, ValueError)


def test_a_wrong_key_and_a_wrong_model_say_the_way_out(service: ServiceProcess) -> None:
    with Client(service.url, key="not-the-key-0123456789") as other:
        with pytest.raises(ServiceError, match=r"401.*key=") as caught:
            other.encode(["a"])
        assert "not-the-key" not in str(caught.value) + repr(other)
    known = "no model 'nobody': tiny, writer"
    other = Client(service.url, key=KEY, model="nobody")
    with other, pytest.raises(ConfigError, match=known):
        other.encode(["a"])


def test_a_wrong_port_fails_at_once_and_names_the_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    start = time.monotonic()
    with Client(url, retries=2) as client, pytest.raises(ServiceError, match=url):
        client.encode(["a"])
    assert time.monotonic() - start < 5


def test_a_port_that_accepts_and_is_silent_ends_after_the_time_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(url, timeout=0.5) as client,
            pytest.raises(ServiceError, match=r"within 0\.5 s"),
        ):
            client.encode(["a"])
        assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    "url",
    [
        *(
            "localhost:80",
            "ftp://a",
            "http://",
            "http://me:word@host",
            "http://a:99999",
            "http://[::1",
        ),
        *(
            "http://a:0",
            "http://a b",
            "http://a/\r\nx: y",
            "http://" + "a" * 300,
            "http://ä",
            "http://a..b",
        ),
    ],
)
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="no address of a service"):
        Client(url)


class Busy(BaseHTTPRequestHandler):
    """Refuses with the statuses of its class, then answers."""

    statuses: list[tuple[int, str | None]]
    times: list[float]

    def do_GET(self) -> None:
        self.times.append(time.monotonic())
        status, wait = self.statuses.pop(0) if self.statuses else (200, None)
        body = json.dumps({} if status == 200 else {"error": "busy"}).encode()
        self.send_response(status)
        if wait is not None:
            self.send_header("Retry-After", wait)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


def busy_for(statuses: list[tuple[int, str | None]], timeout: float, retries: int = 5):
    kind = type("Busy", (Busy,), {"statuses": statuses, "times": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}"
            with Client(url, timeout=timeout, retries=retries) as client:
                client.models()
        finally:
            server.shutdown()
    return kind.times


def test_busy_answers_are_retried_after_the_time_the_service_names() -> None:
    times = busy_for([(429, "1"), (503, None)], timeout=10)
    assert len(times) == 3
    assert times[1] - times[0] >= 1.0
    assert times[2] - times[1] < 1.0


def test_no_retry_waits_past_the_time_limit_and_other_statuses_are_not_retried() -> None:
    start = time.monotonic()
    with pytest.raises(ServiceError, match="429: busy"):
        busy_for([(429, "3600")] * 9, timeout=5)
    with pytest.raises(ServiceError, match="422: busy"):
        busy_for([(422, None)], timeout=5)
    with pytest.raises(ServiceError, match="3 attempts"):
        busy_for([(503, None)] * 9, timeout=5, retries=2)
    assert time.monotonic() - start < 5


def test_the_client_needs_neither_torch_nor_the_packages_of_the_service() -> None:
    loaded = run_fresh("import sys, bertsmith; bertsmith.Client; print(*sys.modules)").split()
    assert not {"torch", "uvicorn", "orjson", "pydantic"} & set(loaded)
