"""`bertsmith tokenize` and `bertsmith vocab learn`, as a user types them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_tokenizers import bert_files, corpus

ENV = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "LC_ALL": "C"}
RUN = "import sys; from bertsmith.cli.app import main; main(sys.argv[1:])"


def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], input=stdin, capture_output=True, env=ENV
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    for name, data in bert_files().items():
        (folder / name).write_bytes(data)
    return str(folder)


def test_tokenize_prints_one_token_a_line_and_what_was_cut(model: str) -> None:
    code, out, err = run("tokenize", model, "He likes playing.", "--max-length", "5")
    assert code == 0, err
    rows = [line.split("\t") for line in out.splitlines()]
    assert rows[0] == ["token", "id", "word", "start", "end", "text", "segment"]
    assert [row[0] for row in rows[1:]] == ["[CLS]", "he", "likes", "play", "[SEP]"]
    assert rows[4][2:6] == ["2", "9", "13", "play"]
    assert "2 tokens were truncated" in err


def test_tokenize_reads_bytes_of_any_kind_from_standard_input(model: str) -> None:
    code, out, err = run("tokenize", model, "-", "--json", stdin="中 caf".encode() + b"\xe9 \0\n")
    assert code == 0, err
    assert [row["text"] for row in json.loads(out)["tokens"] if row["text"]] == ["中", "caf"]
    assert "1 characters were replaced" in err


def test_tokenize_refuses_in_one_line(model: str) -> None:
    for arguments in (
        ("--max-length", "4", "--strict"),
        ("--max-length", "1"),
        ("--keep", "haed"),
        ("--segmenter", "nobody"),
    ):
        code, out, err = run("tokenize", model, "He likes playing.", *arguments)
        assert code == 2
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert out == ""
        if "haed" in arguments:
            assert "no way to keep text is called 'haed'; did you mean 'head'?" in err


def test_vocab_learn_writes_a_folder_that_tokenize_reads(tmp_path: Path) -> None:
    text = tmp_path / "corpus.txt"
    text.write_text("\n".join(corpus()), encoding="utf-8")
    code, _, err = run(
        "vocab", "learn", str(text), "--vocab-size", "120", "--out", str(tmp_path / "v")
    )
    assert code == 0, err
    assert "wrote 120 tokens" in err
    code, out, err = run("tokenize", str(tmp_path / "v"), "playing 我")
    assert code == 0, err
    assert "我" in out
