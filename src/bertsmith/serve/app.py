"""The ASGI application: from a request to a route, a model and an answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
from pydantic import ValidationError

from bertsmith.serve.accounting import RequestState, account, request_id
from bertsmith.serve.exchange import Exchange
from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.http.body import (
    ClientGoneError,
    Headers,
    check_head,
    discard_body,
    parse_json,
    read_body,
)
from bertsmith.serve.http.visitors import check_content
from bertsmith.serve.routes import HttpAnswer, PartsOfAnswer, RequestForm, Route, find_route
from bertsmith.serve.service import ROUTES, Service
from bertsmith.serve.shares import Caller
from bertsmith.serve.streaming import begun, events, failure_event

log = logging.getLogger(__name__)

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

SEND_SECONDS = 30.0  # for a client to take its answer
PAGE, ALIVE = "/", "/health/live"
GONE = 499  # the client left: nobody reads a status; the log and the metrics count it


class App:
    """Answers HTTP requests from a service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._cut_off = False
        self._open: set[asyncio.Task[Any]] = set()  # that are not answered yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = RequestState(
            start=time.perf_counter(),
            request_id=request_id(scope["headers"]),
            client=scope["client"][0] if scope.get("client") else "unknown",
        )
        status = GONE
        try:
            answer = await self._answer_or_failure(scope, receive, request)
            if answer is not None:
                status = answer.status
                if not await self._send(_noticing(send), receive, answer, request):
                    status = GONE
        finally:
            self.service.accepted -= request.accepted
            self.service.bodies.give(request.caller, request.held)
            account(self.service, request, status)

    def cut_off(self) -> None:
        """Answer 503 to everything that is not answered yet: the service ends at once."""
        self._cut_off = True
        for task in self._open:
            task.cancel()

    async def _answer_or_failure(
        self, scope: Scope, receive: Receive, request: RequestState
    ) -> HttpAnswer | None:
        """The answer, also to a request at fault; None: nobody reads it."""
        try:
            with self._cutting():
                return await self._answer(scope, receive, request)
        except ClientGoneError:
            return None
        except RequestError as error:
            failure = error
        except Exception as error:
            # Its message could hold a text: the place is enough to find the fault.
            place = traceback.extract_tb(error.__traceback__)[-1]
            log.error(
                "request %s failed with %s in %s, line %s",
                request.request_id,
                type(error).__name__,
                place.name,
                place.lineno,
            )
            message = "a fault of the service; its log has the request's id"
            failure = RequestError(FailureKind.INTERNAL, message)
        self.service.metrics.failure(failure.kind.name.lower())
        return HttpAnswer(
            value=failure.body(request.found.dialect),
            status=failure.kind.status,
            headers=tuple(failure.headers()),
            # Who is too slow to send a body would take the time for its rest, too.
            unread=failure.close and failure.kind is not FailureKind.TIME_TO_RECEIVE,
        )

    @contextlib.contextmanager
    def _cutting(self) -> Iterator[None]:
        """Around work that a second signal ends: a failure instead of a cancellation."""
        task = asyncio.current_task()
        if task is None or self._cut_off:
            raise _cut_off()
        self._open.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if not self._cut_off:
                raise
            task.uncancel()
            raise _cut_off() from None
        finally:
            self._open.discard(task)

    async def _answer(self, scope: Scope, receive: Receive, request: RequestState) -> HttpAnswer:
        headers: Headers = scope["headers"]
        check_head(headers, self.service.limits)
        request.found = find_route(ROUTES, scope["path"], scope["method"])
        if self.service.keys and (request.route is None or request.route.needs_key):
            request.key = self.service.keys.identify(headers)
        self.service.visitors.check(headers, is_page=request.label == PAGE)
        route = self._allowed(scope, request)
        if not self.service.loaded and route.path != ALIVE:
            raise RequestError(
                FailureKind.UNAVAILABLE, "the models are being loaded", retry_after=1, close=True
            )
        if self.service.draining and route.needs_key:
            raise RequestError(
                FailureKind.UNAVAILABLE, "the service is ending", retry_after=5, close=True
            )
        check_content(headers)
        self.service.check_room(route, request.found.model, request.caller)
        request.accepted = True
        self.service.accepted += 1
        form = await self._form(route, request, headers, receive)
        exchange = self._exchange(scope, request, route, form)
        request.exchange = exchange
        exchange.stages["receive"] = time.perf_counter() - request.start
        return await _while_connected(_first_part(route.handler(exchange, form)), receive)

    def _allowed(self, scope: Scope, request: RequestState) -> Route:
        if request.route is None:
            raise RequestError(
                FailureKind.NOT_FOUND, "no such path; /openapi.json lists those there are"
            )
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method != request.route.method:
            raise RequestError(
                FailureKind.METHOD, f"send {request.route.method} to this path", close=True
            )
        return request.route

    async def _form(
        self, route: Route, request: RequestState, headers: Headers, receive: Receive
    ) -> RequestForm | None:
        hold = partial(self._hold, request)
        body = await read_body(headers, receive, self.service.limits, hold)
        if route.form is None:
            return None
        try:
            return route.form.model_validate(parse_json(body, self.service.limits))
        except ValidationError as error:
            raise _invalid(error) from None

    def _hold(self, request: RequestState, size: int) -> None:
        """So many more bytes of a body are in memory, until its request is answered."""
        if not self.service.bodies.take(request.caller, size):
            raise RequestError(
                FailureKind.OVERLOADED,
                "too many bytes of requests wait to be answered; try again in 1 s",
                retry_after=1,
                close=True,
            )
        request.held += size

    def _exchange(
        self, scope: Scope, request: RequestState, route: Route, form: RequestForm | None
    ) -> Exchange:
        seconds = _own_timeout(scope["headers"], self.service.limits.deadline)
        taken = time.perf_counter() - request.start
        caller = Caller(
            client=request.caller,
            deadline=asyncio.get_running_loop().time() - taken + seconds,
        )
        named = getattr(form, "model", None) or request.found.model
        model = None if route.ability is None else self.service.find(route.ability, named)
        return Exchange(
            service=self.service, caller=caller, request_id=request.request_id, model=model
        )

    async def _send(
        self, send: Send, receive: Receive, answer: HttpAnswer, request: RequestState
    ) -> bool:
        """Send an answer; False: the client did not take it."""
        start = time.perf_counter()
        content = answer.content
        if content is None and answer.parts is None:
            content = orjson.dumps(answer.value, option=orjson.OPT_SERIALIZE_NUMPY)
        headers = [
            (b"content-type", b"text/event-stream" if answer.parts else answer.content_type),
            (b"x-request-id", request.request_id.encode()),
            (b"x-content-type-options", b"nosniff"),
            *answer.headers,
            *_compute_headers(request),
        ]
        if content is not None:
            headers.append((b"content-length", str(len(content)).encode()))
        if self.service.draining and (b"connection", b"close") not in headers:
            headers.append((b"connection", b"close"))
        head = {"type": "http.response.start", "status": answer.status, "headers": headers}
        # A client that does not take its answer must not hold the task for ever.
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await send(head)
                if answer.unread:
                    await send(
                        {"type": "http.response.body", "body": content or b"", "more_body": True}
                    )
                    await discard_body(receive, self.service.limits)
                if answer.parts is None:
                    rest = b"" if answer.unread else content or b""
                    await send({"type": "http.response.body", "body": rest})
            if answer.parts is not None and request.exchange is not None:
                await self._send_parts(send, receive, answer.parts, request.exchange)
        except (TimeoutError, ClientGoneError):
            return False
        if request.exchange is not None:
            request.exchange.stages["write"] = time.perf_counter() - start
        return True

    async def _send_parts(
        self, send: Send, receive: Receive, parts: PartsOfAnswer, exchange: Exchange
    ) -> None:
        """Send a streamed answer as events; a failure after its start is the last of them."""
        failed = self.service.metrics.failure
        try:
            with self._cutting():
                async for event in events(parts, receive, exchange.caller.deadline, failed):
                    async with asyncio.timeout(SEND_SECONDS):
                        await send({"type": "http.response.body", "body": event, "more_body": True})
        except RequestError as error:
            event = failure_event(error)
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def _cut_off() -> RequestError:
    return RequestError(
        FailureKind.UNAVAILABLE,
        "the service was ended before this request was answered",
        retry_after=5,
        close=True,
    )


def _noticing(send: Send) -> Send:
    """Send, and notice that the client is gone: uvloop's handle of a closed connection raises."""

    async def sending(message: Any) -> None:
        try:
            await send(message)
        except (OSError, RuntimeError):
            raise ClientGoneError from None

    return sending


async def _first_part(work: Awaitable[HttpAnswer]) -> HttpAnswer:
    """The answer; a streamed one with its first part, so that an early failure has its status."""
    answer = await work
    return answer if answer.parts is None else replace(answer, parts=await begun(answer.parts))


async def _while_connected(work: Awaitable[HttpAnswer], receive: Receive) -> HttpAnswer:
    """The answer; the work of a client that closes its connection is dropped."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGoneError
        return task.result()
    finally:
        for one in (task, gone):
            if not one.done():
                one.cancel()
                with contextlib.suppress(asyncio.CancelledError, RequestError):
                    await one


def _own_timeout(headers: Headers, most: float) -> float:
    """The client's x-timeout in seconds, where it is shorter than that of the service."""
    for name, value in headers:
        if name == b"x-timeout":
            with contextlib.suppress(ValueError):
                given = float(value)
                if 0 < given < most:
                    return given
    return most


def _compute_headers(request: RequestState) -> list[tuple[bytes, bytes]]:
    """TEI's headers, and what was cut."""
    exchange = request.exchange
    if exchange is None or exchange.model is None:
        return []
    figures = {
        b"x-compute-type": b"cpu",
        b"x-compute-characters": exchange.characters,
        b"x-compute-tokens": exchange.tokens,
        b"x-total-time": round(1e3 * (time.perf_counter() - request.start)),
        b"x-tokenization-time": round(1e3 * exchange.stages.get("tokenization", 0.0)),
        b"x-queue-time": round(1e3 * exchange.stages.get("queue", 0.0)),
        b"x-inference-time": round(1e3 * exchange.stages.get("inference", 0.0)),
        b"x-cut-tokens": exchange.cut,
    }
    return [
        (name, value if isinstance(value, bytes) else str(value).encode())
        for name, value in figures.items()
    ]


def _invalid(error: ValidationError) -> RequestError:
    """The first fault of a body by its place; what was sent is not repeated."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"][:4])[:100]
    place = re.sub(r"[^\w.\[\] |,-]", "?", place)
    return RequestError(
        FailureKind.INVALID, f"{place or 'the body'}: {first['msg']}", field=place or None
    )
