"""What is wrong with the end of a command: its code, its time, its message."""

from __future__ import annotations

import re
from typing import Any

from fuzz_cases import Case

from bertsmith.cli.shared.console import printable

DOCUMENTED = {0, 2, 65, 69, 71, 73, 74, 75, 130, 141, 143}
BROKEN = ("Traceback (most recent", "this is a bug", "escaped: ", "Exception ignored")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
MESSAGE = re.compile(r"^(error|Error): \S", re.MULTILINE)


def fault_of(case: Case, answer: dict[str, Any]) -> str | None:
    """None when the command ended as documented."""
    code, text = answer["code"], answer["stderr"]
    if answer["late"]:
        return None if case.asks_much and code in (75, 143) else "too slow"
    if code not in DOCUMENTED:
        return f"code {code}"
    if any(one in text for one in BROKEN):
        return "a traceback"
    if CONTROL.search(text):
        return "control characters on the terminal"
    if code in (0, 75, 130, 141, 143) or case.around.stderr == "closed":
        return None
    if len(MESSAGE.findall(text)) != 1:
        return "no message, or several"
    if not any(shown in text for name in case.names for shown in _spellings(name)):
        return "the message does not name the thing"
    return None


def _spellings(name: str) -> set[str]:
    """A name as a message may have it: as it is, escaped, or its beginning."""
    bare = name.rstrip("/")
    found = {name, repr(name)[1:-1], ascii(name)[1:-1], printable(name), bare.rpartition("/")[2]}
    found |= {one[:40] for one in found}
    return {one for one in found if one} or {""}
