"""`bertsmith lm`: train, score, generate and convert from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_ngram import zipf_text

from bertsmith.cli.app import main


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


def test_a_model_is_trained_scored_converted_and_continues_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, model = tmp_path / "text.txt", tmp_path / "model"
    text.write_text(zipf_text(), encoding="utf-8")
    options = ["--form", "sentences", "--split", "spaces"]
    trained = ["lm", "train", str(text), "--kind", "ngram", "--order", "3", *options]
    assert run(*trained, "--held-out", str(text), "--out", str(model)) == 0
    assert "perplexity" in capsys.readouterr().out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "text.txt"]
    assert run("lm", "score", str(model), str(text), "--form", "sentences", "--json") == 0
    scored = json.loads(capsys.readouterr().out)
    assert scored["unknown"] == 0
    assert 1 < scored["perplexity"] < 400
    assert run("lm", "convert", str(model), str(tmp_path / "m.arpa")) == 0
    assert run("lm", "convert", str(tmp_path / "m.arpa"), str(tmp_path / "again")) == 0
    capsys.readouterr()
    assert (
        run("lm", "score", str(tmp_path / "again"), str(text), "--form", "sentences", "--json") == 0
    )
    again = json.loads(capsys.readouterr().out)
    assert again["perplexity"] == pytest.approx(scored["perplexity"], rel=1e-6)
    assert run("lm", "generate", str(model), "w1 w2", "--lines", "2", "--seed", "3") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("w1 w2") for line in lines)


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
