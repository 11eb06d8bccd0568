"""TextClassifier and TextRegressor: scikit-learn's own checks where they apply, and its tools."""

from __future__ import annotations

import os
import pickle
import pickletools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from one_thread import one_thread  # noqa: F401 - a fixture of all tests here
from tiny_finetuning import RECIPE, rows

import bertsmith
from bertsmith.api.estimators import TextClassifier, TextRegressor, TextTagger, rows_of
from bertsmith.errors import ArgumentError, BertsmithError, ConfigError
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone, is_classifier, is_regressor  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402

EXACT = RECIPE.model_copy(update={"run": RunSettings(precision="fp32")})


@pytest.fixture(scope="module")
def data() -> tuple[list[str], np.ndarray]:
    found = rows(160)
    return [row.texts[0] for row in found], np.array([row.target.name for row in found])


@pytest.fixture(scope="module")
def fitted(source: str, data: tuple[list[str], np.ndarray]) -> TextClassifier:
    return TextClassifier(source, recipe=EXACT).fit(*data)


def test_a_classifier_learns_and_says_how_sure_it_is(
    fitted: TextClassifier, data: tuple[list[str], np.ndarray]
) -> None:
    texts, labels = data
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.score(texts, labels) > 0.9
    odds = fitted.predict_proba(texts)
    assert odds.shape == (160, 2)
    np.testing.assert_allclose(odds.sum(axis=1), 1.0, atol=1e-5)
    assert (fitted.classes_[odds.argmax(axis=1)] == fitted.predict(texts)).all()


def test_a_pickle_holds_weights_as_safetensors_and_says_the_same(
    fitted: TextClassifier, data: tuple[list[str], np.ndarray], tmp_path: Path
) -> None:
    packed = pickle.dumps(fitted)
    again = pickle.loads(packed)
    np.testing.assert_array_equal(again.predict_proba(data[0]), fitted.predict_proba(data[0]))
    assert "model.safetensors" in again.files_
    names = [str(value) for code, value, _ in pickletools.genops(packed) if code.name == "GLOBAL"]
    strings = [str(value) for _, value, _ in pickletools.genops(packed) if isinstance(value, str)]
    assert not [name for name in (*names, *strings) if name.startswith("torch")]  # no live module
    path = tmp_path / "model.pickle"
    path.write_bytes(packed)
    code = (
        "import pickle, sys; model = pickle.load(open(sys.argv[1], 'rb'));"
        "print(model.predict(['red bird'])[0])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == fitted.predict(["red bird"])[0]


def test_a_saved_estimator_is_loaded_with_its_settings_classes_and_numbers(
    fitted: TextClassifier, data: tuple[list[str], np.ndarray], tmp_path: Path
) -> None:
    fitted.save(tmp_path / "mood")
    again = TextClassifier.load(tmp_path / "mood")
    np.testing.assert_array_equal(again.predict_proba(data[0]), fitted.predict_proba(data[0]))
    assert again.get_params() == fitted.get_params()
    assert again.classes_.dtype == fitted.classes_.dtype
    assert bertsmith.predict(tmp_path / "mood", ["red bird"], precision="fp32")[0].value in "noyes"
    with pytest.raises(ArgumentError, match="fine-tuned to classify"):
        TextRegressor.load(tmp_path / "mood")
    with pytest.raises(NotFittedError):
        TextClassifier().save(tmp_path / "none")
    for name in ("estimator.json", "hashes.json"):  # as a folder of `bertsmith finetune`
        (tmp_path / "mood" / name).unlink()
    assert TextClassifier.load(tmp_path / "mood").predict(data[0]).tolist() == (
        fitted.predict(data[0]).tolist()
    )


def test_device_and_precision_reach_training_and_prediction(source: str, tmp_path: Path) -> None:
    found = rows(24)
    texts, labels = [row.texts[0] for row in found], [row.target.name for row in found]
    model = TextClassifier(source, recipe=RECIPE, epochs=1, device="cpu", precision="fp32")
    assert model._recipe().run.precision == "fp32"
    model.fit(texts, labels).save(tmp_path / "model")
    assert model._predictor.host.device == torch.device("cpu")
    again = TextClassifier.load(tmp_path / "model", precision="auto")
    assert again._predictor.host.precision == again.precision == "auto"
    with pytest.raises(BertsmithError, match="gpu"):
        TextClassifier(source, recipe=EXACT, device="gpu").fit(texts, labels)


def test_a_tagger_learns_words_and_characters(source: str, tmp_path: Path) -> None:
    found = rows(120)
    words = [row.texts[0].split() for row in found]
    tags = [["B-BIRD" if word == "bird" else "O" for word in row] for row in words]
    model = TextTagger(source, recipe=EXACT, epochs=8).fit(words, tags)
    assert model.score(words, tags) > 0.95
    assert [len(row) for row in model.predict(words)] == [len(row) for row in words]
    model.save(tmp_path / "tagger")
    assert TextTagger.load(tmp_path / "tagger").predict(words[:9]) == model.predict(words[:9])
    texts = [" ".join(row) for row in words[:24]]
    signs = [["B-X" if sign == "b" else "O" for sign in text] for text in texts]
    by_sign = TextTagger(source, recipe=EXACT, epochs=1).fit(texts, signs)
    assert [len(row) for row in by_sign.predict(texts)] == [len(text) for text in texts]
    with pytest.raises(ArgumentError, match="row 0 of X has 1 words or characters, 2 tags"):
        TextTagger(source).fit([["one"]], [["O", "O"]])


@pytest.mark.parametrize(
    "names", [(3, 7), (True, False), (np.str_("a"), np.str_("b")), (0.0, 1.0), ("01", "1")]
)
def test_classes_come_back_as_they_were_given(source: str, names: tuple[Any, Any]) -> None:
    found = rows(32)
    labels = [names[row.target.name == "yes"] for row in found]
    model = TextClassifier(source, recipe=EXACT, epochs=1).fit([r.texts[0] for r in found], labels)
    assert model.classes_.tolist() == sorted(np.asarray(names).tolist())
    said = model.predict(["red bird", "red"])
    assert said.dtype == np.asarray(labels).dtype
    assert set(said.tolist()) <= set(np.asarray(names).tolist())


def test_a_regressor_learns_numbers(source: str) -> None:
    found = rows(160, "regress")
    texts, numbers = [row.texts[0] for row in found], [row.target.value for row in found]
    model = TextRegressor(source, recipe=EXACT, epochs=8).fit(texts, numbers)
    assert model.score(texts, numbers) > 0.8
    said = model.predict(texts)
    left = 1 - ((said - numbers) ** 2).sum() / ((numbers - np.mean(numbers)) ** 2).sum()
    assert model.score(texts, numbers) == pytest.approx(left)
    assert is_regressor(model)


def test_tools_of_scikit_learn_work_with_it(
    source: str, data: tuple[list[str], np.ndarray]
) -> None:
    texts, labels = data
    model = TextClassifier(source, recipe=EXACT, epochs=1)
    assert is_classifier(model)
    copied = clone(model)
    assert copied is not model
    assert copied.get_params() == model.get_params()
    scores = cross_val_score(model, texts[:48], labels[:48], cv=2)
    assert scores.shape == (2,)
    search = GridSearchCV(model, {"lr": [1e-6, 3e-3]}, cv=2).fit(texts[:48], labels[:48])
    assert set(search.best_params_) == {"lr"}
    lower = FunctionTransformer(lambda X: [text.lower() for text in X])
    assert len(make_pipeline(lower, model).fit(texts[:24], labels[:24]).predict(texts[:3])) == 3


def test_pairs_and_tables_are_rows_of_fields(source: str) -> None:
    found = rows(24)
    pairs = np.array([[row.texts[0], "red"] for row in found], dtype=object)
    labels = [row.target.name for row in found]
    model = TextClassifier(source, recipe=EXACT, epochs=1).fit(pairs, labels)
    np.testing.assert_allclose(
        model.predict_proba(pairs[:3]), model.predict_proba([tuple(row) for row in pairs[:3]])
    )


class Frame:
    """Iterates over the names of its columns, as pandas does."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def __iter__(self) -> Iterator[str]:
        return iter(["a", "b"])

    def to_numpy(self) -> np.ndarray:
        return self._values


def test_a_frame_is_read_by_its_rows() -> None:
    values = np.array([["red", "blue"], ["bird", "tree"], ["a", "b"]], dtype=object)
    assert rows_of(Frame(values)) == [("red", "blue"), ("bird", "tree"), ("a", "b")]
    assert rows_of(Frame(values[:, 0])) == [("red",), ("bird",), ("a",)]


def test_settings_are_laid_over_the_recipe(source: str) -> None:
    model = TextClassifier(source, recipe=EXACT, epochs=2, lr=1e-5, batch=4, max_length=32)
    made = model.set_params(random_state=5)._recipe()
    assert isinstance(made, FinetuneRecipe)
    assert (made.plan.epochs, made.plan.batch, made.optimizer.lr) == (2.0, 4, 1e-5)
    assert (made.length.max_length, made.run.seed) == (32, 5)
    assert made.encoder == EXACT.encoder
    assert TextClassifier()._recipe().plan == TextClassifier(recipe="default")._recipe().plan
    with pytest.raises(ConfigError, match="batch"):
        TextClassifier(batch=0)._recipe()
    assert repr(TextClassifier(lr=0.1)) == "TextClassifier(lr=0.1)"


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ("one text", ["a"], "must be a list of texts"),
        ([1.0, 2.0], ["a", "b"], "row 0 of X is float, not a text"),
        ([], [], "0 sample"),
        (["a", ("b", "c")], ["a", "b"], "row 1 of X has 2 fields"),
        (["a", "b"], ["a"], "2 texts in X and 1 labels in y"),
        (["a", "b"], None, "requires y to be passed"),
        (["a", "b"], ["x", "x"], "one class only"),
        (["a", "b"], [0.5, 1.5], "Unknown label type"),
        (["a", "b"], [1.0, float("nan")], "NaN"),
        (["a", "b"], [["x", "y"], ["x", "y"]], "1d array"),
    ],
)
def test_what_cannot_be_learned_is_said(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        TextClassifier().fit(X, y)


def test_weights_of_rows_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="sample_weight"):
        TextClassifier().fit(["a", "b"], ["x", "y"], sample_weight=[1, 2])


@pytest.mark.parametrize("kind", [NotFittedError, BertsmithError])
def test_an_unfitted_estimator_raises_an_error_of_scikit_learn_and_of_ours(kind: Any) -> None:
    with pytest.raises(kind, match="not fitted yet"):
        TextClassifier().predict(["a"])


def test_an_unknown_setting_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="Invalid parameter 'epoch'"):
        TextClassifier().set_params(epoch=3)


def test_it_is_loaded_on_first_use() -> None:
    assert bertsmith.TextClassifier is TextClassifier
    code = (
        "import sys, bertsmith; assert not {'torch', 'sklearn'} & set(sys.modules);"
        "bertsmith.TextClassifier()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
