"""`bertsmith generate`: texts, files, streams, and a message for everything that cannot be."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import fresh, run
from folder_models import tiny_model, tiny_tokenizer

import bertsmith
from bertsmith.folders.generation import GenerationDefaults, Writes, generation_extras
from bertsmith.folders.write import save_model
from bertsmith.labeled.spec import DataSpec
from bertsmith.runtime import answer_files
from bertsmith.runtime.row_files import RowLines

pytestmark = pytest.mark.usefixtures("edited_folders")

Captured = pytest.CaptureFixture[str]
LONGEST = 24  # positions of the tiny models


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "causal", sees="before")


def saved(
    folder: Path,
    *,
    heads: Sequence[str] = ("masked_lm",),
    variant: str = "bert",
    defaults: GenerationDefaults | None = None,
    writes: Writes | None = None,
    **changes: Any,
) -> Path:
    model = tiny_model(variant, heads=heads, **changes)
    save_model(model, tiny_tokenizer(), folder, extras=generation_extras(defaults, writes))
    return folder


def test_a_text_is_continued(causal: Path, capsys: Captured) -> None:
    assert run("generate", causal, "a b c", "--max-new", "5", "--min-new", "5") == 0
    shown = capsys.readouterr()
    expected = bertsmith.load(causal).generate(
        ["a b c"], bertsmith.GenerationOptions(max_new=5, min_new=5)
    )
    assert shown.out == f"{expected[0].text}\n"
    assert "--max-new" in shown.err
    assert (
        run("generate", causal, "a b", "--beams", "3", "--answers", "2", "--scores", "--quiet") == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1", "2"]
    assert float(lines[0].split("\t")[1]) >= float(lines[1].split("\t")[1])
    assert (
        run("generate", causal, "a b", "--json", "--sample", "--answers", "2", "--seed", "4") == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["text"] == "a b"
    assert {tuple(one) for one in told["answers"]} == {("text", "score", "stopped", "tokens")}


def test_a_stream_is_the_same_text(causal: Path, capsys: Captured) -> None:
    assert run("generate", causal, "a b", "--max-new", "9", "--quiet") == 0
    whole = capsys.readouterr().out
    assert run("generate", causal, "a b", "--max-new", "9", "--stream") == 0
    assert capsys.readouterr().out == whole


def test_every_column_of_a_file_is_kept(causal: Path, tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text('id,text,generated\n1,a b c,"x, y"\n2,,z\n3,b 字,w\n', encoding="utf-8")
    for name in ("out.jsonl", "out.csv"):
        chosen = ("--out", tmp_path / name, "--text", "text", "--max-new", "6", "--scores")
        assert run("generate", causal, table, *chosen, "--quiet") == 0
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    assert [one["generated"] for one in found] == ["x, y", "z", "w"]
    expected = bertsmith.load(causal).generate(
        ["a b c", "b 字"], bertsmith.GenerationOptions(max_new=6)
    )
    assert [one["generated_2"] for one in found] == [expected[0].text, None, expected[1].text]
    assert found[0]["score"] == pytest.approx(expected[0].answers[0].score, abs=1e-5)
    assert found[0]["stopped"] in ("end", "length")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["generated_2"].lstrip("'") for row in rows] == [
        expected[0].text,
        "",
        expected[1].text,
    ]


def test_standard_input_is_read_by_lines(causal: Path) -> None:
    done = fresh("generate", causal, "-", "--max-new", "3", text="a b\nc d\n")
    assert done.returncode == 0, done.stderr
    assert [len(json.loads(line)) for line in done.stdout.splitlines()] == [4, 4]


def test_a_stopped_file_is_resumed(
    causal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{'abc'[n % 3]} {'defg'[n % 4]}\n" for n in range(30)))
    monkeypatch.setattr(answer_files, "CHUNK", 8)
    arguments = ("generate", causal, texts, "--max-new", "4", "--beams", "2")
    assert run(*arguments, "--out", tmp_path / "whole.jsonl") == 0
    real, calls = RowLines.lines, []

    def stops(self: RowLines[Any], rows: Any) -> str:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, rows)

    monkeypatch.setattr(RowLines, "lines", stops)
    assert run(*arguments, "--out", tmp_path / "parts.jsonl") == 130
    monkeypatch.setattr(RowLines, "lines", real)
    capsys.readouterr()
    assert run(*arguments, "--out", tmp_path / "parts.jsonl") == 0
    assert "resumed after 16 rows" in capsys.readouterr().err
    assert (tmp_path / "parts.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a prompt beyond the positions": (("a " * 40,), ("41 tokens", "shorten")),
    "max-new that cannot fit": (("a", "--max-new", "900"), ("--max-new", "900", f"{LONGEST}")),
    "an empty prompt": ((" ",), ("empty",)),
    "temperature without sample": (("a", "--temperature", "0.5"), ("--temperature", "--sample")),
    "a seed without sample": (("a", "--seed", "5"), ("--seed", "--sample")),
    "top-p of 0": (("a", "--sample", "--top-p", "0"), ("--top-p", "more than 0")),
    "temperature of 0": (("a", "--sample", "--temperature", "0"), ("--temperature", "0.0001")),
    "a temperature without numbers": (
        ("a", "--sample", "--temperature", "1e-300"),
        ("--temperature", "a number from 0.0001 to 10,000"),
    ),
    "a word outside": (("a", "--forbid", "火"), ("--forbid", "火", "vocabulary")),
    "a stream of beams": (("a", "--stream", "--beams", "2"), ("--stream", "--beams 1")),
    "a stream as JSON": (("a", "--stream", "--json"), ("--stream", "--json")),
    "beams that are drawn": (("a", "--beams", "2", "--sample"), ("--beams", "--sample")),
    "a penalty without beams": (("a", "--length-penalty", "2"), ("--length-penalty", "--beams")),
    "more answers than beams": (("a", "--answers", "3"), ("--answers", "--beams 3")),
    "no token": (("a", "--first", "zzz zz"), ("--first", "tokenize")),
    "less than the least": (("a", "--min-new", "9", "--max-new", "3"), ("--min-new", "--max-new")),
    "another way": (("a", "--by", "mask"), ("--by", "causal")),
    "everything forbidden": (("a", "--no-repeat", "1", "--min-new", "22"), ("every token",)),
    "a text to a file": (("a", "--out", "x.jsonl"), ("--out",)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_by_its_name(name: str, causal: Path, capsys: Captured) -> None:
    arguments, says = REFUSED[name]
    assert run("generate", causal, *arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    for part in says:
        assert part in message, message


def test_a_row_that_is_too_long_is_named_by_its_line(
    causal: Path, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "texts.txt").write_text("a b\n" + "a " * 50 + "\n")
    assert run("generate", causal, tmp_path / "texts.txt", "--out", tmp_path / "o.jsonl") == 2
    assert "texts.txt, line 2" in capsys.readouterr().err


def test_folders_that_cannot_write_say_so(tmp_path: Path, capsys: Captured) -> None:
    assert run("generate", saved(tmp_path / "encoder", heads=()), "a") == 2
    assert "no head" in capsys.readouterr().err
    assert run("generate", saved(tmp_path / "masked"), "a") == 2
    assert "--by mask" in capsys.readouterr().err
    assert run("generate", tmp_path / "masked", "a", "--by", "shift", "--max-new", "3") == 0
    trained = saved(tmp_path / "unilm", writes=Writes(by="mask"))
    assert run("generate", trained, "a", "--by", "shift") == 2
    assert "trained to write by 'mask'" in capsys.readouterr().err
    assert run("generate", trained, "a", "--max-new", "3") == 0


def test_a_model_that_is_not_finite_is_named(tmp_path: Path, capsys: Captured) -> None:
    folder = saved(tmp_path / "model", sees="before")
    loaded = bertsmith.load(folder)
    with torch.no_grad():
        loaded.model.encoder.embeddings.tokens.weight.fill_(float("nan"))
    for options in (None, bertsmith.GenerationOptions(beams=2)):
        with pytest.raises(bertsmith.BertsmithError, match="not finite"):
            loaded.generate(["a"], options)


def test_a_folder_has_its_own_defaults(tmp_path: Path, capsys: Captured) -> None:
    defaults = GenerationDefaults(ends=(3,), beams=3, max_new=4, min_new=4, answers=2)
    folder = saved(tmp_path / "model", sees="before", defaults=defaults)
    assert run("generate", folder, "a b", "--quiet") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run("generate", folder, "a b", "--stream") == 2
    assert "generation_config.json" in capsys.readouterr().err
    assert run("generate", folder, "a b", "--sample", "--answers", "1", "--quiet") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_source_column_of_training_is_read(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model", sees="before")
    own = json.loads((folder / "bertsmith.json").read_text())
    spec = DataSpec(format="delimited", text=("question",), label=("answer",))
    (folder / "bertsmith.json").write_text(json.dumps(own | {"data": spec.to_values()}))
    (tmp_path / "in.tsv").write_text("answer\tquestion\na b\tc d\ne f\tg h\n")
    out = tmp_path / "out.jsonl"
    assert run("generate", folder, tmp_path / "in.tsv", "--out", out, "--max-new", "3") == 0
    expected = bertsmith.load(folder).generate(
        ["c d", "g h"], bertsmith.GenerationOptions(max_new=3)
    )
    found = [json.loads(line)["generated"] for line in out.read_text().splitlines()]
    assert found == [one.text for one in expected]
