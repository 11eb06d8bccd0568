"""Classifiers between bertsmith and transformers: the same logits, or a refusal; never a guess."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from test_folder_round_trip import LETTERS, THEIRS, WORDS, our_model, tiny_tokenizer
from tiny_models import randomized

import bertsmith
from bertsmith.api.convert import check_transformers
from bertsmith.cli.views.results import training_lines
from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.labeled.example import Example
from bertsmith.nn import Inputs, Layout
from bertsmith.nn.crf import Crf
from bertsmith.report.finetune.model_card import model_card
from bertsmith.report.finetune.result import finetune_result
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import ModelPredictor
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.inference import compute_logits
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.published import head_gaps
from bertsmith.tasks.tag.tag import Tag
from bertsmith.tasks.task import Task
from bertsmith.training.kinds.labeled.model import build_task_model, save_task_model
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe, TextVectorSettings
from bertsmith.training.kinds.labeled.record import head

TEXTS = ["a bad cab", "hello world", "z"]
ACTIVATIONS = {"bert": "tanh", "albert": "tanh", "roberta": "tanh", "ernie": "tanh"}
ACTIVATIONS |= {"electra": "gelu", "distilbert": "relu"}


def saved(
    folder: Path, variant: str, task: Task, vector: TextVectorSettings, layers: HeadSettings
) -> Path:
    """A folder as fine-tuning writes it, with random weights."""
    save_model(our_model(variant), tiny_tokenizer(), folder / "source")
    recipe = FinetuneRecipe(vector=vector, head=layers)
    model, tokenizer = build_task_model(recipe, load_model(folder / "source"), task, meta_sizes={})
    randomized(model)
    rows = examples(TEXTS)
    save_task_model(model.eval(), tokenizer, folder / "tuned", recipe=recipe, tables={}, rows=rows)
    return folder / "tuned"


def examples(texts: list[str]) -> list[Example]:
    return [Example(source="x", line=n, id=str(n), texts=(t,)) for n, t in enumerate(texts)]


def our_logits(predictor: ModelPredictor, texts: list[str]) -> np.ndarray:
    return np.stack(predictor.answered(examples(texts))[1].logits)


def their_logits(model: torch.nn.Module, texts: list[str]) -> np.ndarray:
    tokenizer = tiny_tokenizer()
    with torch.inference_mode():
        rows = [
            model(input_ids=torch.tensor([tokenizer.encode(t).ids.tolist()])).logits for t in texts
        ]
    return torch.cat(rows).numpy()


@pytest.mark.parametrize("variant", THEIRS)
def test_a_head_that_transformers_lacks_is_refused_there_and_still_an_encoder(
    variant: str, tmp_path: Path
) -> None:
    task = Classify(labels=("no", "yes"))
    folder = saved(tmp_path, variant, task, TextVectorSettings(pooling="mean"), HeadSettings())
    with pytest.raises(RuntimeError):
        transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    theirs, state = transformers.AutoModel.from_pretrained(folder, output_loading_info=True)
    assert {name for name in state["missing_keys"] if "pooler" not in name} == set()
    ids = tiny_tokenizer().encode(TEXTS[0]).ids
    with torch.inference_mode():
        hidden = theirs(input_ids=torch.from_numpy(ids).long()[None]).last_hidden_state[0]
    loaded = load_model(folder)
    with torch.inference_mode():
        ours = loaded.model.encoder(
            Inputs(torch.from_numpy(ids).long(), Layout.of([len(ids)]))
        ).hidden
    assert float((hidden - ours).abs().max()) < 1e-5
    with pytest.raises(ConfigError, match=r"no class for this head .mean pooling.*published"):
        check_transformers(folder)


@pytest.mark.parametrize("variant", THEIRS)
def test_an_own_head_of_a_known_shape_has_the_same_logits_in_transformers(
    variant: str, tmp_path: Path
) -> None:
    layers = HeadSettings(layers=(32,), activation=ACTIVATIONS[variant])
    task = Classify(labels=("no", "yes", "maybe"))
    folder = saved(tmp_path, variant, task, TextVectorSettings(pooling="first"), layers)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    predictor = load_predictor(folder)
    assert head(predictor.model)["kind"] == "published"
    assert theirs.config.id2label == {0: "no", 1: "yes", 2: "maybe"}
    assert np.abs(our_logits(predictor, TEXTS) - their_logits(theirs, TEXTS)).max() < 1e-5
    check_transformers(folder)


def test_the_logits_of_a_rewritten_head_are_those_that_were_trained(tmp_path: Path) -> None:
    layers = HeadSettings(layers=(32,))
    task = Classify(labels=("no", "yes"))
    save_model(our_model("bert"), tiny_tokenizer(), tmp_path / "source")
    recipe = FinetuneRecipe(vector=TextVectorSettings(pooling="first"), head=layers)
    model, tokenizer = build_task_model(
        recipe, load_model(tmp_path / "source"), task, meta_sizes={}
    )
    randomized(model)
    rows = examples(TEXTS)
    save_task_model(model.eval(), tokenizer, tmp_path / "m", recipe=recipe, tables={}, rows=rows)
    features = task.features(rows, tokenizer, recipe.length)
    trained = np.stack(compute_logits(model, features, device=torch.device("cpu")).logits)
    assert np.abs(trained - our_logits(load_predictor(tmp_path / "m"), TEXTS)).max() < 1e-6


GAPS = {
    "mean pooling": (TextVectorSettings(pooling="mean"), HeadSettings()),
    "layers = weighted": (TextVectorSettings(pooling="first", layers="weighted"), HeadSettings()),
    "head.batch_norm": (
        TextVectorSettings(pooling="first"),
        HeadSettings(layers=(32,), batch_norm=True),
    ),
    "one of width 32 with tanh": (TextVectorSettings(pooling="first"), HeadSettings(layers=(8,))),
}


@pytest.mark.parametrize("gap", GAPS)
def test_what_transformers_lacks_is_named_by_card_and_terminal(gap: str, tmp_path: Path) -> None:
    folder = saved(tmp_path, "bert", Classify(labels=("no", "yes")), *GAPS[gap])
    predictor = load_predictor(folder)
    gaps = head_gaps(predictor.model, predictor.lengths)
    assert gap in ", ".join(gaps)
    record = {"task": "classify", "head": {**head(predictor.model), "gaps": gaps}}
    assert "draw a random head" in model_card(record)
    whole = {**record, "training": {"epochs": 1}}
    lines = training_lines(folder, whole, finetune_result(whole), folder / "report.html")
    assert any(gap in line and "transformers" in line for line in lines)


def test_a_crf_is_refused_by_name(tmp_path: Path) -> None:
    task = Tag(labels=("O", "B-X", "I-X"), crf=Crf(3))
    folder = saved(tmp_path, "bert", task, TextVectorSettings(), HeadSettings())
    with pytest.raises(ConfigError, match=r"\(CRF\)"):
        check_transformers(folder)
    with pytest.raises(RuntimeError):
        transformers.AutoModelForTokenClassification.from_pretrained(folder)


def their_folder(folder: Path, variant: str, **settings: object) -> torch.nn.Module:
    """A classifier that transformers writes, with its labels and a tokenizer."""
    save_model(our_model(variant), None, folder / "config")
    config = transformers.AutoConfig.from_pretrained(folder / "config", **settings)
    theirs = transformers.AutoModelForSequenceClassification.from_config(config)
    theirs = randomized(theirs, seed=3).eval()
    theirs.save_pretrained(folder / "theirs")
    (folder / "theirs" / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    return theirs


@pytest.mark.parametrize("variant", THEIRS)
def test_a_classifier_of_transformers_predicts_here_with_equal_logits(
    variant: str, tmp_path: Path
) -> None:
    names = {0: "bad", 1: "fair", 2: "good"}
    theirs = their_folder(
        tmp_path, variant, id2label=names, label2id={name: n for n, name in names.items()}
    )
    predictor = load_predictor(tmp_path / "theirs")
    expected = their_logits(theirs, TEXTS)
    assert np.abs(our_logits(predictor, TEXTS) - expected).max() < 1e-5
    with bertsmith.load(tmp_path / "theirs", precision="fp32") as model:
        values = [one.value for one in model.predict(TEXTS)]
    assert values == [names[int(row.argmax())] for row in expected]


@pytest.mark.parametrize(
    ("problem", "count", "kind"),
    [
        (None, 1, "regress"),
        ("regression", 1, "regress"),
        ("multi_label_classification", 3, "multilabel"),
        (None, 2, "classify"),
    ],
)
def test_the_problem_type_of_transformers_names_the_task(
    problem: str | None, count: int, kind: str, tmp_path: Path
) -> None:
    theirs = their_folder(tmp_path, "bert", num_labels=count, problem_type=problem)
    predictor = load_predictor(tmp_path / "theirs")
    assert predictor.task.name == kind
    assert np.abs(our_logits(predictor, TEXTS) - their_logits(theirs, TEXTS)).max() < 1e-5
    (first, *_) = predictor.predict(TEXTS)
    if kind == "regress":
        assert first.value == pytest.approx(float(their_logits(theirs, TEXTS)[0, 0]), abs=1e-5)


def test_a_long_text_is_read_up_to_the_positions_of_the_model(tmp_path: Path) -> None:
    their_folder(tmp_path, "bert", num_labels=2)
    predictor = load_predictor(tmp_path / "theirs")
    (one,) = predictor.predict([" ".join(LETTERS * 3)])
    assert predictor.lengths.max_length == 40
    assert one.cut == 78 + 2 - 40
