"""`bertsmith sentences`: training and evaluation from files, and what bad files get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from tiny_sentences import sentence_rows, sentences

from bertsmith.api.sentences import SentenceEvaluation, evaluate_sentences, train_sentences
from bertsmith.labeled.pairs.pairs import Kind


def rows_file(path: Path, kind: Kind, number: int = 60, seed: int = 0) -> Path:
    data = sentence_rows(kind, number, seed)
    lines = []
    for at, row in enumerate(data.rows):
        target = [] if data.targets is None else [f"{data.targets[at]:.2f}"]
        if data.labels and data.targets is not None:
            target = [data.labels[int(data.targets[at])]]
        lines.append("\t".join([*row, *target]))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_training_shows_what_it_read_and_what_came_of_it(
    encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = rows_file(tmp_path / "pairs.tsv", "scores")
    out = tmp_path / "out"
    options = ["--steps", "6", "--batch", "8", "--lr", "1e-3", "--precision", "fp32"]
    assert run("sentences", "train", data, "--model", encoder, "--out", out, *options) == 0
    printed = capsys.readouterr()
    assert "kind: scores (two texts and a number)" in printed.err
    assert "objective: cosent (temperature 0.05), usual for scores" in printed.err
    assert "of the rows are dev rows" in printed.err
    lines = printed.out.splitlines()
    assert lines[0].startswith(f"{out}: 6 steps, learning rate 0.001, ")
    table = lines.index(next(line for line in lines if line.startswith("dev: ")))
    assert lines[table + 1].split() == ["after", "before"]
    assert lines[table + 2].split()[0] == "spearman"
    assert lines[-1] == f"report: {out / 'report.html'}"
    record = json.loads((out / "proof.json").read_text())
    assert record["kind"] == "sentences"
    page = (out / "report.html").read_text()
    assert "before training" in page
    assert "Learning curves" in page
    assert record["objective"] == {"kind": "cosent", "temperature": 0.05}
    assert record["dev"]["interval"]["low"] <= record["dev"]["figures"]["spearman"]
    # Once more: nothing is left to do, and the folder stays good.
    before = (out / "model.safetensors").read_bytes()
    assert run("sentences", "train", data, "--model", encoder, "--out", out, *options) == 0
    assert (out / "model.safetensors").read_bytes() == before


def test_plain_texts_with_scored_dev_pairs(
    encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(sentences(40)) + "\n")
    dev = rows_file(tmp_path / "dev.tsv", "scores", 20, seed=5)
    options = ["--dev", str(dev), "--steps", "3", "--batch", "8", "--precision", "fp32"]
    out = tmp_path / "out"
    assert run("sentences", "train", texts, "--model", encoder, "--out", out, *options) == 0
    printed = capsys.readouterr()
    assert "objective: simcse" in printed.err
    assert "dev.tsv, sts, 20 rows" in printed.out


def test_a_margin_names_the_triplet_objective(
    encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = rows_file(tmp_path / "triplets.tsv", "triplets")
    common = ["--model", encoder, "--steps", "2", "--precision", "fp32", "--row-kind", "triplets"]
    out = ["--out", str(tmp_path / "out")]
    assert run("sentences", "train", data, *common, *out, "--margin", "0.5") == 0
    assert "objective: triplet (distance euclidean, margin 0.5)" in capsys.readouterr().err
    assert run("sentences", "train", data, *common, *out, "--temperature", "0.1") == 2
    assert "give --objective, too" in capsys.readouterr().err
    cosine = ["--margin", "3", "--distance", "cosine"]
    assert run("sentences", "train", data, *common, "--out", tmp_path / "no", *cosine) == 2
    assert "give a margin below 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("pairs", ["--objective", "cosine"], "needs a score per pair"),
        ("pairs", ["--row-kind", "scores"], "no column holds a score"),
        ("scores", ["--set", "data.range=[0, 2]"], "is not between 0 and 2"),
        ("labels", ["--positive", "maybe"], "is called 'maybe'"),
        ("scores", ["--dims", "64,32"], "the width of the vectors"),
    ],
)
def test_data_that_does_not_fit_is_refused(
    encoder: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: Kind,
    options: list[str],
    message: str,
) -> None:
    data = rows_file(tmp_path / "rows.tsv", kind)
    code = run("sentences", "train", data, "--model", encoder, "--out", tmp_path / "o", *options)
    printed = capsys.readouterr().err
    assert message in printed
    assert code == 2
    assert "Traceback" not in printed


def test_evaluation_of_every_kind(
    encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds: tuple[Kind, ...] = ("scores", "labels", "pairs", "triplets")
    files = {kind: rows_file(tmp_path / f"{kind}.tsv", kind, 30) for kind in kinds}
    mains = {"scores": "spearman", "labels": "ap", "pairs": "ndcg@10", "triplets": "accuracy"}
    for kind, path in files.items():
        assert run("sentences", "evaluate", encoder, path, "--row-kind", kind, "--json") == 0
        (one,) = json.loads(capsys.readouterr().out)["files"]
        assert next(iter(one["figures"])) == mains[kind]
        interval = one["interval"]
        assert interval["low"] <= one["figures"][mains[kind]] <= interval["high"]
    assert run("sentences", "evaluate", encoder, files["scores"], files["scores"], "--quiet") == 0
    assert "2 STS files, all pairs together" in capsys.readouterr().out


def test_several_files_are_joined_or_averaged_and_it_is_said(encoder: str, tmp_path: Path) -> None:
    paths = [rows_file(tmp_path / f"{n}.tsv", "scores", 20, seed=n) for n in (1, 2)]
    every = evaluate_sentences(encoder, paths)
    mean = evaluate_sentences(encoder, paths, settings=SentenceEvaluation(aggregation="mean"))
    singles = [one["figures"]["spearman"] for one in every["files"]]
    assert mean["sts"]["spearman"] == pytest.approx(sum(singles) / 2)
    assert mean["sts"]["aggregation"] == "mean"
    assert every["sts"]["spearman"] != mean["sts"]["spearman"]


def test_a_corpus_makes_retrieval_harder(encoder: str, tmp_path: Path) -> None:
    pairs = rows_file(tmp_path / "pairs.tsv", "pairs", 20)
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(sentences(60, seed=9)) + "\n")
    alone = evaluate_sentences(encoder, pairs, settings=SentenceEvaluation(kind="pairs"))
    among = evaluate_sentences(
        encoder, pairs, settings=SentenceEvaluation(kind="pairs", corpus=corpus)
    )
    assert among["files"][0]["figures"]["mrr@10"] <= alone["files"][0]["figures"]["mrr@10"]
    assert "20 queries" in among["files"][0]["note"]


def test_fewer_dimensions(encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rows_file(tmp_path / "s.tsv", "scores", 20)
    assert evaluate_sentences(encoder, path, settings=SentenceEvaluation(dim=8))["dim"] == 8
    assert run("sentences", "evaluate", encoder, path, "--dim", "33") == 2
    assert "have 32 dimensions" in capsys.readouterr().err


def test_one_class_and_constant_scores_cannot_be_evaluated(
    encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.tsv"
    path.write_text("".join(f"{text}\t{text} tree\tyes\n" for text in sentences(10)))
    assert run("sentences", "evaluate", encoder, path, "--row-kind", "labels", "--label", "3") != 0
    assert "every pair has the label 'yes'" in capsys.readouterr().err
    path.write_text("".join(f"{text}\t{text} tree\t2.5\n" for text in sentences(10)))
    assert run("sentences", "evaluate", encoder, path, "--row-kind", "scores") != 0
    assert "all scores are the same" in capsys.readouterr().err


def test_the_python_functions_train_and_give_figures(encoder: str, tmp_path: Path) -> None:
    data = rows_file(tmp_path / "pairs.tsv", "scores")
    result = train_sentences(
        data,
        model=encoder,
        out=tmp_path / "out",
        objective="cosine",
        settings={"plan.steps": 3, "plan.batch": 8, "run.precision": "fp32"},
    )
    assert set(result.metrics) == {"spearman", "pearson"}
