"""API keys: read from a file or the environment, held as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.http.body import Headers

KEY = re.compile(r"[!-~]{16,512}")  # printable ASCII without spaces
SHOWN = 6  # characters of a key's hash in the log
_SCHEME = b"Bearer "


class Keys:
    """The keys that may call; without any, everybody may."""

    def __init__(self, keys: Sequence[str], *, source: str = "keys") -> None:
        """`source` names the file or the variable in errors."""
        for number, key in enumerate(keys, 1):
            if not KEY.fullmatch(key):
                raise ConfigError(
                    f"{source}: key {number} must be 16 to 512 printable ASCII characters without "
                    "spaces; make one with: python -c 'import secrets; "
                    "print(secrets.token_urlsafe(32))'"
                )
        self._hashes = tuple(hashlib.sha256(key.encode()).digest() for key in keys)

    @classmethod
    def from_file(cls, path: Path) -> Keys:
        """One key per line; blank lines and lines that begin with # are skipped."""
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read the keys of {path}: {error}") from error
        keys = [line.strip() for line in lines]
        keys = [key for key in keys if key and not key.startswith("#")]
        if not keys:
            raise ConfigError(f"{path} has no key: write one per line")
        return cls(keys, source=str(path))

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def identify(self, headers: Headers) -> str:
        """The short name of the caller's key, for the log; raises where the key is not right.

        Exactly one header `Authorization: Bearer KEY` is accepted. Every key is compared, whether
        or not one before it was right.
        """
        given = [value for name, value in headers if name == b"authorization"]
        offered = given[0][len(_SCHEME) :] if len(given) == 1 else b""
        well_formed = len(given) == 1 and given[0].startswith(_SCHEME)
        digest = hashlib.sha256(offered).digest()
        matches = [hmac.compare_digest(digest, known) for known in self._hashes]
        if not well_formed or not any(matches):
            raise RequestError(
                FailureKind.UNAUTHORIZED,
                "a key is needed: send exactly one header Authorization: Bearer KEY",
            )
        return digest.hex()[:SHOWN]
