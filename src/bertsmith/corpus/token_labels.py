"""Classes of tokens that a corpus knows: capital or not, again in the document or not.

The word tasks of ERNIE 2.0 (Sun et al. 2019, arXiv:1907.12412).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bertsmith.corpus.examples import ChangedExamples, ExampleSource
from bertsmith.corpus.rows import Longs, RowsBatch
from bertsmith.corpus.shards import Corpus
from bertsmith.errors import ConfigError
from bertsmith.text.letter_case import LOWER, UPPER

LEAST_CASED = 0.2  # of the words; Chinese with some Latin names has less

Labeler = Callable[[RowsBatch], Longs]


def with_labels(source: ExampleSource, labeler: Labeler) -> ExampleSource:
    """The same examples, whose rows carry `token_labels`."""
    return ChangedExamples(source, lambda rows: replace(rows, token_labels=labeler(rows)))


def capital_labels(corpus: Corpus) -> Labeler:
    """(T,) 1 at the first token of a capitalized word, 0 of another word with case, else -1."""
    check_case(corpus)
    classes = np.full(2 + 2 * UPPER, -1, dtype=np.int64)
    classes[1 + 2 * LOWER], classes[1 + 2 * UPPER] = 0, 1

    def labels(rows: RowsBatch) -> Longs:
        origins = _origins(rows)
        found = np.full(len(origins), -1, dtype=np.int64)
        real = origins >= 0
        found[real] = classes[corpus.starts_word[origins[real]]]
        return found

    return labels


def check_case(corpus: Corpus) -> None:
    """Refuse to ask for capitals where there are none, or where they were not stored."""
    case = corpus.manifest.get("case")
    if not isinstance(case, dict):
        raise ConfigError(
            f"{corpus.path} was built before corpora stored which words are capitalized: build it "
            "again under another name, or set program.objectives.capital=0"
        )
    if case["cased_words"] < LEAST_CASED * case["words"] or not case["capitals"]:
        raise ConfigError(
            f"of {case['words']:,} words in {corpus.path} {case['cased_words']:,} have upper and "
            f"lower case and {case['capitals']:,} are capitalized: there are no capitals to "
            "predict (Chinese has none); set program.objectives.capital=0"
        )


def elsewhere_labels(corpus: Corpus) -> Labeler:
    """(T,) whether a token occurs in its document outside of the example; -1 for special tokens.

    Examples must be of one document each.
    """

    def labels(rows: RowsBatch) -> Longs:
        origins = _origins(rows)
        found = np.full(len(origins), -1, dtype=np.int64)
        seen = np.zeros(corpus.vocab_size, dtype=bool)
        for start, size in zip(rows.starts.tolist(), rows.lengths, strict=True):
            here = np.flatnonzero(origins[start : start + size] >= 0) + start
            first, last = int(origins[here[0]]), int(origins[here[-1]]) + 1
            begin, end = _document(corpus, first)
            around = corpus.tokens[begin:first], corpus.tokens[last:end]
            for part in around:
                seen[part] = True
            found[here] = seen[rows.ids[here]]
            for part in around:
                seen[part] = False
        return found

    return labels


def _document(corpus: Corpus, place: int) -> tuple[int, int]:
    """The tokens of the document that a token belongs to."""
    sentence = int(np.searchsorted(corpus.sentences, place, side="right")) - 1
    document = int(np.searchsorted(corpus.documents, sentence, side="right")) - 1
    ends = corpus.documents[document : document + 2]
    return int(corpus.sentences[ends[0]]), int(corpus.sentences[ends[1]])


def _origins(rows: RowsBatch) -> Longs:
    if rows.origins is None:
        raise ConfigError("labels of tokens need rows that come from a corpus")
    return rows.origins
