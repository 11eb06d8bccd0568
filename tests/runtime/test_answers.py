"""Answers to rows: one table; the same answers from Python, from files and for the service."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
import torch
from command_line import run
from safetensors.torch import load_file, save_file
from tiny_correction import corrector_folder, corrector_source
from tiny_finetuning import tiny_writer

import bertsmith
from bertsmith.errors import ConfigError, FolderError, TextError
from bertsmith.folders.keys import model_key
from bertsmith.folders.kinds import ABILITIES
from bertsmith.labeled.example import Example
from bertsmith.runtime import answer_files
from bertsmith.runtime.answers import ANSWERS, answerer_of
from bertsmith.runtime.corrector import Corrector

TEXTS = ["天乙人丙", "a 1，日日", "地甲天丁"]
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def corrector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corrector")
    source = corrector_source(place / "drawn", hidden=16, drawn=True)
    return corrector_folder(place / "corrector", Path(source))


def rows_of(texts: list[str]) -> list[Example]:
    return [
        Example(source="x.txt", line=number, id=str(number), texts=(text,))
        for number, text in enumerate(texts, 1)
    ]


def test_what_answers_is_an_ability_with_settings_of_its_own() -> None:
    assert set(ANSWERS) <= set(ABILITIES)
    with bertsmith.load("all-MiniLM-L6-v2", precision="fp32") as model:
        with pytest.raises(ConfigError, match="'embed' does not answer rows; correct, generate"):
            answerer_of(model, "embed", {})
        with pytest.raises(FolderError, match="was not fine-tuned"):
            answerer_of(model, "predict", {})


def test_a_corrector_stays_in_memory_and_answers_alike_everywhere(
    corrector: Path, capsys: Captured
) -> None:
    kept = Corrector.load(corrector)
    wanted = kept.correct(TEXTS)
    assert any(one.edits for one in wanted)
    assert bertsmith.correct(kept, TEXTS) == bertsmith.correct(corrector, TEXTS) == wanted
    with bertsmith.load(corrector, precision="fp32") as model:
        assert "correct" in model.abilities
        assert model.correct(TEXTS) == wanted
        answerer = answerer_of(model, "correct", {})
        counts: Counter[str] = Counter()
        found = [answerer.to_json(one) for one in answerer.answers(rows_of(TEXTS), counts)]
    assert [one["corrected"] for one in found] == [one.corrected for one in wanted]
    assert counts["edits"] == sum(len(one.edits) for one in wanted)
    assert run("info", corrector) == 0
    assert "correct" in capsys.readouterr().out.split("abilities\t")[1].split("\n")[0].split(", ")


def test_one_text_instead_of_a_list_and_other_folders_are_refused(
    corrector: Path, tmp_path: Path
) -> None:
    with pytest.raises(TextError, match=r"give \[text\]"):
        Corrector.load(corrector).correct("天乙")
    with pytest.raises(FolderError, match="cannot correct texts"):
        Corrector.load(tiny_writer(tmp_path / "writer"))


def test_every_row_of_a_file_is_accounted_for(
    corrector: Path, tmp_path: Path, capsys: Captured
) -> None:
    source, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    source.write_text("id,text\n1,天乙人丙\n2,\n3,地甲,more\n4,人丙\n", encoding="utf-8")
    arguments = ("correct", corrector, source, "--text", "text", "--out", out)
    assert run(*arguments, "--on-error", "skip", "--threshold", "0") == 0
    shown = capsys.readouterr().out
    assert "2 of 4 rows corrected" in shown
    assert "empty: 1 row written without a correction" in shown
    assert "rejected: 1, in" in shown
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["edits"] == "") for row in rows] == [
        ("1", False),
        ("2", True),
        ("4", False),
    ]
    edits = sum(len(json.loads(row["edits"])) for row in rows if row["edits"])
    assert f"changed: 2 rows, by {edits:,} edits" in shown


def test_other_settings_and_another_detector_start_over(
    corrector: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(answer_files, "CHUNK", 2)
    source, out = tmp_path / "texts.txt", tmp_path / "out.jsonl"
    source.write_text("".join(f"{text}\n" for text in TEXTS * 3), encoding="utf-8")

    def stopped(rows: int, total: int) -> None:
        raise KeyboardInterrupt

    real = answer_files.answer_file

    def begun(threshold: str) -> None:
        """The first two rows, and nothing more."""
        monkeypatch.setattr(
            answer_files,
            "answer_file",
            lambda *given, model, watch: real(*given, model=model, watch=stopped),
        )
        arguments = ("correct", corrector, source, "--out", out, "--threshold", threshold)
        assert run(*arguments) == 130
        monkeypatch.setattr(answer_files, "answer_file", real)

    begun("0.5")
    capsys.readouterr()
    arguments = ("correct", corrector, source, "--out", out, "--threshold")
    assert run(*arguments, "0.4") == 0
    assert "started over" in capsys.readouterr().err
    begun("0.4")
    assert run(*arguments, "0.4") == 0
    assert "resumed after 2 rows" in capsys.readouterr().err
    before = model_key(corrector)
    weights = load_file(corrector / "detector.safetensors")
    changed = {name: tensor + 1 for name, tensor in weights.items()}
    save_file(changed, corrector / "detector.safetensors")
    assert model_key(corrector) != before
    save_file(weights, corrector / "detector.safetensors")


def test_a_changed_generation_config_is_another_writer(tmp_path: Path) -> None:
    folder = Path(tiny_writer(tmp_path / "writer"))
    before = model_key(folder)
    (folder / "generation_config.json").write_text(json.dumps({"max_new_tokens": 5}))
    assert model_key(folder) != before


def test_what_is_written_for_rows_is_what_a_call_writes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    folder = tiny_writer(tmp_path / "writer")
    with bertsmith.load(folder, precision="fp32") as model:
        answerer = answerer_of(model, "generate", {"max_new": 4})
        counts: Counter[str] = Counter()
        found = list(answerer.answers(rows_of(["red bird", "tree"]), counts))
        options = bertsmith.GenerationOptions(max_new=4)
        assert found == model.generate(["red bird", "tree"], options)
        assert sum(counts.values()) == 2
        with pytest.raises(TextError, match=r"x\.txt, line 2: the prompt is empty"):
            answerer.answers(rows_of(["red", " "]), counts)
