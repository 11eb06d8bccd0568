"""`bertsmith correct`: spelling mistakes in a text or the rows of a file, corrected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.console import note, write_json, write_lines
from bertsmith.cli.shared.data_options import FirstRows, TextOptions, is_data_file
from bertsmith.cli.shared.options import Device
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.row_files import (
    AnswerOutput,
    AnswerWords,
    RowInput,
    answer_rows,
    check_out,
    folder_and_input,
    rows_of,
)
from bertsmith.errors import ConfigError
from bertsmith.setting import OUTPUT, Setting
from bertsmith.tasks.spelling.settings import CorrectionOptions

if TYPE_CHECKING:
    from bertsmith.runtime.corrector import Corrector
    from bertsmith.tasks.spelling.edits import CorrectedText

What = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR FILE|TEXT",
        help="Folder of a corrector, then a file, a text, or - for stdin.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectOutput(AnswerOutput):
    """The same; a single text may show its changes in place."""

    diff: Annotated[bool, Setting("Show changes in place: [-wrong-]{+right+}.", OUTPUT)] = False


@spread
def correct(
    what: What,
    reading: TextOptions,
    output: CorrectOutput,
    options: CorrectionOptions,
    rows: FirstRows = None,
    device: Device = "cpu",
) -> None:
    """Correct spelling mistakes in Chinese text: one character for one, nothing else is touched.

    The model comes from `bertsmith finetune pairs.tsv --task correct`. A file may have any size;
    its columns are kept, and the same command resumes after an interruption.

    Examples:

        bertsmith correct my-corrector "他每天坐公交车去上斑"

        bertsmith correct my-corrector "他每天坐公交车去上斑" --diff

        bertsmith correct my-corrector letters.txt --out corrected.jsonl
    """
    from bertsmith.runtime.corrector import Corrector

    folder, given = folder_and_input(
        what, folder="the folder of a corrector", example='correct my-corrector "..."'
    )
    from_file = given == "-" or is_data_file(given)
    if from_file and (output.diff or output.as_json):
        name = "--diff" if output.diff else "--json"
        raise ConfigError(f"{name} is for a single text; rows of a file have their edits as JSON")
    check_out(given, output.out, from_file=from_file)
    corrector = Corrector.load(folder, device=device)
    if not from_file:
        _one(corrector, given, options, output)
        return
    with rows_of(given, reading, rows) as source:
        _file(corrector, folder, source, options, output)


def _one(
    corrector: Corrector, text: str, options: CorrectionOptions, output: CorrectOutput
) -> None:
    if not text.strip():
        raise ConfigError("the text is empty; give one in quotes")
    (found,) = corrector.correct([text], threshold=options.threshold)
    if output.as_json:
        write_json(found.to_json())
        return
    write_lines([marked(found) if output.diff else found.corrected])
    for edit in found.edits:
        note(f"{edit.start}: {edit.wrong} -> {edit.right} ({edit.score:.2f})", quiet=output.quiet)


def _file(
    corrector: Corrector,
    folder: str,
    rows: RowInput,
    options: CorrectionOptions,
    output: CorrectOutput,
) -> None:
    from bertsmith.labeled.texts import text_spec
    from bertsmith.runtime.answers import RowCorrections

    spec = text_spec(rows.path, rows.spec)
    answer_rows(
        RowCorrections(corrector, options),
        replace(rows, spec=spec.model_copy(update={"empty": None})),  # empty texts stay as they are
        folders=[folder],
        output=output,
        words=AnswerWords(
            command="correct",
            done="corrected",
            result="a correction",
            lines=lambda counts: [
                f"changed: {counts['changed']:,} rows, by {counts['edits']:,} edits"
            ],
        ),
    )


def marked(one: CorrectedText) -> str:
    """A text with its edits in place, as [-wrong-]{+right+}."""
    parts, last = [], 0
    for edit in one.edits:
        parts += [one.text[last : edit.start], f"[-{edit.wrong}-]{{+{edit.right}+}}"]
        last = edit.end
    return "".join([*parts, one.text[last:]])
