"""Route: a line of the table that routing, OpenAPI, keys and metric labels are made from."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from bertsmith.serve.failures import Dialect

if TYPE_CHECKING:
    from bertsmith.serve.exchange import Exchange


PartsOfAnswer = AsyncGenerator[dict[str, Any], None]


MODEL_PREFIX = "/models/"
OPENAI_PREFIX = "/v1/"


class RequestForm(BaseModel):
    """The body of a request: strict, finite; unknown fields are refused by name."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What goes back: a JSON value, bytes of another type, or parts as server-sent events."""

    value: Any = None
    content: bytes | None = None
    content_type: bytes = b"application/json"
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    parts: PartsOfAnswer | None = None
    unread: bool = False  # the rest of the request was not read, and the connection ends


Handler = Callable[["Exchange", Any], Awaitable[HttpAnswer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How one path is answered.

    `ability` is what the model must be able to do, None: no model is needed. `examples` are bodies
    that work for a model with the ability; tests send them.
    """

    path: str
    handler: Handler
    summary: str
    method: Literal["GET", "POST"] = "POST"
    form: type[RequestForm] | None = None
    ability: str | None = None
    dialect: Dialect = "tei"
    needs_key: bool = True
    examples: tuple[Mapping[str, Any], ...] = field(default=())


def table(*groups: tuple[Route, ...]) -> dict[str, dict[str, Route]]:
    """Routes by path and method; a path that is named twice is a fault of the program."""
    found: dict[str, dict[str, Route]] = {}
    for group in groups:
        for route in group:
            methods = found.setdefault(route.path, {})
            if route.method in methods:
                raise ValueError(f"{route.method} {route.path} stands in the table twice")
            methods[route.method] = route
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRoute:
    """What a path names: a route of the table or none, and perhaps a model."""

    route: Route | None
    model: str | None = None
    dialect: Dialect = "tei"


def find_route(routes: Mapping[str, Mapping[str, Route]], path: str, method: str) -> FoundRoute:
    """The route of a path: exactly one of the table, or behind /models/NAME."""
    methods, model = routes.get(path), None
    if methods is None and path.startswith("/v1/models/"):
        model = path.removeprefix("/v1/models/")
        methods = routes["/v1/models/{model}"]
    elif methods is None and path.startswith(MODEL_PREFIX):
        model, slash, rest = path.removeprefix(MODEL_PREFIX).partition("/")
        methods = routes.get(slash + rest)
    if methods is None:
        dialect: Dialect = "openai" if path.startswith(OPENAI_PREFIX) else "tei"
        return FoundRoute(route=None, model=model, dialect=dialect)
    route = methods.get("GET" if method == "HEAD" else method) or next(iter(methods.values()))
    return FoundRoute(route=route, model=model, dialect=route.dialect)
