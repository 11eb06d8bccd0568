"""A connection of uvicorn with the limits it lacks: time and bytes of a request's head.

uvicorn's own time limit counts between requests only and begins again with every byte, so a client
that sends one byte per second holds a connection for ever.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from bertsmith.serve.limits import Limits

_BODIES = {
    408: b'{"error":"the head of the request took too long","error_type":"Validation"}',
    431: b'{"error":"the head of the request is too large","error_type":"Validation"}',
}


class GuardedProtocol(HttpToolsProtocol):
    """One connection under the limits of its class."""

    limits: ClassVar[Limits] = Limits()

    _timer: asyncio.TimerHandle | None = None
    _head = 0  # bytes of an incomplete head
    _answering = False  # from a complete head to the end of the response

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close at once what is one connection too many."""
        if len(self.connections) >= self.limits.connections:
            transport.abort()
            return
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._disarm()
        if self.transport is not None:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head, and the time it takes."""
        if self.transport is None or self.transport.is_closing():
            return
        if not self._answering:
            self._arm()  # also for blank lines, which the parser skips
            self._head += len(data)
        super().data_received(data)
        if not self._answering and self._head > self.limits.header_bytes:
            self._refuse(431)

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._disarm()
        self._head = 0
        self._answering = True
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """The next head may come."""
        self._answering = bool(self.pipeline)
        super().on_response_complete()

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.limits.head_seconds, self._refuse, 408)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int) -> None:
        """Answer, if anything was sent, and close."""
        self._disarm()
        if self.transport.is_closing():
            return
        if self._head:
            body = _BODIES[status]
            self.transport.write(
                STATUS_LINE[status]
                + b"content-type: application/json\r\nconnection: close\r\n"
                + b"content-length: %d\r\n\r\n" % len(body)
                + body
            )
        self.transport.close()


def guarded_protocol(limits: Limits) -> type[GuardedProtocol]:
    """The class of connections under these limits, as uvicorn's `http` setting takes it."""
    return type("GuardedProtocol", (GuardedProtocol,), {"limits": limits})
