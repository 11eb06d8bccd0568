"""Words that may stand in for each other: from a list of synonyms, or by word vectors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bertsmith.corpus.rows import Ints, Longs
from bertsmith.errors import InputFileError
from bertsmith.files.lines import text_lines
from bertsmith.files.not_text import check_regular
from bertsmith.files.word_vectors.reading import read_word_vectors
from bertsmith.objectives.masking.lexicon import Trie, forms
from bertsmith.random_keys import Floats
from bertsmith.text.tokenizer import Tokenizer

# The code before each line of the thesaurus Cilin: "Aa01A01= ...".
_CODE = re.compile(r"[A-L][a-z]\d\d[A-Z]\d\d[=#@]")
_ROWS = 1024  # word vectors compared at a time


class SimilarWords:
    """For each word, others of as many tokens; looked up by the tokens themselves."""

    def __init__(self, similar: Mapping[str, Sequence[str]], tokenizer: Tokenizer) -> None:
        words = list(dict.fromkeys([*similar, *(w for others in similar.values() for w in others)]))
        number = {word: i for i, word in enumerate(words)}
        keys: list[list[int]] = []
        flat: list[int] = []
        counts: list[int] = []
        for form in forms(words, tokenizer):
            for word, others in similar.items():
                ids = form[number[word]]
                fitting = [form[number[other]] for other in others]
                fitting = [o for o in fitting if len(o) == len(ids) and o != ids]
                if ids and fitting:
                    keys.append(ids)
                    counts.append(len(fitting))
                    flat += [token for other in fitting for token in other]
        self.count = len(keys)
        self._trie = Trie(keys, tokenizer.vocab_size)
        self._sizes = np.array([len(ids) for ids in keys], dtype=np.int64)
        self._counts = np.array(counts, dtype=np.int64)
        spans = self._sizes * self._counts
        self._first = np.cumsum(spans) - spans
        self._flat = np.array(flat, dtype=np.int32)

    def find(self, ids: Ints, starts: Longs, sizes: Longs) -> Longs:
        """The entry of each word ids[start : start + size], -1 where there is none."""
        if not self.count or not len(starts):
            return np.full(len(starts), -1, dtype=np.int64)
        return self._trie.exact(ids, starts, sizes)

    def pick(self, entries: Longs, draws: Floats) -> Longs:
        """Where in `tokens` a random similar word of each entry begins."""
        chosen = (draws * self._counts[entries]).astype(np.int64)
        found: Longs = self._first[entries] + chosen * self._sizes[entries]
        return found

    @property
    def tokens(self) -> Ints:
        """The tokens of all similar words, one word after another."""
        return self._flat


def read_synonyms(path: Path) -> dict[str, list[str]]:
    """Lines of words of one meaning, parted by tabs or spaces; or a .json of word: [words]."""
    if path.suffix == ".json":
        return _json_synonyms(path)
    found: dict[str, list[str]] = {}
    for line in text_lines(path):
        words = line.split("\t") if "\t" in line else line.split()
        words = [word.strip() for word in words if word.strip()]
        if words and _CODE.fullmatch(words[0]):
            words = words[1:]
        for word in words:
            others = found.setdefault(word, [])
            others += [other for other in words if other != word and other not in others]
    found = {word: others for word, others in found.items() if others}
    if not found:
        raise InputFileError(f"{path} holds no line with two words of one meaning")
    return found


def _json_synonyms(path: Path) -> dict[str, list[str]]:
    try:
        check_regular(path)
        tree = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputFileError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(tree, dict) or not tree:
        raise InputFileError(f"{path} must hold one object, each word with a list of others")
    for word, others in tree.items():
        if not isinstance(others, list) or not all(isinstance(other, str) for other in others):
            raise InputFileError(f"{path}: the entry of {word!r} is not a list of words")
    return tree


def read_neighbors(path: Path, *, words: int, neighbors: int) -> dict[str, list[str]]:
    """The nearest neighbors among the first `words` vectors of a file.

    A file of any form that `read_word_vectors` takes, or a folder of `bertsmith words train`.
    """
    names, matrix = read_word_vectors(path, most=words)
    if len(names) < 2:
        raise InputFileError(f"{path} holds fewer than two word vectors")
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    wanted = min(neighbors, len(names) - 1)
    found: dict[str, list[str]] = {}
    for start in range(0, len(names), _ROWS):
        scores = matrix[start : start + _ROWS] @ matrix.T
        own = np.arange(len(scores))
        scores[own, start + own] = -np.inf
        best = np.argpartition(-scores, wanted - 1, axis=1)[:, :wanted]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
        for row, near in enumerate(np.take_along_axis(best, order, axis=1).tolist()):
            found[names[start + row]] = [names[i] for i in near]
    return found
