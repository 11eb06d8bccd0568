"""`bertsmith corpus`: what a user types, sees and is told."""

from __future__ import annotations

import json

import pytest
from corpus_making import as_sentences, bert, some_documents
from typer.testing import CliRunner

from bertsmith.cli.commands.corpus import app
from bertsmith.errors import BertsmithError

RUN = CliRunner()


@pytest.fixture
def place(tmp_path):
    bert().save(tmp_path / "vocab")
    (tmp_path / "a.txt").write_text(as_sentences(some_documents(30)), encoding="utf-8")
    return tmp_path


def call(*arguments: object) -> str:
    done = RUN.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_build_verify_show(place) -> None:
    out = place / "shards"
    told = call("build", place / "a.txt", "--vocab", place / "vocab", "--out", out)
    assert "30 documents" in told
    assert "MB/s" in told
    assert "is intact: 30 documents" in call("verify", out)
    shown = call("show", out, "--documents", 1, "--skip", 2).splitlines()
    assert shown[0].startswith("document 2: ")
    assert all(line.startswith("  ") for line in shown[1:])
    assert "play·##ing" in call("show", out, "--documents", 30)


def test_the_report_as_json(place) -> None:
    out = place / "shards"
    told = call(
        *("build", place / "a.txt", "--vocab", place / "vocab", "--out", out),
        *("--json", "--quiet", "--segmenter", "character"),
    )
    report = json.loads(told)
    assert report["documents"] == 30
    assert report["forms"] == {"a.txt": "sentences"}


def test_advise_on_shards_and_on_files_agree(place) -> None:
    call("build", place / "a.txt", "--vocab", place / "vocab", "--out", place / "shards")
    words = place / "words.txt"
    told = call("advise", place / "shards", "--max-words", 3, "--out", words)
    assert "save" in told
    listed = words.read_text().splitlines()
    assert "zebra" in listed
    figures = json.loads(call("advise", place / "a.txt", "--model", place / "vocab", "--json"))
    assert [one["word"] for one in figures["suggestions"]][:3] == listed
    assert figures["saved"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "{a}", "--out", "{out}"], "either --model MODEL or --vocab DIR"),
        (["build", "-", "--vocab", "{vocab}", "--out", "{out}"], "stdin"),
        (["verify", "{vocab}"], "is no corpus"),
        (["show", "{nowhere}"], "nowhere"),
    ],
)
def test_mistakes_are_answered_with_a_way_out(place, arguments, message) -> None:
    names = {"a": "a.txt", "out": "out", "vocab": "vocab", "nowhere": "nowhere"}
    places = {name: str(place / path) for name, path in names.items()}
    with pytest.raises(BertsmithError) as caught:
        call(*(argument.format(**places) for argument in arguments))
    assert message in str(caught.value)


def test_another_models_vocabulary_is_refused_by_name(place) -> None:
    call("build", place / "a.txt", "--vocab", place / "vocab", "--out", place / "shards")
    bert(lowercase=False).save(place / "other")
    with pytest.raises(BertsmithError, match=r"vocabulary of .*other"):
        call("advise", place / "shards", "--model", place / "other")


def test_help_is_plain_and_quick(place) -> None:
    for command in ("build", "advise", "extend", "verify", "show"):
        assert "Usage" in call(command, "--help")
