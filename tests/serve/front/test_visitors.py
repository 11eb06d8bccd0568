"""Foreign pages and foreign names: every route of a local service without keys refuses them."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_service import RunningService
from tiny_finetuning import tiny_folder

from bertsmith.errors import ConfigError
from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.http.visitors import Visitors
from bertsmith.serve.service import ROUTES

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
LOCAL = Visitors.at("127.0.0.1", has_keys=False)
JSON = b"content-type: application/json\r\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tiny_folder(tmp_path_factory.mktemp("visitors") / "model")
    one = RunningService({"tiny": Path(folder)}, keys=())
    yield one
    one.close()


def status(port: int, line: str, headers: bytes, body: bytes = b"") -> int:
    """The status of a request with just these headers."""
    length = b"content-length: %d\r\n" % len(body) if body else b""
    data = f"{line} HTTP/1.1\r\nconnection: close\r\n".encode() + headers + length + b"\r\n" + body
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    return int(STATUS.match(answer)[1])


def requests() -> list[tuple[str, bytes]]:
    """A line and a body that work, for every route."""
    found = []
    for path, methods in ROUTES.items():
        for method, route in methods.items():
            body = json.dumps(route.examples[0]).encode() if route.examples else b""
            found.append((f"{method} {path.replace('{model}', 'tiny')}", body))
    return found


FOREIGN = {
    "rebound name": (b"host: evil.example\r\n", 403),
    "rebound name and port": (b"host: evil.example:8080\r\n", 403),
    "name that begins as ours": (b"host: localhost.evil.example\r\n", 403),
    "other address": (b"host: 127.0.0.1.evil.example\r\n", 403),
    "address of others": (b"host: 192.0.2.1\r\n", 403),
    "no host": (b"", 400),
    "empty host": (b"host: \r\n", 400),
    "two hosts": (b"host: localhost\r\nhost: localhost\r\n", 400),
    "two hosts, one foreign": (b"host: localhost\r\nhost: evil.example\r\n", 400),
    "user in the host": (b"host: localhost@evil.example\r\n", 400),
    "foreign origin": (b"host: localhost\r\norigin: https://evil.example\r\n", 403),
    "origin of another port": (b"host: localhost:80\r\norigin: http://localhost:3000\r\n", 403),
    "origin of a sandbox": (b"host: localhost\r\norigin: null\r\n", 403),
    "origin of an extension": (b"host: localhost\r\norigin: moz-extension://localhost\r\n", 403),
    "empty origin": (b"host: localhost\r\norigin: \r\n", 403),
    "other site": (b"host: localhost\r\nsec-fetch-site: cross-site\r\n", 403),
    "frame of another site": (
        b"host: localhost\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\n"
        b"sec-fetch-dest: iframe\r\n",
        403,
    ),
    "own and foreign origin": (
        b"host: localhost\r\norigin: http://localhost\r\norigin: http://evil.example\r\n",
        403,
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_every_route_refuses_what_is_foreign(running: RunningService, name: str) -> None:
    headers, wanted = FOREIGN[name]
    for line, body in requests():
        assert status(running.port, line, headers + JSON, body) == wanted, line


@pytest.mark.parametrize(
    "headers",
    [
        b"host: localhost\r\n",
        b"host: LOCALHOST:9000\r\n",
        b"host: 127.0.0.1:8080\r\n",
        b"host: [::1]\r\n",
        b"host: [::1]:8080\r\n",
        b"host: localhost:81\r\norigin: http://localhost:81\r\nsec-fetch-site: same-origin\r\n",
        b"host: localhost\r\nsec-fetch-site: none\r\n",
    ],
)
def test_what_is_our_own_is_answered(running: RunningService, headers: bytes) -> None:
    for line, body in requests():
        assert status(running.port, line, headers + JSON, body) not in (400, 403, 415), line


def test_a_link_of_another_site_opens_the_page_and_nothing_else(running: RunningService) -> None:
    follows = (
        b"host: localhost\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\n"
        b"sec-fetch-dest: document\r\n"
    )
    assert status(running.port, "GET /", follows) == 200
    for line, body in requests():
        if line != "GET /":
            assert status(running.port, line, follows + JSON, body) == 403, line


@pytest.mark.parametrize(
    "headers",
    [
        b"",
        b"content-type: text/plain\r\n",
        b"content-type: application/x-www-form-urlencoded\r\n",
        b"content-type: multipart/form-data; boundary=a\r\n",
        b"content-type: \r\n",
        b"content-type: application/json\r\ncontent-type: text/plain\r\n",
        b"content-type: text/plain, application/json\r\n",
        JSON + b"content-encoding: gzip\r\n",
        JSON + b"content-encoding: identity, br\r\n",
        JSON + b"content-encoding: \r\n",
    ],
)
def test_every_body_says_that_it_is_json_and_is_not_packed(
    running: RunningService, headers: bytes
) -> None:
    host = b"host: localhost\r\n"
    for line, body in requests():
        assert status(running.port, line, host + headers, body or b"{}") == 415, line
    chunked = host + headers + b"transfer-encoding: chunked\r\n"
    assert status(running.port, "POST /embed", chunked + b"\r\n2\r\n{}\r\n0\r\n") == 415


def test_a_connection_goes_on_after_a_body_that_was_refused_unread(
    running: RunningService,
) -> None:
    refused = b"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-length: 300000\r\n\r\n"
    good = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        connection.sendall(refused + b"x" * 300_000 + good)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    assert STATUS.findall(answer) == [b"415", b"200"]


@pytest.mark.parametrize(
    ("visitors", "host", "origin", "allowed"),
    [
        (LOCAL, "localhost", None, True),
        (LOCAL, "models.example.org", None, False),
        (Visitors.at("127.0.0.2", has_keys=False), "127.0.0.2:80", None, True),
        (Visitors.at("127.0.0.1", has_keys=True), "models.example.org", None, True),
        (Visitors.at("0.0.0.0", has_keys=False), "models.example.org", None, True),
        (Visitors.at("0.0.0.0", has_keys=True), "a", "https://b", False),
        (Visitors.at("0.0.0.0", has_keys=True), "a:81", "https://a:81", True),
    ],
)
def test_names_are_checked_where_nobody_needs_a_key(
    visitors: Visitors, host: str, origin: str | None, allowed: bool
) -> None:
    assert _is_allowed(visitors, host, origin) == allowed


def test_names_of_a_proxy_are_added() -> None:
    for address, has_keys in (("127.0.0.1", False), ("127.0.0.1", True), ("0.0.0.0", True)):
        given = Visitors.at(address, has_keys=has_keys, allowed=["Models.example.org"])
        assert _is_allowed(given, "models.example.org", None)
        assert _is_allowed(given, "localhost:8080", None)
        assert not _is_allowed(given, "other.example.org", None)
        # A proxy that does not pass Host on: the page's own origin is the proxy's.
        assert _is_allowed(given, "127.0.0.1:8080", "https://models.example.org")
        assert not _is_allowed(given, "127.0.0.1:8080", "https://other.example.org")


@pytest.mark.parametrize("name", ["", "http://a", "a/b", "a:80", "a b", "*", "ä.example"])
def test_what_is_no_name_of_a_host_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="--allow-host"):
        Visitors.at("127.0.0.1", has_keys=False, allowed=[name])


def _is_allowed(visitors: Visitors, host: str, origin: str | None) -> bool:
    headers = [(b"host", host.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    try:
        visitors.check(headers, is_page=False)
    except RequestError as error:
        return error.kind is not FailureKind.FORBIDDEN
    return True
