"""Guesses about CoNLL: whether a file is one, its columns, its scheme, prefixes of words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from bertsmith.labeled.formats.words import COMMENT, DOCUMENT, cells_of, joined, without_position
from bertsmith.labeled.guess.json_rows import put_joiner
from bertsmith.labeled.guess.sample import Sample, SpecBuilder
from bertsmith.labeled.read.tag_schemes import TAG, guess_scheme

ENDINGS = (".conll", ".bio", ".iob", ".iob2", ".bmes", ".bioes", ".conll03", ".ner")
FEWEST_WORDS = 4  # that positions are guessed from
PREFIX = re.compile(r"([a-z]{2,3}(?:-[a-z]+)?:)\S")


def looks_like_conll(sample: Sample) -> str | None:
    """Why a file seems to be CoNLL; None if it does not."""
    if sample.ending in ENDINGS:
        return f"its name ends in {sample.ending}"
    lines = _word_lines(sample.lines)
    delimiter, width = _shape(lines)
    if width < 2 or not lines:
        return None
    tags = [cells[-1] for line in lines if len(cells := cells_of(line, delimiter)) == width]
    tagged = sum(tag == "O" or bool(TAG.fullmatch(tag)) for tag in tags)
    spread = len(lines) < len(sample.lines) or any(line.startswith(DOCUMENT) for line in lines)
    # A tag is a letter alone only where words are parted into characters (BMES).
    kinds = {tag for tag in tags if "-" in tag or "_" in tag}
    bare = set(tags) <= set("BMESIO") and {"B", "E"} <= set(tags)
    if spread and tagged > 0.95 * len(tags) and tagged > 0.8 * len(lines) and (kinds or bare):
        return "each line ends in a tag, and blank lines stand between sentences"
    return None


def guess_conll(sample: Sample, builder: SpecBuilder) -> list[str]:
    """Decide how the file is written; gives texts of the sample."""
    lines = _word_lines(sample.lines)
    delimiter, width = _shape(lines, builder.get("delimiter"))
    builder.put("delimiter", delimiter, "it parts the most lines evenly")
    builder.put("columns", width, "so many columns have most lines")
    builder.put("text", (1,), "the word comes first")
    delimiter, width = builder.get("delimiter"), builder.get("columns")
    if width > 1:
        builder.put("label", (width,), "the tag comes last")
    else:
        builder.put("label", (), "there is one column: words without tags")
    builder.put("task", "tag", "words are tagged")
    sentences = _sentences(sample.lines, delimiter, width)
    word_at = _place(builder.get("text"), 0, width)
    words = [cells[word_at] for sentence in sentences for cells in sentence]
    if width > 1 and builder.get("label"):
        tag_at = _place(builder.get("label"), width - 1, width)
        scheme, why = guess_scheme([[cells[tag_at] for cells in one] for one in sentences])
        builder.put("scheme", scheme, why)
    prefix = _prefix(words)
    if prefix is not None:
        builder.put("word_prefix", prefix, "every word begins with it; it is not part of the word")
    cut = len(builder.get("word_prefix") or "")
    bare = [[cells[word_at][cut:] for cells in one] for one in sentences]
    if (stripped := _without_positions(bare)) is not None:
        first = bare[0][0]
        builder.put(
            "word_digits",
            "strip",
            f"each character ends in its position in a word, {first!r}: not part of the text",
        )
        bare = stripped if builder.get("word_digits") == "strip" else bare
    put_joiner([word for one in bare for word in one], builder)
    return [joined(one, builder.get("joiner"))[0] for one in bare]


def _place(columns: object, usual: int, width: int) -> int:
    if isinstance(columns, tuple) and columns and isinstance(columns[0], int):
        return min(columns[0], width) - 1
    return usual


def _word_lines(lines: Sequence[str]) -> list[str]:
    return [
        line
        for line in lines
        if line.strip() and not line.startswith(DOCUMENT) and not COMMENT.match(line)
    ]


def _shape(lines: Sequence[str], delimiter: str | None = None) -> tuple[str, int]:
    """The delimiter that gives most lines the same number of columns, and that number."""
    best = ("\t", 1, 0)
    for candidate in (delimiter,) if delimiter else ("\t", " "):
        widths = Counter(len(cells_of(line, candidate)) for line in lines)
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        if (width > 1, count) > (best[1] > 1, best[2]):
            best = (candidate, width, count)
    return best[:2]


def _sentences(lines: Sequence[str], delimiter: str, width: int) -> list[list[list[str]]]:
    sentences: list[list[list[str]]] = [[]]
    for line in lines:
        if not line.strip() or line.startswith(DOCUMENT):
            sentences.append([])
        elif not COMMENT.match(line):
            cells = cells_of(line, delimiter)
            if len(cells) == width:
                sentences[-1].append(cells)
    return [sentence for sentence in sentences if sentence]


def _without_positions(sentences: Sequence[Sequence[str]]) -> list[list[str]] | None:
    """The words without the positions that end them (Weibo NER); None if they have none."""
    stripped: list[list[str]] = []
    count = later = missing = 0
    for sentence in sentences:
        stripped.append([])
        position = -1
        for word in sentence:
            count += 1
            if (parts := without_position(word, position)) is None:
                missing += 1
                stripped[-1].append(word)
                continue
            position = parts[1]
            later += position > 0
            stripped[-1].append(parts[0])
    return stripped if later and count >= FEWEST_WORDS and 20 * missing <= count else None


def _prefix(words: Sequence[str]) -> str | None:
    """The language before each word, as in WikiANN: en:Paris."""
    first = next((match[1] for word in words if (match := PREFIX.match(word))), None)
    if first is None or len(words) < 2:
        return None
    return first if sum(word.startswith(first) for word in words) > 0.5 * len(words) else None
