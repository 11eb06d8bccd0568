"""`bertsmith lm`: train, score, generate and convert from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import run
from test_ngram import zipf_text

from bertsmith.api import language_models


def test_a_model_is_trained_scored_converted_and_continues_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, model = tmp_path / "text.txt", tmp_path / "model"
    text.write_text(zipf_text(), encoding="utf-8")
    options = ["--form", "sentences", "--word-split", "spaces"]
    trained = ["lm", "train", str(text), "--kind", "ngram", "--order", "3", *options]
    assert run(*trained, "--held-out", str(text), "--out", str(model)) == 0
    assert "perplexity" in capsys.readouterr().out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "text.txt"]
    assert run("lm", "perplexity", str(model), str(text), "--form", "sentences", "--json") == 0
    scored = json.loads(capsys.readouterr().out)
    assert scored["unknown"] == 0
    assert 1 < scored["perplexity"] < 400
    assert run("lm", "convert", str(model), str(tmp_path / "m.arpa")) == 0
    assert run("lm", "convert", str(tmp_path / "m.arpa"), str(tmp_path / "again")) == 0
    capsys.readouterr()
    assert (
        run("lm", "perplexity", str(tmp_path / "again"), str(text), "--form", "sentences", "--json")
        == 0
    )
    again = json.loads(capsys.readouterr().out)
    assert again["perplexity"] == pytest.approx(scored["perplexity"], rel=1e-6)
    assert run("lm", "generate", str(model), "w1 w2", "--lines", "2", "--seed", "3") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("w1 w2") for line in lines)


def test_a_model_that_is_there_is_kept_and_another_one_is_refused_before_the_text_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, model = tmp_path / "text.txt", tmp_path / "model"
    text.write_text(zipf_text(), encoding="utf-8")
    command = ["lm", "train", str(text), "--kind", "ngram", "--form", "sentences"]
    assert run(*command, "--order", "3", "--out", str(model)) == 0
    kept = (model / "config.json").read_bytes()
    (tmp_path / ".model.words").mkdir()  # as calls leave it that are killed near their end
    (tmp_path / "..model.words.building").mkdir()
    monkeypatch.setattr(language_models, "build_words", None)
    capsys.readouterr()
    assert run(*command, "--order", "3", "--out", str(model)) == 0
    assert "is there already, of the same text and settings" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "text.txt"]
    assert run(*command, "--order", "2", "--out", str(model)) == 2
    assert "is not the n-gram model of this text with these settings" in capsys.readouterr().err
    text.write_text(zipf_text() + "one more line\n", encoding="utf-8")
    assert run(*command, "--order", "3", "--out", str(model)) == 2
    assert run("lm", "convert", str(tmp_path / "missing.arpa"), str(model)) == 2
    assert "exists already" in capsys.readouterr().err
    assert (model / "config.json").read_bytes() == kept


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "ngramm"], "did you mean 'ngram'"),
        (["--kind", "ngram", "--set", "ordr=3"], "ordr"),
        (["--kind", "ngram", "--order", "50"], "order"),
    ],
)
def test_bad_options_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(zipf_text(50), encoding="utf-8")
    assert run("lm", "train", str(text), *arguments, "--out", str(tmp_path / "model")) == 2
    assert message in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["text.txt"]


@pytest.fixture(scope="module")
def two_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An n-gram and a causal model of the same words, and three texts."""
    place = tmp_path_factory.mktemp("mixture")
    for number, name in enumerate(("train", "validation", "test")):
        (place / f"{name}.txt").write_text(zipf_text(300, seed=number), encoding="utf-8")
    options = ["--form", "sentences", "--word-split", "spaces", "--max-words", "60"]
    train = [
        "lm",
        "train",
        str(place / "train.txt"),
        *options,
        "--word-stream",
        str(place / "words"),
    ]
    assert run(*train, "--kind", "ngram", "--order", "2", "--out", str(place / "kn")) == 0
    small = ["model.layers=1", "model.hidden=16", "model.heads=2", "plan.steps=8"]
    changes = [part for one in small for part in ("--set", one)]
    assert run(*train, "--kind", "gpt", *changes, "--out", str(place / "gpt")) == 0
    return place


def score(place: Path, *arguments: str) -> int:
    test = str(place / "test.txt")
    return run("lm", "perplexity", str(place / "gpt"), test, "--form", "sentences", *arguments)


def test_a_mixture_is_named_fits_validation_text_and_beats_its_parts_there(
    two_models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = two_models
    options = ["--mix", str(place / "kn"), "--validation", str(place / "validation.txt")]
    assert score(place, *options, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "mixture of gpt and ngram"
    assert found["fitted"] is True
    assert sum(found["weights"]) == pytest.approx(1)
    assert found["weights"][1] > 0.8  # eight steps teach a network little
    alone = [one["perplexity"] for one in found["alone"]]
    assert found["perplexity"] < max(alone)
    assert score(place, *options) == 0
    shown = capsys.readouterr().out
    assert "mixture of gpt and ngram; weights" in shown
    assert "ngram alone: perplexity" in shown
    assert score(place, "--mix", str(place / "kn")) == 0
    assert "weights 0.5000 and 0.5000 (equal: no --validation was given)" in capsys.readouterr().out


def test_mixtures_that_mean_nothing_are_refused(
    two_models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = two_models
    assert score(place, "--validation", str(place / "validation.txt")) == 2
    assert "give --mix" in capsys.readouterr().err
    mixed = ["--mix", str(place / "kn")]
    assert score(place, *mixed, "--validation", str(place / "test.txt")) == 2
    assert "both scored and validation text" in capsys.readouterr().err
    other = [
        "lm",
        "train",
        str(place / "train.txt"),
        "--form",
        "sentences",
        "--word-split",
        "spaces",
    ]
    assert run(*other, "--order", "2", "--out", str(tmp_path / "other")) == 0
    assert score(place, "--mix", str(tmp_path / "other")) == 2
    assert "vocabularies differ" in capsys.readouterr().err


def test_a_causal_model_continues_lines_from_the_command_line(
    two_models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("lm", "generate", str(two_models / "gpt"), "w1 w2", "--max-new", "4") == 0
    assert capsys.readouterr().out.startswith("w1 w2")


EMPTY, ONE_LINE, ONE_WORD, TWO_WORDS = "\n\n", "the cat sat on the mat\n", "cat\n", "a a a\n" * 9
SMALL = {
    "ngram": ["order=2"],
    "nnlm": ["plan.steps=1"],
    "elmo": ["plan.steps=1"],
    "gpt": ["plan.steps=1", "model.layers=1", "model.hidden=16"],
}


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (EMPTY, "there is no word in text.txt"),
        (ONE_LINE, "none can be held out|discounts cannot be computed"),
        (ONE_WORD, "2 words, the unknown one included"),
        (TWO_WORDS, "2 words, the unknown one included"),
    ],
    ids=["empty", "one line", "one word", "two words"],
)
def test_text_that_teaches_nothing_is_refused_by_every_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, text: str, message: str
) -> None:
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    options = [part for one in SMALL[kind] for part in ("--set", one)]
    options += ["--form", "sentences", "--kind", kind]
    given = ["lm", "train", str(tmp_path / "text.txt"), *options]
    assert run(*given, "--out", str(tmp_path / "model")) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "model").exists()


def test_text_cannot_forge_the_ends_of_lines(
    two_models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "forged.txt").write_text("w1 <s> w2 </s> w1 <unk>\n", encoding="utf-8")
    for name in ("kn", "gpt"):
        forged = [str(two_models / name), str(tmp_path / "forged.txt"), "--form", "sentences"]
        assert run("lm", "perplexity", *forged, "--json") == 0
        scored = json.loads(capsys.readouterr().out)
        assert (scored["words"], scored["lines"], scored["unknown"]) == (6, 1, 3)
