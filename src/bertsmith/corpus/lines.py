"""A block of a file as documents of sentences; faulty lines stop the build or are counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from bertsmith.corpus.documents import Block
from bertsmith.errors import InputFileError
from bertsmith.files.encodings import likely_encodings
from bertsmith.files.texts import USUAL_FIELDS
from bertsmith.text.safe_tokenizer import SURROGATE
from bertsmith.text.sentences import split_sentences

OnError = Literal["stop", "skip"]
SHOWN = 5  # skipped lines of a block whose place and reason are kept


@dataclass(slots=True)
class LineAccount:
    """What was met on the way and is not in the corpus as it stood in the file."""

    skipped: int = 0
    examples: list[str] = field(default_factory=list)
    surrogates: int = 0

    def skip(self, place: str, reason: str) -> None:
        """Note a line that is left out."""
        self.skipped += 1
        if len(self.examples) < SHOWN:
            self.examples.append(f"{place}: {reason}")


@dataclass(frozen=True, slots=True)
class Documents:
    """Sentences in order; `starts` are the numbers of those that begin a document."""

    sentences: list[str]
    starts: list[int]


def documents_of(block: Block, on_error: OnError, account: LineAccount) -> Documents:
    """The sentences of a block, each without surrounding space, and where documents begin."""
    source = block.source
    found = Documents([], [])
    if block.texts or source.kind == "jsonl":
        texts = block.texts or _json_texts(block, on_error, account)
        for text in texts:
            found.starts.append(len(found.sentences))
            for line in _without_surrogates(text, account).split("\n"):
                found.sentences.extend(split_sentences(line))
        return found
    fresh = not block.continued
    for _, line in _lines(block, on_error, account):
        if not (stripped := line.strip()):
            fresh = True
        elif source.form == "documents":
            found.starts.append(len(found.sentences))
            found.sentences.extend(split_sentences(stripped))
        else:
            if fresh:
                found.starts.append(len(found.sentences))
                fresh = False
            if source.form == "sentences":
                found.sentences.append(stripped)
            else:
                found.sentences.extend(split_sentences(stripped))
    return found


def _lines(block: Block, on_error: OnError, account: LineAccount) -> Iterator[tuple[int, str]]:
    """Each line with its number, decoded."""
    ended = block.lines[:-1] if block.lines.endswith(b"\n") else block.lines
    try:
        lines = ended.decode(block.encoding).split("\n")
    except UnicodeDecodeError as error:
        if on_error == "stop":
            raise _undecodable(block, error) from error
    else:
        yield from enumerate(lines, start=block.first_line)
        return
    place = block.first_byte
    for number, line in enumerate(ended.split(b"\n"), start=block.first_line):
        try:
            yield number, line.decode(block.encoding)
        except UnicodeDecodeError as error:
            reason = f"byte {place + error.start} is not valid {block.encoding}"
            account.skip(f"{block.source.path}, line {number}", reason)
        place += len(line) + 1


def _undecodable(block: Block, error: UnicodeDecodeError) -> InputFileError:
    bad = block.lines[error.start : error.start + 1].hex()
    line = block.first_line + block.lines.count(b"\n", 0, error.start)
    message = (
        f"{block.source.path}, line {line}, byte {block.first_byte + error.start}: byte 0x{bad} "
        f"is not valid {block.encoding} ({error.reason})"
    )
    likely = [name for name in likely_encodings(block.lines[: 1 << 18]) if name != block.encoding]
    way = f"try --encoding {likely[0]} (it fits), or" if likely else "the file may be damaged:"
    return InputFileError(f"{message}; {way} --on-error skip leaves such lines out and counts them")


def _json_texts(block: Block, on_error: OnError, account: LineAccount) -> Iterator[str]:
    for number, line in _lines(block, on_error, account):
        if not line.strip():
            continue
        try:
            yield _text_of(line, block.source.field)
        except (ValueError, TypeError, RecursionError) as error:
            place = f"{block.source.path}, line {number}"
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            if on_error == "stop":
                raise InputFileError(
                    f"{place}: {reason}; --on-error skip leaves such lines out and counts them"
                ) from error
            account.skip(place, reason)


def _text_of(line: str, field: str | int | None) -> str:
    """The text of a JSON row; ValueError or TypeError says why there is none."""
    row = json.loads(line)
    if isinstance(row, str) and field is None:
        return row
    if not isinstance(row, dict):
        raise TypeError(f"found {type(row).__name__}, expected an object with a text")
    if field is None:
        usual = [key for key in row if key.lower() in USUAL_FIELDS]
        keys = usual if len(usual) == 1 else list(row) if len(row) == 1 else []
        if not keys:
            shown = ", ".join(repr(key[:40]) for key in list(row)[:20])
            raise ValueError(f"which key holds the text? {shown}; pick one with --field NAME")
        field = keys[0]
    value = row.get(str(field))
    if not isinstance(value, str):
        what = f"is {type(value).__name__}, not a string" if str(field) in row else "is not there"
        raise TypeError(f"the key {str(field)!r} {what}")
    return value


def _without_surrogates(text: str, account: LineAccount) -> str:
    """Lone surrogates, which JSON can spell and no file can hold, become U+FFFD."""
    if text.isascii() or not SURROGATE.search(text):
        return text
    text, count = SURROGATE.subn("\ufffd", text)
    account.surrogates += count
    return text
