"""Accounting: every request, refused or not, in the log and the metrics."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import orjson

from bertsmith.serve.exchange import Exchange
from bertsmith.serve.failures import RequestError
from bertsmith.serve.http.body import Headers
from bertsmith.serve.routes import FoundRoute, Route, find_route
from bertsmith.serve.service import ROUTES, Service

UNKNOWN = "unknown"  # the label of every path that is not in the table
REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(slots=True, kw_only=True)
class RequestState:
    """What is known of a request so far, for its answer and its line in the log."""

    start: float
    request_id: str
    client: str = UNKNOWN
    found: FoundRoute = field(default_factory=lambda: FoundRoute(route=None))
    key: str | None = None
    exchange: Exchange | None = None
    held: int = 0  # bytes of its body
    accepted: bool = False  # to be answered also while the service drains

    @property
    def route(self) -> Route | None:
        """The route, where the path names one."""
        return self.found.route

    @property
    def label(self) -> str:
        """The path of the route, for the log and the metrics."""
        return UNKNOWN if self.route is None else self.route.path

    @property
    def caller(self) -> str:
        """Whose share of the service it takes: that of the key, else of the address."""
        return self.key or self.client


def request_id(headers: Headers) -> str:
    """The client's own, if it is a plain word, else a new one."""
    for name, value in headers:
        if name == b"x-request-id":
            given = value.decode("latin-1")
            if REQUEST_ID.fullmatch(given):
                return given
    return secrets.token_hex(8)


def account(service: Service, request: RequestState, status: int) -> None:
    """A request has ended."""
    service.worked = True
    seconds = time.perf_counter() - request.start
    service.metrics.request(request.label, status, seconds)
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
            service.metrics.stage(stage, spent)
            record[f"{stage}_ms"] = round(1e3 * spent, 3)
        record |= {"texts": exchange.texts, "tokens": exchange.tokens, "cut": exchange.cut}
        if exchange.model is not None:
            record["model"] = exchange.model.name
    service.access_log(record)


def refused_body(service: Service, target: bytes, failure: RequestError) -> bytes:
    """The answer to what is no complete request, in the dialect of its path; it is counted, too."""
    path = unquote_to_bytes(target.partition(b"?")[0]).decode("latin-1")
    found = find_route(ROUTES, path, "")
    service.metrics.failure(failure.kind.name.lower())
    request = RequestState(start=time.perf_counter(), request_id=request_id(()), found=found)
    account(service, request, failure.kind.status)
    return orjson.dumps(failure.body(found.dialect))
