"""Limits of a request: settings that contradict each other, bodies, JSON, keys."""

from __future__ import annotations

import asyncio

import pytest

from bertsmith.config import validated
from bertsmith.errors import ConfigError
from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.http.body import ClientGoneError, check_head, parse_json, read_body
from bertsmith.serve.http.keys import Keys
from bertsmith.serve.limits import Limits
from bertsmith.serve.server import check_address

LIMITS = Limits(body_bytes=2_000, body_seconds=0.05, header_fields=3, json_depth=4)
KEY = "k" * 20


def receiving(*parts: bytes, ends: bool = True):
    messages = [
        {"type": "http.request", "body": part, "more_body": not ends or place < len(parts) - 1}
        for place, part in enumerate(parts)
    ]

    async def receive():
        if messages:
            return messages.pop(0)
        await asyncio.sleep(10)

    return receive


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"texts": 100, "openai_texts": 50}, "above openai_texts"),
        ({"text_tokens": 4_096}, "does not fit a batch"),
        ({"queue_tokens": 100}, "could never be made"),
        ({"drain": 5.0}, "could be cut off"),
    ],
)
def test_limits_that_contradict_each_other_are_refused(values, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validated(Limits, values, "the limits")


def test_what_may_wait_leaves_time_to_compute_before_the_deadline() -> None:
    limits = Limits(deadline=20.0, drain=20.0)
    assert limits.queue_seconds == 12.0
    assert any(line.endswith("12 s of the measured speed") for line in limits.lines())


def test_a_body_is_read_in_parts() -> None:
    held: list[int] = []
    body = asyncio.run(read_body([], receiving(b"ab", b"", b"cde"), LIMITS, held.append))
    assert (body, held) == (b"abcde", [2, 0, 3])


@pytest.mark.parametrize(
    ("headers", "receive", "status"),
    [
        ([(b"content-length", b"99999999999999999999999")], receiving(b""), 413),
        ([(b"content-length", b"-5")], receiving(b""), 413),
        ([], receiving(*[b"x" * 500] * 5), 413),
        ([], receiving(b"x", ends=False), 408),
    ],
)
def test_bodies_beyond_the_limits_are_refused_and_the_connection_ends(
    headers, receive, status: int
) -> None:
    with pytest.raises(RequestError) as caught:
        asyncio.run(read_body(headers, receive, LIMITS, lambda size: None))
    assert caught.value.kind.status == status
    assert (b"connection", b"close") in caught.value.headers()


def test_a_client_that_leaves_is_not_answered() -> None:
    async def receive():
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGoneError):
        asyncio.run(read_body([], receive, LIMITS, lambda size: None))


def test_too_many_headers_are_refused() -> None:
    with pytest.raises(RequestError) as caught:
        check_head([(b"a", b"b")] * 4, LIMITS)
    assert caught.value.kind is FailureKind.HEADERS


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b'{"a": NaN}',
        b'{"a": 1e400}',
        b'{"a": "\xff"}',
        '{"a": 1}'.encode("utf-16"),
        b'{"a": ' + b"9" * 5_000 + b"}",
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": [[[[1]]]]}',
        b'{"a": "secret text',
    ],
)
def test_bodies_that_are_no_json_object_are_refused_without_repeating_them(body: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        parse_json(body, LIMITS)
    assert caught.value.kind is FailureKind.MALFORMED
    assert "secret" not in str(caught.value)


def test_json_within_the_depth_is_taken() -> None:
    assert parse_json(b'{"a": [[[1]]]}', LIMITS) == {"a": [[[1]]]}


def test_a_right_key_is_named_by_its_hash() -> None:
    keys = Keys((KEY, "other" * 5))
    name = keys.identify([(b"authorization", b"Bearer " + KEY.encode())])
    assert len(name) == 6
    assert name not in KEY


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", KEY.encode())],
        [(b"authorization", b"bearer " + KEY.encode())],
        [(b"authorization", b"Bearer " + KEY[:-1].encode())],
        [(b"authorization", b"Bearer " + KEY.encode() + b"k")],
        [(b"authorization", b"Bearer  " + KEY.encode())],
        [(b"authorization", b"Bearer " + KEY.encode())] * 2,
        [(b"x-api-key", KEY.encode())],
    ],
)
def test_every_other_key_is_refused(headers) -> None:
    with pytest.raises(RequestError) as caught:
        Keys((KEY,)).identify(headers)
    assert caught.value.kind is FailureKind.UNAUTHORIZED
    assert KEY not in str(caught.value)


def test_keys_come_from_a_file(tmp_path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text(f"# ours\n\n{KEY}\n")
    assert Keys.from_file(path).identify([(b"authorization", b"Bearer " + KEY.encode())])
    path.write_text("short\n")
    with pytest.raises(ConfigError, match="16 to 512 printable") as caught:
        Keys.from_file(path)
    assert "short" not in str(caught.value)
    path.write_text("# none\n")
    with pytest.raises(ConfigError, match="has no key"):
        Keys.from_file(path)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "::", "example.org"])
def test_a_public_address_needs_a_key(host: str) -> None:
    with pytest.raises(ConfigError, match="no key is set"):
        check_address(host, has_keys=False, insecure=False)
    check_address(host, has_keys=True, insecure=False)
    check_address(host, has_keys=False, insecure=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.9.1"])
def test_loopback_needs_none(host: str) -> None:
    check_address(host, has_keys=False, insecure=False)
