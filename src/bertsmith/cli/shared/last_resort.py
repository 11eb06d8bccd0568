"""The end of a command that failed: message and exit code, also where streams cannot write."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

from bertsmith.errors import BertsmithError, InputFileError, WriteError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

WAYS_OUT = {
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG): "free some space or give another disk",
    (errno.EACCES, errno.EPERM, errno.EROFS): "give a place that you may write to",
    (errno.EMFILE, errno.ENFILE): "raise the limit of open files (ulimit -n)",
}
USUAL_WAY = "check the path and the disk; `bertsmith --debug COMMAND ...` shows where it happened"
SOFTWARE, OUT_OF_MEMORY = 70, 71  # EX_SOFTWARE, EX_OSERR
STANDARD_OUTPUT = "standard output"
NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")  # of torch
BUG = "this is a bug or a broken installation; `bertsmith --debug COMMAND ...` shows where"


def explained(error: Exception) -> tuple[str, int]:
    """The message and the exit code of an error that ends the command.

    Faults of the system that no part of the library has explained are those of a path or of
    memory; anything else is a bug.
    """
    if isinstance(error, BertsmithError):
        return str(error), error.exit_code
    if isinstance(error, OSError):
        return _of_the_system(error)
    if isinstance(error, ValueError) and "embedded null" in str(error):  # of any call of the system
        return (
            "a path has a NUL character in it; no file can be called so",
            InputFileError.exit_code,
        )
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(part in str(error) for part in NO_MEMORY)
    ):
        return "not enough memory; lower the size that was requested, or free memory", OUT_OF_MEMORY
    return f"{type(error).__name__}: {error}\n{BUG}", SOFTWARE


def _of_the_system(error: OSError) -> tuple[str, int]:
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    name = error.filename
    if name == STANDARD_OUTPUT:
        silence_stdout()
        return (
            f"cannot write to standard output: {reason}; the output is incomplete, redirect it to "
            "a file on a disk with room",
            WriteError.exit_code,
        )
    names = [str(one) for one in (name, error.filename2) if one is not None]
    way = next((way for codes, way in WAYS_OUT.items() if error.errno in codes), USUAL_WAY)
    return f"{' to '.join(names) or 'reading or writing'}: {reason}; {way}", WriteError.exit_code


class _StandardOutput(io.FileIO):
    """Standard output that names itself in errors, as files do."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes; a closed pipe stays what it is, as the end of reading is no fault."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from error


def silence_stdout() -> None:
    """Let the interpreter's flush at exit succeed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complete_streams() -> None:
    """Make the three streams open and able to take any text.

    Raises WriteError if standard output is closed. The null device takes the place of closed ones:
    a file that is opened later could get their number, and messages of libraries would be written
    into it.
    """
    is_closed = sys.stdout is None
    if isinstance(sys.stdout, io.TextIOWrapper):
        _name_stdout(sys.stdout)
        sys.stdout.reconfigure(errors="backslashreplace")  # any text, in any locale
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if is_closed:
        raise WriteError("standard output is closed; redirect it to a file or to /dev/null")


def _name_stdout(stream: io.TextIOWrapper) -> None:
    """Replace standard output, if it is that of the process, by one with a name."""
    buffer = stream.buffer
    if not isinstance(buffer, io.BufferedWriter | io.FileIO) or stream.fileno() != 1:
        return
    stream.flush()
    raw = _StandardOutput(1, "w", closefd=False)
    is_buffered = isinstance(buffer, io.BufferedWriter)  # not so with PYTHONUNBUFFERED
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw) if is_buffered else raw,
        encoding=stream.encoding,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
