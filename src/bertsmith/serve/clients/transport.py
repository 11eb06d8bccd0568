"""Transport: HTTP requests of the client, with a time limit for each call and with retries."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import SplitResult, urlsplit

from bertsmith.errors import ConfigError, ServiceError, without_passwords
from bertsmith.serve.clients.connection import (
    Allowance,
    BoundedConnection,
    SecureConnection,
    TooMuchError,
)
from bertsmith.serve.clients.shapes import AnswerError, parsed

RETRIED = (429, 503)  # the service is busy, or a worker is being started
FIRST_DELAY, LONGEST_DELAY = 0.1, 10.0  # seconds, where the service names none
PART = 1 << 16  # bytes read at once, so that the time limit is looked at in between
MOST_BODY = 16_000_000  # bytes of an answer
MESSAGE = 300  # characters of the service's own message in an error


@dataclass(frozen=True, slots=True)
class ServiceReply:
    """A finished response."""

    status: int
    headers: Message
    body: bytes | bytearray


class Transport:
    """Connections to one service, kept open between requests; for any number of threads."""

    def __init__(self, url: str, *, key: str | None, timeout: float, retries: int) -> None:
        parts = _address(url)
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._secure, self._host, self._port = (
            parts.scheme == "https",
            str(parts.hostname),
            parts.port,
        )
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            if not key.isascii() or not key.isprintable():
                raise ConfigError("the key must be printable ASCII characters, as the service has")
            self._headers["Authorization"] = f"Bearer {key}"
        self.timeout, self._retries = timeout, retries
        self._idle: list[BoundedConnection] = []
        self._lock = threading.Lock()

    def ask(self, method: str, path: str, value: Any = None) -> Any:
        """The JSON answer to a JSON value; busy answers are retried until the time is over."""
        reply = self._reply(method, path, value)
        with self.understanding():
            return parsed(reply.body)

    @contextlib.contextmanager
    def understanding(self) -> Iterator[None]:
        """Around the use of an answer, which may be of another form than the service's."""
        try:
            yield
        except AnswerError as error:
            raise ServiceError(
                f"{self.url} does not answer in the form of this service: {visible(str(error))}; "
                "correct the address, or use a service of the same version"
            ) from None

    def events(self, path: str, value: Any) -> Iterator[Any]:
        """The events of a streamed answer; an event with an error raises."""
        end = time.monotonic() + self.timeout
        connection, response = self._started("POST", path, value, end)
        try:
            if response.status != 200:
                body = bytearray(response.read(PART))
                raise self._refused(ServiceReply(response.status, response.headers, body))
            rest = b""
            while part := response.read1(PART):
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: "):
                        yield self._event(line[6:])
            if rest or response.length:
                raise http.client.IncompleteRead(rest)
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()

    def _event(self, line: bytes) -> Any:
        with self.understanding():
            event = parsed(line)
            if not isinstance(event, dict):
                raise AnswerError("an event must be an object")
        if "error" in event:
            raise ServiceError(f"{self.url}: {visible(str(event['error']))}")
        return event

    def close(self) -> None:
        """End the connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _reply(self, method: str, path: str, value: Any) -> ServiceReply:
        end = time.monotonic() + self.timeout
        for number in range(self._retries + 1):
            failure: ServiceError
            wanted = 0.0
            try:
                reply = self._once(method, path, value, end)
            except (OSError, http.client.HTTPException) as error:
                failure = self._unreachable(error)
                failure.__cause__ = error
            else:
                if 200 <= reply.status < 300:
                    return reply
                failure = self._refused(reply)
                if reply.status not in RETRIED:
                    raise failure
                wanted = _retry_after(reply.headers)
            backoff = min(LONGEST_DELAY, FIRST_DELAY * 2**number)
            # At random below it, so that clients that failed together do not return together.
            delay = max(wanted, backoff * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            if number == self._retries or time.monotonic() + delay > end:
                raise failure
            time.sleep(delay)
        raise AssertionError("the last attempt returns or raises")

    def _once(self, method: str, path: str, value: Any, end: float) -> ServiceReply:
        connection, response = self._started(method, path, value, end)
        try:
            body = bytearray()
            while part := response.read1(PART):
                body += part
            if response.length:  # read1 says nothing of bytes that are missing
                raise http.client.IncompleteRead(b"", response.length)
        except BaseException:
            connection.close()
            raise
        response.close()  # read1 leaves it open, and the connection could not be used again
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return ServiceReply(response.status, response.headers, body)

    def _started(
        self, method: str, path: str, value: Any, end: float
    ) -> tuple[BoundedConnection, http.client.HTTPResponse]:
        """A connection whose answer has begun; an idle one that was closed meanwhile is left."""
        body = None if value is None else json.dumps(value, ensure_ascii=False).encode()
        while True:
            with self._lock:
                reused = bool(self._idle)
                connection = self._idle.pop() if reused else self._new()
            allowance = Allowance(end)
            connection.allow(allowance)
            try:
                connection.request(method, self._prefix + path, body, self._headers)
                response = connection.getresponse()
                allowance.left = MOST_BODY
                return connection, response
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                closed = isinstance(error, ConnectionError | http.client.BadStatusLine)
                if not (reused and closed):
                    raise

    def _new(self) -> BoundedConnection:
        kind = SecureConnection if self._secure else BoundedConnection
        return kind(self._host, self._port)

    def _late(self) -> ServiceError:
        return ServiceError(
            f"{self.url} did not answer within {self.timeout:g} s: send less at once, or raise "
            "the client's timeout"
        )

    def _unreachable(self, error: Exception) -> ServiceError:
        if isinstance(error, TimeoutError):
            return self._late()
        if isinstance(error, socket.gaierror):
            return ServiceError(f"{self.url}: no machine has this name: correct the address")
        if isinstance(error, ssl.SSLError):
            return ServiceError(
                f"{self.url}: no secure connection ({type(error).__name__}): correct the "
                "certificate, or write http:// where the service has none"
            )
        if isinstance(error, TooMuchError):
            return ServiceError(
                f"{self.url} answers with more than {MOST_BODY:,} bytes: request less at once, or "
                "correct the address"
            )
        if isinstance(error, http.client.HTTPException):
            return ServiceError(
                f"{self.url} does not answer as an HTTP service does: correct the port"
            )
        return ServiceError(
            f"{self.url} cannot be reached ({type(error).__name__}): start it with `bertsmith "
            "serve`, or correct the address and the port"
        )

    def _refused(self, reply: ServiceReply) -> ServiceError:
        """What the service says, with the way out where it is the client's to go."""
        try:
            said = parsed(reply.body)["error"]
            said = said["message"] if isinstance(said, dict) else said
        except (ValueError, KeyError, TypeError):
            said = None
        if not isinstance(said, str):
            said = "not an answer of this service"
        ways = {
            401: "; give the service's key as Client(url, key=...)",
            404: "; client.models() lists the models and what they can do",
            429: f" (after {self._retries + 1} attempts)",
            503: f" (after {self._retries + 1} attempts)",
        }
        way = ways.get(reply.status, "")
        return ServiceError(
            f"{self.url} answers {reply.status}: {visible(said)}{way}", status=reply.status
        )


def _address(url: str) -> SplitResult:
    """The parts of an address that a request can be sent to."""
    try:
        parts = urlsplit(url)
        port = parts.port  # reading it checks it
        (parts.hostname or "").encode("idna")
    except ValueError:
        parts, port = urlsplit(""), None
    plain = url.isascii() and url.isprintable() and " " not in url
    if (
        not plain
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.username is not None
        or port == 0
    ):
        raise ConfigError(
            f"{without_passwords(url)!r:.100} is no address of a service: give one as "
            "http://127.0.0.1:8080; a key is given as Client(url, key=...)"
        )
    return parts


def visible(text: str) -> str:
    """What a service says, as it can be shown: not too long, and nothing that drives a terminal."""
    shown = text[:MESSAGE]
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in shown)


def _retry_after(headers: Message) -> float:
    """The seconds that the service asks to wait; dates and nonsense are none."""
    given = headers.get("Retry-After", "")
    return float(given) if given.isascii() and given.isdigit() else 0.0
