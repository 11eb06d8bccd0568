"""Commands on folders that write: finetune, evaluate, predict, similar."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from tiny_writing import LETTERS, alike, reversals, tiny_writing_folder

from bertsmith import similar_sentences
from bertsmith.api.similar import written_similar
from bertsmith.errors import FolderError, TextError
from bertsmith.training.kinds.write.record import WritingFolder

TINY = ("--max-length", "32", "--precision", "fp32", "--quiet", "--set")


def table(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.write_text("\n".join("\t".join(row) for row in rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was trained to write, for a moment."""
    place = tmp_path_factory.mktemp("writer")
    model = tiny_writing_folder(place / "start")
    data = table(place / "pairs.tsv", reversals(60))
    arguments = ("--task", "write", "--model", model, "--out", place / "out")
    assert run("finetune", data, *arguments, *TINY, "plan.steps=3") == 0
    return place / "out"


@pytest.fixture(scope="module")
def simbert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of similar sentences, trained for a moment."""
    place = tmp_path_factory.mktemp("simbert")
    model = tiny_writing_folder(place / "start")
    data = table(place / "pairs.tsv", alike(60))
    arguments = ("--task", "similar", "--model", model, "--out", place / "out")
    assert run("finetune", data, *arguments, *TINY, "plan.steps=3") == 0
    return place / "out"


def test_finetune_prints_losses_figures_and_texts(
    tmp_path: Path, tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = table(tmp_path / "pairs.tsv", reversals(40))
    out = tmp_path / "out"
    arguments = ("--task", "write", "--model", tiny, "--out", out, *TINY[:4])
    assert run("finetune", data, *arguments, "--set", "plan.steps=2") == 0
    shown = capsys.readouterr()
    assert "text: column 1, column 2" in shown.err
    assert "the file was split (32 train, 4 dev, 4 test rows)" in shown.err
    assert "sources have at most 27 tokens, targets at most 5" in shown.err
    assert "writing loss on dev:" in shown.out
    assert "copy of the source" in shown.out
    assert "with the source of another row" in shown.out.lower()
    assert f"report: {out / 'report.html'}" in shown.out


def test_evaluate_writes_and_scores(
    writer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = table(tmp_path / "test.tsv", reversals(12, seed=5))
    assert run("evaluate", writer, data, "--json", "--quiet", "--out", tmp_path / "o") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["rows"] == 12
    assert record["baselines"]["copy"]["rouge_1"] == pytest.approx(1.0)
    written = (tmp_path / "o" / "written.jsonl").read_text().splitlines()
    assert [json.loads(line)["source"] for line in written] == [a for a, _ in reversals(12, seed=5)]
    assert run("evaluate", writer, data, "--quiet") == 0
    assert "first sentence" in capsys.readouterr().out


def test_generate_and_convert_read_the_folder(
    writer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("generate", writer, "w1 w2 w3", "--json", "--quiet") == 0
    assert "w1 w2 w3" in capsys.readouterr().out
    assert run("convert", writer, tmp_path / "copy") == 0
    capsys.readouterr()
    copy = WritingFolder.at(tmp_path / "copy")
    first = WritingFolder.at(writer)
    assert copy is not None
    assert first is not None
    assert (copy.writes, copy.lengths, copy.task) == (first.writes, first.lengths, first.task)
    own = tmp_path / "copy" / "bertsmith.json"
    own.write_text(json.dumps({**json.loads(own.read_text()), "seq2seq": {"task": "write"}}))
    with pytest.raises(FolderError, match="seq2seq must be a table with task"):
        WritingFolder.at(tmp_path / "copy")


def test_predict_names_the_command_that_writes(
    writer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("predict", writer, "w1 w2") != 0
    assert f"bertsmith generate {writer}" in capsys.readouterr().err


def test_a_folder_that_writes_is_trained_on(
    writer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = table(tmp_path / "pairs.tsv", reversals(40))
    for by, code in (("mask", 0), ("shift", 2)):
        arguments = ("--task", "write", "--model", writer, "--out", tmp_path / by, *TINY)
        assert run("finetune", data, *arguments, f'writing.by="{by}"', "--set", "plan.steps=1") == (
            code
        )
    assert "learned to write by mask" in capsys.readouterr().err


def test_similar_is_written_and_found(
    simbert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("sentences", "similar", simbert, "w1 w2 w3")
    assert run(*command, "--write", "4", "--candidates", "20", "--top-k", "9", "--json") == 0
    found = json.loads(capsys.readouterr().out)["similar"]
    texts = [one["text"] for one in found]
    assert 0 < len(texts) <= 4
    assert len(set(texts)) == len(texts)
    assert "w1 w2 w3" not in texts
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    assert run(*command, "--write", "4", "--candidates", "20", "--top-k", "9") == 0
    assert texts[0] in capsys.readouterr().out.splitlines()[0]
    bank = tmp_path / "bank.txt"
    bank.write_text("\n".join(LETTERS) + "\nw1 w2 w3\n")
    assert run(*command, "--among", bank, "-k", "3") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0] == "1.000  w1 w2 w3"


def test_drawn_texts_differ_and_repeat_by_seed(simbert: Path) -> None:
    folder = WritingFolder.at(simbert)
    assert folder is not None
    sentences = ["w1 w2 w3", "w4 w5"]
    first = written_similar(folder, sentences, candidates=10, top_k=20)
    assert first == written_similar(folder, sentences, candidates=10, top_k=20)
    assert first[1] == written_similar(folder, sentences[1:], candidates=10, top_k=20)[0]
    assert first != written_similar(folder, sentences, candidates=10, top_k=20, seed=1)
    assert all(text.strip() for some in first for text in some)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-k", "3"), "-k is for --among FILE"),
        (("--among", "bank.txt", "--write", "3"), "not both"),
        (("--among", "bank.txt", "--top-k", "3"), "--top-k is for sentences that are written"),
    ],
)
def test_options_of_the_other_half_are_refused(
    options: tuple[str, ...], message: str, simbert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("sentences", "similar", simbert, "w1", *options) == 2
    assert message in capsys.readouterr().err


def test_bad_folders_and_sentences(writer: Path, simbert: Path, tiny: str) -> None:
    for folder in (writer, tiny):
        with pytest.raises(FolderError, match="not trained to write similar sentences"):
            similar_sentences(folder, "w1 w2")
    with pytest.raises(TextError, match="the sentence is empty"):
        similar_sentences(simbert, "  ")
    assert similar_sentences(tiny, "w1 w2", among=["w1 w2", "w9"])[0].text == "w1 w2"
