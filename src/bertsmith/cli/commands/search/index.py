"""`bertsmith index`: build an index of texts, add to it, delete from it, check it; `pairs`."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.cli.commands.search.pairs import pairs
from bertsmith.cli.shared.console import note, write_lines, write_remarks
from bertsmith.cli.shared.data_options import TextOptions
from bertsmith.cli.shared.inference import ComputeOptions, load_encoder
from bertsmith.cli.shared.options import EncoderOption, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError
from bertsmith.setting import DATA, MODEL, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.api.search import IndexWork
    from bertsmith.labeled.spec import DataSpec

app = typer.Typer(help="Build, extend and check an index of texts.", no_args_is_help=True)

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Texts: .txt (one per line), .tsv, .csv or .jsonl, also .gz or .zst."
    ),
]
IndexArgument = Annotated[
    str,
    typer.Argument(
        metavar="INDEX",
        help="Folder of an index, or postgresql://USER@HOST/DATABASE?table=NAME.",
    ),
]
SameModel = Annotated[
    str | None,
    Setting(
        "Model folder or name; if the index's own is elsewhere now. Another model is refused.",
        MODEL,
        metavar="MODEL",
    ),
]
Out = Annotated[
    Path | None,
    Setting("Output: the folder of the index; or use --store.", OUTPUT, metavar="INDEX"),
]
Database = Annotated[
    str | None,
    Setting(
        "Store the index in PostgreSQL with pgvector instead of a folder: "
        "postgresql://USER@HOST/DATABASE?table=NAME. Needs the extra `postgres`.",
        OUTPUT,
        metavar="ADDRESS",
    ),
]
Dtype = Annotated[
    Literal["float32", "float16", "int8", "binary"],
    Setting(
        "How vectors are stored. int8 and binary scan small codes, then compare float16 rows.", DATA
    ),
]
MetricOption = Annotated[
    Literal["cosine", "dot"] | None,
    Setting("How vectors are compared; the model's way if unset.", DATA),
]
Prompt = Annotated[
    str | None,
    Setting("Name of the model's prompt in front of the texts.", MODEL),
]
QueryPrompt = Annotated[
    str | None,
    Setting("Name of the model's prompt in front of the questions.", MODEL),
]
AnswerColumn = Annotated[
    str | None,
    Setting(
        "Column with answers: the index is a question bank. A number counts columns without a "
        "header; questions are then in column 1.",
        DATA,
        metavar="COLUMN",
    ),
]
NoWords = Annotated[bool, Setting("Do not index words; rules out `search --hybrid`.", DATA)]
Where = Annotated[
    list[str] | None,
    Setting(
        "Only rows whose column matches: label=pos, year>=2020; != < <= > too. Repeatable: all "
        "must match.",
        DATA,
        metavar="CONDITION",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is stored."""

    dtype: Dtype = "float16"
    metric: MetricOption = None
    answer_column: AnswerColumn = None
    no_words: NoWords = False
    prompt: Prompt = None
    query_prompt: QueryPrompt = None


@app.callback()
def index() -> None:
    """Build, extend and check an index of texts."""


@app.command()
@spread
def build(
    file: File,
    model: EncoderOption,
    reading: TextOptions,
    contents: Contents,
    computing: ComputeOptions,
    out: Out = None,
    store: Database = None,
    quiet: Quiet = False,
) -> None:
    """Encode a file of texts and write an index, which `bertsmith search` reads.

    All columns of the file are stored, for results and --where. Memory is bounded for any file
    size; after a crash the same command resumes. From 100,000 rows on, searches use a graph, which
    needs the extra `search` (in a folder); its recall is measured and printed.

    Examples:

        bertsmith index build texts.txt --model all-MiniLM-L6-v2 --out my-index

        bertsmith index build faq.tsv --answer-column 2 --model all-MiniLM-L6-v2 --out my-bank

        bertsmith index build texts.txt --model M --store 'postgresql://me@host/db?table=texts'
    """
    from bertsmith.api.search import IndexOptions, build_index
    from bertsmith.cli.views.progress import meter

    place = _place(out, store)
    start = time.perf_counter()
    with meter("index", quiet=quiet) as shown:
        work = build_index(
            file,
            load_encoder(model, computing, quiet=quiet),
            place,
            reading=_spec(reading, contents.answer_column),
            on_error=reading.on_error,
            options=IndexOptions(
                dtype=contents.dtype,
                metric=contents.metric,
                prompt=contents.prompt,
                query_prompt=contents.query_prompt,
                words=not contents.no_words,
                answer_column=contents.answer_column,
            ),
            precision=computing.precision,
            watch=shown,
        )
    _report(work, place, time.perf_counter() - start, quiet=quiet)


@app.command()
@spread
def add(
    index: IndexArgument,
    file: File,
    reading: TextOptions,
    computing: ComputeOptions,
    model: SameModel = None,
    again: Annotated[
        bool, Setting("Add the rows of a file that was added before once more.", DATA)
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Add the texts of a file to an index; searches see them when all are there.

    After a crash the same command resumes.

    Example:

        bertsmith index add my-index more.txt
    """
    from bertsmith.api.search import add_to_index
    from bertsmith.cli.views.progress import meter
    from bertsmith.search.index import named_model

    name = model or named_model(index)
    start = time.perf_counter()
    with meter("add", quiet=quiet) as shown:
        work = add_to_index(
            index,
            file,
            model=load_encoder(name, computing, quiet=quiet),
            reading=_spec(reading, None),
            on_error=reading.on_error,
            again=again,
            precision=computing.precision,
            watch=shown,
        )
    _report(work, index, time.perf_counter() - start, quiet=quiet)


@app.command()
@spread
def delete(
    index: IndexArgument,
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="ID...", help="Ids, as `search` shows them.")
    ] = None,
    where: Where = None,
) -> None:
    """Delete rows by id, or all rows that match --where.

    Examples:

        bertsmith index delete my-index 3 17

        bertsmith index delete my-index --where label=old
    """
    from bertsmith.api.search import delete_from_index
    from bertsmith.search.index import place_name
    from bertsmith.wording import counted

    deleted = delete_from_index(index, ids or [], where=where or None)
    write_lines([f"{counted(deleted, 'row')} deleted from {place_name(index)}"])


@app.command()
def check(index: IndexArgument) -> None:
    """Compare every file of an index with its recorded hash, and its parts with each other.

    In a database: that the rows, their words and what is recorded about them fit together.

    Example:

        bertsmith index check my-index
    """
    from bertsmith.api.search import check_index
    from bertsmith.search.index import place_name

    lines = check_index(index)
    write_lines([f"{place_name(index)}: sound", *(f"  {line}" for line in lines)])


@app.command()
@spread
def tune(
    index: IndexArgument,
    pairs: Annotated[
        Path,
        typer.Argument(
            metavar="PAIRS", help="question<TAB>question<TAB>1 (they ask the same) or 0 per line."
        ),
    ],
    model: SameModel = None,
) -> None:
    """Choose the similarity below which a question bank gives no answer, by pairs of questions.

    Example:

        bertsmith index tune my-bank pairs.tsv
    """
    from bertsmith.api.search import tune_question_bank
    from bertsmith.search.index import place_name

    bank = tune_question_bank(index, pairs, model=model)
    write_lines(
        [
            f"{place_name(index)}: no answer below a similarity of {bank.threshold:.3f} "
            f"(F1 {bank.f1:.3f} on {bank.pairs:,} pairs)"
        ]
    )


app.command()(pairs)


def _spec(reading: TextOptions, answers: str | None) -> DataSpec:
    """How the file is read; a numbered column of answers stands behind questions in column 1."""
    if answers is not None and answers.isdecimal() and reading.text is None:
        reading = replace(reading, text=["1"], header=reading.header or False)
    return reading.spec()


def _place(out: Path | None, store: str | None) -> str:
    """Where an index is to be built."""
    from bertsmith.search.postgres.address import EXAMPLE, Address, is_address

    if (out is None) == (store is None):
        raise ConfigError("give the folder of the index with --out, or a database with --store")
    if out is not None:
        if is_address(out):
            raise ConfigError("give the address of a database with --store, not with --out")
        return str(out)
    if not is_address(store or ""):
        raise ConfigError(f"--store takes an address of the form {EXAMPLE}")
    Address.parse(store or "")  # before the model is loaded
    return store or ""


def _report(work: IndexWork, index: str, seconds: float, *, quiet: bool) -> None:
    from bertsmith.search.index import place_name
    from bertsmith.search.recall import recall_words
    from bertsmith.wording import counted, duration

    for remark in work.reading.notes() if work.reading else ():
        note(remark, quiet=quiet)
    if work.replaced:
        note("unfinished work with other settings or another file was discarded", quiet=quiet)
    if quiet or work.manifest is None:
        return
    manifest = work.manifest
    place = place_name(index)
    if work.complete:
        lines = [f"{place}: complete already, {counted(manifest.rows, 'row')}"]
    else:
        lines = [
            f"{place}: {counted(work.rows, 'row')} added in {duration(seconds)}; "
            f"{counted(manifest.rows, 'row')} of {manifest.dimension} dimensions, "
            f"{manifest.stored}"
        ]
    if work.resumed:
        lines.append(f"  {counted(work.resumed, 'row')} of them were there from an earlier run")
    if work.encoding is not None and work.encoding.cut_texts:
        lines.append(f"  {work.encoding.cuts()}")
    graph = getattr(manifest, "graph", None)
    if graph is not None:
        lines.append(f"  graph: {recall_words(graph.recall)}")
    if manifest.bank is not None and manifest.bank.threshold is None:
        lines.append(
            f"  every question gets an answer; to refuse unknown ones: bertsmith index tune "
            f"{place} PAIRS"
        )
    write_remarks(lines)
