"""The `bertsmith` command: a table of commands, each imported only when it is asked for."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import signal
import sys
import traceback
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from bertsmith.cli.shared.console import write_lines, write_remarks
from bertsmith.cli.shared.last_resort import complete_streams, explained, silence_stdout

if TYPE_CHECKING:
    import typer


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives and what it does in one line."""

    home: str
    summary: str
    variables: str | None = None  # every option --NAME is also the variable of this prefix and NAME


COMMANDS = {
    "embed": Entry(
        "bertsmith.cli.commands.embed:embed", "Encode a file of texts as a matrix of vectors."
    ),
    "index": Entry(
        "bertsmith.cli.commands.search.index:app", "Build an index of texts for search."
    ),
    "search": Entry(
        "bertsmith.cli.commands.search.search:search", "Search an index by meaning and by words."
    ),
    "pairs": Entry(
        "bertsmith.cli.commands.search.pairs:pairs", "Find the most similar pairs of texts."
    ),
    "map": Entry(
        "bertsmith.cli.commands.search.map:map_command", "Show texts or words as a map on a page."
    ),
    "tokenize": Entry(
        "bertsmith.cli.commands.tokenize:tokenize", "Show the tokens, ids and offsets of a text."
    ),
    "vocab": Entry("bertsmith.cli.commands.vocab:app", "Learn a vocabulary from your own files."),
    "corpus": Entry(
        "bertsmith.cli.commands.corpus:app", "Build a pre-training corpus from files of text."
    ),
    "mask": Entry("bertsmith.cli.commands.mask:app", "Preview a masking scheme on your own text."),
    "recipes": Entry(
        "bertsmith.cli.commands.recipes:recipes", "List and print the shipped recipes."
    ),
    "pretrain": Entry("bertsmith.cli.commands.pretrain:pretrain", "Pre-train a model on a corpus."),
    "finetune": Entry(
        "bertsmith.cli.commands.finetune:finetune", "Fine-tune a model on your own labeled rows."
    ),
    "evaluate": Entry(
        "bertsmith.cli.commands.evaluate:evaluate", "Evaluate a fine-tuned model on labeled rows."
    ),
    "predict": Entry(
        "bertsmith.cli.commands.predict:predict",
        "Predict a text or a file with a fine-tuned model.",
    ),
    "similar": Entry(
        "bertsmith.cli.commands.generation.similar:similar",
        "Write or find sentences that say the same.",
    ),
    "correct": Entry(
        "bertsmith.cli.commands.correct:correct", "Correct spelling mistakes in Chinese text."
    ),
    "compare": Entry(
        "bertsmith.cli.commands.compare:compare",
        "Test whether one fine-tuned model is better than another.",
    ),
    "lengths": Entry(
        "bertsmith.cli.commands.lengths:lengths",
        "Show text lengths; compare ways of truncation.",
    ),
    "vectors": Entry(
        "bertsmith.cli.commands.vectors:vectors",
        "Compare poolings and layers on labeled rows.",
    ),
    "sentences": Entry(
        "bertsmith.cli.commands.sentences.app:app",
        "Train, correct, choose and evaluate sentence vectors.",
    ),
    "glue": Entry(
        "bertsmith.cli.commands.studies.glue:glue", "Fine-tune on every data set of GLUE and CLUE."
    ),
    "ablate": Entry(
        "bertsmith.cli.commands.studies.ablate:ablate",
        "Measure what settings of a pre-training recipe are worth.",
    ),
    "road": Entry(
        "bertsmith.cli.commands.studies.road:road",
        "Compare models from n-gram to BERT on the same documents.",
    ),
    "generate": Entry(
        "bertsmith.cli.commands.generation.generate:generate",
        "Write text: continue a prompt, or answer a source.",
    ),
    "fill": Entry("bertsmith.cli.commands.fill:fill", "Fill the [MASK] tokens of a text."),
    "score": Entry(
        "bertsmith.cli.commands.score:score", "Score texts by pseudo-log-likelihood; BLiMP."
    ),
    "lm": Entry(
        "bertsmith.cli.commands.lm.app:app",
        "Language models of words: n-gram, NNLM, LSTM, GRU, GPT.",
    ),
    "words": Entry(
        "bertsmith.cli.commands.words.app:app",
        "Word vectors: train word2vec, look up, evaluate, convert.",
    ),
    "info": Entry("bertsmith.cli.commands.info:info", "Describe a model folder."),
    "convert": Entry(
        "bertsmith.cli.commands.convert:convert",
        "Convert a model folder of any age to safetensors.",
    ),
    "doctor": Entry(
        "bertsmith.cli.commands.doctor:doctor", "Test which fast paths work on this machine."
    ),
    "serve": Entry(
        "bertsmith.cli.commands.service.serve:serve",
        "Serve models over HTTP, with a page to try them.",
        variables="BERTSMITH_SERVE",
    ),
    "bench": Entry(
        "bertsmith.cli.commands.service.bench:app", "Measure a running service under load."
    ),
    "demo": Entry(
        "bertsmith.cli.commands.demo:demo",
        "Search, map, fine-tune and pre-train on Python's documentation.",
    ),
}

USAGE = """\
Usage: bertsmith [--debug] COMMAND [ARGUMENTS]

A BERT toolkit: encode texts, fine-tune, evaluate, predict, pre-train.

Commands:
{commands}

Options:
  --debug     show the traceback of an error (before the command)
  --version   print the version
  --help      show this text; `bertsmith COMMAND --help` describes a command

Example:  bertsmith embed all-MiniLM-L6-v2 texts.txt --out vectors.npy
"""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    _end_cleanly_on_sigterm()
    rest = list(sys.argv[1:] if arguments is None else arguments)
    debug = bool(rest) and rest[0] == "--debug"
    if debug:
        rest = rest[1:]
    try:
        complete_streams()
        code = _run(rest, debug=debug)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
        code = 141  # what a shell reports for a process ended by SIGPIPE
    except KeyboardInterrupt:
        code = _interrupted()
    except Exception as error:
        if debug:
            write_remarks(["".join(traceback.format_exception(error)).rstrip()])
        message, code = explained(error)
        write_remarks([f"error: {message}"])
    _leave(code)


def _leave(code: int) -> NoReturn:
    from bertsmith.hardware.environment import is_rank

    if is_rank():
        from bertsmith.training.execution.launch import leave

        leave(code)
    sys.exit(code)


def _run(rest: list[str], *, debug: bool) -> int:
    if not rest or rest[0] in ("--help", "-h", "help"):
        write_lines(usage().splitlines())
        return 0
    if rest[0] == "--version":
        from bertsmith import __version__

        write_lines([f"bertsmith {__version__}"])
        return 0
    name, *after = rest
    if name not in COMMANDS:
        write_remarks([_not_a_command(name)])
        return 2
    _show_warnings(debug=debug)
    try:
        load_command(name)(after)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None  # typer turns it into 1
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return _interrupted() if code == 130 else code
    return 0


class Command:
    """A loaded command, ready to be run with its arguments."""

    def __init__(self, name: str, app: typer.Typer) -> None:
        self.name = name
        self.app = app

    def __call__(self, arguments: list[str]) -> None:
        """Run the command; it ends by raising SystemExit."""
        import typer.main

        command = typer.main.get_command(self.app)
        try:
            # Standalone, typer would write its messages itself, control characters included.
            code = command(
                # An empty list would make older releases read sys.argv again; a list never does.
                args=list(arguments),
                prog_name=f"bertsmith {self.name}",
                standalone_mode=False,
            )
        except Exception as error:
            show = getattr(error, "show", None)  # click's, which typer carries under its own name
            if show is None:
                raise
            usage = io.StringIO()
            show(file=usage)
            write_remarks([usage.getvalue().rstrip("\n")])
            code = getattr(error, "exit_code", 2)
        raise SystemExit(code if isinstance(code, int) else 0)


def load_command(name: str) -> Command:
    """Import the one command that was asked for and give it its options."""
    import typer

    from bertsmith.cli.shared.grouped_help import HELP_NAMES, GroupedCommand

    entry = COMMANDS[name]
    module, _, attribute = entry.home.partition(":")
    target = getattr(importlib.import_module(module), attribute)
    app = typer.Typer(
        add_completion=False,
        # Boxes and colors are for people: piped help stays plain text.
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
        context_settings={
            "help_option_names": list(HELP_NAMES),
            "auto_envvar_prefix": entry.variables,
        },
    )
    if isinstance(target, typer.Typer):
        app.callback(help=entry.summary)(_group)
        for command in target.registered_commands:
            command.cls = GroupedCommand
        app.registered_commands.extend(target.registered_commands)
    else:
        app.command(name, cls=GroupedCommand)(target)
    return Command(name, app)


def _group() -> None:
    """Keeps a group a group, however few commands it has."""


def usage() -> str:
    """The top-level help, from the table alone: no command is imported for it."""
    width = max(map(len, COMMANDS)) + 2
    lines = (f"  {name:<{width}}{entry.summary}" for name, entry in COMMANDS.items())
    return USAGE.format(commands="\n".join(lines))


def _not_a_command(name: str) -> str:
    kind = "option" if name.startswith("-") else "command"
    known = ["--debug", "--version", "--help"] if kind == "option" else list(COMMANDS)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    return f"error: no {kind} is called {name!r}; {hint}"


def _interrupted() -> int:
    write_remarks(["interrupted"])
    return 130


def _show_warnings(*, debug: bool) -> None:
    """What the library logs: warnings as notes for people, everything with --debug."""
    import logging

    class Remarks(logging.Handler):
        """Log records as remarks."""

        def emit(self, record: logging.LogRecord) -> None:
            with contextlib.suppress(OSError):  # nobody can read it, and the work goes on
                write_remarks([self.format(record)])

    handler = Remarks()
    prefix = "%(name)s" if debug else "note"
    handler.setFormatter(logging.Formatter(f"{prefix}: %(message)s"))
    logger = logging.getLogger("bertsmith")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)


def _end_cleanly_on_sigterm() -> None:
    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)  # unwinds the stack, so staged files are removed

    signal.signal(signal.SIGTERM, leave)
