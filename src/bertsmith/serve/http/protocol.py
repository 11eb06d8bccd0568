"""A connection of uvicorn that takes one request at a time, under the limits that uvicorn lacks.

uvicorn parses whatever a connection sends, also requests that wait behind one that is not answered
yet, and goes on reading meanwhile: pipelined requests fill the memory. Its time limit counts
between requests only and begins again with every byte. Here the bytes behind a request stay as
they are until it is answered, and nothing more is read.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.http.body import DISCARD_SECONDS, head_too_large
from bertsmith.serve.limits import Limits

BLANK_LINE = re.compile(rb"\n\r?\n")
LINE_END = re.compile(rb"\r?\n")
AHEAD_BYTES = 16_000_000  # of all connections, received behind requests that are not answered
TURN_SECONDS = 0.002  # between the requests sent ahead, of all connections
# The body of the answer to a request that is refused before it is one; it is counted and logged.
Refused = Callable[[bytes, RequestError], bytes]


class HeldFlow(FlowControl):
    """Reading stays paused while `held`, whoever waits for more of the request."""

    held = False

    def resume_reading(self) -> None:
        """Go on reading, unless bytes wait that were not parsed yet."""
        if not self.held:
            super().resume_reading()


class Ahead:
    """What all connections have sent ahead of the answers: its bytes, and when it has its turn."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._turn = 0.0

    def take(self, size: int) -> bool:
        """Whether there is room for so many more."""
        if self.held + size > self.limit:
            return False
        self.held += size
        return True

    def give(self, size: int) -> None:
        """They were parsed, or dropped."""
        self.held -= size

    def turn(self, now: float) -> float:
        """When one of the requests sent ahead may begin; who waits for answers goes first."""
        self._turn = max(now, self._turn + TURN_SECONDS)
        return self._turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What the connections of a service share."""

    limits: Limits
    refused: Refused
    ahead: Ahead = field(default_factory=lambda: Ahead(AHEAD_BYTES))


class GuardedProtocol(HttpToolsProtocol):
    """One connection under the limits of its gate."""

    gate: ClassVar[Gate]

    flow: HeldFlow
    url = b""
    _timer: asyncio.TimerHandle | None = None
    _head = 0  # bytes of an incomplete head
    _in_body = False  # from a complete head to the end of the message
    _left = 0  # bytes of a body of known length
    _skipped = 0  # bytes of a body whose request is answered already
    _rest = b""  # received, with the bytes behind the request that is being answered
    _rest_at = 0  # where those begin
    _ended = False  # what comes is read and dropped

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; of too many, one of the client that has most is closed."""
        super().connection_made(transport)
        self.flow = HeldFlow(transport)
        if len(self.connections) > self.gate.limits.connections:
            self.gate.refused(b"", RequestError(FailureKind.UNAVAILABLE, "too many connections"))
            self._surplus().transport.abort()
        if not transport.is_closing():
            self._arm(self.gate.limits.head_seconds, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._disarm()
        self._drop_rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what belongs to this request, keep the rest."""
        if self._ended or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        before = self._rest[self._rest_at :]
        self._drop_rest()
        self._parse(before + data)

    def eof_received(self) -> None:
        """Nothing more comes; a request that was refused has been answered."""
        if self._ended:
            self.transport.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head; those behind a body in chunks are dropped."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._disarm()
        self._head = self._skipped = 0
        self._in_body = True
        lengths = [value for name, value in self.headers if name == b"content-length"]
        self._left = int(lengths[0]) if lengths and lengths[0].isdigit() else 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body, perhaps of one that nobody reads any more."""
        self._left -= len(body)
        if self.cycle.response_complete:
            self._skipped += len(body)
            if self._skipped > self.gate.limits.body_bytes:
                self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there."""
        self._in_body = False
        self.url = b""
        if self.cycle.response_complete:
            self._disarm()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The next request may come, when the body of this one is through."""
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self._in_body:
            if self.expect_100_continue:  # whether its body comes is not known
                self.transport.close()
            self._arm(self.gate.limits.body_seconds, self.transport.close)
        if self._rest:
            self.loop.call_at(self.gate.ahead.turn(self.loop.time()), self._go_on)

    def _go_on(self) -> None:
        if self._rest and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            rest, at = self._rest, self._rest_at
            self._drop_rest()
            self._parse(rest, at)

    def _parse(self, data: bytes, at: int = 0) -> None:
        """Feed the parser, piece by piece, up to the end of one request."""
        view = memoryview(data)
        while at < len(data) and not (self._ended or self.transport.is_closing()):
            if self._is_answering():
                self._keep(data, at)
                return
            end = self._end_of_piece(data, at)
            if self._in_body:
                self._feed(view[at:end])
            else:
                self._arm(self.gate.limits.head_seconds, self._late)  # for blank lines, too
                room = self.gate.limits.header_bytes - self._head
                self._head += end - at
                self._feed(view[at : min(end, at + room)])
                if end - at > room and not self._ended:
                    self._refuse(head_too_large(self.gate.limits))
            at = end
        self.flow.held = False
        if not self._is_answering():
            self.flow.resume_reading()

    def _is_answering(self) -> bool:
        """Whether a whole request waits for its answer."""
        return self.cycle is not None and not self._in_body and not self.cycle.response_complete

    def _end_of_piece(self, data: bytes, at: int) -> int:
        """Where at most one request ends: heads and bodies in chunks end with a blank line."""
        if self._in_body and self._left > 0:
            return min(len(data), at + self._left)
        found = LINE_END.match(data, at) or BLANK_LINE.search(data, at)
        return found.end() if found else len(data)

    def _feed(self, piece: memoryview) -> None:
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            # It is answered as any other request, and the last one: the client wants to go on in
            # another protocol.
            self.cycle.keep_alive = False
            self._ended = True
        except httptools.HttpParserError:
            self._refuse(
                RequestError(FailureKind.MALFORMED, "this is no request of HTTP/1.1", close=True)
            )

    def _keep(self, data: bytes, at: int) -> None:
        """Leave the rest as it is, and read no more, until the request is answered."""
        if not self.gate.ahead.take(len(data)):
            self.cycle.keep_alive = False
            self._ended = True
            return
        self._rest, self._rest_at = data, at
        self.flow.held = True
        self.flow.pause_reading()

    def _drop_rest(self) -> None:
        self.gate.ahead.give(len(self._rest))
        self._rest, self._rest_at = b"", 0

    def _late(self) -> None:
        failure = RequestError(
            FailureKind.TIME_TO_RECEIVE,
            f"the head of the request did not arrive within {self.gate.limits.head_seconds:g} s",
            close=True,
        )
        if self._head:
            self._refuse(failure)
        else:
            self.transport.close()

    def _refuse(self, failure: RequestError) -> None:
        """Answer and end; the client may go on sending for a moment, or would lose the answer."""
        self._disarm()
        self._ended = True
        body = self.gate.refused(self.url, failure)
        if self._in_body and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.close()
                return
        fields = [*failure.headers(), (b"content-type", b"application/json")]
        fields.append((b"content-length", b"%d" % len(body)))
        lines = b"".join(b"%s: %s\r\n" % field for field in fields)
        self.transport.write(STATUS_LINE[failure.kind.status] + lines + b"\r\n" + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(DISCARD_SECONDS, self.transport.close)

    def _surplus(self) -> GuardedProtocol:
        """The connection to close of too many: the new one, or an idle one of a greedier client."""
        everyone = [one for one in self.connections if isinstance(one, GuardedProtocol)]
        counts = Counter(one.client and one.client[0] for one in everyone)
        most = max(counts.values())
        if counts[self.client and self.client[0]] == most:
            return self
        greedy = (one for one in everyone if counts[one.client and one.client[0]] == most)
        return next((one for one in greedy if one._is_idle()), self)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _arm(self, seconds: float, late: Callable[[], None]) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(seconds, late)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def guarded_protocol(limits: Limits, refused: Refused) -> type[GuardedProtocol]:
    """The class of connections under these limits, as uvicorn's `http` setting takes it."""
    gate = Gate(limits=limits, refused=refused)
    return type("GuardedProtocol", (GuardedProtocol,), {"gate": gate})
