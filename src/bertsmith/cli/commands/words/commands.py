"""`bertsmith words near`, `words analogy`, `words evaluate` and `words convert`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.cli.shared.console import table_lines, write_json, write_lines
from bertsmith.cli.shared.data_options import MaxWords
from bertsmith.cli.shared.options import Json
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.api.word_vectors import WordEvaluation
    from bertsmith.classic.word_vectors.evaluation import AnalogyResult
    from bertsmith.classic.word_vectors.word_vectors import NearWord

Vectors = Annotated[
    Path,
    typer.Argument(
        metavar="VECTORS",
        help="Folder of `words train`, or a file of word2vec (text, binary) or GloVe; .gz too.",
    ),
]
Count = Annotated[int, Setting("Number of words.", OUTPUT, flag="-n", min=1)]

Word = Annotated[str, typer.Argument(metavar="WORD", help="A word of the vectors.")]


@spread
def near(
    vectors: Vectors,
    word: Word,
    count: Count = 10,
    max_words: MaxWords = None,
    as_json: Json = False,
) -> None:
    """The words nearest to a word, by cosine.

    Examples:

        bertsmith words near vectors film

        bertsmith words near glove.6B.100d.txt film -n 20 --max-words 100000
    """
    from bertsmith.api.word_vectors import load_word_vectors

    _show_words(load_word_vectors(vectors, most=max_words).near(word, count), as_json)


@spread
def analogy(
    vectors: Vectors,
    a: Annotated[str, typer.Argument(metavar="A", help="A is to B ...")],
    b: Annotated[str, typer.Argument(metavar="B", help="... as C is to the answer.")],
    c: Annotated[str, typer.Argument(metavar="C", help="The word to answer for.")],
    count: Count = 10,
    max_words: MaxWords = None,
    as_json: Json = False,
) -> None:
    """A is to B as C is to what: the words nearest to B - A + C, which are left out themselves.

    Example:

        bertsmith words analogy vectors man king woman
    """
    from bertsmith.api.word_vectors import load_word_vectors

    _show_words(load_word_vectors(vectors, most=max_words).analogy(a, b, c, count), as_json)


@spread
def evaluate(
    vectors: Vectors,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Rated pairs (WS-353, MEN, SimLex ...) or analogies."),
    ],
    max_words: MaxWords = None,
    as_json: Json = False,
) -> None:
    """Compare vectors with published tests: rated pairs by Spearman, analogies by accuracy.

    What a file holds is detected. Words are looked up as written, then in lower case. Only pairs
    and questions whose words are all known count; their share is the coverage.

    Example:

        bertsmith words evaluate vectors EN-WS-353.txt questions-words.txt --max-words 30000
    """
    from bertsmith.api.word_vectors import evaluate_word_vectors

    found = evaluate_word_vectors(vectors, files, most=max_words)
    if as_json:
        write_json(_evaluation_record(found))
        return
    write_lines(_evaluation_lines(found))


@spread
def convert(
    source: Vectors,
    target: Annotated[
        Path,
        typer.Argument(metavar="DST", help="File to write: .bin is binary; .gz is packed."),
    ],
    write_as: Annotated[
        Literal["text", "binary", "glove", "sentence"] | None,
        Setting(
            "text and binary are word2vec's; glove has no line of sizes; sentence is a model "
            "folder for embed, map and search. By the name of DST if unset.",
            OUTPUT,
        ),
    ] = None,
    max_words: MaxWords = None,
) -> None:
    """Write word vectors in another form; numbers stay the same to the last bit.

    Examples:

        bertsmith words convert vectors vectors.txt.gz

        bertsmith words convert glove.6B.100d.txt glove.bin

        bertsmith words convert vectors sentences --write-as sentence
    """
    from bertsmith.api.word_vectors import convert_word_vectors, word_sentence_folder

    if write_as == "sentence":
        written = word_sentence_folder(source, target, most=max_words)
    else:
        written = convert_word_vectors(source, target, form=write_as, most=max_words)
    write_lines([f"{target}: {len(written):,} words, {written.dimension} numbers each"])


def _show_words(found: list[NearWord], as_json: bool) -> None:
    if as_json:
        write_json([{"word": word, "similarity": similarity} for word, similarity in found])
        return
    write_lines([f"{similarity:.4f}  {word}" for word, similarity in found])


def _evaluation_record(found: WordEvaluation) -> dict[str, object]:
    similarity = [{**asdict(one), "coverage": one.coverage} for one in found.similarity]
    analogies = {
        total.name: {
            **_analogy_record(total),
            "sections": [_analogy_record(one) for one in found.analogies[total.name]],
        }
        for total in found.totals()
    }
    return {"similarity": similarity, "analogies": analogies}


def _evaluation_lines(found: WordEvaluation) -> list[str]:
    """A table of rated pairs, and one per file of analogies."""
    tables: list[list[str]] = []
    if found.similarity:
        rows = [
            [
                one.name,
                f"{one.spearman:.4f}",
                f"{one.known:,} of {one.pairs:,}",
                _share(one.coverage),
            ]
            for one in found.similarity
        ]
        tables.append(table_lines(["rated pairs", "Spearman", "pairs", "coverage"], rows))
    for total in found.totals():
        rows = [
            [
                f"all of {one.name}" if one is total else one.name,
                "" if one.known == 0 else f"{one.accuracy:.4f}",
                f"{one.known:,} of {one.questions:,}",
                _share(one.coverage),
            ]
            for one in (*found.analogies[total.name], total)
        ]
        tables.append(table_lines(["analogies", "accuracy", "questions", "coverage"], rows))
    return [line for number, table in enumerate(tables) for line in ["", *table][number == 0 :]]


def _analogy_record(one: AnalogyResult) -> dict[str, object]:
    accuracy = None if one.known == 0 else one.accuracy
    return {**asdict(one), "accuracy": accuracy, "coverage": one.coverage}


def _share(value: float) -> str:
    return f"{value:.1%}"
