"""Data files that never end, are not text, or hide everything in one cell: refused in bounds.

BERTSMITH_LONG=1 takes files of 200 MB instead of 20 MB.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bertsmith.cli.shared.published_answers import score_answers
from bertsmith.errors import InputFileError
from bertsmith.files.lines import Lines, whole_input
from bertsmith.files.streams import ByteStream
from bertsmith.labeled import DataSpec, guess_spec, read_examples
from bertsmith.labeled.split.splits import load_record

pytestmark = pytest.mark.reliability
LONG = bool(os.environ.get("BERTSMITH_LONG"))
SIZE = 200_000_000 if LONG else 20_000_000
CHILD = """
import re, sys, time
from pathlib import Path
from bertsmith.errors import InputFileError
from bertsmith.labeled import read_examples
from bertsmith.labeled.texts import read_texts
path = Path(sys.argv[1])
begun = time.process_time()
rows = read_examples(path, on_error="skip") if path.suffix == ".csv" else read_texts(path)
count = 0
try:
    for _ in rows:
        count += 1
except InputFileError as error:
    print(error, file=sys.stderr)
else:
    print(*rows.faults, file=sys.stderr)
peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
print(count, peak, time.process_time() - begun)
"""
linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


def measured(path: Path) -> tuple[int, float, float, str]:
    """Rows read, peak memory, seconds of the processor, and the message."""
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    rows, peak, seconds = run.stdout.split()
    return int(rows), float(peak), float(seconds), run.stderr


@linux
def test_an_open_quote_is_named_by_its_line_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    block = "a rather short row of text,pos\nanother such row of text,neg\n" * 1_000
    with path.open("w") as file:
        file.write('text,label\nfine,pos\n"this one is open,pos\n')
        for _ in range(SIZE // len(block)):
            file.write(block)
    rows, peak, seconds, message = measured(path)
    assert rows == 1 + 2_000 * (SIZE // len(block))
    assert "line 3, column 1: the quote that opens here is not closed within" in message
    assert peak < 150e6
    assert seconds < SIZE / 4e6


@linux
def test_a_line_beyond_the_limit_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.write(b"first\n")
        for _ in range(2 * SIZE // 1_000_000):
            file.write(b"x" * 1_000_000)
        file.write(b"\nlast\n")
    rows, peak, _, message = measured(path)
    assert rows == 1
    assert re.search(
        r"line 2, column 1: the line has [\d,]+ bytes; the limit is 33,554,432", message
    )
    assert peak < 200e6


def score_answers_of(path: Path) -> None:
    score_answers(path, Path("dev.json"), DataSpec(), on_error="stop", quiet=True)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
@pytest.mark.parametrize(
    "read", [guess_spec, load_record, score_answers_of, lambda path: next(ByteStream(path))]
)
def test_a_device_is_refused_at_once(read) -> None:
    with pytest.raises(InputFileError, match="/dev/zero is a device, not a regular file; save"):
        read(Path("/dev/zero"))


def test_a_named_pipe_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputFileError, match=r"pipe\.csv is a pipe; .* standard input"):
        read_examples(tmp_path / "pipe.csv")


@pytest.mark.parametrize("command", [["embed", "all-MiniLM-L6-v2"], ["vocab", "learn"]])
def test_commands_refuse_a_device_as_standard_input(tmp_path: Path, command: list[str]) -> None:
    size = ["--vocab-size", "300"] if command[0] == "vocab" else []
    with Path("/dev/zero").open("rb") as zero:
        run = subprocess.run(
            [sys.executable, "-m", "bertsmith", *command, "-", *size, "--out", tmp_path / "o.npy"],
            stdin=zero,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert run.returncode == 2
    assert "standard input is a device, which may never end" in run.stderr


def test_one_text_from_a_pipe_is_bounded(monkeypatch) -> None:
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(b"a" * 5_000))  # type: ignore[arg-type]

    monkeypatch.setattr("bertsmith.files.lines.LONGEST_LINE", 1_000)
    monkeypatch.setattr(sys, "stdin", Stdin())
    with pytest.raises(InputFileError, match="standard input has more than 1,000 bytes, the lim"):
        whole_input()


def test_a_pipe_without_a_line_feed_ends(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("bertsmith.files.lines.LONGEST_LINE", 1_000_000)
    (tmp_path / "a.txt").write_bytes(b"a\n" + b"\0" * 20_000_000)
    with pytest.raises(InputFileError, match=r"bytes without a line feed from byte 2 on"):
        list(Lines(tmp_path / "a.txt"))


def workbook(member: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(member, "<worksheet/>")
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", workbook("xl/workbook.xml"), r"Excel workbook \(.xlsx\), .* save .* as CSV"),
        ("a.csv", workbook("xl/workbook.xml"), r"Excel workbook"),
        ("a.docx", workbook("word/document.xml"), r"Word document .* plain text"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500, "old Office file"),
        ("a.zip", b"PK\x03\x04\x14\0" + b"a.csv" * 9, "a zip archive, .* unpack it"),
        ("a.parquet", b"PAR1\x15\x04\x15" + b"\0" * 50, r"Parquet file, .*read_parquet"),
        ("a.pdf", b"%PDF-1.7\n%\xe2\xe3", "PDF document, .* pdftotext"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0", "PNG image"),
        ("a.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF", "JPEG image"),
        ("a.csv", b"\x1f\x8b\x08\0\0\0", "compressed by gzip, .* end in .gz"),
    ],
)
def test_other_formats_are_named_with_the_way_to_text(tmp_path, name, content, message) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputFileError, match=message) as caught:
        guess_spec(path)
    assert "--encoding" not in str(caught.value)
