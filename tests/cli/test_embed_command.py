"""`bertsmith embed` on every kind of file: a row for each text, or a clear error and no file."""

from __future__ import annotations

import gzip
import json
import logging
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import COMMAND, environment, fresh, run

import bertsmith

MODEL = "all-MiniLM-L6-v2"
TEXTS = ["A man is eating.", "", "他在吃面包。", "A man is eating.", "nul \0 inside"]
CELLS = [text.replace("\0", "") for text in TEXTS]  # a NUL in a table is a fault


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return bertsmith.load(MODEL, precision="fp32").encode(TEXTS)


@pytest.fixture(autouse=True)
def _restore() -> None:
    yield
    logging.getLogger("bertsmith").handlers.clear()
    logging.getLogger("bertsmith").setLevel(logging.NOTSET)
    logging.getLogger("bertsmith.runtime.embedder").setLevel(logging.NOTSET)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def embed(source: Path | str, out: Path, *more: str) -> int:
    return run("embed", MODEL, source, "--out", out, "--precision", "fp32", *more)


def as_csv(texts: list[str]) -> str:
    return "id,text\r\n" + "".join(f'{i},"{text}"\r\n' for i, text in enumerate(texts))


FILES = {
    "a.txt": ("".join(f"{text}\n" for text in TEXTS).encode(), []),
    "a.crlf.txt": ("".join(f"{text}\r\n" for text in TEXTS).encode(), []),
    "a.txt.gz": (gzip.compress("\n".join(TEXTS).encode()), []),
    "bom.txt": ("\n".join(TEXTS).encode("utf-8-sig"), []),
    "utf16.txt": ("\n".join(TEXTS).encode("utf-16"), []),
    "gbk.txt": ("\n".join(TEXTS).encode("gbk"), ["--encoding", "gbk"]),
    "a.csv": (as_csv(CELLS).encode(), []),
    "numbered.csv": (as_csv(CELLS).encode().partition(b"\n")[2], ["--text", "2"]),
    "a.csv.gz": (gzip.compress(as_csv(CELLS).encode("utf-8-sig")), ["--text", "text"]),
    "a.tsv": ("".join(f"x\t{text}\n" for text in ["content", *CELLS]).encode(), []),
    "a.jsonl": ("".join(json.dumps(text) + "\n" for text in TEXTS).encode(), []),
    "b.jsonl": (
        "".join(json.dumps({"q": text, "n": 1}) + "\n" for text in TEXTS).encode(),
        ["--text", "q"],
    ),
    "strange.log": ("\n".join(TEXTS).encode(), []),
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_same_rows(tmp_path, expected, name) -> None:
    content, options = FILES[name]
    (tmp_path / name).write_bytes(content)
    assert embed(tmp_path / name, tmp_path / "v.npy", *options) == 0
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-6)


def test_the_summary_tells_cuts_repeats_and_empty_texts(tmp_path, capsys) -> None:
    long = "word " * 400
    (tmp_path / "a.txt").write_text(f"a\na\n\n{long}\n")
    assert embed(tmp_path / "a.txt", tmp_path / "v.npy") == 0
    streams = capsys.readouterr()
    assert streams.out == ""
    assert "note: 1 empty text included" in streams.err
    assert "4 x 384" in streams.err
    assert "1 of them were duplicates" in streams.err
    assert "1 of 4 texts were longer than 256 tokens and lost 146 tokens" in streams.err
    assert streams.err.count("146 tokens") == 1
    assert embed(tmp_path / "a.txt", tmp_path / "v.npy", "--quiet") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("content", "guess"),
    [
        ("review\nA fine film.\nA bad one.\n", "table by comma; header; text 'review'"),
        ('review\n"A fine, long film."\n"A bad, bad one."\n', "header; text 'review'"),
        (
            "id;review;stars\n1;A fine film.;5\n2;A bad one.;1\n",
            "text 'review' (a column is usually called so); not read: id, stars",
        ),
        ("id,text\n1,A fine film.\n2,A bad one.\n", "text 'text'"),
        ('stars,title,text\n5,"Go, see",A fine film.\n1,No,A bad one.\n', "not read: stars, title"),
    ],
)
def test_a_table_gives_a_row_for_each_row_and_the_guess_is_printed(
    tmp_path, capsys, content, guess
) -> None:
    (tmp_path / "a.csv").write_text(content)
    assert embed(tmp_path / "a.csv", tmp_path / "v.npy") == 0
    assert np.load(tmp_path / "v.npy").shape == (2, 384)
    printed = [line for line in capsys.readouterr().err.splitlines() if guess in line]
    assert len(printed) == 1
    assert "change with --format, --text, --delimiter, --header/--no-header" in printed[0]


def test_only_the_first_rows_are_embedded(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"{n},a text\n" for n in range(9)))
    assert embed(tmp_path / "a.csv", tmp_path / "v.npy", "--rows", "4") == 0
    assert np.load(tmp_path / "v.npy").shape == (4, 384)


def test_bad_rows_are_skipped_on_request_and_counted(tmp_path, capsys) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,fine\n2\n3,good\n")
    assert embed(tmp_path / "a.csv", tmp_path / "v.npy") == 2
    assert "line 3, column text: 1 column, but the header has 2" in capsys.readouterr().err
    assert embed(tmp_path / "a.csv", tmp_path / "v.npy", "--on-error", "skip") == 0
    assert np.load(tmp_path / "v.npy").shape == (2, 384)
    assert "note: 1 row rejected" in capsys.readouterr().err


def test_an_empty_file_gives_a_matrix_without_rows(tmp_path) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    assert embed(tmp_path / "a.txt", tmp_path / "v.npy") == 0
    assert np.load(tmp_path / "v.npy").shape == (0, 384)


def test_text_outputs_hold_the_same_numbers(tmp_path, expected) -> None:
    (tmp_path / "a.jsonl").write_bytes(FILES["a.jsonl"][0])
    assert embed(tmp_path / "a.jsonl", tmp_path / "v.tsv") == 0
    np.testing.assert_allclose(np.loadtxt(tmp_path / "v.tsv"), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "content", "options", "code", "message"),
    [
        ("a.txt", "今天天气很好。\n".encode("gbk"), [], 2, "--encoding gb18030"),
        ("a.csv", b"left,right\n1,2\n", [], 2, "the first row is 'left,right'"),
        ("a.jsonl", b'{"text": "a"}\n{"text"\n', [], 2, "line 2, column 8"),
        ("a.docx", b"PK\x03\x04 word/", [], 2, "Word document"),
        ("a.txt", b"a\n", ["--prompt", "query"], 2, "no prompt called 'query'"),
        (
            "a.txt",
            b"a\n",
            ["--text", "text"],
            2,
            "no column is called 'text'; the columns are 1: 'a'",
        ),
        (
            "a.csv",
            b"left,right\na,b\n",
            ["--text", "left", "--text", "right"],
            2,
            "--text left --text right: give one column",
        ),
        ("a.txt", b"a\n", ["--precision", "fp8"], 2, "fp8"),
    ],
)
def test_a_bad_input_is_named_and_nothing_is_written(
    tmp_path, capsys, name, content, options, code, message
) -> None:
    (tmp_path / name).write_bytes(content)
    assert embed(tmp_path / name, tmp_path / "v.npy", *options) == code
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_bad_output_is_refused_before_any_work(tmp_path, capsys) -> None:
    (tmp_path / "a.tsv").write_text("a\n")
    assert embed(tmp_path / "a.tsv", tmp_path / "v.bin") == 74
    assert ".npy, .tsv, .jsonl" in capsys.readouterr().err
    assert embed(tmp_path / "a.tsv", tmp_path / "a.tsv") == 74
    assert "the input file itself" in capsys.readouterr().err
    assert embed(tmp_path / "a.tsv", tmp_path / "none" / "v.npy") == 74
    assert "there is no folder" in capsys.readouterr().err
    assert (tmp_path / "a.tsv").read_text() == "a\n"


def test_an_unknown_model_is_an_error(tmp_path, capsys) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    assert run("embed", tmp_path / "nothing", tmp_path / "a.txt", "--out", tmp_path / "v.npy") == 2
    assert "error: " in capsys.readouterr().err


def test_a_later_bad_line_leaves_the_old_vectors(tmp_path) -> None:
    (tmp_path / "a.jsonl").write_text('"good"\n' * 5 + "bad\n")
    (tmp_path / "v.npy").write_bytes(b"old")
    assert embed(tmp_path / "a.jsonl", tmp_path / "v.npy") == 2
    assert (tmp_path / "v.npy").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2


def test_standard_input_in_a_bare_environment(tmp_path, expected) -> None:
    done = fresh(
        "embed", MODEL, "-", "--out", tmp_path / "v.npy", "--precision", "fp32",
        text="\n".join(TEXTS), LC_ALL="C", PYTHONHASHSEED="3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-6)


def holds_a_file_in(process: int, folder: Path) -> bool:
    """Whether the process has its staged output open, named or not."""
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except OSError:  # closed in the meantime
            continue
        if target.startswith(f"{folder}/"):
            return True
    return False


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_without_a_trace(tmp_path, number, code) -> None:
    (tmp_path / "v.npy").write_bytes(b"old")
    child = subprocess.Popen(
        [*COMMAND, "embed", MODEL, "-", "--out", str(tmp_path / "v.npy")],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    with child.stdin as feed:
        feed.write(b"some text\n" * 100)
        feed.flush()
        deadline = time.monotonic() + 60
        while not holds_a_file_in(child.pid, tmp_path):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.send_signal(number)
        assert child.wait(timeout=60) == code
    assert (tmp_path / "v.npy").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["v.npy"]
