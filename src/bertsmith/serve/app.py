"""The ASGI application: from a request to a route, a model and an answer."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from pydantic import ValidationError

from bertsmith.serve.exchange import Exchange
from bertsmith.serve.failures import Dialect, FailureKind, RequestError
from bertsmith.serve.http.body import ClientGoneError, Headers, check_head, parse_json, read_body
from bertsmith.serve.routes import HttpAnswer, RequestForm, Route
from bertsmith.serve.served_model import Caller
from bertsmith.serve.service import ROUTES, Service

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

UNKNOWN = "unknown"  # the label of every path that is not in the table
REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
SEND_SECONDS = 30.0  # for a client to take its answer
MODEL_PREFIX = "/models/"
JSON_TYPES = (b"application/json", b"text/json")


@dataclass(slots=True, kw_only=True)
class _Request:
    """What is known of a request so far, for its answer and its line in the log."""

    start: float
    request_id: str
    route: Route | None = None
    label: str = UNKNOWN
    key: str | None = None
    exchange: Exchange | None = None
    named: str | None = None  # the model of the path
    sent: bool = field(default=False)

    @property
    def dialect(self) -> Dialect:
        return "tei" if self.route is None else self.route.dialect


class App:
    """Answers HTTP requests from a service."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = _Request(start=time.perf_counter(), request_id=_request_id(scope["headers"]))
        status = 0
        try:
            answer = await self._answer(scope, receive, request)
            status = answer.status
        except ClientGoneError:
            status = 499  # nobody reads it; the log and the metrics count it
            answer = None
        except RequestError as error:
            self.service.metrics.failure(error.kind.name.lower())
            status = error.kind.status
            answer = HttpAnswer(
                value=error.body(request.dialect), status=status, headers=tuple(error.headers())
            )
        if answer is not None:
            await self._send(send, answer, request)
        self._account(request, status)

    async def _answer(self, scope: Scope, receive: Receive, request: _Request) -> HttpAnswer:
        headers: Headers = scope["headers"]
        check_head(headers, self.service.limits)
        self._find(scope, request)
        if self.service.keys and (request.route is None or request.route.needs_key):
            request.key = self.service.keys.identify(headers)
        route = self._allowed(scope, request)
        if self.service.draining and route.needs_key:
            raise RequestError(FailureKind.UNAVAILABLE, "the service is ending", close=True)
        form = await self._form(route, headers, receive)
        exchange = self._exchange(scope, request, route, form)
        request.exchange = exchange
        exchange.stages["receive"] = time.perf_counter() - request.start
        return await _while_connected(route.handler(exchange, form), receive)

    def _find(self, scope: Scope, request: _Request) -> None:
        """The route of a path: exactly one of the table, or behind /models/NAME."""
        path = scope["path"]
        methods = ROUTES.get(path)
        if methods is None and path.startswith("/v1/models/"):
            request.named = path.removeprefix("/v1/models/")
            methods = ROUTES["/v1/models/{model}"]
        elif methods is None and path.startswith(MODEL_PREFIX):
            name, slash, rest = path.removeprefix(MODEL_PREFIX).partition("/")
            methods = ROUTES.get(slash + rest)
            request.named = name
        if methods is None:
            return
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        request.route = methods.get(method) or next(iter(methods.values()))
        request.label = request.route.path

    def _allowed(self, scope: Scope, request: _Request) -> Route:
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

    async def _form(self, route: Route, headers: Headers, receive: Receive) -> RequestForm | None:
        body = await read_body(headers, receive, self.service.limits)
        if route.form is None:
            return None
        declared = [value for name, value in headers if name == b"content-type"]
        kind = declared[0].split(b";")[0].strip().lower() if declared else JSON_TYPES[0]
        if kind not in JSON_TYPES:
            raise RequestError(FailureKind.MEDIA_TYPE, "send the body as application/json")
        try:
            return route.form.model_validate(parse_json(body, self.service.limits))
        except ValidationError as error:
            raise _invalid(error) from None

    def _exchange(
        self, scope: Scope, request: _Request, route: Route, form: RequestForm | None
    ) -> Exchange:
        seconds = _own_timeout(scope["headers"], self.service.limits.deadline)
        address = scope["client"][0] if scope.get("client") else "unknown"
        taken = time.perf_counter() - request.start
        caller = Caller(
            client=request.key or address,
            deadline=asyncio.get_running_loop().time() - taken + seconds,
        )
        named = getattr(form, "model", None) or request.named
        model = None if route.ability is None else self.service.find(route.ability, named)
        return Exchange(
            service=self.service, caller=caller, request_id=request.request_id, model=model
        )

    async def _send(self, send: Send, answer: HttpAnswer, request: _Request) -> None:
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
        # A client that does not take its answer must not hold the task for ever.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SEND_SECONDS if answer.parts is None else None):
                await send(
                    {"type": "http.response.start", "status": answer.status, "headers": headers}
                )
                if answer.parts is not None:
                    async for part in answer.parts:
                        event = b"data: " + orjson.dumps(part) + b"\n\n"
                        await send({"type": "http.response.body", "body": event, "more_body": True})
                await send({"type": "http.response.body", "body": content or b""})
        if request.exchange is not None:
            request.exchange.stages["write"] = time.perf_counter() - start

    def _account(self, request: _Request, status: int) -> None:
        seconds = time.perf_counter() - request.start
        self.service.metrics.request(request.label, status, seconds)
        record: dict[str, Any] = {
            "time": time.time(),
            "id": request.request_id,
            "route": request.label,
            "status": status,
            "ms": round(1e3 * seconds, 3),
        }
        if request.key is not None:
            record["key"] = request.key
        if (exchange := request.exchange) is not None:
            for stage, spent in exchange.stages.items():
                self.service.metrics.stage(stage, spent)
                record[f"{stage}_ms"] = round(1e3 * spent, 3)
            record |= {"texts": exchange.texts, "tokens": exchange.tokens, "cut": exchange.cut}
            if exchange.model is not None:
                record["model"] = exchange.model.name
        self.service.access_log(record)


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


def _request_id(headers: Headers) -> str:
    """The client's own, if it is a plain word, else a new one."""
    for name, value in headers:
        if name == b"x-request-id":
            given = value.decode("latin-1")
            if REQUEST_ID.fullmatch(given):
                return given
    return secrets.token_hex(8)


def _own_timeout(headers: Headers, most: float) -> float:
    """The client's x-timeout in seconds, where it is shorter than that of the service."""
    for name, value in headers:
        if name == b"x-timeout":
            with contextlib.suppress(ValueError):
                given = float(value)
                if 0 < given < most:
                    return given
    return most


def _compute_headers(request: _Request) -> list[tuple[bytes, bytes]]:
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
