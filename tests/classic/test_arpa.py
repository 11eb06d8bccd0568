"""ARPA files: round trips, kenlm's own scores, tolerated forms, refusals with their lines."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from test_ngram import trained, zipf_text

from bertsmith.classic.ngram.arpa import read_arpa, write_arpa
from bertsmith.classic.ngram.estimation import NgramSettings
from bertsmith.classic.ngram.folder import open_ngram, write_ngram
from bertsmith.classic.ngram.model import NgramLm
from bertsmith.classic.stream.folder import word_numbers
from bertsmith.errors import InputFileError

ARPA = """\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-99\t<s>\t-0.3
-0.7\t</s>
-0.6\ta\t-0.2
-0.8\tb\t-0.1
-1.5\t<unk>

\\2-grams:
-0.2\t<s> a
-0.4\ta b
-0.1\tb </s>

\\end\\
"""


def opened(folder: Path, text: str | bytes, name: str = "model.arpa") -> NgramLm:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    words, orders = read_arpa(path)
    write_ngram(words, orders, folder / "read")
    return open_ngram(folder / "read")


def scores(model: NgramLm, text: str) -> list[float]:
    numbers = word_numbers(model.words)
    line = np.array([numbers.get(word, 0) for word in text.split()], dtype=np.int32)
    return [log / math.log(10) for log in model.log_probabilities([line])[0].tolist()]


def test_a_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    model = opened(tmp_path, ARPA)
    assert scores(model, "a b") == pytest.approx([-0.2, -0.4, -0.1])
    # backoff of b, then the end alone; backoff of <s>, then b
    assert scores(model, "b a") == pytest.approx([-0.3 - 0.8, -0.1 - 0.6, -0.2 - 0.7])
    assert scores(model, "zzz") == pytest.approx([-0.3 - 1.5, -0.7])


def test_a_model_goes_through_arpa_and_back(tmp_path: Path) -> None:
    model = trained(tmp_path, NgramSettings(order=4, prune=(0, 0, 1)))
    write_arpa(model, tmp_path / "model.arpa")
    words, orders = read_arpa(tmp_path / "model.arpa")
    write_ngram(words, orders, tmp_path / "again")
    again = open_ngram(tmp_path / "again")
    assert again.words == model.words
    for mine, other in zip(model.orders, again.orders, strict=True):
        assert np.array_equal(mine.keys, other.keys)
        assert np.allclose(mine.logs, other.logs, atol=1e-7)


@pytest.mark.parametrize("prune", [(), (0, 0, 1)])
def test_kenlm_scores_our_file_as_we_do(tmp_path: Path, prune: tuple[int, ...]) -> None:
    kenlm = pytest.importorskip("kenlm")
    text = zipf_text()
    model = trained(tmp_path, NgramSettings(order=4, prune=prune), text)
    write_arpa(model, tmp_path / "model.arpa")
    peer = kenlm.Model(str(tmp_path / "model.arpa"))
    for line in [*text.splitlines()[:200], "w1 neverseen w2", "w2 w1 w3 w1"]:
        theirs = [log for log, _, _ in peer.full_scores(line)]
        assert scores(model, line) == pytest.approx(theirs, abs=2e-6)
        assert abs(sum(scores(model, line)) - sum(theirs)) < 1e-4


@pytest.mark.parametrize(
    "text",
    [
        ARPA.replace("\n", "\r\n"),
        "made by a tool\n\n" + ARPA,
        ARPA.replace("\t", " "),
        ARPA.replace("-1.5\t<unk>\n", "").replace("1=5", "1=4"),
    ],
    ids=["crlf", "preamble", "blanks", "no unknown word"],
)
def test_forms_that_other_tools_write_are_read(tmp_path: Path, text: str) -> None:
    model = opened(tmp_path, text)
    assert scores(model, "a b") == pytest.approx([-0.2, -0.4, -0.1])


def test_packed_files_are_read(tmp_path: Path) -> None:
    model = opened(tmp_path, gzip.compress(ARPA.encode()), "model.arpa.gz")
    assert scores(model, "a b") == pytest.approx([-0.2, -0.4, -0.1])


def test_a_missing_suffix_is_filled_in_by_backing_off(tmp_path: Path) -> None:
    text = ARPA.replace("ngram 2=3", "ngram 2=3\nngram 3=1").replace(
        "\n\\end\\", "\n\\3-grams:\n-0.05\ta b a\n\n\\end\\"
    )
    model = opened(tmp_path, text)
    assert scores(model, "a b a") == pytest.approx([-0.2, -0.4, -0.05, -0.2 - 0.7])
    assert scores(model, "b a")[1] == pytest.approx(-0.1 - 0.6)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ngram 2=3", "ngram 2=4", r"line 16: there are 3 2-grams and the header says 4"),
        ("-0.6\ta", "0.6\ta", r"line 8: the log probability 0.6 is above 0"),
        ("-0.6\ta", "nan\ta", r"line 8: 'nan' is no log probability"),
        ("-0.8\tb", "-0.8\ta", r"line 9: the word 'a' stands twice"),
        ("a b\n", "a c\n", r"line 14: the word 'c' is not among the 1-grams"),
        ("a b\n", "a b b a\n", r"line 14: .* is not: log probability, 2 words"),
        ("a b\n", "<s> a\n", r"line 1[34]: this 2-gram stands twice"),
        ("\\end\\", "\\3-grams:", r"should be \\end"),
        ("-0.7\t</s>\n", "-0.7\tc\n", r"the 1-grams lack </s>"),
        ("ngram 1=5", "ngram 2=5", r"line 2: 'ngram 2=5' should be: ngram 1=COUNT"),
        ("\n\\end\\\n", "", r"the file ends where"),
        ("\\data\\", "data", r"the file ends where"),
        ("-0.3", "minus", r"line 6: 'minus' is no backoff"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in ARPA
    with pytest.raises(InputFileError, match=message):
        opened(tmp_path, ARPA.replace(old, new, 1))
    assert not (tmp_path / "read").exists()


def test_an_ngram_without_its_context_is_refused(tmp_path: Path) -> None:
    text = ARPA.replace("ngram 2=3", "ngram 2=3\nngram 3=1").replace(
        "\n\\end\\", "\n\\3-grams:\n-0.05\tb a b\n\n\\end\\"
    )
    with pytest.raises(InputFileError, match="line 19: the context of this 3-gram"):
        opened(tmp_path, text)
