"""Tables that would take minutes: a quote that stays open, thousands of columns, no row that fits.

BERTSMITH_LONG=1 reads 200 MB instead of 20.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertsmith.errors import InputFileError, RowsError
from bertsmith.files import csv_records
from bertsmith.labeled import guess_spec, read_examples
from bertsmith.labeled.read import reader

pytestmark = pytest.mark.reliability
SIZE = 200_000_000 if os.environ.get("BERTSMITH_LONG") else 20_000_000
SECONDS, MEMORY = 20, 200 << 20
GOOD = 'text,label\n"some text, of the row",pos\n' + '"a text, of another",neg\n' * 500
OPEN = '"a quote that opens here,neg\n'
BEHIND = {  # what stands behind the open quote, again and again
    "rows": "some text of the row,pos\n",
    "doubled quotes": 'some ""text"" of the row,pos\n',
    "text": "some long text without a comma in it\n",
    "blank lines": "\n" * 20,
    "pairs of quotes": '""\n',
    "one line": "word ",
    "quoted rows": '"some text, of the row",pos\n',
}
CHILD = """
import re, sys, time
from pathlib import Path
from bertsmith.errors import RowsError
from bertsmith.labeled import read_examples

def mark(name):
    return int(re.search(name + r":\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

before, begun = mark("VmRSS"), time.process_time()
try:
    list(read_examples(Path(sys.argv[1])))
except RowsError as fault:
    print(fault)
print(time.process_time() - begun, mark("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's high-water mark")
@pytest.mark.parametrize("name", BEHIND)
def test_an_open_quote_is_refused_in_seconds_and_little_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    block = BEHIND[name] * (1_000_000 // len(BEHIND[name]))
    size = min(SIZE, 20_000_000) if name == "one line" else SIZE  # longer ones are no lines
    with path.open("w") as file:
        file.write(GOOD + OPEN)
        for _ in range(size // len(block)):
            file.write(block)
    run = subprocess.run([sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    *message, figures = run.stdout.splitlines()
    seconds, memory = map(float, figures.split())
    assert f"{path}, line 503, column 1: " in message[1], message
    assert message[-2 if "--on-error" in message[-1] else -1].endswith("was not read"), message
    assert seconds < SECONDS
    assert memory < MEMORY


def test_skipping_reads_the_rows_behind_an_open_quote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_records, "MOST_LINES", 50)
    path = tmp_path / "rows.csv"
    path.write_text(GOOD + OPEN + "a text,pos\n" * 200)
    rows = read_examples(path, on_error="skip")
    assert len(list(rows)) == 501 + 200
    assert (rows.account.rows_in, rows.account.rows_rejected) == (702, 1)


def test_faults_far_behind_the_first_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "READ_ON", 100)
    path = tmp_path / "rows.csv"
    path.write_text(GOOD + "a row of one cell\n" + "a text,pos\n" * 99 + "another\nand one more\n")
    with pytest.raises(RowsError) as caught:
        list(read_examples(path))
    assert caught.value.total == 2
    assert "2 of the first 602 rows cannot be used" in str(caught.value)
    assert "the rest of the file was not read" in str(caught.value)


@pytest.mark.parametrize("ending", ["tsv", "csv"])
def test_a_million_columns_are_refused_by_number(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    delimiter = "\t" if ending == "tsv" else ","
    path.write_text((delimiter.join(["word"] * 1_000_000) + "\n") * 3)
    with pytest.raises(InputFileError, match=r"line 1, column 16385: 1,000,000 columns, and at"):
        list(read_examples(path))


def test_one_row_of_too_many_columns_is_rejected_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(GOOD + "word," * 20_000 + "\n" + "a text,pos\n")
    rows = read_examples(path, on_error="skip")
    assert len(list(rows)) == 502
    assert "20,001 columns, and at most 16,384" in str(rows.faults[0])


def test_a_guess_takes_time_by_the_columns_not_by_their_square(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text("".join("\t".join(f"w{n} b" for n in range(8_000)) + "\n" for _ in range(100)))
    code = (
        "import sys, time; from pathlib import Path; from bertsmith.labeled import guess_spec; "
        "begun = time.process_time(); guess_spec(Path(sys.argv[1])); "
        "print(time.process_time() - begun)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert float(run.stdout) < 5, run.stderr  # it took 25 s


def test_a_long_reading_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reader, "SECONDS_BETWEEN_LINES", 0.0)
    path = tmp_path / "rows.csv"
    path.write_text(GOOD + "a text,pos\n" * 30_000)
    spec = guess_spec(path)
    with caplog.at_level(logging.INFO, logger=reader.__name__):
        list(read_examples(path, spec))
    assert [line.partition(": ")[2] for line in caplog.messages] == [
        "10,000 rows",
        "20,000 rows",
        "30,000 rows",
    ]
    assert caplog.messages[0].startswith(f"reading {path} (")
