"""`bertsmith corpus`: text to shards on disk, and words that a vocabulary lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.cli.shared.console import note, write_json, write_lines
from bertsmith.cli.shared.data_options import TextOptions
from bertsmith.cli.shared.options import Json, ModelArgument, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError, InputFileError, WriteError
from bertsmith.hardware.environment import MOST_THREADS
from bertsmith.setting import COMPUTE, DATA, MODEL, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.corpus.shards import Corpus
    from bertsmith.corpus.sources import CorpusSettings, CorpusSource
    from bertsmith.corpus.vocabulary_advice import Advice
    from bertsmith.text.tokenizer import Tokenizer

SHOWN = 20  # words of the advice

app = typer.Typer(help="Turn text into shards for pre-training.", no_args_is_help=True)

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help="Files or folders: .txt .jsonl .csv .tsv, each also .gz or .zst.",
    ),
]
TokenizerModel = Annotated[
    str | None,
    Setting("Model folder or name: its tokenizer is used.", MODEL, metavar="MODEL"),
]
OnError = Annotated[
    Literal["stop", "skip"],
    Setting(
        "Invalid rows: stop, or skip and count them, unreadable lines of .txt and .jsonl and "
        "empty files (tables always stop).",
        DATA,
    ),
]
Shards = Annotated[
    Path, typer.Argument(metavar="SHARDS", help="Corpus folder made by `bertsmith corpus build`.")
]

CorpusFolder = Annotated[Path, Setting("Output: the corpus folder.", OUTPUT, metavar="DIR")]
CorpusSegmenter = Annotated[
    Literal["auto", "character", "jieba"],
    Setting(
        "Chinese word boundaries: auto, jieba if it is installed and a tenth of the text "
        "is Chinese; character: every character is a word, much faster.",
        DATA,
    ),
]
Workers = Annotated[
    int | None,
    Setting("Processes; one per core if unset.", COMPUTE, min=1, max=MOST_THREADS),
]
MaxWords = Annotated[int, Setting("Maximum number of words.", OUTPUT, min=1)]
MinCount = Annotated[int, Setting("Minimum frequency of a word.", OUTPUT, min=1)]
WordsFile = Annotated[
    Path | None,
    Setting("Output: the words, one per line, for `extend`.", OUTPUT, metavar="FILE"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReading(TextOptions):
    """How files of text are read, and where documents end."""

    form: Annotated[
        Literal["sentences", "paragraphs", "documents"] | None,
        Setting(
            "What a line of a .txt file is. sentences: one sentence, blank lines between "
            "documents; paragraphs: the same, but lines are split into sentences; documents: a "
            "whole document. Detected and printed if unset.",
            DATA,
        ),
    ] = None
    on_error: OnError = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerChoice:
    """Which tokenizer; one of the two."""

    vocab: Annotated[Path | None, Setting("Tokenizer folder.", MODEL, metavar="DIR")] = None
    model: TokenizerModel = None

    def load(self) -> Tokenizer:
        """The tokenizer that was named."""
        from bertsmith.folders.read import load_tokenizer

        if (self.model is None) == (self.vocab is None):
            raise ConfigError("give a tokenizer: either --model MODEL or --vocab DIR")
        return load_tokenizer(self.model if self.model is not None else str(self.vocab))


@app.command()
@spread
def build(
    files: Files,
    out: CorpusFolder,
    words: TokenizerChoice,
    reading: TextReading,
    segmenter: CorpusSegmenter = "auto",
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Turn files of text into memory-mapped shards for pre-training.

    The same command resumes after a crash. The folder appears only when it is complete, and its
    bytes do not depend on the number of workers.

    Examples:

        bertsmith corpus build books.txt --vocab my-vocab --out shards

        bertsmith corpus build reviews.csv.gz --text review --model my-bert --out shards
    """
    from bertsmith.cli.views.progress import meter
    from bertsmith.corpus.build import build_corpus

    settings = replace(_settings(reading), segmenter=segmenter)
    tokenizer = words.load()
    with meter("corpus", quiet=quiet) as shown:
        report = build_corpus(
            _paths(files),
            tokenizer,
            out,
            settings,
            workers=workers,
            progress=shown,
            notice=lambda message: note(message, quiet=quiet),
        )
    if as_json:
        write_json(report.as_dict())
    else:
        write_lines([f"{out}:", *(f"  {line}" for line in report.lines())])


@app.command()
def verify(shards: Shards) -> None:
    """Verify the checksums of a corpus; names a damaged file."""
    from bertsmith.corpus.shards import open_corpus
    from bertsmith.corpus.shards import verify as check

    check(shards)
    counts = open_corpus(shards).manifest["counts"]
    write_lines(
        [f"{shards} is intact: {counts['documents']:,} documents, {counts['tokens']:,} tokens"]
    )


@app.command()
@spread
def show(
    shards: Shards,
    documents: Annotated[int, Setting("Number of documents.", OUTPUT, min=1)] = 2,
    skip: Annotated[int, Setting("Documents to skip.", OUTPUT, min=0)] = 0,
) -> None:
    """Print documents as they are trained on: one sentence per line.

    Spaces separate words, middle dots separate the word pieces of one word.
    """
    from bertsmith.corpus.shards import open_corpus

    corpus = open_corpus(shards)
    total = len(corpus.documents) - 1
    if skip >= total:
        raise ConfigError(f"{shards} holds {total:,} documents, and {skip} are to be skipped")
    write_lines(_shown(corpus, range(skip, min(total, skip + documents))))


@app.command()
@spread
def advise(
    files: Annotated[
        list[str],
        typer.Argument(metavar="SHARDS|FILES", help="Corpus folder, or files of text."),
    ],
    model: TokenizerModel = None,
    max_words: MaxWords = 1000,
    min_count: MinCount = 5,
    out: WordsFile = None,
    reading: TextReading = TextReading(),  # noqa: B008 - frozen
    as_json: Json = False,
) -> None:
    """Find frequent words that the vocabulary splits into many pieces, and what adding them saves.

    Examples:

        bertsmith corpus advise shards --out words.txt

        bertsmith corpus advise notes.txt --model my-bert --max-words 500 --out words.txt
    """
    from bertsmith.corpus.sources import find_sources
    from bertsmith.corpus.vocabulary_advice import advise as find
    from bertsmith.corpus.vocabulary_advice import count_words, count_words_of_files

    corpus = _corpus(files)
    if corpus is not None:
        tokenizer = corpus.tokenizer()
        if model is not None:
            corpus.require_vocabulary(TokenizerChoice(model=model).load(), model)
        counts = count_words(corpus)
    else:
        sources: Sequence[CorpusSource] = find_sources(_paths(files), _settings(reading))
        if model is None:
            raise ConfigError(f"{files[0]} is no corpus folder; for files of text, give --model")
        tokenizer = TokenizerChoice(model=model).load()
        counts = count_words_of_files(sources, tokenizer, on_error=reading.on_error)
    advice = find(counts, tokenizer, top=max_words, min_count=min_count)
    if out is not None:
        _write_words(out, advice)
    if as_json:
        write_json(asdict(advice) | {"saved": advice.saved, "share": advice.share})
    else:
        write_lines(_advice_lines(advice, out))


@app.command()
def extend(
    model: ModelArgument,
    words: Annotated[
        Path, typer.Argument(help="File with new words, one per line, as `advise` writes it.")
    ],
    out: Annotated[Path, typer.Argument(help="Model folder to write.")],
) -> None:
    """Write a copy of a model with new words added to its vocabulary.

    Their embeddings, and their bias in the masked-LM head, start as the mean of the word pieces
    they were split into before; continue pre-training to train them.
    """
    from bertsmith.files.lines import text_lines
    from bertsmith.folders.vocabulary_growth import extend_model

    listed = [line.strip() for line in text_lines(words) if line.strip()]
    if not listed:
        raise InputFileError(f"{words} holds no words; write one per line")
    growth = extend_model(model, listed, out)
    write_lines(
        [
            f"{out}: {len(growth.words):,} words added with ids from {growth.first:,}; "
            f"the embedding has {growth.rows:,} rows"
        ]
    )


def _settings(reading: TextReading) -> CorpusSettings:
    from bertsmith.corpus.sources import CorpusSettings

    return CorpusSettings(
        form=reading.form,
        reading=reading.spec(),
        on_error=reading.on_error,
    )


def _paths(files: Sequence[str]) -> list[Path]:
    if "-" in files:
        raise InputFileError(
            "a corpus is read more than once, so it cannot come from stdin; save it to a file"
        )
    return [Path(file) for file in files]


def _corpus(files: Sequence[str]) -> Corpus | None:
    """The corpus, if what was given is one folder of shards."""
    from bertsmith.corpus.shards import MANIFEST, open_corpus

    if len(files) != 1 or not (Path(files[0]) / MANIFEST).is_file():
        return None
    return open_corpus(Path(files[0]))


def _shown(corpus: Corpus, numbers: range) -> list[str]:
    tokenizer = corpus.tokenizer()
    lines = []
    for number in numbers:
        first, last = corpus.documents[number], corpus.documents[number + 1]
        tokens = int(corpus.sentences[last] - corpus.sentences[first])
        lines.append(f"document {number}: {last - first:,} sentences, {tokens:,} tokens")
        for sentence in range(int(first), int(last)):
            begin, end = int(corpus.sentences[sentence]), int(corpus.sentences[sentence + 1])
            names = [tokenizer.id_to_token(int(i)) or "?" for i in corpus.tokens[begin:end]]
            starts = corpus.starts_word[begin:end].tolist()
            marks = [" " if start else "·" for start in starts]
            pieces = (mark + name for mark, name in zip(marks, names, strict=True))
            lines.append("  " + "".join(pieces).strip())
    return lines


def _write_words(out: Path, advice: Advice) -> None:
    from bertsmith.files.atomic_file import write_staged

    if not advice.suggestions:
        raise WriteError(f"there is no word to write to {out}; lower --min-count")
    write_staged(out, "".join(f"{one.word}\n" for one in advice.suggestions).encode())


def _advice_lines(advice: Advice, out: Path | None) -> list[str]:
    lines = [
        f"  {one.word:<24} {one.count:>9,} times  {' '.join(one.pieces)}"
        for one in advice.suggestions[:SHOWN]
    ]
    if len(advice.suggestions) > SHOWN:
        lines.append(f"  ... and {len(advice.suggestions) - SHOWN:,} more")
    lines.append(
        f"{len(advice.suggestions):,} words save {advice.saved:,} of {advice.tokens:,} tokens "
        f"({advice.share:.2%})"
    )
    if out is not None:
        lines.append(f"written to {out}; next: bertsmith corpus extend MODEL {out} OUT")
    return lines
