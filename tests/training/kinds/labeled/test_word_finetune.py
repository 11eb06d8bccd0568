"""Tasks on frozen encoders of words: ELMo and word vectors under the same heads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import run
from tiny_tasks import mix_of
from word_encoders import (
    elmo_folder,
    labeled_rows,
    language_models,
    tagged_rows,
    vector_file,
)

import bertsmith
from bertsmith.errors import ConfigError, TensorMismatchError
from bertsmith.folders.word_encoders.read import load_word_folder
from bertsmith.labeled.example import Example
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.inference import compute_logits
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.encoder_cache import encode_layers

QUICK = {"plan.epochs": 10, "optimizer.lr": 1e-1}
TEXTS = ["Anna sees the dog", "a cat and Dora", "and", "the dog likes Berta and Clara a lot"]
LSTM = {"head.lstm": 16, "task.crf": True, "plan.epochs": 8, "optimizer.lr": 2e-2}


def source(kind: str, tmp_path: Path) -> Path:
    if kind == "elmo":
        return language_models(tmp_path / "elmo")
    return vector_file(tmp_path / "v.txt")


def figures(record: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = record["test"]["figures"]
    return found


@pytest.mark.parametrize("kind", ["elmo", "vectors"])
@pytest.mark.parametrize("settings", [QUICK, LSTM])
def test_planted_tags_are_learned_and_saved_exactly(
    tmp_path: Path, kind: str, settings: dict[str, Any]
) -> None:
    rows, out = tagged_rows(tmp_path / "rows"), tmp_path / "out"
    model = source(kind, tmp_path)
    done = bertsmith.finetune(rows, model=str(model), out=out, settings=settings)
    assert done.record is not None
    assert figures(done.record)["f1"] > 0.9
    before, after = load_word_folder(model).model, load_word_folder(out).model
    for name, weight in before.state_dict().items():
        assert torch.equal(after.state_dict()[name], weight)
    predictor = load_predictor(out)
    together = predictor.predict(TEXTS)
    assert [one.tags for one in together] == [predictor.predict([text])[0].tags for text in TEXTS]
    assert together[0].tags == ("B-PER", "O", "O", "O")
    assert bertsmith.predict(out, TEXTS[:1])[0].tags == together[0].tags


@pytest.mark.parametrize("kind", ["elmo", "vectors"])
def test_planted_labels_are_learned_and_predicted_from_the_command_line(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, out = labeled_rows(tmp_path / "rows"), tmp_path / "out"
    model = source(kind, tmp_path)
    chosen = ("--set=plan.epochs=8", "--set=optimizer.lr=0.1")
    assert run("finetune", rows, "--model", model, "--out", out, *chosen) == 0
    record = json.loads((out / "proof.json").read_text(encoding="utf-8"))
    assert figures(record)["accuracy"] > 0.9
    assert record["head"]["reads"].startswith("the mean of all tokens, mean of all layers")
    assert record["regularization"].startswith("frozen encoder")
    assert (out / "report.html").is_file()
    capsys.readouterr()
    assert run("predict", out, "the dog is lovely", "--json") == 0
    assert json.loads(capsys.readouterr().out)["prediction"] == "good"


def test_the_mix_is_learned_and_the_encoder_is_not(tmp_path: Path) -> None:
    out = tmp_path / "out"
    bertsmith.finetune(
        tagged_rows(tmp_path / "rows"),
        model=str(elmo_folder(tmp_path / "elmo")),
        out=out,
        settings=QUICK,
    )
    model = load_predictor(out).model
    mix = mix_of(model)
    assert mix.weights.abs().max() > 1e-3
    assert abs(mix.gamma.item() - 1) > 1e-3


def test_logits_of_a_batch_are_those_of_each_text_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    bertsmith.finetune(
        labeled_rows(tmp_path / "rows"),
        model=str(elmo_folder(tmp_path / "elmo")),
        out=out,
        settings={**QUICK, "plan.epochs": 1, "head.lstm": 8, "vector.pooling": "attention"},
    )
    predictor = load_predictor(out)
    texts = ["a lovely dog", "awful", "the cat and the dog and a house are boring", "!"]
    together = np.stack([logits for _, logits in predictor.predict_with_logits(texts)])
    alone = np.stack([predictor.predict_with_logits([text])[0][1] for text in texts])
    assert np.abs(together - alone).max() < 1e-5


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"encoder.frozen": False}, "encoder.frozen = false"),
        ({"regularization.token_dropout": 0.1}, "regularization.token_dropout is not for"),
        ({"encoder.special_tokens": ["[X]"]}, "encoder.special_tokens is not for"),
        ({"vector.pooling": "published"}, "has no published head"),
        ({"head.wide": True}, "head.wide"),
    ],
)
def test_settings_without_a_use_are_refused_by_name(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        bertsmith.finetune(
            labeled_rows(tmp_path / "rows"),
            model=str(elmo_folder(tmp_path / "elmo")),
            out=tmp_path / "out",
            settings=settings,
        )


def test_pairs_of_texts_are_refused_with_the_way_out(tmp_path: Path) -> None:
    rows = tmp_path / "pairs.tsv"
    lines = [f"a dog {n}\ta cat {n}\t{'yes' if n % 2 else 'no'}\n" for n in range(60)]
    rows.write_text("first\tsecond\tlabel\n" + "".join(lines), encoding="utf-8")
    with pytest.raises(bertsmith.BertsmithError, match="reads one text at a time"):
        bertsmith.finetune(rows, model=str(elmo_folder(tmp_path / "elmo")), out=tmp_path / "out")


def test_unknown_words_of_the_rows_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = vector_file(tmp_path / "v.txt", left_out=("dog", "cat", "Anna"))
    chosen = [f"--set={name}={value}" for name, value in QUICK.items()]
    rows = tagged_rows(tmp_path / "rows")
    assert run("finetune", rows, "--model", model, "--out", tmp_path / "out", *chosen) == 0
    printed = capsys.readouterr()
    assert "unknown words (no vector, read as 0)" in printed.out + printed.err


def test_a_saved_encoder_of_another_shape_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    bertsmith.finetune(
        labeled_rows(tmp_path / "rows"),
        model=str(elmo_folder(tmp_path / "elmo")),
        out=out,
        settings={**QUICK, "plan.epochs": 1},
    )
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    config["shape"]["hidden"] = 13
    (out / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (out / "hashes.json").unlink()  # the change is ours
    with pytest.raises(TensorMismatchError, match="inputs"):
        load_predictor(out)


def test_cached_layers_give_the_logits_of_the_encoder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = {**LSTM, "plan.epochs": 1}
    elmo = str(language_models(tmp_path / "elmo"))
    bertsmith.finetune(tagged_rows(tmp_path / "rows"), model=elmo, out=out, settings=settings)
    predictor = load_predictor(out)
    model = predictor.model
    model.freeze()
    assert model.keeps_layers
    rows = [Example(source="s", line=n, id=str(n), texts=(text,)) for n, text in enumerate(TEXTS)]
    features = predictor.reading.features(predictor.task, rows)
    layers = encode_layers(model, features, Execution())
    cached = [replace(one, layers=part) for one, part in zip(features, layers, strict=True)]
    device = torch.device("cpu")
    plain = compute_logits(model, features, device=device).logits
    again = compute_logits(model, cached, device=device).logits
    assert task_batch(cached).tokens == 0
    assert all(np.abs(a - b).max() < 1e-5 for a, b in zip(plain, again, strict=True))
