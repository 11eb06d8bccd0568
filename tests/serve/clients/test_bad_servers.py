"""The client against services that answer too slowly, too much, or something else."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from bertsmith import Client
from bertsmith.errors import ConfigError, ServiceError

TIMEOUT = 1.0
MOST_MEMORY = 64_000_000
KEY = "a-key-of-the-tests-0123456789"
Answer = Callable[[], Iterator[bytes]]
MODEL = {
    "model_id": "m",
    "abilities": ["embed", "similarity", "rerank", "classify", "generate", "search", "tag"],
    "normalized": True,
    "dimension": 2,
    "limits": {"texts": 32, "openai_texts": 64, "body_bytes": 100_000},
}


def whole(body: bytes, status: bytes = b"200 OK", extra: bytes = b"") -> bytes:
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\n%scontent-length: %d\r\n\r\n"
    return head % (status, extra, len(body)) + body


def once(data: bytes) -> Answer:
    def answer() -> Iterator[bytes]:
        yield data

    return answer


def endless(start: bytes, again: bytes, pause: float = 0.0) -> Answer:
    def answer() -> Iterator[bytes]:
        yield start
        while True:
            time.sleep(pause)
            yield again

    return answer


def silent() -> Iterator[bytes]:
    time.sleep(3 * TIMEOUT)
    yield b""


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
VECTOR = base64.b64encode(np.ones(2, "<f4").tobytes()).decode()
ESCAPES = "\x1b]0;renamed\x07\x1b[2J\u202e"
# Every one of these is the answer to GET /models.
ANSWERS: dict[str, Answer] = {
    "silent": silent,
    "closes": once(b""),
    "half a head": once(HEAD),
    "endless 100": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "slow 100": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.1),
    "endless head": endless(HEAD, b"x: " + b"y" * 1_000 + b"\r\n"),
    "slow head": endless(HEAD, b"x: y\r\n", 0.1),
    "endless line": endless(HEAD, b"x" * 10_000),
    "slow line": endless(HEAD + b"x: ", b"y", 0.1),
    "endless body": endless(HEAD + b"\r\n", b"[" * 65_536),
    "declared body": endless(HEAD + b"content-length: 9999999999999\r\n\r\n", b"1," * 32_768),
    "endless chunks": endless(CHUNKED, b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
    "tiny chunks": endless(CHUNKED, b"1\r\nx\r\n" * 1_000),
    "endless trailer": endless(CHUNKED + b"0\r\n", b"x: y\r\n" * 1_000),
    "slow body": endless(HEAD + b"content-length: 1000\r\n\r\n", b"x", 0.1),
    "early hints": endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.1),
    "no HTTP": once(b"220 mail.example ESMTP\r\n"),
    "HTML": once(whole(b"<!doctype html><title>a router</title>")),
    "empty": once(whole(b"")),
    "cut JSON": once(whole(b'{"m": {"model_id"')),
    "cut body": once(HEAD + b"content-length: 100\r\n\r\n{}"),
    "list": once(whole(b"[]")),
    "deep": once(whole(b"[" * 100_000 + b"]" * 100_000)),
    "digits": once(whole(b'{"m": ' + b"9" * 6_000 + b"}")),
    "NaN": once(whole(b'{"m": NaN}')),
    "no UTF-8": once(whole(b'{"m": "\xff\xfe"}')),
    "many values": once(whole(b"[" + b"[]," * 3_000_000 + b"[]]")),
    "wide characters": once(whole(('{"m": "' + "\U0001f600" * 3_000_000 + '"}').encode())),
    "other shape": once(whole(b'{"m": {"abilities": 5}}')),
    "name with a line end": once(
        whole(json.dumps({"m\r\nx: y": {**MODEL, "model_id": "m\r\nx: y"}}).encode())
    ),
    "limits of nothing": once(
        whole(json.dumps({"m": {**MODEL, "limits": {**MODEL["limits"], "texts": 0}}}).encode())  # type: ignore[dict-item]
    ),
    "redirect": once(whole(b"", b"302 Found", b"location: http://127.0.0.1:1/\r\n")),
    "escapes": once(whole(json.dumps({"error": ESCAPES}).encode(), b"400 Bad Request")),
    "error of another type": once(whole(b'{"error": [[1], {}]}', b"400 Bad Request")),
    "long error": once(whole(b'{"error": "' + b"a" * 100_000 + b'"}', b"500 Oops")),
}
# The service has the model above, and these are the answers to what it is asked next.
LATER: dict[str, tuple[str, bytes]] = {
    "too few vectors": ("encode", b'{"data": []}'),
    "vectors of another width": (
        "encode",
        b'{"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}]}',
    ),
    "no base64": (
        "encode",
        b'{"data": [{"index": 0, "embedding": "%"}, {"index": 1, "embedding": "%"}]}',
    ),
    "one vector twice": (
        "encode",
        json.dumps({"data": [{"index": 0, "embedding": VECTOR}] * 2}).encode(),
    ),
    "vectors that are not finite": (
        "encode",
        json.dumps(
            {
                "data": [
                    {"index": n, "embedding": base64.b64encode(b"\xff" * 8).decode()}
                    for n in range(2)
                ]
            }
        ).encode(),
    ),
    "huge numbers": ("encode_plain", b"[[1e308, 1e308], [1, 1]]"),
    "huge whole numbers": ("encode_plain", b"[[" + b"9" * 400 + b", 1], [1, 1]]"),
    "texts for numbers": ("similarity", b'["a", "b"]'),
    "numbers for results": ("rerank", b"[1, 2]"),
    "results of no text": ("rerank", b'[{"index": 0, "score": 1}, {"index": 7, "score": 1}]'),
    "an object for rows": ("predict", b"{}"),
    "labels without a score": ("predict", b'[[{"label": "a"}], []]'),
    "no spans": ("tag", b'[{"tags": []}, {}]'),
    "no hits": ("search", b'{"hits": [1]}'),
    "no answers": ("generate", b'{"text": 5, "answers": []}'),
    "an event that is a list": ("stream", b"data: []\n\n"),
    "an event without a text": ("stream", b'data: {"a": 1}\n\n'),
    "an event with escapes": ("stream", json.dumps({"error": ESCAPES}).encode()),
}
CHILD = """
import json, resource, sys, time
from bertsmith import Client
from bertsmith.errors import ServiceError
import numpy, ssl, email.parser, encodings.idna

def grown():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

timeout = float(sys.argv[1])
before = None
for line in sys.stdin:
    name, port = json.loads(line)
    client = Client(f"http://127.0.0.1:{port}", key=sys.argv[2], timeout=timeout, retries=2)
    before = before or grown()
    start = time.monotonic()
    try:
        client.models()
        kind, message = "none", ""
    except BaseException as error:
        kind, message = type(error).__name__, str(error)
    took = time.monotonic() - start
    print(json.dumps([name, took, kind, message, grown() - before]), flush=True)
"""


class Server:
    """Answers every request on a port as it is told; `heard` is what it was sent."""

    def __init__(self, first: Answer, later: Answer | None = None) -> None:
        self._answers = (first, later or first)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.heard = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(3 * TIMEOUT)
            head = b""
            while b"\r\n\r\n" not in head:
                part = connection.recv(65_536)
                if not part:
                    return
                head += part
            self.heard += head
            end = time.monotonic() + 3 * TIMEOUT
            for part in self._answers[b"/models " not in head]():
                connection.sendall(part)
                if time.monotonic() > end:
                    return
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[float, str, str, int]]:
    """Seconds, error, message and bytes of memory for each answer, by one child process."""
    command = [sys.executable, "-c", CHILD, str(TIMEOUT), KEY]
    found = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for name, answer in ANSWERS.items():
            server = Server(answer)
            child.stdin.write(json.dumps([name, server.port]) + "\n")
            child.stdin.flush()
            _, *outcome = json.loads(child.stdout.readline())
            server.close()
            found[name] = tuple(outcome)
        child.stdin.close()
    return found


def test_there_are_thirty_of_them() -> None:
    assert len(ANSWERS) + len(LATER) >= 30 < len(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_client_ends_in_time_and_memory_with_one_error(
    outcomes: dict[str, tuple[float, str, str, int]], name: str
) -> None:
    seconds, kind, message, memory = outcomes[name]
    assert kind == "ServiceError"
    assert seconds < TIMEOUT + 1.0
    assert memory < MOST_MEMORY
    assert message.startswith("http://127.0.0.1:")
    assert message.isprintable()
    assert len(message) < 700
    assert KEY not in message


CALLS: dict[str, Callable[[Client], object]] = {
    "encode": lambda client: client.encode(["a", "b"]),
    "encode_plain": lambda client: client.encode(["a", "b"], normalize=True),
    "similarity": lambda client: client.similarity("a", ["b", "c"]),
    "rerank": lambda client: client.rerank("a", ["b", "c"]),
    "predict": lambda client: client.predict(["a", "b"]),
    "tag": lambda client: client.tag(["a", "b"]),
    "search": lambda client: client.search("a"),
    "generate": lambda client: client.generate("a"),
    "stream": lambda client: list(client.stream("a")),
}


@pytest.mark.parametrize("name", LATER)
def test_answers_of_another_shape_are_refused(name: str) -> None:
    call, body = LATER[name]
    if name == "an event with escapes":
        body = b"data: " + body + b"\n\n"
    server = Server(once(whole(json.dumps({"m": MODEL}).encode())), once(whole(body)))
    url = f"http://127.0.0.1:{server.port}"
    try:
        with Client(url, timeout=5, retries=0) as client, pytest.raises(ServiceError) as caught:
            CALLS[call](client)
    finally:
        server.close()
    assert str(caught.value).startswith(url)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("cut", [b"data: {", b'data: {"text": "a"}\n\n'])
def test_a_stream_that_is_cut_is_no_whole_answer(cut: bytes) -> None:
    chunk = CHUNKED + b"%x\r\n%s\r\n" % (len(cut), cut)
    server = Server(once(whole(json.dumps({"m": MODEL}).encode())), once(chunk))
    try:
        with (
            Client(f"http://127.0.0.1:{server.port}", timeout=5, retries=0) as client,
            pytest.raises(ServiceError),
        ):
            list(client.stream("a"))
    finally:
        server.close()


def test_a_redirect_gets_neither_the_key_nor_a_request() -> None:
    other = Server(once(whole(b"{}")))
    place = f"location: http://127.0.0.1:{other.port}/models\r\n".encode()
    server = Server(once(whole(b"", b"307 Temporary Redirect", place)))
    try:
        with (
            Client(f"http://127.0.0.1:{server.port}", key=KEY, timeout=5) as client,
            pytest.raises(ServiceError, match="answers 307"),
        ):
            client.models()
    finally:
        server.close()
        other.close()
    assert KEY.encode() in server.heard
    assert other.heard == b""


@pytest.mark.parametrize(
    "url",
    [
        "http://me:thepassword@host",
        "ftp://me:thepassword@host/models",
        "http://me:" + "thepassword" * 20 + "@host",
        "http://me:the@password@host:80",
    ],
)
def test_the_password_of_an_address_is_in_no_message(url: str) -> None:
    with pytest.raises(ConfigError, match="no address of a service") as caught:
        Client(url)
    assert "password" not in str(caught.value)
    assert "the@" not in str(caught.value)


def test_a_service_that_takes_nothing_ends_the_request_in_time() -> None:
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with Client(url, timeout=TIMEOUT, retries=0) as client:
            limits = {"texts": 9, "openai_texts": 9, "body_bytes": 1 << 30}
            client._models = {"m": {**MODEL, "limits": limits}}
            start = time.monotonic()
            with pytest.raises(ServiceError, match="did not answer within"):
                client.encode(["a" * 10_000_000])
            assert time.monotonic() - start < TIMEOUT + 1.0
