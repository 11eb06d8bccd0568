"""What noises do to given texts: some token by token, all of them in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bertsmith.corpus.rows import Flags, Longs, RowsBatch, begins, rows_of
from bertsmith.objectives.noise.noised import Noised, NoiseSettings
from bertsmith.objectives.noise.units import text_alone
from bertsmith.text.blocks import groups
from bertsmith.text.encoding import Encoding
from bertsmith.text.sentences import split_sentences
from bertsmith.text.tokenizer import Tokenizer

BATCH = 256  # texts noised at a time


@dataclass(frozen=True, slots=True)
class NoisePiece:
    """Tokens of a noised text: `shown`, a `mask` with what it hides, or what was `deleted`.

    `jumps` marks tokens that do not follow the token before them in the original text.
    """

    text: str
    fate: str
    jumps: bool = False


@dataclass(slots=True)
class NoiseTally:
    """Figures over all texts."""

    texts: int = 0
    tokens: int = 0
    noised_tokens: int = 0
    changed: list[list[int]] = field(default_factory=list)  # of each noise: units changed, of all
    spans: Counter[int] = field(default_factory=Counter)  # masks by the words they stand for

    def rate(self, number: int) -> float:
        """The measured rate of one of the noises."""
        changed, total = self.changed[number]
        return changed / max(total, 1)


@dataclass(frozen=True, slots=True)
class NoisePreview:
    """The first texts as pieces, and the figures of all."""

    samples: list[list[NoisePiece]]
    tally: NoiseTally


def preview_noise(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    noises: Sequence[NoiseSettings],
    *,
    count: int = 5,
    seed: int = 0,
) -> NoisePreview:
    """Noise texts as training would, in this order; show `count` of them."""
    samples: list[list[NoisePiece]] = []
    tally = NoiseTally(changed=[[0, 0] for _ in noises])
    made = [one.make(tokenizer, f"noise {n} {one.kind}") for n, one in enumerate(noises)]
    for batch in groups(texts, BATCH):
        pairs = [(text, one) for text, one in _encoded(batch, tokenizer) if (one.words >= 0).any()]
        encodings = [one for _, one in pairs]
        rows = rows_of(encodings, seed=seed, first=tally.texts)
        rows = replace(rows, sentences=_sentences(pairs))
        trace = _Trace(rows)
        for number, one in enumerate(made):
            text = text_alone(trace.now, tokenizer.special.mask)
            last = one(trace.now)
            changed = MEASURES[noises[number].changes](text, last)
            tally.changed[number][0] += changed[0]
            tally.changed[number][1] += changed[1]
            trace.follow(last)
        tally.texts += len(rows.lengths)
        tally.tokens += len(rows.ids)
        tally.noised_tokens += len(trace.now.ids)
        first = begins(rows.words, rows)
        tally.spans.update(int(first[at].sum()) for at in trace.spans.values())
        more = range(min(len(encodings), max(count - len(samples), 0)))
        samples += [_pieces(trace, number, tokenizer) for number in more]
    return NoisePreview(samples, tally)


def _encoded(batch: Sequence[str], tokenizer: Tokenizer) -> Iterable[tuple[str, Encoding]]:
    return zip(batch, tokenizer.encode_batch(batch), strict=True)


def _sentences(pairs: Sequence[tuple[str, Encoding]]) -> Longs:
    """(T,) sentence numbers, split as `corpus build` splits running text."""
    parts = [np.empty(0, dtype=np.int64)]
    for text, encoding in pairs:
        starts, at = [], 0
        for sentence in split_sentences(text):
            at = text.index(sentence, at)
            starts.append(at)
            at += len(sentence)
        parts.append(np.searchsorted(starts, encoding.offsets[:, 0], side="right"))
    return np.concatenate(parts)


def _words_hidden(rows: RowsBatch, noised: Noised) -> tuple[int, int]:
    return _hidden(begins(rows.words, rows), rows, noised)


def _tokens_hidden(rows: RowsBatch, noised: Noised) -> tuple[int, int]:
    return _hidden(rows.real, rows, noised)


def _hidden(units: Flags, rows: RowsBatch, noised: Noised) -> tuple[int, int]:
    """How many of the units (T,), given by their first rows, are gone, and how many there were."""
    kept = np.zeros(len(rows.ids), dtype=bool)
    kept[noised.origin[noised.origin >= 0]] = True
    return int((units & ~kept).sum()), int(units.sum())


def _sentences_moved(rows: RowsBatch, noised: Noised) -> tuple[int, int]:
    if rows.sentences is None:
        return 0, 0
    start = np.flatnonzero(begins(rows.sentences, rows))
    place = np.empty(len(rows.ids), dtype=np.int64)
    place[noised.near] = np.arange(len(noised.near))
    order = np.argsort(place[start], kind="stable")
    return int((order != np.arange(len(start))).sum()), len(start)


def _texts_turned(rows: RowsBatch, noised: Noised) -> tuple[int, int]:
    first = np.flatnonzero(rows.breaks)
    return int((noised.near[first] != first).sum()), len(first)


MEASURES = {
    "words": _words_hidden,
    "tokens": _tokens_hidden,
    "sentences": _sentences_moved,
    "texts": _texts_turned,
}


class _Trace:
    """Rows through one noise after another.

    `origin` (N,) is the first row that each token stands for, `spans` all rows behind each mask, by
    the place of the mask.
    """

    def __init__(self, rows: RowsBatch) -> None:
        self.rows = self.now = rows
        self.origin: Longs = np.arange(len(rows.ids))
        self.spans: dict[int, Longs] = {}

    def follow(self, noised: Noised) -> None:
        """Take in the next noise."""
        behind = _behind(len(self.now.ids), noised)
        spans = {place: self.origin[at] for place, at in behind.items()}
        for place in np.flatnonzero(noised.origin >= 0).tolist() if self.spans else ():
            old = self.spans.get(int(noised.near[place]))
            if old is not None:
                spans[place] = old
        self.origin = self.origin[noised.near]
        self.now, self.spans = noised.rows(self.now), spans


def _behind(count: int, noised: Noised) -> dict[int, Longs]:
    """The rows, of `count`, that each new mask stands for, by the place of the mask."""
    gone = np.ones(count + 1, dtype=bool)
    gone[noised.origin[noised.origin >= 0]] = False
    gone[-1] = False
    masks = np.flatnonzero(noised.origin < 0)
    starts = noised.near[masks]
    stops = np.flatnonzero(~gone)
    ends = stops[
        np.searchsorted(stops, starts)
    ]  # a mask of no words stands before a row that stays
    ends = np.minimum(ends, np.append(starts, count)[1:])
    return {
        int(mask): np.arange(start, end)
        for mask, start, end in zip(masks, starts.tolist(), ends.tolist(), strict=True)
    }


def _pieces(trace: _Trace, number: int, tokenizer: Tokenizer) -> list[NoisePiece]:
    """One text after the noise, with what was taken out at the place where it stood."""
    rows, now = trace.rows, trace.now
    first = int(rows.starts[number])
    here = range(int(now.starts[number]), int(now.starts[number] + now.sizes[number]))
    gone = np.ones(rows.lengths[number], dtype=bool)
    for place in here:
        gone[trace.spans.get(place, trace.origin[place : place + 1]) - first] = False

    def words(at: Iterable[int]) -> str:
        return " ".join(tokenizer.id_to_token(int(rows.ids[row])) or "" for row in at)

    pieces: list[NoisePiece] = []
    expected = first
    for place in here:
        own = int(trace.origin[place])
        skipped = [row for row in range(expected, own) if gone[row - first]]
        jumps = own != expected and len(skipped) != own - expected
        if skipped and not jumps:
            pieces.append(NoisePiece(f"{words(skipped)}→", "deleted"))
        token = tokenizer.id_to_token(int(now.ids[place])) or ""
        behind = trace.spans.get(place)
        if behind is None:
            pieces.append(NoisePiece(token, "shown", jumps))
            expected = own + 1
        else:
            pieces.append(NoisePiece(f"{words(behind)}→{token}", "mask", jumps))
            expected = int(behind[-1]) + 1 if len(behind) else own
    return pieces
