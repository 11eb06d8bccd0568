"""`bertsmith map`: a page from a file, and one line for what cannot be shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from tiny_sentences import sentences

import bertsmith
from bertsmith.api.map import MapOptions, map_texts


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "rows.tsv"
    rows = [
        f"{text}\t{'odd' if at % 2 else 'even'}\t{at}\n" for at, text in enumerate(sentences(40))
    ]
    path.write_text("text\tkind\tnumber\n" + "".join(rows), encoding="utf-8")
    return path


def data_of(path: Path) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)[1])


def shown(path: Path, *arguments: object) -> dict:
    assert run("map", *map(str, arguments), "--out", path, "--quiet") == 0
    return data_of(path)


def test_texts_with_their_labels_by_name_and_number(table, encoder, tmp_path, capsys) -> None:
    out = tmp_path / "map.html"
    data = shown(out, table, "--model", encoder, "--label", "kind", "--method", "pca")
    assert capsys.readouterr().out == f"40 points: {out}\n"
    assert data["texts"] == sentences(40)
    assert data["names"] == ["even", "odd"]
    assert data["labels"] == [0, 1] * 20
    assert data["legend"] == "kind"
    assert [one["method"] for one in data["maps"]] == ["pca"]
    by_number = shown(
        tmp_path / "b.html", table, "--model", encoder, "--label", 2, "--method", "pca"
    )
    assert by_number["labels"] == data["labels"]


def test_the_same_seed_gives_the_same_page_and_samples_keep_their_order(
    table, encoder, tmp_path, capsys
) -> None:
    pages = []
    for seed in (1, 1, 2):
        out = tmp_path / f"{len(pages)}.html"
        options = ("--points", 10, "--seed", seed, "--title", "t")
        assert run("map", table, "--model", encoder, "--out", out, *map(str, options)) == 0
        pages.append(out.read_text("utf-8"))
    assert pages[0] == pages[1]
    assert "10 of 40 texts are shown, drawn at random" in capsys.readouterr().err
    rows = [data_of(tmp_path / f"{number}.html")["rows"] for number in (0, 2)]
    assert rows[0] != rows[1]
    assert rows[0] == sorted(rows[0])
    assert [one["method"] for one in data_of(tmp_path / "0.html")["maps"]] == ["tsne", "pca"]


def test_words_are_points_colored_by_word(table, encoder, tmp_path) -> None:
    texts = sentences(40)
    one, other = texts[0].split()[:2]
    data = shown(
        tmp_path / "w.html", table, "--model", encoder, "--word", one, "--word", other, "--layer", 1
    )
    assert data["words"] is True
    assert len(data["texts"]) == sum(text.split().count(w) for text in texts for w in {one, other})
    assert set(data["names"]) == {one, other}
    for text, (start, length), label in zip(
        data["texts"], data["spans"], data["labels"], strict=True
    ):
        assert text[start : start + length] == data["names"][label]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--label", "nothing"], "has no column 'nothing'; the columns are 1: 'text', 2: 'kind'"),
        (["--label", "text"], "has its texts in column 'text'"),
        (["--label", "9"], "has no column '9'"),
        (["--word", "zebra"], "'zebra' occurs in none of 40 texts; whole words"),
        (["--word", ""], "the word to find is empty"),
        (["--layer", "1"], "a layer is chosen for words only"),
        (["--method", "tnse"], "did you mean 'tsne'?"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    arguments, message, table, encoder, tmp_path, capsys
) -> None:
    out = tmp_path / "map.html"
    assert run("map", table, "--model", encoder, "--out", out, *arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no text"),
        ("one\n", "only 1 text"),
        ("one\ntwo\n", "only 2 texts"),
        ("a\na\na\n", "same vector"),
    ],
)
def test_too_few_texts_are_refused(content, message, encoder, tmp_path, capsys) -> None:
    (tmp_path / "few.txt").write_text(content)
    out = tmp_path / "map.html"
    assert run("map", tmp_path / "few.txt", "--model", encoder, "--out", out) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_file_without_columns_has_no_labels(encoder, tmp_path, capsys) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(sentences(5)))
    out = tmp_path / "map.html"
    assert run("map", tmp_path / "lines.txt", "--model", encoder, "--out", out, "--label", "x") == 2
    assert "has no columns but the texts" in capsys.readouterr().err


def test_many_labels_are_grouped_and_named(encoder, tmp_path) -> None:
    rows = [(text, str(at)) for at, text in enumerate(sentences(30))]
    made = map_texts(rows, encoder, tmp_path / "m.html", options=MapOptions(methods=["pca"]))
    assert made.notes == ["19 labels beyond the 11 most frequent share one color, other"]
    assert data_of(made.path)["others"] == 19


def test_from_python_with_a_loaded_model(encoder, tmp_path) -> None:
    texts = sentences(6)
    with bertsmith.load(encoder, precision="fp32") as loaded:
        made = bertsmith.map_texts(
            texts, loaded, tmp_path / "m.html", options=bertsmith.MapOptions(methods=["pca"])
        )
        vectors = loaded.encode(texts).astype(np.float64)
    assert (made.points, made.total, made.notes) == (6, 6, [])
    plane = data_of(made.path)["maps"][0]
    spread = vectors - vectors.mean(axis=0)
    first = spread @ np.linalg.svd(spread)[2][0]
    assert abs(np.corrcoef(first, plane["x"])[0, 1]) > 0.9999
