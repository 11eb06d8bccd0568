"""Which files a corpus is made of and how each is read: looked at before the work begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from bertsmith.corpus.documents import FORMS, TABLES, Form, Source
from bertsmith.errors import InputFileError, unknown
from bertsmith.files.encodings import byte_order_mark, check_encoding, unmarked_utf16
from bertsmith.files.streams import PACKINGS, ByteStream, packing_of
from bertsmith.files.texts import FORMATS, Format, read_texts
from bertsmith.text.sentences import split_sentences

SAMPLE = 1 << 20
FORM_WORDS = {
    "sentences": "one sentence a line, blank lines between documents (--form sentences)",
    "paragraphs": "lines to be split, blank lines between documents (--form paragraphs)",
    "documents": "one document a line, to be split into sentences (--form documents)",
}


def find_sources(
    paths: Sequence[Path],
    *,
    form: Form | None = None,
    field: str | int | None = None,
    encoding: str = "utf-8",
    format: Format | None = None,
) -> list[Source]:
    """Look into each file, or each file of a folder, and settle how it is read."""
    files = [file for path in paths for file in _files_of(path)]
    if not files:
        raise InputFileError("no files were given; name files of texts, or folders of them")
    sources = [_source(path, form, field, encoding, format) for path in files]
    lines = [source for source in sources if source.kind == "txt"]
    if form is not None and not lines:
        raise InputFileError(
            f"--form {form} is for .txt files; of {files[0]} each row is a document"
        )
    if field is not None and len(lines) == len(sources):
        raise InputFileError(f"{files[0]} is read as lines of text, which have no field {field!r}")
    return sources


def sample_text(source: Source) -> str:
    """The start of a file as text, faults replaced, to judge what it holds."""
    if source.kind in TABLES:
        found = []
        length = 0
        for text in read_texts(source.path, field=source.field, encoding=source.encoding):
            found.append(text)
            length += len(text)
            if length > SAMPLE // 4:
                break
        return "\n".join(found)
    return _start(source.path, SAMPLE)[source.mark :].decode(source.encoding, "replace")


def detect_form(text: str) -> Form:
    """Sentences, if blank lines stand between groups of lines; else one document a line."""
    groups = [0]
    for line in text.split("\n"):
        if line.strip():
            groups[-1] += 1
        elif groups[-1]:
            groups.append(0)
    filled = [lines for lines in groups if lines]
    return "sentences" if len(filled) > 1 and sum(filled) > len(filled) else "documents"


def describe_sources(sources: Sequence[Source]) -> list[str]:
    """How the files are read, one line for each way, with a hint where another way may fit."""
    ways: dict[str, list[Source]] = {}
    for source in sources:
        reading = FORM_WORDS[source.form] if source.kind == "txt" else "one document a row"
        coded = "" if source.encoding == "utf-8" else f", {source.encoding}"
        ways.setdefault(reading + coded, []).append(source)
    lines = []
    for way, members in ways.items():
        more = f" and {len(members) - 3:,} more" if len(members) > 3 else ""
        names = ", ".join(source.path.name for source in members[:3])
        lines.append(f"{names}{more}: {way}")
        if members[0].form == "sentences" and (share := _sentences_a_line(members[0])) > 2:
            lines.append(
                f"  its lines hold about {share:.1f} sentences each; --form paragraphs splits them"
            )
    return lines


def _sentences_a_line(source: Source) -> float:
    lines = [line for line in sample_text(source)[:50_000].split("\n") if line.strip()]
    return sum(len(split_sentences(line)) for line in lines) / max(1, len(lines))


def _files_of(path: Path) -> list[Path]:
    """The file itself, or everything of a known kind below a folder, sorted by name."""
    if not path.is_dir():
        if not path.exists():
            raise InputFileError(f"there is no file {path}")
        return [path]
    found = sorted(p for p in path.rglob("*") if p.is_file() and _ending(p) in FORMATS)
    if not found:
        endings = " ".join(f".{name}" for name in FORMATS)
        raise InputFileError(f"{path} holds no files that end in {endings} (or .gz, .zst)")
    return found


def _ending(path: Path) -> str:
    name = path.name.lower()
    for packing in PACKINGS:
        name = name.removesuffix(packing)
    return name.rpartition(".")[2] if "." in name else ""


def _source(
    path: Path, form: Form | None, field: str | int | None, encoding: str, format: Format | None
) -> Source:
    kind = format or _ending(path)
    if kind not in FORMATS:
        raise InputFileError(
            f"{path}: its name does not end in .txt .jsonl .csv .tsv (each may be .gz or .zst); "
            "say how to read it with --format, for example --format txt"
        )
    if form is not None and form not in FORMS:
        raise unknown("form", form, FORMS)
    if kind in TABLES and packing_of(path) == ".zst":
        raise InputFileError(f"{path}: tables are read plain or from .gz; unpack it first")
    start = _start(path, SAMPLE)
    settled, mark = _settle_encoding(path, start, check_encoding(encoding))
    found: Form = "documents"
    if kind == "txt":
        found = form or detect_form(start[mark:].decode(settled, "replace"))
    return Source(
        path=path,
        kind=_kind(kind),
        form=found,
        field=None if kind == "txt" else field,
        encoding=settled,
        mark=mark,
        size=path.stat().st_size,
    )


def _kind(name: str) -> Format:
    for known in get_args(Format):
        if known == name:
            kind: Format = known
            return kind
    raise unknown("format", name, FORMATS)


def _start(path: Path, size: int) -> bytes:
    stream = ByteStream(path)
    start = b""
    for chunk in stream:
        start += chunk
        if len(start) >= size:
            break
    stream.close()
    return start[:size]


def _settle_encoding(path: Path, start: bytes, declared: str) -> tuple[str, int]:
    """The encoding in use and the length of the byte order mark, which always wins."""
    marked = byte_order_mark(start)
    if marked is not None:
        return marked
    if declared == "utf-8" and (guess := unmarked_utf16(start)) is not None:
        raise InputFileError(
            f"{path} has a NUL in every second byte and no byte order mark: it looks like {guess}; "
            f"read it with --encoding {guess}"
        )
    return declared, 0
