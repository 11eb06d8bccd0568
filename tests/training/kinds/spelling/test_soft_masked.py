"""Soft-Masked BERT: equal to plain loops, to BERT where nothing is masked, to itself from disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import run
from tiny_correction import chinese_tokenizer, corrector_source, toy_pairs, write_pairs

import bertsmith
from bertsmith.errors import ConfigError, FolderError
from bertsmith.folders.read import load_model
from bertsmith.runtime.corrector import Corrector
from bertsmith.tasks.spelling.edits import tuned_threshold
from bertsmith.tasks.spelling.features import CharacterTokens, CorrectionBatch
from bertsmith.tasks.spelling.model import SoftMasked
from bertsmith.tasks.spelling.settings import DetectorSettings, ThresholdSettings

TEXTS = ["天甲人丙", "月戊a水丁1，日", "火"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return corrector_source(tmp_path_factory.mktemp("correct") / "bert", hidden=16, drawn=True)


def made(source: str, **settings: object) -> tuple[SoftMasked, CharacterTokens]:
    loaded = load_model(source)
    module = SoftMasked(loaded.model, DetectorSettings(width=5, **settings), 4, seed=2).eval()
    with torch.no_grad():
        for weight in () if module.detector is None else module.detector.parameters():
            weight.normal_(0, 0.5, generator=torch.Generator().manual_seed(weight.numel()))
    return module, CharacterTokens(chinese_tokenizer(), max_length=40, where="test")


def batch_of(tokens: CharacterTokens, texts: list[str]) -> CorrectionBatch:
    return CorrectionBatch.of(tokens.features(texts))


@pytest.mark.parametrize("residual", [True, False])
def test_rows_equal_a_plain_loop_over_texts(source: str, residual: bool) -> None:
    module, tokens = made(source, residual=residual, layers=2)
    hidden, wrong = module(batch_of(tokens, TEXTS))
    encoder = module.model.encoder
    rows, marks = [], []
    for text in TEXTS:
        one = batch_of(tokens, [text])
        ids = one.inputs.ids
        embedded = encoder.embeddings(one.inputs)
        states, _ = module.detector.rows.gru(embedded[:, None])
        logits = module.detector.score(states[:, 0])[:, 0]
        share = torch.sigmoid(logits)
        share[[0, -1]] = 0.0  # the frame is not mixed
        table = encoder.embeddings.tokens.weight
        mixed = torch.stack(
            [p * table[4] + (1 - p) * table[i] for p, i in zip(share, ids, strict=True)]
        )
        summed = mixed + encoder.embeddings.positions.weight[: len(ids)]
        summed = encoder.embeddings.norm(summed + encoder.embeddings.segments.weight[0])
        soft = replace(one.inputs, vectors=mixed, vector_rows=torch.arange(len(ids)))
        assert torch.allclose(encoder.embeddings(soft), summed, atol=1e-6)
        states = module.model(soft).hidden
        rows.append((states + embedded if residual else states)[one.at])
        marks.append(logits[one.at])
    assert torch.allclose(hidden, torch.cat(rows), atol=2e-6)
    assert torch.allclose(wrong, torch.cat(marks), atol=2e-6)


def test_a_detector_that_finds_nothing_leaves_bert_and_one_that_finds_all_masks_it(
    source: str,
) -> None:
    from transformers import BertForMaskedLM

    reference = BertForMaskedLM.from_pretrained(source).eval()
    module, tokens = made(source, residual=False)
    for bias, masked in ((-1e4, False), (1e4, True)):
        with torch.no_grad():
            module.detector.score.weight.zero_()
            module.detector.score.bias.fill_(bias)
        for text in TEXTS:
            batch = batch_of(tokens, [text])
            ids = batch.inputs.ids.clone()
            if masked:
                ids[1:-1] = 4
            with torch.no_grad():
                wanted = reference(ids[None]).logits[0, batch.at]
                found = module.logits(module(batch)[0])
            assert torch.allclose(found, wanted, atol=2e-5)


def test_neighbors_change_nothing(source: str) -> None:
    module, tokens = made(source)
    together, _ = module(batch_of(tokens, TEXTS))
    alone = torch.cat([module(batch_of(tokens, [text]))[0] for text in TEXTS])
    assert torch.allclose(together, alone, atol=2e-6)


def test_only_characters_are_changed_and_offsets_point_at_them(source: str) -> None:
    module, tokens = made(source)
    text = "x天甲 a1，人丙\U0001f600🀄龍日"  # 龍 is not in the vocabulary
    (found,) = Corrector(module, tokens).correct([text])
    assert len(found.corrected) == len(text)
    for edit in found.edits:
        assert text[edit.start : edit.end] == edit.wrong
        assert edit.wrong in "天甲人丙日"
        assert edit.right in tokens.characters.values()
        assert 0 <= edit.score <= 1
    assert Corrector(module, tokens).correct(["plain text 1", ""])[0].edits == ()
    with pytest.raises(ConfigError, match="from 0 to 1"):
        Corrector(module, tokens, threshold=1.5)


def test_long_texts_are_read_in_windows(source: str) -> None:
    module, tokens = made(source)
    text = "天甲人丙" * 40
    features = tokens.features([text])
    assert len(features) > 3
    places = np.sort(np.concatenate([one.places for one in features]))
    assert places.tolist() == list(range(len(text)))
    (found,) = Corrector(module, tokens).correct([text])
    assert len(found.corrected) == len(text)


def test_a_vocabulary_without_characters_is_refused() -> None:
    from folder_models import tiny_tokenizer
    from tiny_tasks import word_tokenizer

    assert CharacterTokens(tiny_tokenizer(), max_length=20, where="m").characters
    with pytest.raises(FolderError, match="no token of the vocabulary is a Chinese character"):
        CharacterTokens(word_tokenizer(["one", "two"]), max_length=20, where="m")


@pytest.mark.slow
def test_a_toy_language_is_learned_saved_evaluated_and_corrected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = corrector_source(tmp_path / "bert", hidden=32)
    data = write_pairs(tmp_path / "pairs.tsv", toy_pairs(1_200))
    out = tmp_path / "corrector"
    words = ("finetune", data, "--task", "correct", "--model", source, "--out", out, "--quiet")
    settings = (
        *("plan.steps=320", "plan.batch=32", "plan.evaluations=2", "optimizer.lr=0.006"),
        *("detector.width=16", "run.precision=fp32"),
    )
    assert run(*words, *(part for one in settings for part in ("--set", one))) == 0
    record = json.loads((out / "proof.json").read_text())
    model, bigrams = (
        record["test"]["figures"]["correction_f1"],
        record["test"]["baselines"]["bigrams"]["correction_f1"],
    )
    assert model > 0.9
    assert bigrams > 0.5, "the baseline is no straw man"
    assert (out / "report.html").read_text().count("correction F1") >= 1
    capsys.readouterr()
    assert run("correct", out, "天乙人丙", "--diff") == 0
    assert capsys.readouterr().out == "天[-乙-]{+甲+}人丙\n"
    assert run("correct", out, "天乙a1", "--json") == 0
    (edit,) = json.loads(capsys.readouterr().out)["edits"]
    assert (edit["start"], edit["end"], edit["wrong"], edit["right"]) == (1, 2, "乙", "甲")
    assert bertsmith.correct(out, ["天乙人丙"])[0].corrected == "天甲人丙"
    texts = tmp_path / "texts.txt"
    texts.write_text("天乙人丙\n\n天甲\n", encoding="utf-8")
    assert run("correct", out, texts, "--out", tmp_path / "done.jsonl", "--quiet") == 0
    rows = [json.loads(line) for line in (tmp_path / "done.jsonl").read_text().splitlines()]
    assert [row["corrected"] for row in rows] == ["天甲人丙", None, "天甲"]
    assert run("evaluate", out, data, "--json", "--quiet") == 0
    again = json.loads(capsys.readouterr().out.partition("{")[2].join(("{", "")))
    assert again["figures"]["correction_f1"] > 0.9
    odd = write_pairs(tmp_path / "odd.tsv", [("天乙人丙", "天甲人丙"), ("天", "天甲")])
    assert run("evaluate", out, odd) == 0
    assert "1 pair of different lengths left out (first: line 3" in capsys.readouterr().err
    transformed = load_model(out).model
    assert "masked_lm" in transformed.heads
    assert run("correct", source, "天乙") == 2
    assert "--task correct" in capsys.readouterr().err
    assert Corrector.load(out).threshold == record["threshold"]


def test_the_threshold_is_tuned_for_f1_or_for_false_alarms() -> None:
    from bertsmith.tasks.spelling.edits import Edit

    def edit(right: str, score: float) -> Edit:
        return Edit(start=0, end=1, wrong="乙", right=right, score=score)

    truth = [{0: "甲"}] * 6 + [{}] * 10
    proposals = [[edit("甲", 0.5 + n / 100)] for n in range(6)]
    proposals += [[edit("丙", 0.3 + n / 100)] for n in range(9)] + [[edit("丙", 0.9)]]
    best = tuned_threshold(truth, proposals, ThresholdSettings())
    assert 0.38 < best <= 0.5
    strict = ThresholdSettings(goal="false_alarms", false_alarms=0.0)
    assert tuned_threshold(truth, proposals, strict) > 0.9
    assert tuned_threshold([{}], [[]], ThresholdSettings()) == 0.5
    never_right = tuned_threshold([{0: "甲"}, {}], [[edit("丙", 0.3)]] * 2, ThresholdSettings())
    assert never_right > 0.3, "what is never right must change nothing"


def test_a_model_without_a_masked_lm_cannot_learn_to_correct(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from folder_models import tiny_model, tiny_tokenizer

    from bertsmith.folders.write import save_model

    save_model(tiny_model("bert"), tiny_tokenizer(), tmp_path / "plain")
    data = write_pairs(tmp_path / "pairs.tsv", toy_pairs(40))
    words = ("finetune", data, "--task", "correct", "--model", tmp_path / "plain")
    assert run(*words, "--out", tmp_path / "out", "--quiet") == 2
    assert "no bidirectional masked LM" in capsys.readouterr().err
