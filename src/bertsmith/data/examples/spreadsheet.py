"""Cells that a spreadsheet would compute: made harmless by an apostrophe, and read back without."""

from __future__ import annotations

import re

_COMPUTED = re.compile(r"'*[=+\-@\t\r]")  # also what is guarded already, so that it comes back
_GUARDED = re.compile(r"'+[=+\-@\t\r]")


def guarded(cell: str) -> str:
    """The cell as a table for spreadsheets has it."""
    return f"'{cell}" if _COMPUTED.match(cell) else cell


def unguarded(cell: str) -> str:
    """What `guarded` was given."""
    return cell[1:] if _GUARDED.match(cell) else cell
