"""`bertsmith search`: the nearest texts of an index, or the answers of a question bank."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.commands.search.index import (
    IndexArgument,
    SameModel,
    Where,
)
from bertsmith.cli.shared.console import note, write_json, write_lines
from bertsmith.cli.shared.inference import ComputeOptions, load_encoder
from bertsmith.cli.shared.options import Json
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.setting import DATA, Setting

if TYPE_CHECKING:
    from bertsmith.search.index import Index
    from bertsmith.search.question_bank import Reply
    from bertsmith.search.store import Hit

Question = Annotated[
    str | None, typer.Argument(metavar="QUESTION", help="What to look for; or use --file.")
]
Count = Annotated[
    int, Setting("Number of results; per question.", DATA, flag="-k", metavar="COUNT", min=1)
]
Questions = Annotated[
    Path | None,
    Setting("File of questions: .txt (one per line), .tsv, .csv or .jsonl.", DATA),
]
Hybrid = Annotated[bool, Setting("Fuse the ranking by vectors with that by words (BM25).", DATA)]
Weight = Annotated[
    float,
    Setting("Weight of the words in --hybrid; vectors have 1.", DATA, min=0),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Which rows, in which order."""

    k: Count = 5
    where: Where = None
    hybrid: Hybrid = False
    word_weight: Weight = 1.0


@spread
def search(
    index: IndexArgument,
    ranking: Ranking,
    computing: ComputeOptions,
    question: Question = None,
    model: SameModel = None,
    file: Questions = None,
    as_json: Json = False,
) -> None:
    """Search an index: similarity, id, text and columns of the nearest rows.

    A question bank answers with the answer of its nearest question, or with "no answer".

    Examples:

        bertsmith search my-index "how do I read a file?" -k 3

        bertsmith search my-index --file questions.txt --where label=pos --hybrid --json
    """
    if (question is None) == (file is None):
        raise ConfigError("give a question, or a file of questions with --file")
    questions = [question] if question is not None else _questions(file)
    from bertsmith.search.index import Index, named_model

    encoder = load_encoder(model or named_model(index), computing, quiet=True)
    with Index.open(index, encoder, precision=computing.precision) as opened:
        if opened.manifest.bank is None:
            _show_hits(opened, questions, ranking, as_json=as_json)
        else:
            _show_answers(opened, questions, ranking, as_json=as_json)


def _questions(file: Path | None) -> list[str]:
    from bertsmith.labeled.texts import read_texts

    listed = [text for text in read_texts(file or Path()) if text.strip()]
    if not listed:
        raise InputFileError(f"{file} holds no questions")
    return listed


def _show_hits(index: Index, questions: list[str], ranking: Ranking, *, as_json: bool) -> None:
    found = index.search(
        questions,
        ranking.k,
        where=ranking.where,
        hybrid=ranking.hybrid,
        weights=(1.0, ranking.word_weight),
    )
    if as_json:
        write_json(
            [
                {"question": question, "hits": [asdict(hit) for hit in hits]}
                for question, hits in zip(questions, found, strict=True)
            ]
        )
        return
    for question, hits in zip(questions, found, strict=True):
        if len(questions) > 1:
            write_lines([f"? {_line(question)}"])
        if not hits:
            note("no row of the index matches --where")
        write_lines([_hit_line(hit) for hit in hits])


def _show_answers(index: Index, questions: list[str], ranking: Ranking, *, as_json: bool) -> None:
    replies = index.answer(questions, where=ranking.where, hybrid=ranking.hybrid)
    if as_json:
        write_json(
            [
                {"question": question, **_reply_record(reply)}
                for question, reply in zip(questions, replies, strict=True)
            ]
        )
        return
    for question, reply in zip(questions, replies, strict=True):
        if len(questions) > 1:
            write_lines([f"? {_line(question)}"])
        answer = "no answer" if reply.answer is None else _line(reply.answer)
        write_lines([answer, f"  {reply.similarity:.3f}  {_line(reply.question)}"])


def _reply_record(reply: Reply) -> dict[str, object]:
    return {
        "answer": reply.answer,
        "similarity": reply.similarity,
        "nearest": reply.question,
        "id": reply.id,
    }


def _hit_line(hit: Hit) -> str:
    columns = ", ".join(f"{name}={_line(value)}" for name, value in hit.meta.items())
    rest = f"  [{columns}]" if columns else ""
    return f"{hit.similarity:.3f}  {hit.id:>6}  {_line(hit.text)}{rest}"


def _line(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())
