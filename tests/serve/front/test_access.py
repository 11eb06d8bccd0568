"""Who may call: every route of the table with every wrong key, and addresses that others reach."""

from __future__ import annotations

import base64
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_service import KEY, RunningService
from tiny_finetuning import tiny_folder

from bertsmith.cli.app import load_command
from bertsmith.errors import ConfigError
from bertsmith.serve.service import ROUTES

OPEN = {"/", "/health/live"}
WRONG = {
    "none": b"",
    "wrong": b"authorization: Bearer not-the-key-0123456789abcd\r\n",
    "empty": b"authorization: Bearer \r\n",
    "prefix": f"authorization: Bearer {KEY[:-1]}\r\n".encode(),
    "longer": f"authorization: Bearer {KEY}x\r\n".encode(),
    "lower case": f"authorization: bearer {KEY}\r\n".encode(),
    "upper case": f"authorization: Bearer {KEY.upper()}\r\n".encode(),
    "two headers": f"authorization: Bearer {KEY}\r\n".encode() * 2,
    "right and wrong": f"authorization: Bearer {KEY}\r\nauthorization: Bearer x\r\n".encode(),
    "basic": b"authorization: Basic " + base64.b64encode(f"key:{KEY}".encode()) + b"\r\n",
    "other header": f"x-api-key: {KEY}\r\n".encode(),
    "cookie": f"cookie: authorization=Bearer {KEY}\r\n".encode(),
    "proxy": f"proxy-authorization: Bearer {KEY}\r\nx-forwarded-for: 127.0.0.1\r\n".encode(),
    "odd host": b"host: other.example\r\n",
}
BODY = b'{"inputs": "the bird"}'
RIGHT = f"authorization: Bearer {KEY}\r\n".encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_folder(tmp_path_factory.mktemp("access") / "model")


@pytest.fixture(scope="module")
def running(folder: str) -> Iterator[RunningService]:
    one = RunningService({"tiny": Path(folder)})
    yield one
    one.close()


def status(port: int, line: str, headers: bytes) -> int:
    """The status of a request as it is written."""
    host = b"" if b"host:" in headers else b"host: a\r\n"
    kind = b"content-type: application/json\r\n"
    data = f"{line} HTTP/1.1\r\nconnection: close\r\n".encode() + host + kind + headers
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data + b"content-length: %d\r\n\r\n" % len(BODY) + BODY)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    return int(answer.split()[1])


def paths() -> list[tuple[str, str]]:
    return [
        (method, path.replace("{model}", "tiny"))
        for path, methods in ROUTES.items()
        for method in methods
    ]


@pytest.mark.parametrize("wrong", WRONG)
def test_every_route_refuses_a_wrong_key(running: RunningService, wrong: str) -> None:
    asked = 0
    for method, path in paths():
        for line in (
            f"{method} {path}",
            f"{method} {path}?key={KEY}&authorization=Bearer%20{KEY}",
            f"HEAD {path}",
            f"OPTIONS {path}",
        ):
            found = status(running.port, line, WRONG[wrong])
            assert path in OPEN or found == 401, (line, found)
            asked += 1
    assert asked > 100


@pytest.mark.parametrize("headers", [b"", RIGHT], ids=["without a key", "with the key"])
def test_a_path_is_taken_literally(running: RunningService, headers: bytes) -> None:
    refused = 404 if headers else 401
    for path in (
        *("//embed", "/embed/", "/./embed", "/%2e/embed", "/models/../embed", "/EMBED"),
        *("/health/live/", "//health/live", "/health/live/../../embed", "/models/tiny//embed"),
        *("/models/other/../tiny/embed", "/;/embed", "/embed%00", "/embed%2f", "/models//embed"),
    ):
        assert status(running.port, f"POST {path}", headers) == refused, path
    # A part in escapes is the same path to HTTP, and needs the same key.
    for path in ("/%65mbed", "/models/tiny/embed"):
        assert status(running.port, f"POST {path}", headers) == (200 if headers else 401)


def test_the_right_key_opens_every_route(running: RunningService) -> None:
    for method, path in paths():
        assert status(running.port, f"{method} {path}", RIGHT) not in (401, 403, 405), path


def test_other_origins_get_no_permission(running: RunningService) -> None:
    headers = b"origin: https://example.org\r\naccess-control-request-method: POST\r\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        connection.sendall(
            b"OPTIONS /embed HTTP/1.1\r\nhost: a\r\nconnection: close\r\n" + headers + b"\r\n"
        )
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert b" 401 " in answer.splitlines()[0]
    assert b"access-control" not in answer.lower()


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What `serve --check` prints."""
    with pytest.raises(SystemExit, match=r"^0$"):
        load_command("serve")([*arguments, "--check"])
    return capsys.readouterr().out


def test_defaults_are_safe(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, folder).startswith("http://127.0.0.1:8080, without a key")
    assert checked(capsys, folder, "--host", "0.0.0.0", "--insecure").startswith("http://0.0.0.0")


@pytest.mark.parametrize(
    "options",
    [
        ["--host", "0.0.0.0"],
        ["--host", "::"],
        ["--host", "192.0.2.7"],
        ["--text-tokens", "4096", "--batch-tokens", "1024"],
        ["--queue-tokens", "5"],
        ["--drain", "1"],
        ["--texts", "5000"],
        ["--keys", "missing.txt"],
    ],
    ids=" ".join,
)
def test_what_is_open_or_contradicts_itself_is_refused(folder: str, options: list[str]) -> None:
    with pytest.raises(ConfigError):
        load_command("serve")([folder, "--check", *options])


def test_every_option_is_also_a_variable(
    folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        load_command("serve")(["--help"])
    shown = capsys.readouterr().out
    options = set(re.findall(r"^  --([a-z-]+)", shown, re.MULTILINE)) - {"help"}
    assert len(options) > 20
    words = " ".join(shown.split())
    for name in options:
        assert f"BERTSMITH_SERVE_{name.upper().replace('-', '_')}" in words, name
    keys = tmp_path / "keys.txt"
    keys.write_text(KEY)
    for name, value in {
        "HOST": "0.0.0.0",
        "PORT": "8123",
        "KEYS": str(keys),
        "TEXTS": "77",
        "STRICT": "1",
        "HEAD_SECONDS": "7.5",
    }.items():
        monkeypatch.setenv(f"BERTSMITH_SERVE_{name}", value)
    found = checked(capsys, folder)
    assert found.startswith("http://0.0.0.0:8123, with a key")
    for part in ("77, OpenAI's form", "7.5 s head", "refused (413)"):
        assert part in found
    assert KEY not in found


def test_check_says_what_would_be_served(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = checked(capsys, f"words={folder}", f"other={folder}", "--index", str(tmp_path))
    for part in ("model words: bert", "model other: bert", "texts that are too long", "truncated"):
        assert part in found, part
    assert f"index of words: {tmp_path}" in found
