"""`bertsmith generate`: text written by a model for a text or the rows of a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.commands.generation.filling import (
    FillingChoice,
    GenerateOutput,
    write_by_filling,
)
from bertsmith.cli.shared.console import note, write_json, write_lines, write_piece
from bertsmith.cli.shared.data_options import FirstRows, TextOptions, is_data_file
from bertsmith.cli.shared.options import Device, Threads
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.row_files import (
    AnswerWords,
    Counts,
    RowInput,
    answer_rows,
    check_out,
    folder_and_input,
    rows_of,
)
from bertsmith.errors import ConfigError
from bertsmith.runtime.generation.options import GenerationOptions

if TYPE_CHECKING:
    from bertsmith.labeled.spec import DataSpec
    from bertsmith.runtime.generation.generator import TextGenerator
    from bertsmith.runtime.generation.options import Answer, Generated

What = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR [FILE|TEXT]",
        help="Model folder that writes, then a file, a text, or - for stdin; a masked LM alone "
        "writes by filling.",
    ),
]


@spread
def generate(
    what: What,
    options: GenerationOptions,
    filling: FillingChoice,
    reading: TextOptions,
    output: GenerateOutput,
    rows: FirstRows = None,
    device: Device = "cpu",
    threads: Threads = None,
) -> None:
    """Write text with a model: continue a prompt (GPT, GPT-2), or answer a source (BART, UniLM).

    Without --beams and --sample, every token is the likeliest one. A file may have any size; all
    of its columns are kept, rows stay in order, and the same command resumes after an
    interruption. Every answer says why it stopped: the model ended it (end), --max-new was reached
    (length), or the model has no positions for more (positions).

    Examples:

        bertsmith generate my-gpt "The film was" --sample --top-p 0.9 --answers 3

        bertsmith generate my-bart "a long source text" --beams 4 --no-repeat 3

        bertsmith generate my-gpt "The film was" --stream

        bertsmith generate my-model articles.tsv --out summaries.jsonl --beams 4

        cat prompts.txt | bertsmith generate my-gpt -

    A masked LM (BERT) without a text writes by filling: --length masks, of which --fill-steps times
    one is drawn anew with all others in sight.

        bertsmith generate my-bert --length 20 --fill-steps 500 --seed 3

        bertsmith generate my-bert --start "the film was [MASK] [MASK] ." --fill-order left_to_right
    """
    if len(what) == 1 and filling.is_given:
        write_by_filling(what[0], filling, options, output, device=device, threads=threads)
        return
    folder, given = folder_and_input(
        what,
        folder="a model folder that writes",
        example='generate my-gpt "The film was"; a masked LM writes without a text: '
        "bertsmith generate my-bert --length 20",
    )
    filling.refuse()
    from_file = given == "-" or is_data_file(given)
    if output.stream and (from_file or output.as_json or output.scores):
        other = "a file" if from_file else "--json" if output.as_json else "--scores"
        raise ConfigError(f"--stream prints one text word by word, without {other}; choose one")
    check_out(given, output.out, from_file=from_file)
    with _generator(folder, options, device=device, threads=threads) as generator:
        generator.plan(options)  # options that cannot be are refused before anything is read
        if from_file:
            with rows_of(given, reading, rows) as source:
                _file(generator, folder, source, options, output)
        elif output.stream:
            _stream(generator, given, options)
        else:
            _one(generator, given, options, output)


@contextmanager
def _generator(
    folder: str, options: GenerationOptions, *, device: str, threads: int | None
) -> Iterator[TextGenerator]:
    import torch

    from bertsmith.hardware.environment import thread_count
    from bertsmith.runtime.loading import load

    torch.set_num_threads(threads or thread_count())
    with load(folder, device=device, precision="fp32", threads=threads) as model:
        yield model.generator(options.by)


def _stream(generator: TextGenerator, text: str, options: GenerationOptions) -> None:
    for piece in generator.stream(text, options):
        write_piece(piece)
    write_piece("\n")


def _one(
    generator: TextGenerator, text: str, options: GenerationOptions, output: GenerateOutput
) -> None:
    if not text.strip():
        raise ConfigError("the text is empty; give one in quotes")
    (generated,) = generator.generate([text], options)
    if output.as_json:
        write_json({"text": text, "answers": [one.to_json() for one in generated.answers]})
        return
    write_lines(_answer_lines(generated, scores=output.scores))
    for answer in generated.answers[:1]:
        if answer.stopped != "end":
            note(_why(answer), quiet=output.quiet)


def _answer_lines(generated: Generated, *, scores: bool) -> list[str]:
    several = len(generated.answers) > 1
    lines = []
    for number, answer in enumerate(generated.answers, start=1):
        cells = [str(number)] if several else []
        cells += [f"{answer.score:.4f}"] if scores else []
        lines.append("\t".join([*cells, answer.text]))
    return lines


def _why(answer: Answer) -> str:
    if answer.stopped == "length":
        return f"stopped after {len(answer.ids)} tokens (--max-new); the text may not be complete"
    return f"stopped after {len(answer.ids)} tokens: the model has no positions for more"


def _file(
    generator: TextGenerator,
    folder: str,
    rows: RowInput,
    options: GenerationOptions,
    output: GenerateOutput,
) -> None:
    from bertsmith.folders.resolve import resolve
    from bertsmith.labeled.texts import text_spec
    from bertsmith.runtime.answers import RowTexts
    from bertsmith.runtime.row_files import trained_spec

    given = _as_trained(rows.path, rows.spec, trained_spec(resolve(folder)))
    spec = text_spec(rows.path, given)
    answer_rows(
        RowTexts(generator, options, scores=output.scores),
        replace(rows, spec=spec.model_copy(update={"empty": None})),  # empty texts get no answer
        folders=[folder],
        output=output,
        words=AnswerWords(command="generate", done="generated", result="an answer", lines=_stopped),
    )


def _stopped(counts: Counts) -> list[str]:
    reasons = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    return [f"stopped by: {reasons}"] if reasons else []


def _as_trained(path: Path, given: DataSpec, trained: DataSpec | None) -> DataSpec:
    """The source column of training, unless another is given or the file has none of its name."""
    from bertsmith.labeled.guess.guess_spec import guess_spec

    text = (trained.text or ()) if trained is not None else ()
    if given.text is not None or not text or not isinstance(text[0], str):
        return given
    guessed = guess_spec(path, given=given, labeled=False)
    names = guessed.columns if guessed.keys is None else guessed.keys
    if names is None or isinstance(names, int) or text[0] not in names:
        return given
    return given.model_copy(update={"text": text[:1]})
