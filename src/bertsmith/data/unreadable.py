"""What is said of a file that cannot be read."""

from __future__ import annotations

import difflib
import itertools
from pathlib import Path

from bertsmith.errors import InputFileError

LOOKED_AT = 10_000  # names of a folder


def unreadable(path: Path, fault: OSError) -> InputFileError:
    """The error; where there is no such file, with the nearest name beside it."""
    return InputFileError(f"cannot read {path}: {fault.strerror or fault}{_hint(path, fault)}")


def _hint(path: Path, fault: OSError) -> str:
    if not isinstance(fault, FileNotFoundError):
        return ""
    try:
        names = [one.name for one in itertools.islice(path.parent.iterdir(), LOOKED_AT)]
    except OSError:
        return ""  # the folder is not there either, or hidden
    near = difflib.get_close_matches(path.name, sorted(names), n=1)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""
