"""Every error bertsmith raises on purpose; each names the thing, the place and the way out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

# Of an address of any scheme, also where a Path has lost one of the slashes.
_PASSWORD = re.compile(r"(:/{1,2}[^\s/:@]*:)\S*@|\b((?:ssl)?password=)[^\s&]+", re.IGNORECASE)


def without_passwords(message: str) -> str:
    """A message in which addresses have no password: SCHEME://USER:***@HOST."""
    return _PASSWORD.sub(lambda found: f"{found[1]}***@" if found[1] else f"{found[2]}***", message)


class BertsmithError(Exception):
    """Root of everything raised on purpose; the command line prints it in one line and exits.

    Passwords of addresses in the message are hidden.
    """

    exit_code = 1

    def __init__(self, *parts: object) -> None:
        super().__init__(*(without_passwords(p) if isinstance(p, str) else p for p in parts))


class ConfigError(BertsmithError):
    """A setting, a spec or a config.json that cannot be what the user meant."""

    exit_code = 2


class FolderError(BertsmithError):
    """A model folder that is missing, broken or not understood."""

    exit_code = 2


class UnsafeFileError(FolderError):
    """A file that is refused because reading it could run code or leave its folder."""


class TensorMismatchError(FolderError):
    """Weights whose tensors are missing, left over, misshapen or not finite."""


class TextError(BertsmithError):
    """A text or a tokenizer that cannot be turned into tokens as asked."""

    exit_code = 2


class TooLongError(TextError):
    """A text that would lose tokens although truncation was declared strict."""


class ArgumentError(BertsmithError, ValueError):
    """Values given to an estimator that it cannot take; a ValueError, as callers expect there."""

    exit_code = 2


class InputFileError(BertsmithError):
    """A file of texts that cannot be read as declared: names file, line and remedy."""

    exit_code = 2


class RowsError(InputFileError):
    """Rows of a data file that cannot be used: names the first ones and counts all."""

    def __init__(self, message: str, rejects: Sequence[object], total: int) -> None:
        super().__init__(message)
        self.rejects = tuple(rejects)
        self.total = total


class HardwareError(BertsmithError):
    """A device, a precision or a fast path that this machine does not have."""

    exit_code = 2


class WriteError(BertsmithError):
    """A result that could not be written; whatever stood there before is untouched."""

    exit_code = 74


class TargetExistsError(WriteError):
    """Something else stands where a result is to be written; it is refused before the work."""

    exit_code = 2


class LockedError(WriteError):
    """A folder or an index that another living process works in."""

    exit_code = 73  # EX_CANTCREAT


class DatabaseError(BertsmithError):
    """A database that did not answer in time, or refused; says what is safe."""

    exit_code = 74


class ResumeError(BertsmithError):
    """A resumed run that does not end as the uninterrupted one does."""


class DivergedError(BertsmithError):
    """A loss or a gradient that is not finite; the state before it is safe."""

    exit_code = 65  # EX_DATAERR


class LostRankError(BertsmithError):
    """A rank that did not come to where all must meet; the others end, naming it."""

    exit_code = 69  # EX_UNAVAILABLE


class ServiceError(BertsmithError):
    """A service that cannot be reached, or refuses a request; `status` is that of HTTP, if any."""

    exit_code = 69  # EX_UNAVAILABLE

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class MissingExtraError(BertsmithError):
    """An optional package that this action needs."""

    exit_code = 2

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package {package!r}, which is not installed; "
            f"run: pip install 'bertsmith[{extra}]'"
        )


def check_type(what: str, value: object, *kinds: type) -> None:
    """Refuse an argument of another type than these; `what` is its name in the message."""
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__.replace("NoneType", "None") for kind in kinds)
        raise ConfigError(f"{what} must be {wanted}, not {type(value).__name__}: {value!r:.60}")


def unknown(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """The error for a name that is not in a table, with the nearest names that are."""
    choices = sorted(known)
    near = difflib.get_close_matches(str(name), choices, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(choices)}"
    return ConfigError(f"no {kind} is called {name!r}; {hint}")
