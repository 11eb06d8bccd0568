"""What several ranks do as one: an action that fails on any of them fails on all, alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TypeVar

from bertsmith.errors import BertsmithError
from bertsmith.training.execution.ranks import Ranks

Result = TypeVar("Result")
_PACKED = 6  # bytes of text in one number: a float64 counts exactly up to 2**53
_LONGEST = 2_000  # characters of a message that travel


def together(ranks: Ranks, action: Callable[[], Result]) -> Result:
    """Do something on every rank, without collective calls; if it fails on one, all raise that."""
    fault: Exception | None = None
    done: list[Result] = []
    try:
        done.append(action())
    except Exception as error:  # raised again below, once all ranks know
        fault = error
    if ranks.any(fault is not None):
        cause = _first_fault(ranks, fault)
        raise fault or cause
    return done[0]


def on_first(ranks: Ranks, action: Callable[[], Result]) -> Result | None:
    """Do something on the first rank only; if it fails there, all ranks fail."""
    return together(ranks, lambda: action() if ranks.is_first else None)


def first_then_others(ranks: Ranks, action: Callable[[], Result]) -> Result:
    """Do something on the first rank, then on the others, which see the files that it wrote."""
    done = on_first(ranks, lambda: [action()])
    return together(ranks, lambda: done[0] if done else action())


def gather_text(ranks: Ranks, text: str) -> list[str]:
    """Every rank's text, in the order of ranks; numbers travel, never objects."""
    if ranks.world == 1:
        return [text]
    own = text.encode("utf-8", "backslashreplace")
    sizes = ranks.sum_counts(
        {str(rank): float(len(own) if rank == ranks.rank else 0) for rank in range(ranks.world)}
    )
    packed = [own[at : at + _PACKED] for at in range(0, len(own), _PACKED)]
    numbers = {}
    for rank in range(ranks.world):
        for place in range(-(-int(sizes[str(rank)]) // _PACKED)):
            mine = packed[place] if rank == ranks.rank else b""
            numbers[f"{rank}:{place}"] = float(int.from_bytes(mine, "big"))
    sums = ranks.sum_counts(numbers)
    return [_unpacked(sums, rank, int(sizes[str(rank)])) for rank in range(ranks.world)]


def _unpacked(sums: dict[str, float], rank: int, size: int) -> str:
    data = bytearray()
    for place in range(-(-size // _PACKED)):
        data += int(sums[f"{rank}:{place}"]).to_bytes(min(_PACKED, size - len(data)), "big")
    return data.decode("utf-8")


def _first_fault(ranks: Ranks, own: Exception | None) -> BertsmithError:
    """The fault of the lowest rank that has one, raised again where it did not happen."""
    message = "" if own is None else json.dumps([type(own).__name__, str(own)[:_LONGEST]])
    for rank, text in enumerate(gather_text(ranks, message)):
        if text:
            kind, reason = json.loads(text)
            return _kinds().get(kind, BertsmithError)(f"rank {rank} failed: {reason}")
    return BertsmithError("a rank failed without a message")


def _kinds() -> dict[str, type[BertsmithError]]:
    """Every error that needs nothing but a message, by name."""
    return {kind.__name__: kind for kind in _below(BertsmithError) if "__init__" not in vars(kind)}


def _below(kind: type[BertsmithError]) -> Iterator[type[BertsmithError]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from _below(inner)
