"""The body of a request: received within its limits, parsed as JSON of bounded depth."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson

from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.limits import Limits

Headers = Sequence[tuple[bytes, bytes]]
Receive = Callable[[], Awaitable[Any]]
DISCARD_SECONDS = 1.0
MOST_ITEMS = 100_000  # of a list or an object, whatever they are


class ClientGoneError(Exception):
    """The client closed its connection; there is nobody to answer."""


def check_head(headers: Headers, limits: Limits) -> None:
    """Refuse too many header fields, and too many bytes of them."""
    size = sum(len(name) + len(value) + 4 for name, value in headers)
    if len(headers) > limits.header_fields or size > limits.header_bytes:
        raise head_too_large(limits)


def head_too_large(limits: Limits) -> RequestError:
    """The refusal of a head beyond its limits."""
    return RequestError(
        FailureKind.HEADERS,
        f"at most {limits.header_fields} header fields of {limits.header_bytes:,} bytes in all "
        "are read",
        close=True,
    )


async def read_body(
    headers: Headers, receive: Receive, limits: Limits, hold: Callable[[int], None]
) -> bytes:
    """All bytes of the body; too many, by declaration or by count, are refused unread.

    `hold` is called with the size of each part, and may refuse it.
    """
    declared = [value for name, value in headers if name == b"content-length"]
    if declared and (not declared[0].isdigit() or int(declared[0][:19]) > limits.body_bytes):
        raise _too_large(limits)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                part = message.get("body", b"")
                size += len(part)
                if size > limits.body_bytes:
                    raise _too_large(limits)
                hold(len(part))
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise RequestError(
            FailureKind.TIME_TO_RECEIVE,
            f"the body did not arrive within {limits.body_seconds:g} s",
            close=True,
        ) from None


async def discard_body(receive: Receive, limits: Limits) -> None:
    """Take the rest of a refused request for a moment, keeping nothing.

    A connection that is closed with bytes unread is reset, and the client loses the answer that
    says why.
    """
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(min(DISCARD_SECONDS, limits.body_seconds)):
            while size <= limits.body_bytes:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return


def parse_json(body: bytes, limits: Limits) -> dict[str, Any]:
    """The object that a body holds; keys that are given twice have their last value."""
    if not body.strip():
        raise RequestError(FailureKind.MALFORMED, "the body is empty: send a JSON object")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        # The message of the parser without the text it quotes.
        place = f"line {error.lineno}, column {error.colno}"
        message = f"the body is not JSON in UTF-8 ({place})"
        raise RequestError(FailureKind.MALFORMED, message) from None
    if not isinstance(value, dict):
        raise RequestError(FailureKind.MALFORMED, "the body must be a JSON object")
    _check_shape(value, limits.json_depth)
    return value


def _check_shape(value: dict[str, Any], most: int) -> None:
    """Refuse containers nested deeper than `most`, level by level, and very long ones."""
    level: list[Any] = [value]
    for _ in range(most):
        following: list[Any] = []
        for one in level:
            if len(one) > MOST_ITEMS:
                raise RequestError(
                    FailureKind.TOO_LARGE,
                    f"a list of {len(one):,} items; at most {MOST_ITEMS:,} are read",
                )
            inner = one.values() if isinstance(one, dict) else one
            following += [part for part in inner if isinstance(part, dict | list)]
        if not following:
            return
        level = following
    raise RequestError(FailureKind.MALFORMED, f"the body is nested deeper than {most} levels")


def _too_large(limits: Limits) -> RequestError:
    return RequestError(
        FailureKind.TOO_LARGE,
        f"the body is larger than {limits.body_bytes:,} bytes: send fewer texts per request",
        close=True,
    )
