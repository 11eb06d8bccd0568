"""A connection of the client: all that it sends and reads ends by a deadline and has a bound.

The time limit of a socket is for one call: a service that sends a line each second, or endless
answers of status 100, would hold a client for ever.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_HEAD = 65_536  # bytes of a head, with all that precede it with status 100
PART = 1 << 16  # bytes sent at once


class TooMuchError(http.client.HTTPException):
    """More bytes came than any answer of the service has."""


class Allowance:
    """Until when a request may take, and how many bytes may still come."""

    def __init__(self, end: float) -> None:
        self.end = end
        self.left = MOST_HEAD

    def seconds(self) -> float:
        """The time that is left; none is an error."""
        seconds = self.end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds


class _BoundedStream(io.RawIOBase):
    """What comes through a socket, within an allowance."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, allowance: Allowance) -> None:
        self._raw, self._socket, self._allowance = raw, sock, allowance

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read once."""
        if self._allowance.left <= 0:
            raise TooMuchError
        self._socket.settimeout(self._allowance.seconds())
        count = cast(Any, self._raw).readinto(buffer) or 0
        self._allowance.left -= count
        return int(count)

    def close(self) -> None:
        """Close the stream of the socket, too."""
        self._raw.close()
        super().close()


class _BoundedResponse(http.client.HTTPResponse):
    """An answer that is read within an allowance."""

    def __init__(
        self,
        sock: socket.socket,
        debuglevel: int = 0,
        method: str | None = None,
        url: str | None = None,
        *,
        allowance: Allowance,
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        stream = _BoundedStream(self.fp.detach(), sock, allowance)
        self.fp = io.BufferedReader(stream)


class BoundedConnection(http.client.HTTPConnection):
    """A connection whose requests have an allowance each."""

    allowance = Allowance(0.0)

    def allow(self, allowance: Allowance) -> None:
        """The next request has this allowance."""
        self.allowance = allowance
        bounded = partial(_BoundedResponse, allowance=allowance)
        self.response_class = bounded  # type: ignore[assignment]

    def connect(self) -> None:
        """Connect to the first address of the host that answers in time."""
        self.timeout = self.allowance.seconds()
        self._create_connection = self._first_address
        super().connect()

    def send(self, data: Any) -> None:
        """Send bytes; each part of them waits no longer than the deadline."""
        if self.sock is None:
            self.connect()
        view = memoryview(data)
        for at in range(0, len(view), PART):
            self.sock.settimeout(self.allowance.seconds())
            self.sock.sendall(view[at : at + PART])

    def _first_address(self, address: tuple[str, int], *given: object) -> socket.socket:
        failure = OSError("the host has no address")
        for family, kind, number, _, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            one = socket.socket(family, kind, number)
            try:
                one.settimeout(self.allowance.seconds())
                one.connect(place)
                return one
            except OSError as error:
                one.close()
                failure = error
        raise failure


class SecureConnection(BoundedConnection):
    """The same through TLS."""

    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        """Connect, and agree on a key."""
        super().connect()
        self.sock.settimeout(self.allowance.seconds())
        context = ssl.create_default_context()
        self.sock = context.wrap_socket(self.sock, server_hostname=self.host)
