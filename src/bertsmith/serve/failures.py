"""Failures of a request: one kind each, with its status and its name in every dialect.

Messages name the field and the limit. They never repeat a text, a key or a path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

Dialect = Literal["tei", "openai"]
_PATH = re.compile(r"(?<![\w./<])/(?:[^\s/:'\",;]+/)+[^\s:'\",;]*")


def without_paths(message: str) -> str:
    """A message whose absolute paths are left out: clients and logs have no use for them."""
    return _PATH.sub("(a file of the service)", message)


class FailureKind(Enum):
    """Status, TEI's error_type, OpenAI's type."""

    MALFORMED = (400, "Validation", "invalid_request_error")
    EMPTY = (400, "Empty", "invalid_request_error")
    UNAUTHORIZED = (401, "Validation", "authentication_error")
    FORBIDDEN = (403, "Validation", "permission_error")
    NOT_FOUND = (404, "Validation", "invalid_request_error")
    METHOD = (405, "Validation", "invalid_request_error")
    TIME_TO_RECEIVE = (408, "Validation", "timeout")
    TOO_LARGE = (413, "Validation", "invalid_request_error")
    MEDIA_TYPE = (415, "Validation", "invalid_request_error")
    INVALID = (422, "Validation", "invalid_request_error")
    TOKENS = (422, "Tokenizer", "invalid_request_error")
    BACKEND = (424, "Backend", "server_error")
    OVERLOADED = (429, "Overloaded", "rate_limit_error")
    HEADERS = (431, "Validation", "invalid_request_error")
    INTERNAL = (500, "Backend", "server_error")
    UNAVAILABLE = (503, "Unhealthy", "server_error")
    DEADLINE = (503, "Unhealthy", "timeout")

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.value[0]


@dataclass(eq=False)
class RequestError(Exception):
    """A request that cannot be answered; `field` is the part of the body that is at fault."""

    kind: FailureKind
    message: str
    field: str | None = None
    retry_after: int | None = None  # seconds
    close: bool = False  # the rest of the request is not read: the connection must end

    def __str__(self) -> str:
        return self.message

    def body(self, dialect: Dialect) -> dict[str, Any]:
        """The answer in the form that clients of the route expect."""
        status, error_type, openai_type = self.kind.value
        if dialect == "openai":
            error = {
                "message": self.message,
                "type": openai_type,
                "param": self.field,
                "code": status,
            }
            return {"error": error}
        return {"error": self.message, "error_type": error_type}

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers that belong to the failure."""
        found = []
        if self.retry_after is not None:
            found.append((b"retry-after", str(self.retry_after).encode()))
        if self.kind is FailureKind.UNAUTHORIZED:
            found.append((b"www-authenticate", b"Bearer"))
        if self.close:
            found.append((b"connection", b"close"))
        return found
