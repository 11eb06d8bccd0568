"""Files of word vectors: equal with gensim both ways, and bad files refused with place and way."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors

from bertsmith.errors import InputFileError, WriteError
from bertsmith.files.word_vectors.reading import read_word_vectors
from bertsmith.files.word_vectors.writing import write_word_vectors

WORDS = ["the", "Straße", "电影", "\u3000", "don't", "1.5", "a\u00a0b"]


def table(width: int = 7) -> np.ndarray:
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(len(WORDS), width)).astype(np.float32)
    matrix[0] = 0.0
    matrix[1, 0] = np.float32(1e-45)  # the smallest number there is
    matrix[2, 0] = np.finfo(np.float32).max
    return matrix


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("form", ["text", "binary", "glove"])
def test_every_form_gives_back_words_and_bits(tmp_path: Path, form: str, packed: str) -> None:
    path = tmp_path / f"vectors{packed}"
    write_word_vectors(path, WORDS, table(), form=form)  # type: ignore[arg-type]
    words, matrix = read_word_vectors(path)
    assert words == WORDS
    assert matrix.tobytes() == table().tobytes()
    first, _ = read_word_vectors(path, most=3)
    assert first == WORDS[:3]


def test_the_binary_form_is_the_file_that_gensim_writes(tmp_path: Path) -> None:
    theirs = KeyedVectors(7)
    theirs.add_vectors(WORDS, table())
    theirs.save_word2vec_format(tmp_path / "theirs.bin", binary=True)
    write_word_vectors(tmp_path / "ours.bin", WORDS, table())
    assert (tmp_path / "ours.bin").read_bytes() == (tmp_path / "theirs.bin").read_bytes()


@pytest.mark.parametrize("form", ["text", "binary", "glove"])
def test_gensim_reads_our_files_to_the_last_bit(tmp_path: Path, form: str) -> None:
    words = [word for word in WORDS if word.strip()]  # gensim strips other spaces in text
    keep = [WORDS.index(word) for word in words]
    write_word_vectors(tmp_path / "v", words, table()[keep], form=form)  # type: ignore[arg-type]
    read = KeyedVectors.load_word2vec_format(
        str(tmp_path / "v"), binary=form == "binary", no_header=form == "glove"
    )
    assert read.index_to_key == words
    assert read.vectors.tobytes() == table()[keep].tobytes()


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_files_of_gensim_are_read_to_the_last_bit(
    tmp_path: Path, binary: bool, suffix: str
) -> None:
    theirs = KeyedVectors(7)
    theirs.add_vectors(WORDS, table())
    path = tmp_path / f"theirs{suffix}"
    theirs.save_word2vec_format(path, binary=binary)
    words, matrix = read_word_vectors(path)
    assert words == WORDS
    assert matrix.tobytes() == table().tobytes()


def test_line_breaks_of_the_c_program_and_blanks_at_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "v"
    rows = table()
    body = b"".join(
        f"{word} ".encode() + row.tobytes() + b"\n" for word, row in zip(WORDS, rows, strict=True)
    )
    path.write_bytes(b"7 7\n" + body)
    words, matrix = read_word_vectors(path)
    assert words == WORDS
    assert matrix.tobytes() == rows.tobytes()
    path.write_bytes(b"2 2\r\na 1 2 \r\nb 3  4\r\n")
    words, matrix = read_word_vectors(path)
    assert (words, matrix.tolist()) == (["a", "b"], [[1, 2], [3, 4]])


BINARY = np.array([1.0, 2.0], dtype="<f4").tobytes()


@pytest.mark.parametrize(
    ("content", "form", "message"),
    [
        (b"", None, "holds no word vectors"),
        (b"a 1 2\n", "text", "line 1: 'a 1 2' is not the number of words"),
        (b"2 x\na 1\nb 2\n", None, "line 1: 'x' after '2' is no number"),
        (b"3 2\na 1 2\nb 1 2\n", None, "needs? at least|ends after 2 words"),
        (b"4 2\na 1.25 2.5\nb 1.25 2.5\nc 1.25 2.5\n", None, "line 5: the file ends after 3 words"),
        (b"1 2\na 1 2\nb 1 2\n", None, "line 3: one word more than the 1"),
        (b"2 2\na 1 2\na 1 2\n", None, "line 3: the word 'a' stands there a second time; remove"),
        (b"2 3\na 1 2 3\nb 1.5 22\n", None, "line 3: 2 numbers, but the first line promises 3"),
        (b"a 1 2\nNew York 1 2\n", None, "line 2: 3 numbers.*a word must not hold a space"),
        (b"2 2\na 1 2\nb nan 2\n", None, "line 3: 'nan' is not a finite float32"),
        (b"a 1 2\nb 1e999 2\n", None, "line 2: '1e999' is not a finite float32"),
        (b"a 1 2\n 1 2\n", None, "line 2.*expected a word"),
        (b"2 2\na 1 2\nb 1 \xff\n", None, "line 3"),
        (b"9999999999 300\na 1 2\n", None, "need at least .* bytes and the file has"),
        (b"99999999999999999 99999999\na 1\n", None, "line 1.*at most"),
        (b"0 0\n", None, "line 1: 0 words of 0 numbers"),
        (b"9999999999 2\na " + BINARY, None, "need at least .* bytes and the file has"),
        (b"2 2\nlong " + BINARY + b"b " + BINARY[:-2], "binary", "ends inside a vector"),
        (b"2 2\na " + BINARY + b"a " + BINARY, "binary", "word 2: the word 'a' stands there"),
        (b"1 2\na " + BINARY + b"b " + BINARY, "binary", "10 bytes follow the 1 words"),
        (b"2 2\na " + BINARY + b"\xff " + BINARY, "binary", "word 2: .* is not UTF-8"),
        (b"1 2\na \0\0\xc0\x7f\0\0\0\0", "binary", "word 1 .'a'.: a number .* is not finite"),
    ],
)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_bad_files_are_refused_with_place_and_way_out(
    tmp_path: Path, content: bytes, form: str | None, message: str, packed: str
) -> None:
    path = tmp_path / f"bad.vec{packed}"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputFileError, match=message if not packed else ".") as raised:
        read_word_vectors(path, form=form)  # type: ignore[arg-type]
    assert str(path) in str(raised.value)


def test_what_no_form_can_hold_is_not_written(tmp_path: Path) -> None:
    rows = np.ones((2, 2), dtype=np.float32)
    nan = np.array([[1, 2], [np.nan, 1]], dtype=np.float32)
    for words, matrix, message in (
        (["a", "New York"], rows, "word 2, 'New York', is empty or holds a space"),
        (["a", "b\nc"], rows, "line break"),
        (["a", ""], rows, "word 2, '', is empty"),
        (["a", "a"], rows, "is there twice"),
        (["a", "b"], nan, "word 2, 'b', holds NaN"),
        (["a"], rows, "1 words and vectors of shape"),
    ):
        with pytest.raises(WriteError, match=message):
            write_word_vectors(tmp_path / "v.txt", words, matrix)
    assert not list(tmp_path.iterdir())
