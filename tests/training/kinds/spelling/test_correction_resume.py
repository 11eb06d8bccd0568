"""A corrector that was interrupted: the same weights, the same file of corrections."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_correction import corrector_source, toy_pairs, write_pairs

from bertsmith.folders.read import load_model
from bertsmith.labeled.errors.misspell import ErrorSettings
from bertsmith.labeled.errors.rows import read_corrections
from bertsmith.labeled.pairs.splits import PairFiles
from bertsmith.labeled.spec import DataSpec
from bertsmith.nn import Inputs, Layout
from bertsmith.runtime import answer_files
from bertsmith.runtime.answer_files import answer_file
from bertsmith.runtime.answers import RowCorrections
from bertsmith.runtime.corrector import Corrector
from bertsmith.runtime.row_files import check_rows
from bertsmith.tasks.spelling.settings import CorrectionOptions
from bertsmith.training.kinds.spelling.learner import SpellingJob, spelling_learner
from bertsmith.training.kinds.spelling.recipe import load_correct_recipe
from bertsmith.training.learner import run_job
from bertsmith.training.loop.progress import Progress

SETTINGS = (
    *("plan.steps=6", "plan.batch=8", "plan.evaluations=1", "save.every=2"),
    *("detector.width=4", "run.precision=fp32", "optimizer.lr=0.003"),
)


class Killed(Exception):
    """Stands for the end of a process."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> SpellingJob:
    place = tmp_path_factory.mktemp("resume")
    source = corrector_source(place / "bert", hidden=16)
    data = write_pairs(place / "pairs.tsv", toy_pairs(80))
    spec = DataSpec(text=("wrong", "right"))
    splits = read_corrections(PairFiles(data=data, spec=spec), ErrorSettings())
    made = SpellingJob(
        recipe=load_correct_recipe(None, SETTINGS),
        model=source,
        task="correct",
        rows=splits,
        out=place / "straight",
    )
    run_job(spelling_learner(), made)
    return made


def test_an_interrupted_training_ends_as_an_uninterrupted_one(job: SpellingJob) -> None:
    cut = replace(job, out=job.out.with_name("cut"))

    def die(look: Progress) -> None:
        if look.step == 5:
            raise Killed

    with pytest.raises(Killed):
        run_job(spelling_learner(), cut, watch=die)
    assert not (cut.out / "config.json").exists()
    seen: list[int] = []
    run_job(spelling_learner(), cut, watch=lambda look: seen.append(look.step))
    assert seen == [5, 6], "resumes from the checkpoint of step 4"
    assert Corrector.load(cut.out).threshold == Corrector.load(job.out).threshold
    for path in sorted(job.out.glob("*.safetensors")):
        assert path.read_bytes() == (cut.out / path.name).read_bytes()


def test_an_interrupted_file_of_corrections_has_the_same_bytes(
    job: SpellingJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{wrong}\n" for wrong, _ in toy_pairs(23)), encoding="utf-8")
    answerer = RowCorrections(Corrector.load(job.out), CorrectionOptions(threshold=0.0))
    source = check_rows(texts, DataSpec(format="lines"), answerer)
    monkeypatch.setattr(answer_files, "CHUNK", 5)

    def die(rows: int, total: int) -> None:
        if rows >= 10:
            raise Killed

    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    answer_file(answerer, source, whole, model="m")
    with pytest.raises(Killed):
        answer_file(answerer, source, cut, model="m", watch=die)
    assert not cut.exists()
    done = answer_file(answerer, source, cut, model="m")
    assert done.resumed == 10
    assert done.rows == 23
    assert cut.read_bytes() == whole.read_bytes()


def test_the_corrector_alone_is_a_masked_lm_of_transformers(job: SpellingJob) -> None:
    from transformers import BertForMaskedLM

    reference = BertForMaskedLM.from_pretrained(job.out).eval()
    model = load_model(job.out).model.eval()
    ids = torch.tensor([2, 7, 4, 9, 8, 3])
    with torch.no_grad():
        wanted = reference(ids[None]).logits[0]
        found = model.logits("masked_lm", model(Inputs(ids, Layout.of([6]))).hidden)
    assert torch.allclose(found, wanted, atol=2e-5)
