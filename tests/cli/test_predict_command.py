"""`bertsmith predict`: every column kept, rows in order, and a killed run ends the same."""

from __future__ import annotations

import csv
import gzip
import io
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import COMMAND, environment, fresh, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_finetuning import rows

from bertsmith.labeled.read.reader import SourceRows, read_examples
from bertsmith.labeled.spec import DataSpec
from bertsmith.runtime import answer_files
from bertsmith.runtime.answers import PredictedRow, RowPredictions
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.row_files import RowLines
from bertsmith.tasks.prediction import Prediction


def some_texts(count: int, seed: int = 5) -> list[str]:
    return [example.texts[0] for example in rows(count, seed=seed)]


def objects(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_text_is_answered_at_once(classifier: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("predict", classifier, "a red bird") == 0
    first, *odds = capsys.readouterr().out.splitlines()
    assert first == "yes"
    assert [line.split()[1] for line in odds] == ["yes", "no"]
    assert run("predict", classifier, "a stone", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["texts"], told["prediction"]) == (["a stone"], "no")
    assert sum(told["probabilities"].values()) == pytest.approx(1.0, abs=1e-5)


def test_every_column_is_kept_and_rows_stay_in_order(classifier: Path, tmp_path: Path) -> None:
    texts = some_texts(60)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["key", "text", "remark", "label"])
    for number, text in enumerate(texts):
        writer.writerow([f"k{number}", text, f'a "remark",\nof {number}', "not read"])
    source = tmp_path / "in.csv"
    source.write_text(table.getvalue(), encoding="utf-8")
    assert run("predict", classifier, source, "--out", tmp_path / "out.jsonl", "--quiet") == 0
    assert run("predict", classifier, source, "--out", tmp_path / "out.csv", "--quiet") == 0
    found = objects(tmp_path / "out.jsonl")
    said = load_predictor(classifier).predict(texts)
    assert [row["key"] for row in found] == [f"k{number}" for number in range(60)]
    assert [row["remark"] for row in found] == [f'a "remark",\nof {n}' for n in range(60)]
    assert [row["prediction"] for row in found] == [one.value for one in said]
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        listed = list(csv.DictReader(file))
    assert [row["remark"] for row in listed] == [row["remark"] for row in found]
    assert [row["prediction"] for row in listed] == [one.value for one in said]
    assert {row["label"] for row in listed} == {"not read"}


def test_json_rows_are_kept_as_they_are_written(classifier: Path, tmp_path: Path) -> None:
    written = [
        f'{{"text": "{text}", "n": 1.0, "big": 12345678901234567890, "deep": {{"a": [1e3]}}}}'
        for text in some_texts(5)
    ]
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(written) + "\n", encoding="utf-8")
    assert run("predict", classifier, source, "--out", tmp_path / "out.jsonl", "--quiet") == 0
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    for line, given_row in zip(lines, written, strict=True):
        assert line.startswith(given_row[:-1] + ', "prediction": ')
        json.loads(line)


def test_a_list_and_a_packed_file_are_read_too(classifier: Path, tmp_path: Path) -> None:
    listed = [{"text": text, "place": number} for number, text in enumerate(some_texts(7))]
    source = tmp_path / "in.json.gz"
    source.write_bytes(gzip.compress(json.dumps(listed, indent=2).encode()))
    assert run("predict", classifier, source, "--out", tmp_path / "out.jsonl", "--quiet") == 0
    found = objects(tmp_path / "out.jsonl")
    assert [row["place"] for row in found] == list(range(7))
    assert [row["text"] for row in found] == [row["text"] for row in listed]


def test_a_column_called_like_ours_is_not_lost(classifier: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "bird", "prediction": "mine"}\n{"text": "stone"}\n')
    assert run("predict", classifier, source, "--out", tmp_path / "out.jsonl", "--quiet") == 0
    first, second = objects(tmp_path / "out.jsonl")
    assert (first["prediction"], first["prediction_2"]) == ("mine", "yes")
    assert second["prediction_2"] == "no"


def test_standard_input_is_one_text_a_line(classifier: Path) -> None:
    done = fresh("predict", classifier, "-", text='bird, tree\n"stone\n\nriver')
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["text"] for row in found] == ["bird, tree", '"stone', "", "river"]
    assert found[0]["prediction"] == "yes"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "tsv"])
def test_rejected_rows_are_accounted_for(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    source = tmp_path / "in.tsv"
    source.write_text("key\ttext\na\tbird\nb\ntoo\tmany\there\nc\tstone\n", encoding="utf-8")
    out = tmp_path / f"out.{kind}"
    assert run("predict", classifier, source, "--out", out) == 2
    assert "2 of 4 rows cannot be used" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.tsv"]
    assert run("predict", classifier, source, "--out", out, "--on-error", "skip") == 0
    assert "2 of 4 rows predicted by eager-fp32" in capsys.readouterr().out
    rejected = objects(tmp_path / "in.tsv.rejected.jsonl")
    assert [row["line"] for row in rejected] == [3, 4]
    text = out.read_text(encoding="utf-8")
    assert text.index("bird") < text.index("stone")


def test_mistakes_are_named(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.tsv").write_text("text\nbird\n")
    for arguments, said in (
        ((classifier, tmp_path / "none.tsv"), "there is no such file"),
        ((classifier, tmp_path / "in.tsv", "--out", tmp_path / "out.xlsx"), ".jsonl, .csv or .tsv"),
        ((classifier, "a text", "--out", tmp_path / "out.csv"), "--out is for files"),
        ((classifier,), "give a fine-tuned model folder, and a file"),
        ((classifier, tmp_path), "is a folder"),
        (("all-MiniLM-L6-v2", "a text"), "was not fine-tuned"),
    ):
        assert run("predict", *arguments) == 2, arguments
        assert said in capsys.readouterr().err


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(
    classifier: Path, tmp_path: Path
) -> None:
    source = tmp_path / "in.csv"
    texts = some_texts(12_000)
    lines = (f"{number},{text},=1+{number}" for number, text in enumerate(texts))
    source.write_text("\n".join(["key,text,sum", *lines]) + "\n", encoding="utf-8")
    whole, broken = tmp_path / "whole.csv", tmp_path / "broken.csv"
    assert run("predict", classifier, source, "--out", whole, "--quiet", "--threads", "1") == 0
    journal = tmp_path / ".broken.csv.partial" / "journal.json"
    command = [*COMMAND, "predict", classifier, source, "--out", broken, "--threads", "1"]
    seen = []
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen(
            list(map(str, command)),
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        before = seen[-1] if seen else 0
        limit = time.monotonic() + 60
        while not journal.exists() or json.loads(journal.read_bytes())["state"]["rows"] <= before:
            assert process.poll() is None, "it ended before it was to be stopped"
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.send_signal(number)
        process.wait(60)
        assert not broken.exists()
        seen.append(json.loads(journal.read_bytes())["state"]["rows"])
    assert 0 < seen[0] < seen[1] < len(texts)
    done = fresh(*command[len(COMMAND) :])
    assert done.returncode == 0, done.stderr
    assert f"resumed after {seen[1]:,} rows" in done.stderr.decode()
    assert broken.read_bytes() == whole.read_bytes()
    assert not journal.parent.exists()


def test_what_another_file_left_unfinished_is_not_mixed_in(
    classifier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_files, "CHUNK", 8)
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in some_texts(40)))
    real, calls = RowLines.lines, []

    def stops(self: RowLines[PredictedRow], some: object) -> str:
        calls.append(some)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, some)  # type: ignore[arg-type]

    monkeypatch.setattr(RowLines, "lines", stops)
    assert run("predict", classifier, source, "--out", out, "--quiet") == 130
    journal = json.loads((tmp_path / ".out.jsonl.partial" / "journal.json").read_bytes())
    assert journal["state"]["rows"] == 16
    monkeypatch.setattr(RowLines, "lines", real)
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in some_texts(40, seed=9)))
    assert run("predict", classifier, source, "--out", out, "--quiet") == 0
    assert [row["text"] for row in objects(out)] == some_texts(40, seed=9)


DANGEROUS = st.text(st.sampled_from("=+-@\t\r\n'\",;x ä\u2028"), max_size=6)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cells=st.lists(DANGEROUS, min_size=1, max_size=5))
def test_a_csv_result_is_safe_for_spreadsheets_and_reads_back_equal(
    classifier: Path, tmp_path: Path, cells: list[str]
) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.csv"
    source.write_text(
        "".join(json.dumps({"text": "bird", "remark": cell}) + "\n" for cell in cells)
    )
    lines = RowLines("csv", RowPredictions(load_predictor(classifier)), ("text", "remark"))
    rows = SourceRows(source, DataSpec(format="jsonl", text=("text",), label=(), why={"x": "y"}))
    predicted = PredictedRow(Prediction(value="=yes", confidence=0.5))
    text = lines.header() + lines.lines((example, kept, predicted) for example, kept in rows)
    out.write_bytes(text.encode())
    with out.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            assert not any(cell[:1] in ("=", "+", "-", "@", "\t", "\r") for cell in row)
    spec = DataSpec(text=("text",), label=("prediction",), extra=("remark",), task="classify")
    back = list(read_examples(out, spec))
    assert [example.extra["remark"] for example in back] == cells
    assert {example.target.name for example in back} == {"=yes"}  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_row_with_an_empty_text_gets_no_prediction(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    source, out = tmp_path / "in.csv", tmp_path / f"out.{kind}"
    source.write_text("key,text\na,bird\nb,\nc, \nd,stone\n", encoding="utf-8")
    assert run("predict", classifier, source, "--out", out) == 0
    shown = capsys.readouterr()
    assert "2 rows without a prediction, as a text is empty (line 3, line 4)" in shown.err
    assert "2 of 4 rows predicted" in shown.out
    assert "empty: 2 rows written without a prediction" in shown.out
    if kind == "jsonl":
        found = objects(out)
    else:
        with out.open(encoding="utf-8", newline="") as file:
            found = [dict(row) for row in csv.DictReader(file)]
    assert [row["key"] for row in found] == ["a", "b", "c", "d"]
    assert [bool(row["prediction"]) for row in found] == [True, False, False, True]
    assert run("predict", classifier, source, "--out", out, "--empty", "keep") == 0
    assert "4 of 4 rows predicted" in capsys.readouterr().out
    assert run("predict", classifier, source, "--out", out, "--empty", "reject") == 2
    assert "2 of 4 rows cannot be used" in capsys.readouterr().err
