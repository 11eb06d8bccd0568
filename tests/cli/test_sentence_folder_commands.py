"""`bertsmith sentences whiten, flow, tune, static`: folders, verdicts on pairs, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from folder_models import tiny_model, tiny_tokenizer

import bertsmith
from bertsmith.folders.write import save_model
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.sentences.transform.moments import moments_of
from bertsmith.sentences.transform.whitening import whitening

LETTERS = list("abcdefghijklm字词")


def sentences(count: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(LETTERS, random.integers(2, 9))) for _ in range(count)]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A model, texts, and pairs whose scores are the cosines of its own whitened vectors."""
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=SentenceSettings())
    texts, more = sentences(300, 1), sentences(200, 2)
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    model = bertsmith.load(tmp_path / "m", precision="fp32")
    white = whitening(moments_of([model.encode(texts)], 16))(model.encode(more))
    white /= np.linalg.norm(white, axis=1, keepdims=True)
    scores = (white[::2] * white[1::2]).sum(axis=1)
    rows = zip(more[::2], more[1::2], scores, strict=True)
    lines = "".join(f"{one}\t{two}\t{score:.4f}\n" for one, two, score in rows)
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + lines)
    return tmp_path


def test_whiten_saves_the_formula_and_says_that_it_helped(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        "sentences", "whiten", here / "m", here / "texts.txt", "--out", here / "w",
        "--pairs", here / "pairs.tsv", "--quiet",
    )  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    assert "300 texts, 16 -> 15 dimensions; 1 direction without variance dropped" in out
    assert "Spearman on 100 pairs" in out
    assert out.rstrip().endswith("it helped")
    few = ("--dim", "4", "--out", here / "few")
    assert run("sentences", "whiten", here / "m", here / "texts.txt", *few, "--quiet") == 0
    texts = (here / "texts.txt").read_text().splitlines()
    before = bertsmith.load(here / "m", precision="fp32").encode(texts)
    expected = whitening(moments_of([before], 16), 4)(before)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    after = bertsmith.load(here / "few", precision="fp32").encode(texts)
    # The vectors of a random model are almost equal: their mean cancels in float32.
    np.testing.assert_allclose(after, expected, atol=1e-4)


def test_foreign_texts_are_said_to_harm(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "foreign.txt").write_text("a\na b\n字 a\na 字\nb b a\nb\n")
    run("sentences", "whiten", here / "m", here / "texts.txt", "--out", here / "good", "--quiet")
    code = run(
        "sentences", "whiten", here / "good", here / "foreign.txt", "--dim", "1",
        "--out", here / "bad", "--pairs", here / "pairs.tsv", "--json",
    )  # fmt: skip
    assert code == 0
    record = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    assert record["pairs"]["verdict"] == "harmed"
    assert record["kept"] == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["few.txt"], "8 texts are too few for whitening in 16 dimensions"),
        (["few.txt", "--dim", "9"], "the largest number to keep is 7"),
        (["texts.txt", "--dim", "17"], "have 16"),
        (["texts.txt", "--pairs", "texts.txt"], "without scores"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    more: list[str], words: str, here: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(here)
    (here / "few.txt").write_text("\n".join(sentences(8, 3)))
    assert run("sentences", "whiten", "m", *more, "--out", "w") == 2
    assert words in capsys.readouterr().err
    assert not (here / "w").exists()


def test_flow_prints_its_likelihood_next_to_that_of_whitening(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        "sentences", "flow", here / "m", here / "texts.txt", "--out", here / "f", "--epochs", "2",
        "--pairs", here / "pairs.tsv", "--json",
    )  # fmt: skip
    assert code == 0
    record = json.loads(capsys.readouterr().out)
    assert record["learned_from"] + record["held_out"] == record["texts"] == 300
    assert np.isfinite([record["nll"], record["whitening_nll"]]).all()
    assert bertsmith.load(here / "f").dimension == 15
    assert run("info", here / "f") == 0
    shown = capsys.readouterr()
    assert "text-embeddings-inference" in shown.out + shown.err


def test_tune_saves_the_winner_and_a_picture(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        "sentences", "tune", here / "m", here / "pairs.tsv", "--out", here / "t",
        "--text-file", here / "texts.txt", "--flows", "0",
    )  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    assert "chosen: layer 2, mean, whitening to" in out
    page = (here / "t" / "tune.html").read_text()
    assert "<svg" in page
    assert "<script" not in page
    assert "layer 2, mean, whitening" in page
    assert bertsmith.load(here / "t").encode(["a b"]).shape[0] == 1


def test_tune_without_scores_gives_hints_and_saves_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("sentences", "tune", here / "m", here / "texts.txt", "--out", here / "t") == 0
    out = capsys.readouterr().out
    assert "uniformity" in out
    assert "hints, not quality" in out
    assert not (here / "t").exists()


def test_static_prints_speed_and_loss(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(
        "sentences", "static", here / "m", "--out", here / "s", "--dim", "8",
        "--text-file", here / "texts.txt", "--pairs", here / "pairs.tsv", "--quiet",
    )  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    assert "16 tokens, 8 columns" in out
    assert "texts/s" in out
    assert "Spearman on 100 pairs" in out
    assert "agreement with the model" in out
    assert bertsmith.load(here / "s").encode("a b").shape == (8,)
    assert run("sentences", "whiten", here / "s", here / "texts.txt", "--out", here / "sw") == 0
    assert bertsmith.load(here / "sw").engine == "static"
