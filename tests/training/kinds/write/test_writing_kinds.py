"""Causal models and encoder-decoder models learn to write; losses equal transformers'."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_models import randomized, shrunk
from tiny_tasks import SPECIAL, word_tokenizer
from tiny_writing import LETTERS, pair_data, reversals, writing_job
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModelForCausalLM, BartForConditionalGeneration

from bertsmith.errors import ConfigError
from bertsmith.folders.generation import Writes
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.models.spec import DecoderSpec
from bertsmith.tasks.write.arrange import CausalPair, CrossPair, arrangement_of
from bertsmith.tasks.write.encoding import EncodedPairs, PairEncoder, WritingLengths
from bertsmith.training.kinds.write.learner import write_learner
from bertsmith.training.kinds.write.record import WritingFolder
from bertsmith.training.kinds.write.written import token_losses
from bertsmith.training.learner import run_job

KINDS = {"bert": CausalPair, "gpt2": CausalPair, "bart": CrossPair}


def kind_folder(kind: str, path: Path, *, random: bool = False) -> str:
    """A causal BERT, a GPT-2 or a BART with twenty words."""
    spec = shrunk(kind, vocab_size=len(SPECIAL) + len(LETTERS), hidden=32, heads=2, rows=40)
    head = "masked_lm" if kind == "bert" else "language_model"
    if kind == "bart":
        spec = replace(spec, decoder=DecoderSpec(layers=2, heads=2, feed_forward=64, start=3))
    if kind == "bert":
        spec = replace(spec, sees="before")
    model = build(kind, spec, heads=[head], generator=torch.Generator().manual_seed(1))
    if random:
        randomized(model)
    save_model(model, word_tokenizer(LETTERS), path)
    return str(path)


def oracle_loss(kind: str, folder: str, pairs: EncodedPairs) -> float:
    """Text by text."""
    total, count = 0.0, 0
    family = BartForConditionalGeneration if kind == "bart" else AutoModelForCausalLM
    model = family.from_pretrained(folder).eval()
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        wanted = torch.tensor(target.tolist())
        with torch.no_grad():
            if kind == "bart":
                read = torch.tensor([[3, *target.tolist()[:-1]]])
                ids = torch.tensor([source.tolist()])
                logits: Tensor = model(input_ids=ids, decoder_input_ids=read).logits[0]
            else:
                ids = torch.tensor([[*source.tolist(), *target.tolist()]])
                logits = model(input_ids=ids).logits[0, len(source) - 1 : -1]
        total += float(F.cross_entropy(logits, wanted, reduction="sum"))
        count += len(wanted)
    return total / count


@pytest.mark.parametrize("kind", KINDS)
def test_losses_equal_transformers(kind: str, tmp_path: Path) -> None:
    folder = kind_folder(kind, tmp_path / "m", random=True)
    loaded = load_model(folder)
    encoder = PairEncoder(loaded.tokenizer, loaded.model.spec)
    data = pair_data([("w1 w2 w3", "w4 w5"), ("w6", "w7 w8 w9 w1")])
    pairs = encoder.encode(data, WritingLengths(source=16, target=8))
    assert pairs.sources[1].tolist() == ([2, 11, 3] if kind == "bart" else [2, 11])
    assert pairs.targets[0].tolist() == ([2, 9, 10, 3] if kind == "bart" else [9, 10, 3])
    arrangement = arrangement_of(loaded.model.spec, loaded.tokenizer, Writes(by="mask"), share=0.7)
    assert isinstance(arrangement, KINDS[kind])
    found = token_losses(loaded.model, arrangement, pairs)
    assert found == pytest.approx(oracle_loss(kind, folder, pairs), abs=5e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_each_kind_is_trained_and_writes(kind: str, tmp_path: Path) -> None:
    model = kind_folder(kind, tmp_path / "m")
    sections = {"plan": {"steps": 60, "batch": 16}, "optimizer": {"lr": 3e-3}}
    out = tmp_path / "out"
    result = run_job(write_learner(), writing_job(model, "write", sections=sections, out=out))
    best = result.outcome.best
    assert best is not None
    assert best.losses["writing"] < result.finished.writing.usual["writing"] + 0.1
    assert "writes" not in json.loads((out / "bertsmith.json").read_text())
    folder = WritingFolder.at(out)
    assert folder is not None
    rows = pair_data(reversals(4, seed=9))
    written = folder.written([row[0] for row in rows.rows])
    assert len(written) == 4
    assert folder.evaluated(rows, written)["wrong_source"] is not None


@pytest.mark.slow
def test_bart_learns_to_reverse(tmp_path: Path) -> None:
    model = kind_folder("bart", tmp_path / "m")
    sections = {
        "plan": {"steps": 600, "batch": 64, "evaluations": 1},
        "optimizer": {"lr": 3e-3},
    }
    out = tmp_path / "out"
    run_job(write_learner(), writing_job(model, "write", sections=sections, out=out, rows=2_000))
    folder = WritingFolder.at(out)
    assert folder is not None
    unseen = reversals(60, seed=77)
    written = folder.written([source for source, _ in unseen])
    right = [text == wanted for text, (_, wanted) in zip(written, unseen, strict=True)]
    assert sum(right) >= 0.95 * len(right)


def test_similar_sentences_need_a_bidirectional_encoder(tmp_path: Path) -> None:
    model = kind_folder("gpt2", tmp_path / "m")
    with pytest.raises(ConfigError, match="no bidirectional encoder"):
        run_job(write_learner(), writing_job(model, "similar", sections={"plan": {"steps": 1}}))
