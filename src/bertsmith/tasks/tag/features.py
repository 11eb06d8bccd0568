"""Features of tagging: which token is read for each unit (word or character) of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import TextError
from bertsmith.labeled.example import Example, Tagged, shown_target
from bertsmith.labeled.formats.spans import units_of
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings, encodings
from bertsmith.text.encoding import Encoding, FieldEncoder, Ints

Units = tuple[tuple[int, int], ...]
Pairs = NDArray[np.int64]


def example_units(example: Example) -> Units:
    """The units of the data, else words, with each ideograph and punctuation mark by itself."""
    target = example.target
    if isinstance(target, Tagged):
        return target.units
    return example.units or units_of(example.texts[0])


def tag_features(
    examples: Sequence[Example],
    tokenizer: FieldEncoder,
    lengths: LengthSettings,
    place: Mapping[str, int],
) -> list[Feature]:
    """The passages of each example; every unit is read once, at its first piece.

    Of several windows it is the one where the unit has the most context on its poorer side. `place`
    numbers the labels.
    """
    features: list[Feature] = []
    passages = encodings([example.texts for example in examples], tokenizer, lengths)
    for number, (example, parts) in enumerate(zip(examples, passages, strict=True)):
        units = _checked(example)
        target = _target(example, len(units), place)
        for part, (at, read) in zip(parts, _readings(parts, units), strict=True):
            features.append(
                Feature(
                    encoding=part,
                    example=number,
                    target=None if target is None else target[read],
                    at=at,
                    units=read,
                )
            )
    return features


def first_pieces(encoding: Encoding, units: Pairs) -> Ints:
    """The first token that touches each unit of field 0, -1 if none does: (N, 2) -> (N,)."""
    rows = np.flatnonzero(encoding.fields == 0)
    if not len(rows):
        return np.full(len(units), -1, dtype=np.int32)
    starts, ends = encoding.offsets[rows].T
    # The running maximum passes a border at the same token as the ends do, and is sorted.
    token = np.searchsorted(np.maximum.accumulate(ends), units[:, 0], side="right")
    near = np.minimum(token, len(rows) - 1)
    touches = (token < len(rows)) & (starts[near] < units[:, 1])
    return np.where(touches, rows[near], -1).astype(np.int32)


def _readings(parts: Sequence[Encoding], units: Pairs) -> list[tuple[Ints, Ints]]:
    """For each passage the tokens to read and the units they represent."""
    if len(parts) == 1:
        return [_read(first_pieces(parts[0], units), 0)]
    richest = np.full(len(units), -1, dtype=np.int64)
    window = np.full(len(units), -1, dtype=np.int64)
    pieces = []
    for number, part in enumerate(parts):
        near = _reach(part, units)
        tokens = first_pieces(part, units[near])
        context = _context(part, tokens)
        # A window may begin inside a unit: that has no context, and the one before is preferred.
        better = context > richest[near]
        richest[near][better] = context[better]
        window[near][better] = number
        pieces.append((near, tokens))
    return [
        _read(np.where(window[near] == number, tokens, -1), near.start)
        for number, (near, tokens) in enumerate(pieces)
    ]


def _reach(part: Encoding, units: Pairs) -> slice:
    """The units that a window can touch; long texts have many windows, each with few units."""
    offsets = part.offsets[part.fields == 0]
    if not len(offsets):
        return slice(0, 0)
    low = int(np.searchsorted(units[:, 1], offsets[:, 0].min(), side="right"))
    high = int(np.searchsorted(units[:, 0], offsets[:, 1].max(), side="left"))
    return slice(low, max(low, high))


def _context(part: Encoding, pieces: Ints) -> NDArray[np.int64]:
    """Tokens of text on the poorer side of each piece, -1 where there is no piece."""
    rows = np.flatnonzero(part.fields == 0)
    if not len(rows):
        return np.full(len(pieces), -1, dtype=np.int64)
    poorer = np.minimum(pieces - rows[0], rows[-1] - pieces)
    return np.where(pieces < 0, -1, poorer).astype(np.int64)


def _read(pieces: Ints, start: int) -> tuple[Ints, Ints]:
    read = np.flatnonzero(pieces >= 0)
    return pieces[read].astype(np.int32), (read + start).astype(np.int32)


def _checked(example: Example) -> Pairs:
    """The units as (N, 2), in order and inside the text."""
    units = np.array(example_units(example), dtype=np.int64).reshape(-1, 2)
    borders = units.reshape(-1)
    inside = not len(borders) or (borders[0] >= 0 and borders[-1] <= len(example.texts[0]))
    if not inside or (np.diff(borders) < 0).any():
        raise TextError(
            f"{example.place}: the units overlap, are out of order or leave "
            f"the text of {len(example.texts[0])} characters; give (start, end) from left to right"
        )
    return units


def _target(example: Example, units: int, place: Mapping[str, int]) -> NDArray[np.int64] | None:
    """(N,) numbers of the tags; None without tags."""
    target = example.target
    if target is None or (isinstance(target, Tagged) and units and not target.tags):
        return None
    if not isinstance(target, Tagged) or len(target.tags) != units:
        raise TextError(
            f"{example.place}: the target is {shown_target(target)}, not one tag per unit ({units})"
        )
    odd = next((tag for tag in target.tags if tag not in place), None)
    if odd is not None:
        raise TextError(
            f"{example.place}: no label is called {odd!r}; known labels: "
            f"{', '.join(list(place)[:20])}"
        )
    return np.array([place[tag] for tag in target.tags], dtype=np.int64)
