"""The `bertsmith` command: imports the one command of the table that is asked for, and runs it."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import signal
import sys
import traceback
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from bertsmith.cli.command_table import COMMANDS, HEADINGS, command_lines, command_of
from bertsmith.cli.shared.console import write_lines, write_remarks
from bertsmith.cli.shared.last_resort import complete_streams, explained, silence_stdout

if TYPE_CHECKING:
    import typer


USAGE = """\
Usage: bertsmith [--debug] COMMAND [ARGUMENTS]

A BERT toolkit: encode texts, fine-tune, evaluate, predict, pre-train.

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
    name, after = command_of(rest)
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
    return USAGE.format(commands="\n".join(command_lines()))


def _not_a_command(name: str) -> str:
    kind = "option" if name.startswith("-") else "command"
    known = (
        ["--debug", "--version", "--help"]
        if kind == "option"
        else [one for under in HEADINGS.values() for one in under]
    )
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
    # How far a long file is read, which nothing else shows.
    logging.getLogger("bertsmith.labeled.read.reader").setLevel(
        logging.DEBUG if debug else logging.INFO
    )


def _end_cleanly_on_sigterm() -> None:
    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)  # unwinds the stack, so staged files are removed

    signal.signal(signal.SIGTERM, leave)
