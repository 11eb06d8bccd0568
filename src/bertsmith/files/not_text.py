"""Files that are not text: devices and pipes by their kind, other formats by their first bytes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bertsmith.errors import InputFileError

AS_CSV = "open it there and save the sheet as CSV (UTF-8), then give the .csv file"
UNPACK = "unpack it first"
AS_TEXT = "give the text itself, as .txt, .csv or .jsonl"
BY_PANDAS = "convert it first, for example: pandas.read_{}(FILE).to_csv('data.csv', index=False)"

SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file (.xls, .doc)", AS_CSV),
    (b"PAR1", "a Parquet file", BY_PANDAS.format("parquet")),
    (b"ARROW1", "an Arrow file", BY_PANDAS.format("feather")),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", BY_PANDAS.format("hdf")),
    (b"SQLite format 3\0", "an SQLite database", "export the table as CSV, then give that file"),
    (b"%PDF-", "a PDF document", "extract its text first, for example with pdftotext"),
    (b"{\\rtf", "an RTF document", AS_TEXT),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", AS_TEXT),
    (b"\xff\xd8\xff", "a JPEG image", AS_TEXT),
    (b"GIF87a", "a GIF image", AS_TEXT),
    (b"GIF89a", "a GIF image", AS_TEXT),
    (b"\x93NUMPY", "a NumPy array", AS_TEXT),
    (b"\x7fELF", "a program", AS_TEXT),
    (b"\x1f\x8b\x08", "compressed by gzip", "let its name end in .gz, or unpack it"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "let its name end in .zst, or unpack it"),
    (b"BZh91AY&SY", "compressed by bzip2", UNPACK),
    (b"\xfd7zXZ\0", "compressed by xz", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", UNPACK),
)
ZIP = b"PK\x03\x04"
INSIDE_ZIP: tuple[tuple[bytes, str, str], ...] = (
    (b"xl/", "an Excel workbook (.xlsx)", AS_CSV),
    (b"word/", "a Word document (.docx)", "save it as plain text (UTF-8), then give the .txt file"),
    (b"opendocument.spreadsheet", "a spreadsheet (.ods)", AS_CSV),
    (b"opendocument.text", "a text document (.odt)", "save it as plain text (UTF-8)"),
    (b"[Content_Types].xml", "an Office file (.xlsx, .docx)", AS_CSV),
)


def refuse_other_formats(name: str, start: bytes) -> None:
    """Refuse a file whose first bytes show that it is not text, with the way to make it so."""
    if start.startswith(ZIP):
        for mark, kind, way in INSIDE_ZIP:
            if mark in start:
                raise _not_text(name, kind, way)
        raise _not_text(name, "a zip archive", UNPACK)
    for mark, kind, way in SIGNATURES:
        if start.startswith(mark):
            raise _not_text(name, kind, way)


def _not_text(name: str, kind: str, way: str) -> InputFileError:
    return InputFileError(f"{name} is {kind}, not a text file; {way}")


def check_regular(path: Path) -> None:
    """Refuse what is not a regular file: a device never ends, a pipe cannot be read twice."""
    mode = path.stat().st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise InputFileError(f"{path} is a folder; give a file")
    if stat.S_ISFIFO(mode):
        raise InputFileError(
            f"{path} is a pipe; data files are read more than once: save it to a file, or give it "
            "on standard input, where the command takes -"
        )
    kind = "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise InputFileError(f"{path} is {kind}, not a regular file; save the data to a file")


def check_standard_input(number: int) -> None:
    """Refuse a device as standard input; a file, a pipe, a terminal or /dev/null will do."""
    status = os.fstat(number)
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        null = Path(os.devnull).stat()
        if not os.isatty(number) and status.st_rdev != null.st_rdev:
            raise InputFileError("standard input is a device, which may never end; give a file")
