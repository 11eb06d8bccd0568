"""Every public function refuses arguments of a wrong type with an error of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bertsmith as public


@pytest.fixture(scope="module")
def model(classifier: Path) -> public.LoadedModel:
    return public.load(classifier)


Call = Callable[[Any, Any], object]
CALLS: dict[str, Call] = {
    "load": lambda folder, _: public.load(5),  # type: ignore[arg-type]
    "load device": lambda folder, _: public.load(folder, device=5),  # type: ignore[arg-type]
    "load precision": lambda folder, _: public.load(folder, precision=5),  # type: ignore[arg-type]
    "load threads": lambda folder, _: public.load(folder, threads="2"),  # type: ignore[arg-type]
    "load_model": lambda folder, _: public.load_model(None),  # type: ignore[arg-type]
    "load_model dtype": lambda folder, _: public.load_model(folder, dtype="f"),  # type: ignore[arg-type]
    "predict": lambda folder, _: public.predict(5, ["a"]),  # type: ignore[arg-type]
    "predict a number": lambda folder, _: public.predict(folder, 5),  # type: ignore[arg-type]
    "predict numbers": lambda folder, _: public.predict(folder, [5]),  # type: ignore[list-item]
    "predict None": lambda folder, _: public.predict(folder, [None]),  # type: ignore[list-item]
    "encode": lambda _, model: model.encode(5),
    "encode None": lambda _, model: model.encode([None]),
    "encode batch_size": lambda _, model: model.encode(["a"], batch_size="8"),
    "encode normalize": lambda _, model: model.encode(["a"], normalize="yes"),
    "encode prompt": lambda _, model: model.encode(["a"], prompt=5),
    "encode_stream": lambda _, model: model.encode_stream(5),
    "similarity": lambda _, model: model.similarity(5, ["a"]),
    "finetune data": lambda folder, _: public.finetune(5, model=folder, out="x"),  # type: ignore[arg-type]
    "finetune model": lambda folder, _: public.finetune("x", model=5, out="y"),  # type: ignore[arg-type]
    "finetune settings": lambda folder, _: public.finetune(
        "x",
        model=folder,
        out="y",
        settings=5,  # type: ignore[arg-type]
    ),
    "evaluate": lambda folder, _: public.evaluate(5, "x"),  # type: ignore[arg-type]
    "evaluate data": lambda folder, _: public.evaluate(folder, 5),  # type: ignore[arg-type]
    "evaluate spec": lambda folder, _: public.evaluate(folder, "x", spec=5),  # type: ignore[arg-type]
    "pretrain": lambda folder, _: public.pretrain(5, "x", "y"),  # type: ignore[arg-type]
    "pretrain corpus": lambda folder, _: public.pretrain("bert", 5, "y"),  # type: ignore[arg-type]
    "load_words": lambda folder, _: public.load_words(5),  # type: ignore[arg-type]
    "load_word_vectors": lambda folder, _: public.load_word_vectors(5),  # type: ignore[arg-type]
    "train_word_vectors": lambda folder, _: public.train_word_vectors(5, "y"),  # type: ignore[arg-type]
    "evaluate_word_vectors": lambda folder, _: public.evaluate_word_vectors(5, 5),  # type: ignore[arg-type]
    "open_lm": lambda folder, _: public.open_lm(5),  # type: ignore[arg-type]
    "train_language_model": lambda folder, _: public.train_language_model(5),  # type: ignore[arg-type]
    "score_language_model": lambda folder, _: public.score_language_model(5, ["x"]),  # type: ignore[arg-type]
    "score_mixture": lambda folder, _: public.score_mixture(5, ["x"]),  # type: ignore[arg-type]
    "generate_with_language_model": lambda folder, _: public.generate_with_language_model(5, ["a"]),  # type: ignore[arg-type]
    "road": lambda folder, _: public.road(5, "y"),  # type: ignore[arg-type]
    "road one file": lambda folder, _: public.road("missing.txt", "y", steps=1),
    "Tokenizer.from_folder": lambda folder, _: public.Tokenizer.from_folder(5),  # type: ignore[arg-type]
    "Tokenizer.save": lambda _, model: model.tokenizer.save(5),
    "Tokenizer.encode": lambda _, model: model.tokenizer.encode(5),
    "Tokenizer.encode_batch": lambda _, model: model.tokenizer.encode_batch(5),
    "Tokenizer.decode": lambda _, model: model.tokenizer.decode("abc"),
    "TextClassifier.fit": lambda folder, _: public.TextClassifier(model=5).fit(["a", "b"], [0, 1]),  # type: ignore[arg-type]
    "TextClassifier.load": lambda folder, _: public.TextClassifier.load(5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_type_is_refused_by_name(
    name: str,
    classifier: Path,
    model: public.LoadedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(public.BertsmithError):
        CALLS[name](classifier, model)
    assert list(tmp_path.iterdir()) == []
