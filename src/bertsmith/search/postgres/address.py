"""The address of an index in a database: postgresql://USER@HOST/DATABASE?table=NAME.

Everything but `table` and `wait` is libpq's, which also reads PGHOST, PGPASSWORD, ~/.pgpass and the
like. A password may stand in the address and is never part of a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from bertsmith.errors import ConfigError

SCHEMES = ("postgresql:/", "postgres:/")  # with one slash: a Path has lost the other
WAIT = 60.0  # seconds
LONGEST_WAIT = 86_400.0
EXAMPLE = "postgresql://USER@HOST/DATABASE?table=NAME"
_TABLE = re.compile(r"[a-z][a-z0-9_]{0,47}")  # names of up to 63 bytes are derived from it
_RESERVED = ("pg_", "bertsmith_")
_HOST = r"(?:\[[0-9a-fA-F:.]+\]|(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})*)(?::[0-9]{1,5})?"
_HOSTS = re.compile(rf"{_HOST}(?:,{_HOST})*")
_PARAMETER = re.compile(r"[a-z_]+")
_SECRET = ("password", "sslpassword")


@dataclass(frozen=True, slots=True)
class Address:
    """A database and the name of an index in it."""

    conninfo: str = field(repr=False)
    """What libpq connects to."""
    table: str
    shown: str
    """The address without passwords and parameters, for messages."""
    wait: float = WAIT
    """How many seconds a server may be away before the work ends."""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, text: str) -> Address:
        """An address as it was given; errors name the fault without repeating it."""
        scheme, slashes, _ = text.partition("://")
        parts = urlsplit(text)
        user, _, hosts = parts.netloc.rpartition("@")
        parameters = parse_qsl(parts.query, keep_blank_values=True)
        if (
            not slashes
            or scheme not in ("postgresql", "postgres")
            or parts.fragment
            or "@" in parts.path
            or not _HOSTS.fullmatch(hosts)
            or not all(_PARAMETER.fullmatch(name) for name, _ in parameters)
        ):
            raise ConfigError(
                f"the address of the database is not of the form {EXAMPLE}; give it as text (not "
                "as a Path) and write special characters of a password as %40 and the like"
            )
        own = {name: value for name, value in parameters if name in ("table", "wait")}
        rest = [(name, value) for name, value in parameters if name not in own]
        table = _checked_table(own.get("table", ""))
        name, _, password = user.partition(":")
        query = urlencode(rest, quote_via=quote)
        conninfo = f"postgresql://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")
        shown = f"postgresql://{name}{'@' if name else ''}{hosts}{parts.path}?table={table}"
        known = [password, unquote(password), *(value for key, value in rest if key in _SECRET)]
        return cls(conninfo, table, shown, _seconds(own.get("wait")), tuple(filter(None, known)))

    def clean(self, text: str) -> str:
        """A message of a library on one line, without passwords."""
        line = " ".join(text.split())
        for secret in self.secrets:
            line = line.replace(secret, "***")
        return line


def is_address(place: str | Path) -> bool:
    """Whether a place is a database, not a folder."""
    return str(place).startswith(SCHEMES)


def _checked_table(name: str) -> str:
    if not name:
        raise ConfigError(f"the address of the database names no table; write {EXAMPLE}")
    if not _TABLE.fullmatch(name) or name.startswith(_RESERVED):
        raise ConfigError(
            f"{name!r} cannot be the name of a table: use a to z, 0 to 9 and _, at most 48 "
            "characters, a letter first, not pg_ or bertsmith_ at the start"
        )
    return name


def _seconds(text: str | None) -> float:
    if text is None:
        return WAIT
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= LONGEST_WAIT:
        raise ConfigError(f"wait is a number of seconds from 0 to 86400, not {text!r}")
    return value
