"""`bertsmith words`: train, look up, evaluate and convert from the command line and Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from test_ngram import zipf_text

import bertsmith

TRAIN = ["--form", "sentences", "--word-split", "spaces", "--dim", "12", "--epochs", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("words")
    (place / "text.txt").write_text(zipf_text(), encoding="utf-8")
    out = place / "vectors"
    assert run("words", "train", str(place / "text.txt"), *TRAIN, "--out", str(out)) == 0
    return out


def test_training_leaves_a_folder_and_nothing_else(folder: Path) -> None:
    assert sorted(path.name for path in folder.parent.iterdir()) == ["text.txt", "vectors"]
    vectors = bertsmith.load_word_vectors(folder)
    assert vectors.dimension == 12
    assert "<unk>" not in vectors
    losses = json.loads((folder / "config.json").read_text())["losses"]
    assert losses[1] < losses[0]


def test_words_are_looked_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vectors = bertsmith.load_word_vectors(folder)
    word, other, third = vectors.words[:3]
    assert run("words", "near", str(folder), word, "-n", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["word"] for row in found] == [near for near, _ in vectors.near(word, 3)]
    assert run("words", "analogy", str(folder), word, other, third, "-n", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    wanted = vectors.analogy(word, other, third, 2)
    assert lines == [f"{score:.4f}  {name}" for name, score in wanted]
    assert run("words", "near", str(folder), "no-such-word") == 2
    assert "no word with a vector is called" in capsys.readouterr().err


def test_vectors_are_evaluated(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = bertsmith.load_word_vectors(folder).words
    pairs, questions = tmp_path / "pairs.tsv", tmp_path / "questions.txt"
    rows = [
        f"{a}\t{b}\t{number}" for number, (a, b) in enumerate(zip(words, words[5:25], strict=False))
    ]
    pairs.write_text("\n".join([*rows, "nobody\tknows\t3"]), encoding="utf-8")
    questions.write_text(f": s\n{' '.join(words[:4])}\n{' '.join(words[:3])} nobody\n")
    assert run("words", "evaluate", str(folder), str(pairs), str(questions), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["similarity"][0]["pairs"], found["similarity"][0]["known"]) == (21, 20)
    assert -1 <= found["similarity"][0]["spearman"] <= 1
    total = found["analogies"]["questions.txt"]
    assert (total["questions"], total["known"], total["sections"][0]["name"]) == (2, 1, "s")
    assert run("words", "evaluate", str(folder), str(pairs), str(questions)) == 0
    shown = capsys.readouterr().out
    assert "20 of 21" in shown
    assert "all of questions.txt" in shown


def test_files_are_converted_to_the_last_bit(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = bertsmith.load_word_vectors(folder)
    last = folder
    for name, options in (
        ("a.txt.gz", []),
        ("b.bin", []),
        ("c.txt", ["--write-as", "glove"]),
        ("d.vec", ["--write-as", "text"]),
    ):
        assert run("words", "convert", str(last), str(tmp_path / name), *options) == 0
        last = tmp_path / name
        found = bertsmith.load_word_vectors(last)
        assert found.words == wanted.words
        assert found.matrix.tobytes() == wanted.matrix.tobytes()
    assert (tmp_path / "b.bin").read_bytes() == (folder / "vectors.bin").read_bytes()


def test_a_sentence_folder_gives_means_of_words(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "sentences"
    assert run("words", "convert", str(folder), str(out), "--write-as", "sentence") == 0
    vectors = bertsmith.load_word_vectors(folder)
    first, second = vectors.words[:2]
    mean = vectors[first] + vectors[second]
    model = bertsmith.load(str(out))
    found = model.encode([f"{first} {second}"])[0]
    assert found == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def test_chinese_text_is_segmented(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("我爱北京天安门\n北京大学的学生\n" * 30, encoding="utf-8")
    settings = bertsmith.Word2VecSettings(dim=4, epochs=1)
    bertsmith.train_word_vectors(text, tmp_path / "v", settings=settings, threads=1)
    vectors = bertsmith.load_word_vectors(tmp_path / "v")
    assert any(len(word) > 1 for word in vectors.words)
    assert vectors.near(vectors.words[0], 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loss", "hierarchical", "--negatives", "3"], "negatives has no meaning"),
        (["--combine", "sum"], "combine has no meaning"),
        (["--min-count", "100000"], "lower the minimum count"),
        (["--lr", "5"], "'--lr'"),
    ],
)
def test_what_cannot_work_is_refused(
    folder: Path,
    tmp_path: Path,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = folder.parent / "text.txt"
    assert run("words", "train", str(text), *TRAIN, *arguments, "--out", str(tmp_path / "v")) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "v").exists()
