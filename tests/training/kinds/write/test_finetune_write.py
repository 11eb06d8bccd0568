"""`finetune --task write` and `--task similar` from a file to a folder with its record and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tiny_writing import LETTERS, alike, reversals, tiny_writing_folder

from bertsmith import finetune
from bertsmith.api.finetune import run_finetune
from bertsmith.errors import BertsmithError, ConfigError, InputFileError
from bertsmith.folders.read import load_model
from bertsmith.labeled.spec import DataSpec
from bertsmith.runtime.loading import load
from bertsmith.training.kind import TrainingRequest


def table(path: Path, rows: list[tuple[str, ...]], header: str | None = None) -> Path:
    lines = [header] if header else []
    path.write_text("\n".join([*lines, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def learned(model: str, data: Path, out: Path, task: str = "write", **settings: Any) -> Any:
    return finetune(
        data,
        model=model,
        out=out,
        spec=DataSpec(task=task),
        settings={"run.precision": "fp32", "length.max_length": 32, **settings},
    )


@pytest.mark.slow
@pytest.mark.parametrize("by", ["mask", "shift"])
def test_reversing_is_learned_and_written(by: str, tmp_path: Path) -> None:
    model = tiny_writing_folder(tmp_path / "start", hidden=64)
    data = table(tmp_path / "pairs.tsv", reversals(2_000, words=3), "source\ttarget")
    out = tmp_path / by
    result = learned(
        model,
        data,
        out,
        **{
            "writing.by": by,
            "plan.steps": 700,
            "plan.batch": 64,
            "optimizer.lr": 3e-3,
            "encoder.dropout": 0.0,
            "dev.reported": 60,
        },
    )
    test = result.record["test"]
    assert test["figures"]["exact"] >= 0.95
    assert test["baselines"]["copy"]["exact"] < 0.1
    assert test["wrong_source"]["costs"] > 1.0
    assert json.loads((out / "bertsmith.json").read_text())["writes"]["by"] == by


def test_the_folder_and_its_page(tiny: str, tmp_path: Path) -> None:
    data = table(tmp_path / "pairs.tsv", reversals(60), "source\ttarget")
    result = learned(tiny, data, tmp_path / "out", **{"plan.steps": 3, "plan.batch": 8})
    out = result.folder
    own = json.loads((out / "bertsmith.json").read_text())
    assert own["writes"] == {"by": "mask", "source_segment": 0, "target_segment": 1}
    assert own["seq2seq"] == {"task": "write", "source_tokens": 27, "target_tokens": 5}
    record = json.loads((out / "proof.json").read_text())
    assert record["task"] == "write"
    assert set(record["dev"]["baselines"]) == {"copy", "first_sentence"}
    assert record["dev"]["baselines"]["copy"]["rouge_1"] == pytest.approx(1.0)
    assert record["losses"]["writing"]["usual"] == pytest.approx(2.9, abs=0.3)
    low, high = (record["dev"]["intervals"]["rouge_l"][side] for side in ("low", "high"))
    assert low <= record["dev"]["figures"]["rouge_l"] <= high
    lines = [json.loads(line) for line in (out / "written.test.jsonl").read_text().splitlines()]
    assert len(lines) == record["data"]["rows"]["test"] == 6
    page = result.report.read_text()
    assert lines[0]["reference"] in page
    assert "copy of the source" in page
    assert "With the source of another row" in page
    assert result.metrics["rouge_l"] == record["test"]["figures"]["rouge_l"]
    again = learned(tiny, data, tmp_path / "out", **{"plan.steps": 3, "plan.batch": 8})
    assert again.metrics == result.metrics


def test_a_figure_of_written_text_may_choose_the_weights(tiny: str, tmp_path: Path) -> None:
    data = table(tmp_path / "pairs.tsv", reversals(40), "source\ttarget")
    settings = {"plan.steps": 2, "plan.batch": 8, "best.figure": "chrf", "dev.rows": 2}
    result = learned(tiny, data, tmp_path / "out", **settings)
    assert "chrf" in result.outcome.best.figures
    with pytest.raises(ConfigError, match="rougel"):
        learned(tiny, data, tmp_path / "other", **{**settings, "best.figure": "rougel"})


def test_the_two_ways_are_not_mixed(tmp_path: Path) -> None:
    data = table(tmp_path / "pairs.tsv", reversals(30), "source\ttarget")
    model = tiny_writing_folder(tmp_path / "m", writes={"by": "mask"})
    with pytest.raises(ConfigError, match=r"learned to write by mask, and writing\.by = shift"):
        learned(model, data, tmp_path / "a", **{"writing.by": "shift", "plan.steps": 1})
    with pytest.raises(ConfigError, match="learned to write by mask"):
        learned(model, table(tmp_path / "s.tsv", alike(30)), tmp_path / "b", "similar")
    assert not (tmp_path / "b" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ([("w1 w2", "w2 w1")] * 3, None, "too few for dev rows"),
        ([(one,) for one, _ in reversals(30)], None, "a column of sources and one of targets"),
        ([("", "w2 w1"), *reversals(30)], "source\ttarget", "line 2"),
        ([(" ".join(LETTERS), " ".join(LETTERS * 2)), *reversals(30)], None, "targets are never"),
    ],
)
def test_bad_rows_are_refused(
    rows: list[tuple[str, ...]], header: str | None, message: str, tiny: str, tmp_path: Path
) -> None:
    data = table(tmp_path / "pairs.tsv", rows, header)
    with pytest.raises(BertsmithError, match=message) as fault:
        learned(tiny, data, tmp_path / "out", **{"plan.steps": 1})
    assert "pairs.tsv" in str(fault.value)


def test_a_model_without_a_head_cannot_write(tmp_path: Path) -> None:
    data = table(tmp_path / "pairs.tsv", reversals(30))
    model = tiny_writing_folder(tmp_path / "m", heads=())
    with pytest.raises(ConfigError, match="no head over the vocabulary"):
        learned(model, data, tmp_path / "out", **{"plan.steps": 1})


def test_the_best_of_several_seeds_is_kept(tiny: str, tmp_path: Path) -> None:
    data, out = table(tmp_path / "pairs.tsv", reversals(30)), tmp_path / "o"
    settings = {"plan.steps": 2, "length.max_length": 32, "run.precision": "fp32"}
    spec = DataSpec(task="write")
    result = finetune(data, model=tiny, out=out, spec=spec, seeds=2, settings=settings)
    assert result.record is not None
    losses = {one["seed"]: one["figures"]["loss"] for one in result.record["seeds"]}
    assert set(losses) == {0, 1}
    assert len(set(losses.values())) == 2
    assert result.record["chosen"] == min(losses, key=losses.__getitem__)
    chosen = out / "seeds" / str(result.record["chosen"]) / "model.safetensors"
    assert chosen.read_bytes() == (out / "model.safetensors").read_bytes()


def test_folds_are_refused(tiny: str, tmp_path: Path) -> None:
    request = TrainingRequest(
        data=table(tmp_path / "pairs.tsv", reversals(30)),
        model=tiny,
        out=tmp_path / "o",
        spec=DataSpec(task="write"),
        folds=2,
    )
    with pytest.raises(ConfigError, match="the task write has none"):
        run_finetune(request)
    assert not request.out.exists()


def test_sources_and_targets_by_name(tiny: str, tmp_path: Path) -> None:
    pairs = reversals(30)
    rows = [(str(n), target, source) for n, (source, target) in enumerate(pairs)]
    data = table(tmp_path / "t.tsv", rows, "number\tshort\tlong")
    settings = {"plan.steps": 1, "length.max_length": 32, "run.precision": "fp32"}
    spec = DataSpec(task="write", text=("long",), label=("short",))
    finetune(data, model=tiny, out=tmp_path / "o", spec=spec, settings=settings)
    lines = (tmp_path / "o" / "written.dev.jsonl").read_text().splitlines()
    assert {(one["source"], one["reference"]) for one in map(json.loads, lines)} <= set(pairs)


def test_similar_sentences_give_vectors(tiny: str, tmp_path: Path) -> None:
    labeled = [(*pair, str(int(n % 3 > 0))) for n, pair in enumerate(alike(90))]
    data = table(tmp_path / "pairs.tsv", [*labeled, ("w1 w2", "w1 w2", "1")])
    settings = {"plan.steps": 3, "plan.batch": 8}
    result = learned(tiny, data, tmp_path / "out", "similar", **settings)
    record = result.record
    assert record["data"]["rows"]["train"] + record["data"]["rows"]["dev"] <= 60
    assert any("60 of 91" in note or "61 of 91" in note for note in record["data"]["notes"])
    assert set(record["losses"]) == {"writing", "similarity"}
    assert record["losses"]["similarity"]["usual"] > 1.0
    with load(tmp_path / "out") as model:
        assert model.settings.pooling == ("first",)
        vectors = model.encode(["w1 w2 w3", "w4"])
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(["w1 w2 w3", "w4"])
    assert vectors == pytest.approx(theirs, abs=2e-5)
    before, after = (load_file(Path(one) / "model.safetensors") for one in (tiny, tmp_path / "out"))
    assert any((before[name] != after[name]).any() for name in before if name in after)
    assert load_model(tmp_path / "out").model.vocabulary_head is not None


def test_labels_without_a_meaning_are_asked_for(tiny: str, tmp_path: Path) -> None:
    rows = [(*pair, "xy"[n % 2]) for n, pair in enumerate(alike(40))]
    data = table(tmp_path / "pairs.tsv", rows)
    with pytest.raises(ConfigError, match=r"Set data\.positive"):
        learned(tiny, data, tmp_path / "o", "similar", **{"plan.steps": 1})
    learned(tiny, data, tmp_path / "o", "similar", **{"plan.steps": 1, "data.positive": "x"})


def test_texts_that_are_no_pairs_are_refused(tiny: str, tmp_path: Path) -> None:
    data = table(tmp_path / "texts.tsv", [(one,) for one, _ in reversals(30)])
    with pytest.raises((ConfigError, InputFileError), match="pairs of texts that say the same"):
        learned(tiny, data, tmp_path / "o", "similar", **{"plan.steps": 1})
