"""What is wrong with one record of a file: the place, the reason, the way out."""

from __future__ import annotations

from bertsmith.errors import InputFileError


class BadRowError(Exception):
    """A record that cannot be used; `column` is a number from 1, or a name.

    `line` is set where the fault lies on another line than the one the record begins on, and
    `swallows` where it may have taken in all that follows it.
    """

    def __init__(
        self,
        reason: str,
        advice: str,
        *,
        column: int | str | None = None,
        line: int | None = None,
        swallows: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice
        self.column = column
        self.line = line
        self.swallows = swallows

    def error(self, source: str, line: int) -> InputFileError:
        """The fault as an error of the file, for readers that stop at it."""
        column = "" if self.column is None else f", column {self.column}"
        place = f"{source}, line {self.line or line}{column}"
        return InputFileError(f"{place}: {self.reason}; {self.advice}")


class UnreadableLineError(BadRowError):
    """A line that could not be decoded, or is too long; `raw` shows what stands in it."""

    def __init__(self, column: int, reason: str, advice: str, raw: str) -> None:
        super().__init__(reason, advice, column=column)
        self.raw = raw
