"""Visitors: which names a request may call the service by, and which pages may send it.

A browser sends requests of any page to a service on the same machine. Three things tell them from
those of a program and of the service's own page: the address that the browser believes to talk to
(Host; with DNS rebinding it is the foreign page's), the page that sends (Origin, Sec-Fetch-Site),
and a content type that a page can only send with permission.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bertsmith.errors import ConfigError
from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.http.addresses import is_loopback
from bertsmith.serve.http.body import Headers

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
JSON_TYPES = (b"application/json", b"text/json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitors:
    """`names` are those that Host may have, None: any; `trusted` those of Origin beside Host's."""

    names: frozenset[str] | None = None
    trusted: frozenset[str] = frozenset()

    @classmethod
    def at(cls, host: str, *, has_keys: bool, allowed: Iterable[str] = ()) -> Visitors:
        """Those of a service that listens on `host`.

        A service that only this machine reaches and that wants no key has its own names only:
        another one is that of a page which was rebound to this address. `allowed` are names that a
        proxy passes on; where they are given, they are checked on every address.
        """
        given = frozenset(_checked_name(name) for name in allowed)
        if given or (is_loopback(host) and not has_keys):
            return cls(names=LOCAL_NAMES | given | {host.lower()}, trusted=given)
        return cls()

    def check(self, headers: Headers, *, is_page: bool) -> None:
        """Refuse what a foreign page, or a foreign name, brought here."""
        hosts = _values(headers, b"host")
        if len(hosts) != 1:
            raise RequestError(
                FailureKind.MALFORMED, "exactly one header Host is needed", close=True
            )
        name = _host_name(hosts[0])
        if name is None:
            raise RequestError(FailureKind.MALFORMED, "the header Host names no host", close=True)
        if self.names is not None and name not in self.names:
            raise RequestError(
                FailureKind.FORBIDDEN,
                "this name is none of the service's: call it localhost, or start it with "
                "--allow-host NAME",
                close=True,
            )
        self._check_origin(headers, hosts[0], is_page=is_page)

    def _check_origin(self, headers: Headers, host: bytes, *, is_page: bool) -> None:
        """Refuse the requests of other sites; a link to the page is none."""
        foreign = any(not self._is_own(origin, host) for origin in _values(headers, b"origin"))
        sites = {site.strip().lower() for site in _values(headers, b"sec-fetch-site")}
        follows = (
            is_page
            and _values(headers, b"sec-fetch-mode") == [b"navigate"]
            and _values(headers, b"sec-fetch-dest") == [b"document"]
        )
        if foreign or (b"cross-site" in sites and not follows):
            raise RequestError(
                FailureKind.FORBIDDEN,
                "pages of other sites cannot use this service; a proxy must pass on Host, or the "
                "service be started with --allow-host NAME",
                close=True,
            )

    def _is_own(self, origin: bytes, host: bytes) -> bool:
        scheme, _, place = origin.lower().partition(b"://")
        if scheme not in (b"http", b"https") or not place:
            return False
        return place == host.lower() or _host_name(place) in self.trusted


def check_content(headers: Headers) -> None:
    """Refuse a body that does not say that it is JSON, or that is packed.

    A page of another site can send any other type without being asked for permission.
    """
    if any(value.strip().lower() != b"identity" for value in _values(headers, b"content-encoding")):
        raise RequestError(
            FailureKind.MEDIA_TYPE, "send the body as it is, without Content-Encoding"
        )
    lengths = _values(headers, b"content-length")
    if all(value == b"0" for value in lengths) and not _values(headers, b"transfer-encoding"):
        return  # no body
    kinds = [value.split(b";")[0].strip().lower() for value in _values(headers, b"content-type")]
    if len(kinds) != 1 or kinds[0] not in JSON_TYPES:
        raise RequestError(
            FailureKind.MEDIA_TYPE,
            "send the body as JSON, with the header Content-Type: application/json",
        )


def _values(headers: Headers, wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name == wanted]


def _host_name(host: bytes) -> str | None:
    """The name of `NAME`, `NAME:PORT` or `[ADDRESS]:PORT`, without brackets; None: it is none."""
    if host.startswith(b"["):
        name, bracket, port = host[1:].partition(b"]")
        if not bracket or (port and not port.startswith(b":")):
            return None
        port = port[1:]
    else:
        name, _, port = host.partition(b":")
    text = name.decode("latin-1").lower()
    if not text or not text.isascii() or (port and not port.isdigit()):
        return None
    if any(not (char.isalnum() or char in ".-_:") for char in text):
        return None
    return text


def _checked_name(name: str) -> str:
    address = name.startswith("[") or name.count(":") > 1
    found = _host_name(f"[{name.strip('[]')}]".encode() if address else name.encode())
    if found is None or (not address and ":" in name):
        raise ConfigError(
            f"--allow-host {name!r:.100} is no name of a host: give it without scheme and port, as "
            "models.example.org"
        )
    return found
