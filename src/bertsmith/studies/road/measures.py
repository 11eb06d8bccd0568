"""What a trained model of a road reaches on the held-out part and on further tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.elmo.model import ElmoModel
from bertsmith.classic.language_model import score_lines
from bertsmith.classic.word_vectors.evaluation import (
    AnalogySection,
    RatedPairs,
    evaluate_analogies,
    evaluate_similarity,
    read_analogies,
    read_similarity,
    total_analogies,
)
from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.runtime.loading import load
from bertsmith.studies.road.kinds import RoadModel
from bertsmith.studies.road.material import RoadMaterial
from bertsmith.studies.road.probe import RoadProbe
from bertsmith.studies.road.readers import TOGETHER, ContextReader, StaticContexts
from bertsmith.studies.road.senses import SenseOccurrence, SenseScore, find_occurrences, sense_score
from bertsmith.text.blocks import groups

Floats = NDArray[np.float32]
Cells = dict[str, dict[str, Any]]
CONTEXTS = 20  # of a word
FEWEST_OCCURRENCES = 20  # of a word of the sense test
FEWEST_OF_SENSE = 5
SENSES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "kind": {"sort": ["+of"], "good": ["-so", "-very", "-is", "-was"]},
    "lead": {"role": ["+role", "+actor", "+actress", "+character"], "bring": ["+to", "-to"]},
    "like": {"as": ["-looks", "-feels", "-just", "-seems", "-more"], "enjoy": ["-i", "-you"]},
    "苹果": {"company": ["手机", "电脑", "公司"], "fruit": ["吃", "水果", "树"]},
}
Cell = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SenseTest:
    """A word with the occurrences of its senses in the held-out text."""

    word: str
    occurrences: tuple[SenseOccurrence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadTests:
    """What every model is tested with, made once; `words` are those of the word tests."""

    senses: tuple[SenseTest, ...]
    words: frozenset[str]
    sentences: tuple[tuple[str, ...], ...]
    probe: RoadProbe | None


def find_sense_tests(sentences: Sequence[Sequence[str]]) -> tuple[SenseTest, ...]:
    """The words of `SENSES` that the held-out text has enough of, in two senses."""
    tests = []
    for word, giveaways in SENSES.items():
        found = find_occurrences(sentences, word, giveaways)
        senses = {one.sense for one in found}
        least = min((sum(one.sense == s for one in found) for s in senses), default=0)
        if len(senses) > 1 and len(found) >= FEWEST_OCCURRENCES and least >= FEWEST_OF_SENSE:
            tests.append(SenseTest(word=word, occurrences=tuple(found)))
    return tuple(tests)


def context_sentences(
    sentences: Sequence[tuple[str, ...]], words: frozenset[str], most: int
) -> tuple[tuple[str, ...], ...]:
    """Sentences that bring a word of the tests which has too few contexts still."""
    seen: dict[str, int] = {}
    chosen = []
    for sentence in sentences:
        inside = [word for word in sentence if word in words and seen.get(word, 0) < CONTEXTS]
        if inside:
            chosen.append(sentence)
            for word in inside:
                seen[word] = seen.get(word, 0) + 1
        if len(chosen) == most:
            break
    return tuple(chosen)


def left_to_right(model: RoadModel, material: RoadMaterial) -> Cells:
    """Perplexity per piece and per word, bits per character."""
    scored = material.scored
    if model.language_model is None:
        return {}
    found = score_lines(model.language_model, scored.pieces, characters=scored.characters)
    nats = found.nats + found.unknown_nats
    return {
        "perplexity_piece": {"value": found.perplexity(), "unknown": found.unknown},
        "perplexity_word": {"value": _exp(nats / max(1, scored.word_count))},
        "bits_per_character": {"value": found.bits_per_character()},
    }


def directions(model: RoadModel, material: RoadMaterial) -> Cells:
    """The perplexity of each direction of ELMo, per word of its vocabulary."""
    elmo = model.language_model
    if not isinstance(elmo, ElmoModel):
        return {}
    forward, backward = (
        float(np.concatenate(scores).mean())
        for scores in elmo.both_log_probabilities(material.scored.words)
    )
    return {"directions": {"value": _exp(-forward), "other": _exp(-backward)}}


def pseudo_perplexity(path: Path, material: RoadMaterial) -> Cells:
    """Of each piece with all others in sight; lines that are too long for the model are left out"""
    room = 120  # pieces of a line, of a window of 128 tokens
    texts, words = [], 0
    scored = material.scored
    for text, pieces, spelled in zip(scored.texts, scored.pieces, scored.spelled, strict=True):
        if len(pieces) <= room and words < material.request.sizes.pseudo_words:
            texts.append(text)
            words += len(spelled)
    with load(path, precision="fp32") as loaded:
        scores = loaded.score(texts)
    pieces_scored = sum(len(one.values) for one in scores)
    total = sum(one.total for one in scores)
    return {
        "pseudo_perplexity": {"value": _exp(-total / max(1, pieces_scored)), "lines": len(texts)}
    }


def vector_sets(model: RoadModel, tests: RoadTests) -> dict[str, WordVectors]:
    """The words of the tests as vectors in context (means) and alone, where a model has them."""
    sets = {}
    if model.contexts is not None and tests.sentences:
        sets["contexts"] = _table(_means(model.contexts, tests))
    if model.inputs is not None:
        present = sorted({word for one in tests.sentences for word in one} & tests.words)
        found = {word: model.inputs.vector(word) for word in present}
        sets["inputs"] = _table({word: row for word, row in found.items() if row is not None})
    return {name: one for name, one in sets.items() if one is not None}


def _means(reader: ContextReader, tests: RoadTests) -> dict[str, Floats]:
    """The mean vector of each word of the tests over its first contexts."""
    sums: dict[str, NDArray[np.float64]] = {}
    counts: dict[str, int] = {}
    for some in groups(tests.sentences, TOGETHER):
        for sentence, vectors in zip(some, reader.read(some), strict=True):
            for word, vector in zip(sentence, vectors, strict=True):
                if word in tests.words and counts.get(word, 0) < CONTEXTS:
                    sums[word] = sums.get(word, 0.0) + vector.astype(np.float64)
                    counts[word] = counts.get(word, 0) + 1
    return {word: (sums[word] / counts[word]).astype(np.float32) for word in sums}


def _table(vectors: Mapping[str, Floats]) -> WordVectors | None:
    words = tuple(sorted(vectors))
    if not words:
        return None
    return WordVectors(words, np.stack([vectors[word] for word in words]).astype(np.float32))


def reader_of(model: RoadModel) -> ContextReader | None:
    """Vectors in context, or else those of words alone in their place."""
    if model.contexts is not None:
        return model.contexts
    if model.inputs is None:
        return None
    return StaticContexts(model.inputs, model.inputs.width)


def senses(reader: ContextReader, tests: RoadTests) -> Cells:
    """Accuracy over all occurrences of the sense test, and each word's lead over the majority."""
    if not tests.senses:
        return {"senses": {"reason": "the held-out text has too few occurrences of its words"}}
    scores: list[SenseScore] = []
    for test in tests.senses:
        read = reader.read([one.words for one in test.occurrences])
        rows = [one[test.occurrences[n].place] for n, one in enumerate(read)]
        scores.append(sense_score(test.word, test.occurrences, np.stack(rows)))
    count = sum(one.occurrences for one in scores)
    return {
        "senses": {
            "value": sum(one.accuracy * one.occurrences for one in scores) / count,
            "majority": sum(one.majority * one.occurrences for one in scores) / count,
            "passed": sum(one.passes for one in scores),
            "words": [
                {
                    "word": one.word,
                    "occurrences": one.occurrences,
                    "accuracy": one.accuracy,
                    "majority": one.majority,
                    "low": one.low,
                    "high": one.high,
                }
                for one in scores
            ],
        }
    }


def probe(reader: ContextReader, tests: RoadTests) -> Cells:
    """Accuracy of a logistic regression on mean vectors of texts."""
    if tests.probe is None:
        return {"probe": {"reason": "no --probe was given"}}

    def mean(texts: Sequence[tuple[str, ...]]) -> NDArray[np.float64]:
        rows = []
        for some in groups(texts, TOGETHER):
            read = reader.read([text or ("",) for text in some])
            rows += [one.mean(axis=0) for one in read]
        return np.stack(rows).astype(np.float64)

    return {"probe": tests.probe.measure(mean)}


def measured(
    name: str, path: Path, model: RoadModel, material: RoadMaterial, tests: RoadTests
) -> Cells:
    """All columns of a model, but those of the words that all models know."""
    cells: Cells = {}
    steps: list[Callable[[], Cells]] = []
    if name == "bert":
        steps.append(lambda: pseudo_perplexity(path, material))
    elif isinstance(model.language_model, ElmoModel):
        steps.append(lambda: directions(model, material))
    else:
        steps.append(lambda: left_to_right(model, material))
    reader = reader_of(model)
    if reader is not None:
        steps += [lambda: senses(reader, tests), lambda: probe(reader, tests)]
    for step in steps:
        cells |= step()
    return cells


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class WordTests:
    """Rated pairs and analogies of files."""

    similarity: tuple[RatedPairs, ...]
    analogies: tuple[AnalogySection, ...]

    @classmethod
    def read(cls, similarity: Sequence[Path], analogies: Sequence[Path]) -> WordTests:
        """The files as published."""
        return cls(
            similarity=tuple(read_similarity(path) for path in similarity),
            analogies=tuple(one for path in analogies for one in read_analogies(path)),
        )

    def words(self) -> frozenset[str]:
        """All words, in lower case, too."""
        rated = {word for one in self.similarity for pair in one.pairs for word in pair}
        asked = {word for one in self.analogies for row in one.questions for word in row}
        return frozenset(form for word in rated | asked for form in (word, word.lower()))

    def compare(
        self, sets: Mapping[str, Mapping[str, WordVectors]]
    ) -> tuple[dict[str, dict[str, Cell]], list[str]]:
        """Cells by model, and what they cover; `sets` are vectors by model and way."""
        every = [one for some in sets.values() for one in some.values()]
        known = set(every[0].words).intersection(*(one.words for one in every)) if every else set()
        words = tuple(sorted(known))
        cells: dict[str, dict[str, Cell]] = {name: {} for name in sets}
        for name, some in sets.items():
            for way, vectors in some.items():
                cells[name][f"similarity_{way}"] = self._similarity(vectors, words)
                cells[name][f"analogies_{way}"] = self._analogies(vectors, words)
        return cells, self._coverage(words, cells)

    def _similarity(self, vectors: WordVectors, words: tuple[str, ...]) -> Cell:
        if not self.similarity:
            return {"reason": "no --word-pairs were given"}
        found = [evaluate_similarity(_among(vectors, words), one) for one in self.similarity]
        values = [one.spearman for one in found if not math.isnan(one.spearman)]
        if not values:
            return {"reason": f"too few pairs among the {len(words)} words that all models know"}
        return {
            "value": float(np.mean(values)),
            "known": sum(one.known for one in found),
            "pairs": sum(one.pairs for one in found),
            "files": {one.name: one.spearman for one in found},
        }

    def _analogies(self, vectors: WordVectors, words: tuple[str, ...]) -> Cell:
        if not self.analogies:
            return {"reason": "no --analogies were given"}
        found = total_analogies(evaluate_analogies(_among(vectors, words), self.analogies))
        if not found.known:
            return {"reason": f"no analogy among the {len(words)} words that all models know"}
        return {"value": found.accuracy, "known": found.known, "questions": found.questions}

    def _coverage(
        self, words: tuple[str, ...], cells: Mapping[str, Mapping[str, Cell]]
    ) -> list[str]:
        if not (self.similarity or self.analogies):
            return []
        facts = [f"{len(words):,} words of the word tests are known to all models"]
        filled = [cell for some in cells.values() for cell in some.values() if "value" in cell]
        pairs = next(((c["known"], c["pairs"]) for c in filled if "pairs" in c), None)
        asked = next(((c["known"], c["questions"]) for c in filled if "questions" in c), None)
        if pairs:
            facts.append(f"{pairs[0]:,} of {pairs[1]:,} rated pairs count")
        if asked:
            facts.append(f"{asked[0]:,} of {asked[1]:,} analogies count")
        return ["; ".join(facts) + "."]


def _among(vectors: WordVectors, words: tuple[str, ...]) -> WordVectors:
    rows = [vectors.index[word] for word in words]
    matrix = vectors.matrix[rows] if rows else np.zeros((0, vectors.dimension), dtype=np.float32)
    return WordVectors(words, matrix)
