"""The files of a corpus, how each is read and segmented, decided before the build begins."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from bertsmith.errors import InputFileError, MissingExtraError, unknown
from bertsmith.files.encodings import check_encoding, settle_encoding
from bertsmith.files.streams import format_suffix, read_start
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.texts import Texts, text_spec
from bertsmith.text.segment import is_chinese
from bertsmith.text.sentences import split_sentences

Form = Literal["sentences", "paragraphs", "documents"]
FORMS: tuple[str, ...] = get_args(Form)
ENDINGS = ("txt", "tsv", "csv", "jsonl", "ndjson", "json")
BY_LINES = ("lines", "jsonl")  # formats whose lines are read in parallel
SAMPLE = 1 << 20
OnError = Literal["stop", "skip"]
SegmenterChoice = Literal["auto", "character", "jieba"]
NOTABLE = 0.1  # share of ideographs among the characters of the samples
SAMPLES = 20
FORM_WORDS = {
    "sentences": "one sentence per line, blank lines between documents (--form sentences)",
    "paragraphs": "lines to be split, blank lines between documents (--form paragraphs)",
    "documents": "one document per line, to be split into sentences (--form documents)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSettings:
    """How files are read and words segmented; None means: look at the file and decide."""

    form: Form | None = None
    reading: DataSpec = field(default_factory=DataSpec)
    """Format, columns, encoding ...; what is open is guessed for each file."""
    segmenter: SegmenterChoice = "auto"
    on_error: OnError = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSource:
    """A file of texts and how it is to be read.

    `form` is what a line holds: "sentences" one sentence, blank lines between documents;
    "paragraphs" the same with lines that are split into sentences; "documents" a whole document.
    `spec` says how its rows are read, `mark` is the length of the byte order mark.
    """

    path: Path
    spec: DataSpec
    form: Form
    encoding: str
    mark: int
    size: int

    @property
    def key(self) -> str | None:
        """The key of the text in a row of JSON; None if the row is the text."""
        return str(self.spec.text[0]) if self.spec.text else None

    @property
    def by_lines(self) -> bool:
        """Whether each line stands for itself, so that blocks of lines can be read in parallel."""
        return self.spec.format in BY_LINES and not (
            self.spec.format == "jsonl" and format_suffix(self.path) == "json"
        )

    def texts(self) -> Texts:
        """The texts of a table, or of another format whose rows are not single lines."""
        return Texts(self.path, self.spec)

    @property
    def blank_lines_part(self) -> bool:
        """Whether blank lines, and not line ends, stand between documents."""
        return self.form != "documents"


def find_sources(
    paths: Iterable[Path],
    settings: CorpusSettings = CorpusSettings(),  # noqa: B008 - frozen
) -> list[CorpusSource]:
    """Look into each file, or each file of a folder, and settle how it is read."""
    form, text = settings.form, settings.reading.text
    if form is not None and form not in FORMS:
        raise unknown("form", form, FORMS)
    files = [file for path in paths for file in _files_of(path)]
    if not files:
        raise InputFileError("no files were given; name files of texts, or folders of them")
    sources = [_source(path, settings) for path in files]
    lines = [source for source in sources if source.spec.format == "lines"]
    if form is not None and not lines:
        raise InputFileError(
            f"--form {form} is for lines of text; of {files[0]} each row is a document"
        )
    if text is not None and len(lines) == len(sources):
        raise InputFileError(
            f"{files[0]} is read as lines of text, which have no column {text[0]!r}; "
            "set --format delimited if it is a table"
        )
    return sources


def sample_text(source: CorpusSource) -> str:
    """The start of a file as text, faults replaced, to see what it holds."""
    if not source.by_lines:
        texts = []
        length = 0
        for text in source.texts():
            texts.append(text)
            length += len(text)
            if length > SAMPLE // 4:
                break
        return "\n".join(texts)
    return read_start(source.path, SAMPLE)[source.mark :].decode(source.encoding, "replace")


def detect_form(text: str) -> Form:
    """Sentences, if blank lines stand between groups of lines; else one document per line."""
    groups = [0]
    for line in text.split("\n"):
        if line.strip():
            groups[-1] += 1
        elif groups[-1]:
            groups.append(0)
    filled = [lines for lines in groups if lines]
    return "sentences" if len(filled) > 1 and sum(filled) > len(filled) else "documents"


def describe_sources(sources: Sequence[CorpusSource]) -> list[str]:
    """How the files are read, one line for each way, with a hint where another way may fit."""
    ways: dict[str, list[CorpusSource]] = {}
    for source in sources:
        plain = source.spec.format == "lines"
        reading = FORM_WORDS[source.form] if plain else source.spec.summary()
        coded = "" if source.encoding == "utf-8" else f", {source.encoding}"
        ways.setdefault(reading + coded, []).append(source)
    lines = []
    for way, members in ways.items():
        more = f" and {len(members) - 3:,} more" if len(members) > 3 else ""
        names = ", ".join(source.path.name for source in members[:3])
        lines.append(f"{names}{more}: {way}")
        if members[0].form == "sentences" and (share := _sentences_per_line(members[0])) > 2:
            lines.append(
                f"  its lines hold about {share:.1f} sentences each; --form paragraphs splits them"
            )
    return lines


def _sentences_per_line(source: CorpusSource) -> float:
    lines = [line for line in sample_text(source)[:50_000].split("\n") if line.strip()]
    return sum(len(split_sentences(line)) for line in lines) / max(1, len(lines))


def _files_of(path: Path) -> list[Path]:
    """The file itself, or everything of a known kind below a folder, sorted by name."""
    if not path.is_dir():
        if not path.exists():
            raise InputFileError(f"there is no file {path}")
        return [path]
    files = sorted(p for p in path.rglob("*") if p.is_file() and format_suffix(p) in ENDINGS)
    if not files:
        endings = " ".join(f".{name}" for name in ENDINGS)
        raise InputFileError(f"{path} holds no files that end in {endings} (or .gz, .zst)")
    return files


def _source(path: Path, settings: CorpusSettings) -> CorpusSource:
    given = settings.reading
    if given.format is None and format_suffix(path) == "txt":
        given = given.model_copy(update={"text": None})  # for the tables among the files
    spec = text_spec(path, given)
    start = read_start(path, SAMPLE)
    declared = check_encoding(settings.reading.encoding or "utf-8")
    settled, mark = settle_encoding(str(path), start, declared)
    line_form: Form = "documents"
    if spec.format == "lines":
        line_form = settings.form or detect_form(start[mark:].decode(settled, "replace"))
    return CorpusSource(
        path=path,
        spec=spec,
        form=line_form,
        encoding=settled,
        mark=mark,
        size=path.stat().st_size,
    )


def choose_segmenter(
    name: SegmenterChoice, sources: Sequence[CorpusSource], notice: Callable[[str], None]
) -> str:
    """The segmenter in use; "auto" takes jieba for Chinese text where it is installed."""
    if name not in get_args(SegmenterChoice):
        raise unknown("segmenter", name, get_args(SegmenterChoice))
    if name == "jieba" and importlib.util.find_spec("rjieba") is None:
        raise MissingExtraError("rjieba", "zh")  # before the work, not in a worker
    if name != "auto":
        return name
    share = chinese_share(sources)
    if share < NOTABLE:
        return "character"
    if importlib.util.find_spec("rjieba") is None:
        notice(
            f"{share:.0%} Chinese, but rjieba is not installed: every character counts as a word; "
            "for whole words run: pip install 'bertsmith[zh]'"
        )
        return "character"
    notice(
        f"{share:.0%} Chinese: words are segmented by jieba "
        "(--segmenter character is faster, for schemes that hide single characters)"
    )
    return "jieba"


def chinese_share(sources: Sequence[CorpusSource]) -> float:
    """The part of the visible characters, at the start of up to 20 files, that is Chinese."""
    chinese = visible = 0
    for source in sources[:: max(1, len(sources) // SAMPLES)][:SAMPLES]:
        text = sample_text(source)[:50_000]
        chinese += sum(map(is_chinese, text))
        visible += sum(not character.isspace() for character in text)
    return chinese / max(1, visible)
