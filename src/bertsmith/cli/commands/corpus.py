"""`bertsmith corpus`: text to shards on disk, and words a vocabulary lacks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.shared.options import spread
from bertsmith.errors import ConfigError, InputFileError, WriteError

if TYPE_CHECKING:
    from bertsmith.corpus.shards import Corpus
    from bertsmith.corpus.sources import CorpusSource
    from bertsmith.corpus.vocabulary_advice import Advice
    from bertsmith.text.tokenizer import Tokenizer

app = typer.Typer(help="Turn text into shards for pre-training.", no_args_is_help=True)

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help="Files or folders: .txt .jsonl .csv .tsv, each also .gz or .zst.",
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", help="The model whose tokenizer to use, folder or name.")
]
OnError = Annotated[
    Literal["stop", "skip"],
    typer.Option(
        "--on-error",
        help="stop: a line that cannot be read ends the build, with its place; skip: such lines of "
        ".txt and .jsonl, and empty files, are left out and counted (tables always stop).",
    ),
]
Shards = Annotated[Path, typer.Argument(help="A corpus folder made by `bertsmith corpus build`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How files of text are read."""

    form: Annotated[
        Literal["sentences", "paragraphs", "documents"] | None,
        typer.Option(
            "--form",
            help="What a line of a .txt is. sentences: one sentence, blank lines between "
            "documents; paragraphs: the same, but lines are split; documents: a whole document, "
            "to be split. Detected and printed by default.",
        ),
    ] = None
    field: Annotated[
        str | None,
        typer.Option(
            "--field",
            help="Column (name, or number from 1) or key of the text in tables and .jsonl.",
        ),
    ] = None
    format: Annotated[
        Literal["txt", "tsv", "csv", "jsonl"] | None,
        typer.Option("--format", help="How to read files whose name does not say."),
    ] = None
    encoding: Annotated[
        str, typer.Option("--encoding", help="Encoding; a byte order mark wins.")
    ] = "utf-8"

    @property
    def column(self) -> str | int | None:
        """The field, as a number if it is one."""
        return int(self.field) if self.field is not None and self.field.isdecimal() else self.field


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Which tokenizer; one of the two."""

    model: Model = None
    vocab: Annotated[
        Path | None, typer.Option("--vocab", help="A tokenizer folder instead of --model.")
    ] = None

    def load(self) -> Tokenizer:
        """The tokenizer that was named."""
        from bertsmith.folders.read import load_tokenizer

        if (self.model is None) == (self.vocab is None):
            raise ConfigError(
                "say which tokenizer to use: --model DIR or --vocab DIR (one of them)"
            )
        return load_tokenizer(self.model if self.model is not None else str(self.vocab))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How the result is told."""

    as_json: AsJson = False
    quiet: Annotated[bool, typer.Option("--quiet", help="Only errors and the report.")] = False


@app.command()
@spread
def build(
    files: Files,
    out: Annotated[Path, typer.Option("--out", help="The corpus folder to make.")],
    words: Words,
    reading: Reading,
    segmenter: Annotated[
        Literal["auto", "character", "jieba"],
        typer.Option(
            "--segmenter",
            help="What a word is in Chinese text. auto: jieba if it is installed and a tenth of "
            "the text is Chinese; character: every character, much faster.",
        ),
    ] = "auto",
    on_error: OnError = "stop",
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; one a core by default.")
    ] = None,
    told: Told = Told(),  # noqa: B008 - frozen
) -> None:
    """Turn files of text into memory-mapped shards for pre-training.

    The same command again goes on after a crash; the folder appears only when it is whole, and its
    bytes are the same for any number of workers.

    Examples:

        bertsmith corpus build books.txt --vocab my-vocab --out shards

        bertsmith corpus build reviews.csv.gz --field review --model my-bert --out shards
    """
    from bertsmith.cli.shared.console import meter, note
    from bertsmith.corpus.build import CorpusSettings, build_corpus

    settings = CorpusSettings(
        form=reading.form,
        field=reading.column,
        encoding=reading.encoding,
        format=reading.format,
        segmenter=segmenter,
        on_error=on_error,
    )
    tokenizer = words.load()
    with meter("corpus", quiet=told.quiet) as shown:
        report = build_corpus(
            _paths(files),
            tokenizer,
            out,
            settings,
            workers=workers,
            progress=lambda documents, share: shown.update(documents, share),
            notice=lambda message: note(message, quiet=told.quiet),
        )
    if told.as_json:
        typer.echo(json.dumps(report.as_dict(), ensure_ascii=False, indent=2))
    else:
        typer.echo("\n".join([f"{out}:", *(f"  {line}" for line in report.lines())]))


@app.command()
def verify(shards: Shards) -> None:
    """Read a whole corpus and compare it with its manifest; names a damaged file."""
    from bertsmith.corpus.shards import open_corpus
    from bertsmith.corpus.shards import verify as check

    check(shards)
    counts = open_corpus(shards).manifest["counts"]
    typer.echo(f"{shards} is whole: {counts['documents']:,} documents, {counts['tokens']:,} tokens")


@app.command()
def show(
    shards: Shards,
    documents: Annotated[int, typer.Option(min=1, help="How many documents.")] = 2,
    first: Annotated[int, typer.Option(min=0, help="The number of the first one.")] = 0,
) -> None:
    """Print documents as they will be learned from: one sentence a line.

    Spaces stand between words, middle dots between the pieces of one.
    """
    from bertsmith.corpus.shards import open_corpus

    corpus = open_corpus(shards)
    total = len(corpus.documents) - 1
    if first >= total:
        raise ConfigError(f"{shards} holds {total:,} documents, counted from 0; got {first}")
    for line in _shown(corpus, range(first, min(total, first + documents))):
        typer.echo(line)


@app.command()
@spread
def advise(
    files: Annotated[
        list[str],
        typer.Argument(metavar="SHARDS|FILES", help="A corpus folder, or files of text."),
    ],
    model: Model = None,
    top: Annotated[int, typer.Option(min=1, help="How many words at most.")] = 1000,
    min_count: Annotated[int, typer.Option(min=1, help="How often a word must occur.")] = 5,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the words, one a line, for `extend`.")
    ] = None,
    reading: Reading = Reading(),  # noqa: B008 - frozen
    on_error: OnError = "stop",
    as_json: AsJson = False,
) -> None:
    """Find frequent words that the vocabulary cuts into many pieces, and what adding them saves.

    Examples:

        bertsmith corpus advise shards --out words.txt

        bertsmith corpus advise notes.txt --model my-bert --top 500 --out words.txt
    """
    from bertsmith.corpus.sources import find_sources
    from bertsmith.corpus.vocabulary_advice import advise as find
    from bertsmith.corpus.vocabulary_advice import count_words, count_words_of_files

    corpus = _corpus(files)
    if corpus is not None:
        tokenizer = corpus.tokenizer()
        if model is not None:
            corpus.require_vocabulary(Words(model=model).load(), model)
        counts = count_words(corpus)
    else:
        tokenizer = Words(model=model).load()
        sources: Sequence[CorpusSource] = find_sources(
            _paths(files),
            form=reading.form,
            field=reading.column,
            encoding=reading.encoding,
            format=reading.format,
        )
        counts = count_words_of_files(sources, tokenizer, on_error=on_error)
    advice = find(counts, tokenizer, top=top, min_count=min_count)
    if out is not None:
        _write_words(out, advice)
    if as_json:
        typer.echo(json.dumps(_as_dict(advice), ensure_ascii=False, indent=2))
    else:
        _print_advice(advice, out)


@app.command()
def extend(
    model: Annotated[str, typer.Argument(help="The model to start from, folder or name.")],
    words: Annotated[Path, typer.Argument(help="New words, one a line, as `advise` writes them.")],
    out: Annotated[Path, typer.Argument(help="The new model folder.")],
) -> None:
    """Write a copy of a model that knows new words whole.

    Their embedding rows, and their bias in the masked-LM head, start as the mean of the pieces they
    were cut into before; continue pre-training to teach the model what they mean.
    """
    from bertsmith.files.texts import read_texts
    from bertsmith.folders.vocabulary_growth import extend_model

    listed = [line.strip() for line in read_texts(words, format="txt") if line.strip()]
    if not listed:
        raise InputFileError(f"{words} holds no words; write one a line")
    growth = extend_model(model, listed, out)
    typer.echo(
        f"{out}: {len(growth.words):,} words added with ids from {growth.first:,}; "
        f"the embedding has {growth.rows:,} rows"
    )


def _paths(files: Sequence[str]) -> list[Path]:
    if "-" in files:
        raise InputFileError(
            "a corpus is read more than once, so standard input will not do; save it to a file"
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


def _as_dict(advice: Advice) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(advice) | {"saved": advice.saved, "share": advice.share}


def _print_advice(advice: Advice, out: Path | None) -> None:
    for one in advice.suggestions[:20]:
        typer.echo(f"  {one.word:<24} {one.count:>9,} times  {' '.join(one.pieces)}")
    if len(advice.suggestions) > 20:
        typer.echo(f"  ... and {len(advice.suggestions) - 20:,} more")
    typer.echo(
        f"{len(advice.suggestions):,} words save {advice.saved:,} of {advice.tokens:,} tokens "
        f"({advice.share:.2%})"
    )
    if out is not None:
        typer.echo(f"written to {out}; next: bertsmith corpus extend MODEL {out} OUT")
