"""A sense test for vectors of words in context: a neighbor that gives the sense away labels each.

Occurrences of one word ("bank", 苹果) are labeled by give-away neighbors ("river", "money"), and
each is classified by the sense of its nearest other occurrence. A vector per word, whatever its
sentence, has all neighbors at the same distance, so it knows nothing: by construction it does no
better than the majority. The give-away stands in the sentence, so the figure says that vectors
depend on their context, and not that they would know a sense without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ConfigError
from bertsmith.random_keys import key_of

Floats = NDArray[np.float32]
REACH = 2  # words to each side that a give-away may stand away
MOST = 100  # occurrences of a word
SHUFFLES = 200
Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class SenseOccurrence:
    """A word at a place of a sentence, and the sense that a neighbor gives away."""

    words: tuple[str, ...]
    place: int
    sense: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SenseScore:
    """Leave-one-out accuracy of the nearest neighbor, and what it is compared with.

    `low` and `high` bound its lead over the majority (95 %, paired). `shuffled` is the mean
    accuracy under shuffled labels, `chance` the share of shuffles that reach the accuracy.
    """

    word: str
    occurrences: int
    senses: Mapping[str, int]
    accuracy: float
    majority: float
    low: float
    high: float
    shuffled: float
    chance: float

    @property
    def passes(self) -> bool:
        """Whether the interval of the lead over the majority leaves out 0."""
        return self.low > 0


def find_occurrences(
    sentences: Iterable[Sequence[str]],
    word: str,
    giveaways: Mapping[str, Iterable[str]],
    *,
    reach: int = REACH,
    most: int = MOST,
) -> list[SenseOccurrence]:
    """The first `most` occurrences of a word, at most half of them of one of two senses and so on.

    `giveaways` are neighbors that give a sense away, by sense: a word anywhere within `reach`, or
    `-word` and `+word` for the word just before or after. Places with none, or with those of two
    senses, are left out; case does not matter.
    """
    if len(giveaways) < 2:
        raise ConfigError(f"{word!r}: give neighbors of two senses or more")
    share = math.ceil(most / len(giveaways))
    wanted = {sense: {one.lower() for one in some} for sense, some in giveaways.items()}
    found: dict[str, list[SenseOccurrence]] = {sense: [] for sense in wanted}
    for sentence in sentences:
        lower = [one.lower() for one in sentence]
        for place, one in enumerate(lower):
            if one != word.lower():
                continue
            near = _near(lower, place, reach)
            senses = [sense for sense, some in wanted.items() if near & some]
            if len(senses) == 1 and len(found[senses[0]]) < share:
                found[senses[0]].append(
                    SenseOccurrence(words=tuple(sentence), place=place, sense=senses[0])
                )
        if all(len(some) == share for some in found.values()):
            break
    return [one for some in found.values() for one in some]


def sense_score(
    word: str, occurrences: Sequence[SenseOccurrence], vectors: Floats, *, seed: int = 0
) -> SenseScore:
    """The score of vectors (N, D), one per occurrence, by cosine.

    Where all other occurrences are equally near, as with one vector per word, there is no nearest
    neighbor: the prediction is the sense of most of the others.
    """
    labels = np.array([one.sense for one in occurrences])
    names, numbers = np.unique(labels, return_inverse=True)
    if len(names) < 2 or len(labels) < 4:
        raise ConfigError(
            f"{word!r}: {len(labels)} occurrences of {len(names)} senses are too few for a test; "
            "give more text, or other neighbors"
        )
    if vectors.ndim != 2 or len(vectors) != len(labels):
        raise ConfigError(f"{word!r}: {len(labels)} occurrences and {vectors.shape} vectors")
    nearest = _nearest(np.asarray(vectors, dtype=np.float64))
    right = _predicted(nearest, numbers) == numbers
    most = numbers == np.bincount(numbers).argmax()
    lead = right.astype(np.float64) - most
    mean, error = lead.mean(), lead.std(ddof=1) / math.sqrt(len(lead))
    random = np.random.Generator(np.random.Philox(key=key_of("senses", word, seed=seed)))
    shuffled = []
    for _ in range(SHUFFLES):
        mixed = random.permutation(numbers)
        shuffled.append(float((_predicted(nearest, mixed) == mixed).mean()))
    return SenseScore(
        word=word,
        occurrences=len(labels),
        senses={
            str(name): int(count) for name, count in zip(names, np.bincount(numbers), strict=True)
        },
        accuracy=float(right.mean()),
        majority=float(most.mean()),
        low=float(mean - Z95 * error),
        high=float(mean + Z95 * error),
        shuffled=float(np.mean(shuffled)),
        chance=(1 + sum(one >= right.mean() for one in shuffled)) / (1 + SHUFFLES),
    )


def _near(words: Sequence[str], place: int, reach: int) -> set[str]:
    near = {*words[max(0, place - reach) : place], *words[place + 1 : place + 1 + reach]}
    near |= {f"-{one}" for one in words[max(0, place - 1) : place]}
    return near | {f"+{one}" for one in words[place + 1 : place + 2]}


def _nearest(vectors: NDArray[np.float64]) -> NDArray[np.int64]:
    """The nearest other occurrence of each, -1 where all are equally near."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.maximum(norms, 1e-12)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    others = np.where(np.eye(len(unit), dtype=bool), np.inf, cosines)
    flat = cosines.max(axis=1) - others.min(axis=1) < 1e-9
    return np.where(flat, -1, cosines.argmax(axis=1))


def _predicted(nearest: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    counts = np.bincount(numbers)
    without = counts[None, :] - np.eye(len(counts), dtype=np.int64)[numbers]  # (N, senses)
    return np.where(nearest < 0, without.argmax(axis=1), numbers[nearest])
