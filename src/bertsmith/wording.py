"""How numbers, values and times are put into messages."""

from __future__ import annotations

LONGEST_SHOWN = 40  # characters of a user's text inside a message


def counted(number: float, noun: str, several: str | None = None) -> str:
    """A number with its noun, "1 row" or "2 rows"; `several` is the plural if it is another."""
    digits = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{digits} {noun if number == 1 else several or noun + 's'}"


def shown(value: object) -> str:
    """A value as a message shows it: quoted, and cut when it is long."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "...")


def duration(seconds: float) -> str:
    """Seconds as a readable time."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
