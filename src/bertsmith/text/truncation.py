"""Truncation settings, and the number of tokens that each field keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bertsmith.errors import ConfigError, TextError, TooLongError

Keep = Literal["head", "tail", "head+tail"]
KEEPS: tuple[Keep, ...] = ("head", "tail", "head+tail")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """At most `max_length` tokens, special tokens included; the longest field is cut first.

    `keep` is the end of a field that is kept. With "head+tail", `head` tokens come from the front
    and the rest from the end; by default it is a quarter of the room, near the 128 of 510 of Sun et
    al. 2019 (arXiv:1905.05583). `strict` raises TooLongError instead of cutting.
    """

    max_length: int | None = None
    keep: Keep = "head"
    head: int | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        _check_keep(self.keep, self.head)
        if self.max_length is not None:
            _check_count("max_length", self.max_length, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldBudgets(Truncation):
    """A budget of tokens for each field, special tokens not counted (title 50, body 200).

    A budget of None leaves that field whole. `max_length`, if given, then holds for everything
    together, special tokens included.
    """

    budgets: tuple[int | None, ...]

    def __post_init__(self) -> None:
        Truncation.__post_init__(self)
        if not self.budgets:
            raise ConfigError("budgets is empty; give one number of tokens for each field")
        for number, budget in enumerate(self.budgets):
            if budget is not None:
                _check_count(f"budgets[{number}]", budget, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Overlapping windows of `length` tokens (special tokens included), `stride` tokens apart.

    `stride` is the step from the start of one window to the start of the next, as `doc_stride` of
    the published question answering code, so windows overlap by their room minus the stride.
    """

    length: int
    stride: int

    def __post_init__(self) -> None:
        _check_count("length", self.length, 1)
        _check_count("stride", self.stride, 1)

    def starts(self, total: int, room: int) -> list[int]:
        """First token of each window over `total` tokens with `room` tokens per window."""
        if room < 1:
            raise ConfigError(
                f"windows of {self.length} tokens leave no room for text after the special tokens "
                "and the repeated field; make the length larger"
            )
        if self.stride > room:
            raise ConfigError(
                f"a stride of {self.stride} would skip tokens: a window of {self.length} holds "
                f"{room} tokens of text; make the stride at most {room}"
            )
        last = max(total - room, 0)
        return [*range(0, last, self.stride), last] if last else [0]


def shares(totals: Sequence[int], room: int) -> list[int]:
    """Tokens each field may keep when `room` is shared and the longest fields are cut first.

    For two fields this is LongestFirst of the `tokenizers` library, token for token.
    """
    kept = [0] * len(totals)
    order = sorted(range(len(totals)), key=lambda i: totals[i])
    for taken, field in enumerate(order):
        kept[field] = min(totals[field], room // (len(totals) - taken))
        room -= kept[field]
    return kept


def allot(totals: Sequence[int], specials: int, setting: Truncation | None) -> list[int]:
    """Tokens each field keeps under a setting; raises TooLongError when it is strict and cuts."""
    if setting is None:
        return list(totals)
    kept = list(totals)
    if isinstance(setting, FieldBudgets):
        if len(setting.budgets) != len(totals):
            raise ConfigError(
                f"{len(setting.budgets)} budgets were given for {len(totals)} fields; give one each"
            )
        kept = [
            total if budget is None else min(total, budget)
            for total, budget in zip(totals, setting.budgets, strict=True)
        ]
    if setting.max_length is not None:
        room = room_for_text(setting.max_length, specials)
        if sum(kept) > room:
            kept = shares(kept, room)
    if setting.strict and sum(kept) < sum(totals):
        raise TooLongError(_too_long(totals, kept, specials, setting))
    return kept


def room_for_text(max_length: int, specials: int) -> int:
    """Tokens of text that fit in addition to the special tokens."""
    if max_length < specials:
        raise TextError(
            f"max_length {max_length} is smaller than the {specials} special tokens of every "
            f"encoding; make it at least {specials + 1}"
        )
    return max_length - specials


def ends(keep: Keep, head: int | None, count: int) -> tuple[int, int]:
    """How many of `count` kept tokens come from the front and how many from the end."""
    if keep == "head":
        return count, 0
    if keep == "tail":
        return 0, count
    front = min(count // 4 if head is None else head, count)
    return front, count - front


def _too_long(
    totals: Sequence[int], kept: Sequence[int], specials: int, setting: Truncation
) -> str:
    """The message of a strict refusal, with the numbers of each field."""
    lost = [
        f"field {i} has {total} tokens and may keep {keep}"
        for i, (total, keep) in enumerate(zip(totals, kept, strict=True))
        if keep < total
    ]
    limit = f" (max_length {setting.max_length})" if setting.max_length is not None else ""
    return (
        f"{sum(totals)} tokens and {specials} special tokens do not fit{limit}: {'; '.join(lost)}; "
        "raise the limit, split the text, or allow cutting"
    )


def _check_keep(keep: str, head: int | None) -> None:
    if keep not in KEEPS:
        raise ConfigError(f"keep is {keep!r}; it must be one of {', '.join(KEEPS)}")
    if head is not None:
        if keep != "head+tail":
            raise ConfigError("head is a setting of keep='head+tail' alone; leave it out")
        _check_count("head", head, 0)


def _check_count(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise ConfigError(f"{name} is {value}; it must be at least {least}")
