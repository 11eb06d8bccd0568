"""Mentions of entities in rows of tokens, and the tokens that write each entity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.corpus.rows import Flags, Ints, Longs, RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.objectives.entities.entity_list import EntityList
from bertsmith.objectives.masking.lexicon import Lexicon, forms
from bertsmith.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mentions:
    """M mentions in the order of the rows; every array is (M,).

    `forms` says how an entity is written: as at the start of a text, or as inside of one.
    """

    starts: Longs  # the first row
    sizes: Longs  # rows
    entities: Longs
    forms: Longs

    @property
    def stops(self) -> Longs:
        """(M,) the row after each mention."""
        return self.starts + self.sizes


class Entities:
    """The entities of a list that a vocabulary can write, found by longest match.

    Whole words where words are written apart, characters in Chinese. `unwritable` names cannot be
    written without an unknown token; `alike` have the tokens of another entity before them.
    """

    def __init__(self, entities: EntityList, tokenizer: Tokenizer) -> None:
        self.repeated = entities.repeated
        self.unwritable: list[str] = []
        self.alike: list[str] = []
        chosen = self._distinct(entities.names, tokenizer)
        if not chosen:
            raise ConfigError(
                "no entity of the list can be written with this vocabulary; take a list in the "
                "language of the corpus"
            )
        self.names = tuple(entities.names[number] for number in chosen)
        types = [entities.types[number] for number in chosen]
        self.type_names = tuple(dict.fromkeys(types))
        number = {name: place for place, name in enumerate(self.type_names)}
        self.types: Longs = np.array([number[name] for name in types], dtype=np.int64)
        self.lexicon = Lexicon(self.names, tokenizer)
        self.written = [WrittenEntities(form, self.types) for form in self.lexicon.forms]
        alone = np.bincount(self.types) < 2
        self.replaceable: Flags = ~alone[self.types]

    @property
    def lone_types(self) -> tuple[str, ...]:
        """Types of one entity: nothing can replace it."""
        sizes = Counter(self.types.tolist())
        return tuple(name for place, name in enumerate(self.type_names) if sizes[place] < 2)

    def find(self, rows: RowsBatch) -> Mentions:
        """The mentions in a batch, none inside another."""
        starts, sizes = self.lexicon.find(rows)
        entities, written = self.lexicon.entries(rows, starts, sizes)
        return Mentions(starts=starts, sizes=sizes, entities=entities, forms=written)

    def _distinct(self, names: Sequence[str], tokenizer: Tokenizer) -> list[int]:
        """The entities that can be written, the first of those that look alike."""
        seen: set[tuple[tuple[int, ...], ...]] = set()
        chosen = []
        for number, spelled in enumerate(zip(*forms(names, tokenizer), strict=True)):
            key = tuple(tuple(ids) for ids in spelled)
            if not all(key) or any(tokenizer.special.unk in ids for ids in key):
                self.unwritable.append(names[number])
            elif key in seen:
                self.alike.append(names[number])
            else:
                seen.add(key)
                chosen.append(number)
        return chosen


class WrittenEntities:
    """The tokens of every entity in one form; those of a type in the order of their lengths."""

    def __init__(self, ids: Sequence[Sequence[int]], types: Longs) -> None:
        """`ids` are the tokens of each entity, `types` (N,) its type."""
        self.tokens: Ints = np.concatenate([np.array(one, dtype=np.int32) for one in ids])
        self.sizes: Longs = np.array([len(one) for one in ids], dtype=np.int64)
        self.firsts: Longs = np.cumsum(self.sizes) - self.sizes
        self._order: Longs = np.lexsort((self.sizes, types))  # entities by type, short ones first
        self._place = np.empty(len(types), dtype=np.int64)
        counts = np.bincount(types)
        self._type_first = np.cumsum(counts) - counts
        self._place[self._order] = np.arange(len(types)) - np.repeat(self._type_first, counts)
        self._lengths = [
            self.sizes[self._order[first : first + count]]
            for first, count in zip(self._type_first.tolist(), counts.tolist(), strict=True)
        ]
        self._types = types

    def other(self, entity: int, longest: int, draw: float) -> int:
        """Another entity of the same type of at most `longest` tokens, -1 if there is none.

        All of them are equally likely; `draw` in [0, 1) chooses one.
        """
        kind = int(self._types[entity])
        fitting = int(np.searchsorted(self._lengths[kind], longest, side="right"))
        place = int(self._place[entity])
        count = fitting - (place < fitting)
        if count < 1:
            return -1
        chosen = int(draw * count)
        chosen += chosen >= place  # not itself
        return int(self._order[self._type_first[kind] + chosen])
