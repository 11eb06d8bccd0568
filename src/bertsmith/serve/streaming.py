"""Answers in parts, as server-sent events: until their end, a failure, or the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson

from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.http.body import ClientGoneError
from bertsmith.serve.routes import PartsOfAnswer


async def begun(parts: PartsOfAnswer) -> PartsOfAnswer:
    """The same parts, the first one computed: a failure before it is raised here."""
    first = [part async for part in _first(parts)]

    async def rest() -> PartsOfAnswer:
        try:
            for part in first:
                yield part
            async for part in parts:
                yield part
        finally:
            await parts.aclose()

    return rest()


async def events(
    parts: PartsOfAnswer,
    receive: Callable[[], Awaitable[Any]],
    deadline: float,
    failed: Callable[[str], None],
) -> AsyncIterator[bytes]:
    """Each part as an event; a failure is an event, too: {"error": message}.

    `deadline` is on the clock of the event loop; `failed` is called with the kind of a failure.
    """
    gone = asyncio.ensure_future(receive())
    try:
        while True:
            part = await _next(parts, gone, deadline)
            if part is None:
                return
            yield _event(part)
    except RequestError as error:
        failed(error.kind.name.lower())
        yield failure_event(error)
    finally:
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone
        await parts.aclose()


def failure_event(failure: RequestError) -> bytes:
    """The last event of an answer that could not be completed."""
    return _event({"error": failure.message})


async def _first(parts: PartsOfAnswer) -> AsyncIterator[dict[str, Any]]:
    with contextlib.suppress(StopAsyncIteration):
        yield await anext(parts)


async def _next(
    parts: PartsOfAnswer, gone: asyncio.Future[Any], deadline: float
) -> dict[str, Any] | None:
    """The next part, None after the last one."""
    coming = asyncio.ensure_future(anext(parts, None))
    left = deadline - asyncio.get_running_loop().time()
    try:
        await asyncio.wait({coming, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            return coming.result()
        if gone.done():
            raise ClientGoneError
        raise RequestError(FailureKind.DEADLINE, "the answer was not complete before its deadline")
    finally:
        if not coming.done():
            coming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await coming


def _event(part: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(part) + b"\n\n"
