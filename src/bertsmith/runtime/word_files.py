"""Vectors of the words of texts as files: a row per word, and the list of the words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.vectors import VectorWriter
from bertsmith.runtime.word_embedder import LayerChoice, WordEmbedder, WordLayers
from bertsmith.text.encoding import UnknownTokens

LISTED = ".words.tsv"  # behind the name of the vectors
REPORTED = 256  # texts between two calls of `progress`


@dataclass(slots=True, kw_only=True)
class WrittenWords:
    """How many words of how many texts were written, and where the words are listed."""

    listed: Path
    width: int
    texts: int = 0
    words: int = 0
    unknown: UnknownTokens = field(default_factory=UnknownTokens)


def write_words(
    embedder: WordEmbedder,
    texts: Iterable[str],
    out: Path,
    *,
    layer: LayerChoice = "mean",
    progress: Callable[[int], None] = lambda done: None,
) -> WrittenWords:
    """Write the vectors of all words, in order, and a line per word: text, start, end, word.

    Texts are counted from 1, characters from 0. Both files appear when they are complete.
    """
    listed = out.with_name(out.name + LISTED)
    done = WrittenWords(listed=listed, width=embedder.dimension(layer))
    with StagedFile(listed) as lines, VectorWriter(out, done.width) as writer:
        lines.write(b"text\tstart\tend\tword\n")
        for one in embedder.stream(texts, unknown=done.unknown):
            done.texts += 1
            done.words += len(one.words)
            writer.append(one.vectors(layer))
            lines.write(_lines(one, done.texts))
            if done.texts % REPORTED == 0:
                progress(done.texts)
    return done


def _lines(one: WordLayers, text: int) -> bytes:
    rows = zip(one.words, one.offsets.tolist(), strict=True)
    lines = (f"{text}\t{start}\t{end}\t{word}\n" for word, (start, end) in rows)
    return "".join(lines).encode(errors="replace")
