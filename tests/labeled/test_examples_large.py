"""Large files: memory does not grow with the file, and reading keeps its pace.

BERTSMITH_LONG=1 reads the gigabyte of the reliability page and holds its pace of 30 MB/s.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertsmith.errors import InputFileError
from bertsmith.labeled import read_examples

pytestmark = pytest.mark.reliability
LONG = bool(os.environ.get("BERTSMITH_LONG"))
SIZE = 1_000_000_000 if LONG else 20_000_000
CHILD = """
import re, sys, time
from pathlib import Path
from bertsmith.labeled import read_examples
rows = read_examples(Path(sys.argv[1]))
begun, shares = time.process_time(), []
for number, example in enumerate(rows):
    if number % 10_000 == 0:
        shares.append(rows.share)
seconds = time.process_time() - begun
# ru_maxrss also counts what the parent held at the fork; the system's own mark does not.
peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
assert shares == sorted(shares) and 0 < shares[1] < shares[-1] <= 1, shares
print(rows.account.rows_ok, peak, seconds)
"""


def big(path: Path) -> int:
    texts = [
        f"row {n} says that the film was {'good' if n % 2 else 'bad'} " * 5 for n in range(999)
    ]
    rows = [
        json.dumps({"id": n, "text": t, "label": "ab"[n % 2]}) + "\n" for n, t in enumerate(texts)
    ]
    block = "".join(rows).encode()
    count = SIZE // len(block) + 1
    with path.open("wb") as file:
        for _ in range(count):
            file.write(block)
    return 999 * count


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's high-water mark")
def test_a_large_file_is_validated_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = big(path)
    run = subprocess.run([sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found, peak, seconds = map(float, run.stdout.split())
    assert found == rows
    assert peak < 300e6
    if LONG:  # by the processor's clock: the machine may have other work
        assert path.stat().st_size / seconds >= 30e6


def test_a_reading_that_is_broken_off_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\n" + "a b\tx\nc\n" * 5_000)
    rows = read_examples(path, on_error="skip")
    for _ in range(10):
        next(rows)
    rows.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.tsv"]


def test_an_open_quote_does_not_eat_the_machine(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("bertsmith.files.csv_records.LONGEST_CELL", 1_000)
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"open,x\n' + "fine one,x\n" * 1_000)
    rows = read_examples(path, on_error="skip")
    assert sum(1 for _ in rows) == 1_000
    assert rows.account.rows_rejected == 1


def test_a_document_beyond_the_limit_is_refused_not_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("bertsmith.files.strict_json.LARGEST_DOCUMENT", 10_000)
    path = tmp_path / "a.json.gz"
    text = json.dumps(
        {"data": [{"title": "t", "paragraphs": [{"context": "x" * 20_000, "qas": []}]}]}
    )
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(InputFileError, match=r"more than 10,000 bytes.*cut it into several files"):
        list(read_examples(path))
