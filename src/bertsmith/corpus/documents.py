"""A block of a file as documents of sentences; faulty lines stop the build or are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bertsmith.corpus.reading import OnError, TextBlock
from bertsmith.errors import InputFileError
from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import decode_lines
from bertsmith.files.texts import json_text, replace_surrogates
from bertsmith.text.sentences import split_sentences

MOST_EXAMPLES = 5  # skipped lines of a block whose place and reason are recorded


@dataclass(slots=True)
class LineAccount:
    """What a block holds and the corpus does not, or not in the same form."""

    skipped: int = 0
    examples: list[str] = field(default_factory=list)
    surrogates: int = 0

    def skip(self, error: InputFileError) -> None:
        """Count a line that is left out."""
        self.skipped += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(str(error))


@dataclass(frozen=True, slots=True)
class Documents:
    """Sentences in order; `starts` are the numbers of those that begin a document."""

    sentences: list[str]
    starts: list[int]


def documents_of(block: TextBlock, on_error: OnError, account: LineAccount) -> Documents:
    """The sentences of a block, each without surrounding space, and where documents begin."""
    source = block.source
    documents = Documents([], [])
    if block.texts or source.kind == "jsonl":
        texts = block.texts or _json_texts(block, on_error, account)
        for text in texts:
            documents.starts.append(len(documents.sentences))
            clean, replaced = replace_surrogates(text)
            account.surrogates += replaced
            for line in clean.split("\n"):
                documents.sentences.extend(split_sentences(line))
        return documents
    starting = not block.continued
    for _, line in _lines(block, on_error, account):
        if not (stripped := line.strip()):
            starting = True
        elif source.form == "documents":
            documents.starts.append(len(documents.sentences))
            documents.sentences.extend(split_sentences(stripped))
        else:
            if starting:
                documents.starts.append(len(documents.sentences))
                starting = False
            if source.form == "sentences":
                documents.sentences.append(stripped)
            else:
                documents.sentences.extend(split_sentences(stripped))
    return documents


def _lines(block: TextBlock, on_error: OnError, account: LineAccount) -> Iterator[tuple[int, str]]:
    """Each line that can be decoded, with its number."""
    lines = decode_lines(block.lines, block.encoding, block.first_byte)
    for number, line in enumerate(lines, start=block.first_line):
        if isinstance(line, str):
            yield number, line
        else:
            _leave_out(line, block, number, on_error, account)


def _json_texts(block: TextBlock, on_error: OnError, account: LineAccount) -> Iterator[str]:
    for number, line in _lines(block, on_error, account):
        if not line.strip():
            continue
        try:
            yield json_text(line, block.source.field)
        except BadRowError as fault:
            _leave_out(fault, block, number, on_error, account)


def _leave_out(
    fault: BadRowError, block: TextBlock, number: int, on_error: OnError, account: LineAccount
) -> None:
    """Skip a line, or end the build at it."""
    error = fault.error(str(block.source.path), number)
    if on_error == "stop":
        way = "--on-error skip leaves such lines out and counts them"
        raise InputFileError(f"{error}; {way}") from fault
    account.skip(error)
